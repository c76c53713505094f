"""Takes a load back: its jobs, its rows of other tables, and its account."""

import time
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import partial

from esjobs.core.errors import NoResultError
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.aggregate import forgotten_days, retired_days
from esjobs.records.jobs.reading import JOBS
from esjobs.records.jobs.table_rows import retired_rows
from esjobs.schema.jobs import DAYS, LOAD_COUNTS, LOADS, REJECTS
from esjobs.store.base import Hide, JobStore


def undo(store: JobStore, load_id: str, tables: Iterable[Table]) -> RunReport:
    """Undo a load: its jobs go and replaced ones return; its rows of other tables and its account go.

    Rows that it replaced in other tables do not come back. Buckets of the days become stale; those of days
    without jobs go. A note names the loads that found rows of it unchanged. Raises :class:`NoResultError` for
    an unknown load, :class:`StoreError` if what it replaced was pruned.
    """
    began = time.perf_counter()
    emptied: set[date] = set()
    notes: list[str] = []
    listed = read_table(store, LOADS, [In("load_id", (load_id,))]).num_rows
    removed, rows = retired_rows(store, tables, load_id)
    if not listed and not rows:
        raise NoResultError(f"load '{load_id}' not found; list loads: esjobs show loads")
    brought = read_table(store, LOAD_COUNTS, [In("load_id", (load_id,))]).column("table_name").to_pylist()
    if listed:
        removed += [Hide(table, load_id) for table in (LOADS, REJECTS, LOAD_COUNTS)]
    # a load that broke off has no counts, and may have jobs
    if listed and (JOBS in brought or not brought):
        undone = store.undo_load(load_id)
        rows += undone.jobs
        if undone.unchanged:
            notes.append(_found_unchanged(undone.unchanged))
        aggregated = set(read_table(store, DAYS, columns=["day"]).column("day").to_pylist())
        emptied = aggregated - _stored_days(store, None)
        emptied -= forgotten_days(store, emptied)
    # another process may have loaded jobs of such a day and published its buckets meanwhile
    store.publish(removed, partial(_retired_if_empty, store, emptied))
    return RunReport(
        "undo",
        load_id,
        rows,
        rows,
        time.perf_counter() - began,
        rows_are="rows of the load",
        rows_become="taken back",
        notes=tuple(notes),
    )


def _found_unchanged(rows: Mapping[str, int]) -> str:
    loads = ", ".join(f"{load} {n_rows:,}" for load, n_rows in rows.items())
    return (
        f"other loads contain unchanged rows of this load and did not store them ({loads}); load them again"
    )


def _retired_if_empty(store: JobStore, days: Collection[date]) -> list[Hide]:
    if not days:
        return []
    return retired_days(set(days) - _stored_days(store, Window.of_days(min(days), max(days))))


def _stored_days(store: JobStore, window: Window | None) -> set[date]:
    return set(store.day_fingerprints(window).column("day").to_pylist())
