"""Record of what is published, beside the filters of the aliases.

Aliases are easily removed or restored without filters. Each index has a record of its aliases; one document
is a redo log of a publication. Nothing is deleted where the two differ.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esjobs.core.errors import StoreBusyError
from esjobs.store.elastic.results.aliases import Aliases, Location, Shown, seen_of
from esjobs.store.elastic.state import State

_KIND = "published"
_KEY = "publication"

Recorded = dict[str, dict[str, Shown]]
"""By index, what each of its aliases is to show."""


@dataclass(frozen=True)
class Publication:
    """Last publication; ``text``: as stored, None if there was none.

    ``after``: aliases by table; ``over``: retired generations; ``done``: aliases and records have it.
    """

    number: int = 0
    done: bool = True
    after: Mapping[str, Aliases] = field(default_factory=dict)
    over: Sequence[Location] = ()
    text: str | None = None

    def write(self) -> str:
        """Return the named value."""
        over = [[location.index, location.number] for location in self.over]
        # what is done needs no repetition
        changes = {} if self.done else {"after": self.after, "over": over}
        return json.dumps({"number": self.number, "done": self.done, **changes}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str | None) -> "Publication":
        """Parse a named value."""
        if text is None:
            return cls()
        stored = json.loads(text)
        over = [Location(index, number) for index, number in stored.get("over", [])]
        return cls(stored["number"], stored["done"], stored.get("after", {}), over, text)

    @property
    def indices(self) -> Aliases:
        """Wanted aliases of all changed indices."""
        return {index: shown for of_table in self.after.values() for index, shown in of_table.items()}


class Records:
    """Records in the state index."""

    def __init__(self, state: State) -> None:
        self._state = state

    def of(self, indices: Iterable[str]) -> Recorded:
        """Return the records of some indices, if present."""
        names = {_name(index): index for index in indices}
        found = self._state.documents(names)
        return {names[name]: _shown(body) for name, body in found.items()}

    def every(self) -> Recorded:
        """Return all records."""
        found = self._state.documents_of(_KIND)
        return {name.removeprefix(f"{_KIND}-"): _shown(body) for name, body in found.items()}

    def write(self, shown: Mapping[str, Mapping[str, Shown]], number: int) -> None:
        """Record aliases as of a publication."""
        self._state.write(_documents(shown, number))

    def create(self, shown: Mapping[str, Mapping[str, Shown]]) -> None:
        """Record aliases of indices without a record."""
        self._state.create(_documents(shown, self.publication().number))

    def remove(self, index: str) -> None:
        """Remove the record of a dropped index."""
        self._state.delete(_name(index))

    def publication(self) -> Publication:
        """Return the last publication."""
        return Publication.read(self._state.value(_KEY))

    def begin(self, last: Publication, after: Mapping[str, Aliases], over: Sequence[Location]) -> Publication:
        """Record a publication before it starts. Raises :class:`StoreBusyError` on conflict."""
        return self._set(last, Publication(last.number + 1, False, after, over))

    def finish(self, publication: Publication) -> Publication:
        """Record a publication as done."""
        return self._set(publication, replace(publication, done=True))

    def _set(self, old: Publication, new: Publication) -> Publication:
        text = new.write()
        if not self._state.compare_and_set(_KEY, old.text, text):
            raise StoreBusyError("another process started to publish results; run it again later")
        return replace(new, text=text)


def agree(shown: Mapping[str, Shown], recorded: Mapping[str, Shown]) -> bool:
    """True if aliases show what the record says; empty ones may be missing."""
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
