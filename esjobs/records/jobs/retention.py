"""Takes months long past of what is kept per day out of sight, and replaced versions of jobs away."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from esjobs.core.errors import UsageError
from esjobs.core.query import Count, Query
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.publish.publication import read_table
from esjobs.publish.retention import Keep, prune
from esjobs.schema.catalogue import KINDS, TABLES
from esjobs.schema.jobs import BUCKETS, DAYS, LOADS
from esjobs.store.base import Hide, JobStore

# A day of jobs has its buckets and its books; people count it once.
_OF_JOBS = (BUCKETS, DAYS)


def prune_all(
    store: JobStore,
    keep: Keep | int,
    months: int | None,
    undo_days: int,
    now: datetime,
    *,
    dry_run: bool = False,
) -> RunReport:
    """Prune runs of every kind, rows per day of old months, and replaced versions of jobs.

    ``months``: newest months to keep, None: all. ``undo_days``: days for which a load can be undone.
    """
    report = prune(store, KINDS, keep, dry_run=dry_run)
    if months is not None:
        per_day = [table for table in TABLES if table.partition == "day"]
        report = prune_days(store, per_day, months, report, dry_run=dry_run)
    return prune_replaced(store, undo_days, now, report, dry_run=dry_run)


def prune_days(
    store: JobStore, tables: Sequence[Table], months: int, report: RunReport, *, dry_run: bool = False
) -> RunReport:
    """Keep the newest ``months`` months that have any day in ``tables``, and remove the days of the others.

    Complete months go, because a cluster drops their indices. Jobs and results of runs stay. ``report``: to
    which this adds. Raises :class:`UsageError` for less than one month.
    """
    if months < 1:
        raise UsageError(f"prune keeps the buckets of at least one month; got {months}")
    days = {table.name: _days_of(store, table) for table in tables}
    old = _months_of(days.values())[months:]
    if not old:
        return report
    gone = [(table, day) for table in tables for day in sorted(days[table.name]) if _month(day) <= old[0]]
    counts = {**report.counts, **_counts(gone)}
    if dry_run:
        notes = [_would_go(tables, days, gone, month, months) for month in sorted(old)]
        return replace(report, counts=counts, notes=(*report.notes, *notes))
    # out of sight all at once, removed afterwards: no reader sees a part
    store.publish([Hide(table, str(day)) for table, day in gone])
    counts["rows removed"] = counts.get("rows removed", 0) + store.sweep()
    return replace(report, counts=counts)


def _would_go(
    tables: Sequence[Table],
    days: dict[str, set[date]],
    gone: Sequence[tuple[Table, date]],
    month: tuple[int, int],
    kept: int,
) -> str:
    found = {day for _, day in gone if _month(day) == month}
    return (
        f"would be removed: {_kept_per_day(tables, days, found)} of {month[0]}-{month[1]:02}, {len(found)} "
        f"days; the newest {kept} months are kept"
    )


def _counts(gone: Sequence[tuple[Table, date]]) -> dict[str, int]:
    counts = {"days of buckets": len({day for table, day in gone if table in _OF_JOBS})}
    for table, _ in gone:
        if table not in _OF_JOBS:
            name = f"days of {table.name.replace('_', ' ')}"
            counts[name] = counts.get(name, 0) + 1
    return counts


def prune_replaced(
    store: JobStore, days: int, now: datetime, report: RunReport, *, dry_run: bool = False
) -> RunReport:
    """Remove the versions of jobs that loads older than ``days`` have replaced; undo ends there."""
    loads = read_table(store, LOADS, columns=["load_id", "loaded_at"]).to_pylist()
    old = [load["load_id"] for load in loads if load["loaded_at"] <= now - timedelta(days=days)]
    removed = store.prune_versions(old, dry_run=dry_run) if old else 0
    if not removed:
        return report
    counts = {**report.counts, "replaced versions of jobs": removed}
    if not dry_run:
        return replace(report, counts=counts)
    note = f"would be removed: {removed:,} versions of jobs that loads replaced more than {days} days ago"
    return replace(report, counts=counts, notes=(*report.notes, note))


def _days_of(store: JobStore, table: Table) -> set[date]:
    grouped = store.aggregate(Query((table.partition,), (Count("n"),), over=table)).table
    return set(grouped.column(table.partition).to_pylist())


def _kept_per_day(tables: Sequence[Table], days: dict[str, set[date]], chosen: set[date]) -> str:
    others = [table.name for table in tables if table not in _OF_JOBS and days[table.name] & chosen]
    return "the " + " and ".join(name.replace("_", " ") for name in (BUCKETS.name, *others))


def _months_of(days: Iterable[set[date]]) -> list[tuple[int, int]]:
    """Return the months of days, the newest first."""
    return sorted({_month(day) for found in days for day in found}, reverse=True)


def _month(day: date) -> tuple[int, int]:
    return day.year, day.month
