"""Counts of the jobs of a window under the cleaning rules, when nothing is left to fit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from esjobs.core.query import Count, Days, Filter, Present, Query
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.jobs import DAYS
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class JobCounts:
    """Jobs that pass the rules, and those dropped by reason, in the order in which the rules apply."""

    binned: int
    dropped: Mapping[str, int]

    @property
    def total(self) -> int:
        """All jobs that were counted."""
        return self.binned + sum(self.dropped.values())

    @property
    def reasons(self) -> str:
        """The dropped in words.

        >>> JobCounts(0, {"not finished": 2, "no events": 247}).reasons
        '2 not finished, 247 no events'
        """
        return ", ".join(f"{count} {reason}" for reason, count in self.dropped.items())


def counts_of_books(store: JobStore, window: Window, rules: CleaningRules) -> JobCounts:
    """Add up the books of the aggregated days of a window; nothing where none is aggregated."""
    days = Days.of_window(window)
    return _added(read_table(store, DAYS, [days]).to_pylist(), rules)


def last_day(store: JobStore, window: Window) -> datetime | None:
    """The last aggregated day of a window that has jobs, its midnight; None where none is aggregated."""
    batches = store.read(DAYS, [Days.of_window(window)], ["day"], order=["-day"], limit=1)
    days = [row["day"] for batch in batches for row in batch.to_pylist()]
    return datetime.combine(days[0], time(0), UTC) if days else None


def count_jobs(store: JobStore, window: Window, rules: CleaningRules, where: tuple[Filter, ...]) -> JobCounts:
    """Count the stored jobs that match filters, as cleaning would sort them; one query."""
    query = Query((), (Count(),), window, where=where, drops=rules.drops())
    return _added(store.aggregate(query).books.to_pylist(), rules)


def has_events(store: JobStore) -> bool:
    """True if a stored job records its events, so that speed factors can be fitted; one query."""
    counted = store.aggregate(Query((), (Count(),), where=(Present("events"),), books=False)).table
    return bool(counted.num_rows and counted.column("n_jobs")[0].as_py())


def _added(books: Iterable[Mapping[str, Any]], rules: CleaningRules) -> JobCounts:
    binned = 0
    # in the order of the rules, for a reader of the reasons
    dropped = {rule.reason: 0 for rule in rules.drops()}
    for row in books:
        if row["kind"] == "binned":
            binned += row["n_jobs"]
        elif row["kind"] == "dropped":
            dropped[row["outcome"]] = dropped.get(row["outcome"], 0) + row["n_jobs"]
    return JobCounts(binned, {reason: count for reason, count in dropped.items() if count})
