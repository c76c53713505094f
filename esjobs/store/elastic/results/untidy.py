"""The months in which something may be left to sweep, so that a night does not look into years of them.

One named value lists them by table, each with a number that every mention raises: whoever takes a month off
the list after sweeping it does not take off what was mentioned meanwhile. What was mentioned, looked into and
taken off before anything was there is mentioned again by whoever then put something there.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.core.tables import Table
from esjobs.store.elastic.state import State

_KEY = "months to sweep"
_EVERY = ""
"""Stands for all months: nobody has kept the list yet."""
_ATTEMPTS = 5


@dataclass(frozen=True)
class Untidy:
    """What was on the list at some moment. ``text``: as it was stored; None: nothing was."""

    text: str | None
    mentions: Mapping[str, Mapping[str, int]]

    def months(self, table: Table) -> set[str] | None:
        """The months of a table to look into; None: all of them."""
        months = set(self.mentions.get(table.name, {}))
        return None if self.text is None or _EVERY in months else months


class UntidyMonths:
    """The list. Whoever is about to write rows, or to take some out of sight, mentions their months."""

    def __init__(self, state: State) -> None:
        self._state = state

    def now(self) -> Untidy:
        """What is on it."""
        text = self._state.value(_KEY)
        return Untidy(text, {} if text is None else json.loads(text))

    @contextmanager
    def mention(self, months: Iterable[tuple[Table, str]]) -> Iterator[None]:
        """Put months of tables on it before something happens there, and see that they are on it afterwards.

        Raises :class:`StoreBusyError` when others change it all the time.
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
                mentioned = _EVERY if old.text is None or _EVERY in of_table else month
                of_table[mentioned] = of_table.get(mentioned, 0) + 1
            if self._state.compare_and_set(_KEY, old.text, _text(mentions)):
                return
        raise StoreBusyError("other processes begin to write results all the time; run it again later")

    def settle(self, swept: Untidy, left: Mapping[str, Collection[str]]) -> None:
        """Take off what was swept, but for the months of tables that are ``left``; not what is newer."""
        mentions = {
            name: {month: swept.mentions.get(name, {}).get(month, 0) for month in sorted(months)}
            for name, months in sorted(left.items())
            if months
        }
        if swept.text is None or mentions != swept.mentions:
            # whoever was quicker has mentioned something: the next sweep looks once more
            self._state.compare_and_set(_KEY, swept.text, _text(mentions))


def _text(mentions: Mapping[str, Mapping[str, int]]) -> str:
    return json.dumps(mentions, sort_keys=True, separators=(",", ":"))
