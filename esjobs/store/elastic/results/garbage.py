"""List of months with possible garbage.

One named value, with a number per month that every mention raises: a sweeper removes a month only if nothing
was mentioned meanwhile. Writers check their mention afterwards.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.core.tables import Table
from esjobs.store.elastic.state import State

_KEY = "months with garbage"
# Stands for all months: nobody has kept the list yet
_EVERY = ""
_ATTEMPTS = 5


@dataclass(frozen=True)
class GarbageList:
    """List at some moment; ``text``: as stored, None without a list."""

    text: str | None
    mentions: Mapping[str, Mapping[str, int]]

    def months(self, table: Table) -> set[str] | None:
        """Return the months of a table to examine; None: all."""
        months = set(self.mentions.get(table.name, {}))
        return None if self.text is None or _EVERY in months else months


class GarbageMonths:
    """List to which writers add months before they write or retire."""

    def __init__(self, state: State) -> None:
        self._state = state

    def now(self) -> GarbageList:
        """Return the present list."""
        text = self._state.value(_KEY)
        return GarbageList(text, {} if text is None else json.loads(text))

    @contextmanager
    def mention(self, months: Iterable[tuple[Table, str]]) -> Iterator[None]:
        """Add months before a change, and verify them afterwards.

        Raises :class:`StoreBusyError` on contention.
        """
        named = sorted({(table.name, month) for table, month in months})
        if named:
            self._add(named)
        yield
        if not named:
            return
        # what happened has happened; if the list cannot be seen to, the next mention of the month will do
        with suppress(StoreError):
            mentions = self.now().mentions
            missing = [
                (name, month) for name, month in named if not {month, _EVERY} & {*mentions.get(name, {})}
            ]
            if missing:
                self._add(missing)

    def _add(self, named: Sequence[tuple[str, str]]) -> None:
        for _ in range(_ATTEMPTS):
            old = self.now()
            mentions = {name: dict(of_table) for name, of_table in old.mentions.items()}
            for name, month in named:
                of_table = mentions.setdefault(name, {})
                # nobody has kept a list: the first sweep has to look at all months once
                mentioned = _EVERY if old.text is None or _EVERY in of_table else month
                of_table[mentioned] = of_table.get(mentioned, 0) + 1
            if self._state.compare_and_set(_KEY, old.text, _text(mentions)):
                return
        raise StoreBusyError("other processes keep starting to write results; run it again later")

    def settle(self, examined: GarbageList, left: Mapping[str, Collection[str]]) -> None:
        """Remove collected months, except those ``left`` and newer mentions."""
        mentions = {
            name: {month: examined.mentions.get(name, {}).get(month, 0) for month in sorted(months)}
            for name, months in sorted(left.items())
            if months
        }
        if examined.text is None or mentions != examined.mentions:
            # a quicker process has mentioned something: the next collection looks once more
            self._state.compare_and_set(_KEY, examined.text, _text(mentions))


def _text(mentions: Mapping[str, Mapping[str, int]]) -> str:
    return json.dumps(mentions, sort_keys=True, separators=(",", ":"))
