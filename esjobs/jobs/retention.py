"""Takes the buckets of months long past out of sight, with their books, and sweeps them away."""

from collections import defaultdict
from dataclasses import replace
from datetime import date

from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.jobs.aggregate import retired_days
from esjobs.jobs.tables import DAYS
from esjobs.runs.publication import read_table
from esjobs.store.base import JobStore


def prune_buckets(store: JobStore, months: int, report: RunReport, *, dry_run: bool = False) -> RunReport:
    """Keep the buckets of so many of the newest months that have any, and remove the others.

    Whole months go: a cluster drops their indices. Jobs stay, and so do the results of runs that were made
    from these buckets. ``report``: that of pruning runs, to which this adds. ``dry_run`` only says what would
    go. Raises :class:`UsageError` for a number of months below one.
    """
    if months < 1:
        raise UsageError(f"prune keeps the buckets of at least one month, not of {months}")
    days: dict[tuple[int, int], set[date]] = defaultdict(set)
    for day in read_table(store, DAYS, columns=["day"]).column("day").to_pylist():
        days[day.year, day.month].add(day)
    old = sorted(days, reverse=True)[months:][::-1]
    gone = [day for month in old for day in sorted(days[month])]
    if not gone:
        return report
    counts = {**report.counts, "days of buckets": len(gone)}
    if dry_run:
        notes = [
            f"would go: the buckets of {year}-{month:02}, {len(days[year, month])} days: those of the newest "
            f"{months} months are kept"
            for year, month in old
        ]
        return replace(report, counts=counts, notes=(*report.notes, *notes))
    store.publish(retired_days(gone))
    counts["rows removed"] = counts.get("rows removed", 0) + store.sweep()
    return replace(report, counts=counts)
