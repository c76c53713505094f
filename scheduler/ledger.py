"""Ledger of nights: steps done, with their inputs, stored beside the results."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, timedelta
from typing import Any

from esjobs.core.clock import Clock
from esjobs.core.query import Days
from esjobs.publish.publication import read_table, rows_table, tidy
from esjobs.schema.nights import NIGHT_STEPS, NIGHTS
from esjobs.store.base import Hide, JobStore

Row = dict[str, Any]  # A row of the ledger, by columns

RUNNING_NIGHTS = "running nights"  # Lease of the process that runs nights


class Ledger:
    """Accounts of nights in a store. A night and its steps are written together, in one switch.

    Accounts of days that have not begun come from a fast clock: only :meth:`future` returns them.
    """

    def __init__(self, store: JobStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._written: Row = {}

    def nights(self, first: date | None = None, last: date | None = None) -> list[Row]:
        """Return the accounts of nights, oldest first; both ends included."""
        today = self._today
        last = today if last is None else min(last, today)
        return sorted(self._rows(NIGHTS, first, last), key=lambda row: row["night"])

    def future(self) -> list[date]:
        """Return the nights of the future that have an account, oldest first."""
        return sorted(row["night"] for row in self._rows(NIGHTS, self._today + timedelta(days=1), None))

    @property
    def _today(self) -> date:
        return self._clock().astimezone(UTC).date()

    def night(self, night: date) -> Row | None:
        """Return the account of one night."""
        return next(iter(self.nights(night, night)), None)

    def steps(self, night: date) -> list[Row]:
        """Return the steps of one night, in order."""
        return sorted(self._rows(NIGHT_STEPS, night, night), key=lambda row: row["position"])

    def write(self, row: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
        """Replace the account of a night; the old one stays, invisible, until :meth:`tidy`."""
        name = str(row["night"])
        changes = [self._store.replace(NIGHT_STEPS, name, rows_table(NIGHT_STEPS, steps).to_batches())]
        # steps change between two accounts of a night far more often than the night itself
        if row != self._written:
            changes.append(self._store.replace(NIGHTS, name, rows_table(NIGHTS, [row]).to_batches()))
        self._store.publish(changes)
        self._written = dict(row)

    def tidy(self) -> None:
        """Remove replaced accounts."""
        tidy(self._store)

    def remove(self, nights: Iterable[date]) -> None:
        """Remove the accounts of nights."""
        gone = [Hide(table, str(night)) for night in nights for table in (NIGHTS, NIGHT_STEPS)]
        if gone:
            self._store.publish(gone)
            self._written = {}
            self.tidy()

    def _rows(self, table: Any, first: date | None, last: date | None) -> list[Row]:
        first, last = first or date.min, last or date.max
        if first > last:
            return []
        rows: list[Row] = read_table(self._store, table, [Days("night", first, last)]).to_pylist()
        return rows


def days_between(first: date, last: date) -> list[date]:
    """Return all days from first to last, both included; none if last lies before first."""
    return [date.fromordinal(day) for day in range(first.toordinal(), last.toordinal() + 1)]
