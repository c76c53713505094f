"""What is published, recorded a second time: documents of the state beside the filters of the aliases.

An alias is easily removed or made anew by somebody who tidies a cluster, restored without its filter, or not
at all. So each index of rows has a record of what its aliases show, and one document more is a redo log of
one: what a publication is about to change. Where aliases and records differ nothing is deleted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esjobs.core.errors import StoreBusyError
from esjobs.store.elastic.results.aliases import Aliases, Place, Shown, seen_of
from esjobs.store.elastic.state import State

_KIND = "published"
_KEY = "publication"

Recorded = dict[str, dict[str, Shown]]
"""By index, what each of its aliases is to show."""


@dataclass(frozen=True)
class Publication:
    """The last publication. ``text``: as it was stored; None: there was none.

    ``after``: by table, what the aliases of the indices that it changes are to show; ``over``: the
    generations that it takes out of sight. ``done``: aliases and records have it.
    """

    number: int = 0
    done: bool = True
    after: Mapping[str, Aliases] = field(default_factory=dict)
    over: Sequence[Place] = ()
    text: str | None = None

    def write(self) -> str:
        """The named value."""
        over = [[place.index, place.number] for place in self.over]
        # what is done needs no repetition
        changes = {} if self.done else {"after": self.after, "over": over}
        return json.dumps({"number": self.number, "done": self.done, **changes}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str | None) -> "Publication":
        """The publication that a named value tells of."""
        if text is None:
            return cls()
        stored = json.loads(text)
        over = [Place(index, number) for index, number in stored.get("over", [])]
        return cls(stored["number"], stored["done"], stored.get("after", {}), over, text)

    @property
    def indices(self) -> Aliases:
        """What the aliases of all indices that it changes are to show."""
        return {index: shown for of_table in self.after.values() for index, shown in of_table.items()}


class Records:
    """The documents of the state that tell what is published."""

    def __init__(self, state: State) -> None:
        self._state = state

    def of(self, indices: Iterable[str]) -> Recorded:
        """The records of some indices; those that have none are left out."""
        names = {_name(index): index for index in indices}
        found = self._state.documents(names)
        return {names[name]: _shown(body) for name, body in found.items()}

    def every(self) -> Recorded:
        """The records of all indices."""
        found = self._state.documents_of(_KIND)
        return {name.removeprefix(f"{_KIND}-"): _shown(body) for name, body in found.items()}

    def write(self, shown: Mapping[str, Mapping[str, Shown]], number: int) -> None:
        """Record what the aliases of some indices show since a publication."""
        self._state.write(_documents(shown, number))

    def create(self, shown: Mapping[str, Mapping[str, Shown]]) -> None:
        """Record what the aliases of some indices show; one that has a record by now keeps it."""
        self._state.create(_documents(shown, self.publication().number))

    def remove(self, index: str) -> None:
        """Forget an index that was dropped."""
        self._state.delete(_name(index))

    def publication(self) -> Publication:
        """The last publication."""
        return Publication.read(self._state.value(_KEY))

    def begin(self, last: Publication, after: Mapping[str, Aliases], over: Sequence[Place]) -> Publication:
        """Record what is about to change, before it does.

        Raises :class:`StoreBusyError` if another process has begun to publish, which has taken the turn.
        """
        return self._set(last, Publication(last.number + 1, False, after, over))

    def finish(self, publication: Publication) -> Publication:
        """Record that nothing of a publication is left to do, or to be undone."""
        return self._set(publication, replace(publication, done=True))

    def _set(self, old: Publication, new: Publication) -> Publication:
        text = new.write()
        if not self._state.compare_and_set(_KEY, old.text, text):
            raise StoreBusyError("another process began publishing results; run it again later")
        return replace(new, text=text)


def agree(shown: Mapping[str, Shown], recorded: Mapping[str, Shown]) -> bool:
    """True if the aliases of an index show what its record says; one that shows nothing may be missing."""
    return seen_of(shown) == seen_of(recorded)


def _name(index: str) -> str:
    return f"{_KIND}-{index}"


def _documents(shown: Mapping[str, Mapping[str, Shown]], number: int) -> dict[str, Mapping[str, Any]]:
    return {
        _name(index): {"kind": _KIND, "value": json.dumps({"number": number, "shown": of_index})}
        for index, of_index in shown.items()
    }


def _shown(body: Mapping[str, Any]) -> dict[str, Shown]:
    shown: dict[str, Shown] = json.loads(body["value"])["shown"]
    return shown
