"""A stored run to its report: one HTML file, written whole or not at all."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from dashboards.panels import tables_read
from dashboards.targets.html.report import ReportData
from esjobs.core.arrow import table_schema
from esjobs.core.errors import NoResultError
from esjobs.core.query import Days, In
from esjobs.core.tables import Table
from esjobs.core.version import __version__
from esjobs.core.window import Window
from esjobs.publish.finding import find_run, read_results
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.names.spelling import as_stored
from esjobs.render.freshness import freshness_of
from esjobs.render.profile_page import folds, trends
from esjobs.schema.catalogue import kind_of, table
from esjobs.schema.jobs import LOADS
from esjobs.schema.kinds import Kind
from esjobs.schema.speed import SPEED
from esjobs.speed.question import SpeedQuestion
from esjobs.store.base import JobStore


def report_data(
    store: JobStore, run: str | None = None, method: str | None = None, now: datetime | None = None
) -> ReportData:
    """Tables, books and provenance of a run (None: the latest complete one), as the report takes them.

    ``method``: method whose results are shown; None: the default method of the run. ``now``: the time of
    writing, at which the age of the run is given. Raises :class:`NoResultError` without a complete run,
    :class:`UsageError` for a method that the run does not have.
    """
    stored_run = find_run(store, SPEED, SPEED.steps, run)
    question = SpeedQuestion.of_run(stored_run)
    headline, *_ = question.fit.methods
    (shown,) = as_stored(f"run {stored_run.run} has no method", [method or headline], question.fit.methods)
    rows = {name: rows_of(store, table(name), stored_run) for name in tables_read()}
    usual = {field.name for field in fields(ReportData)}
    stored = store.day_fingerprints(stored_run.window)
    data = ReportData(
        **{name: rows.pop(name) for name in list(rows) if name in usual},
        more=rows,
        provenance=_provenance(store, stored_run),
        method=shown,
        headline=headline,
        limit=question.fit.deviation_limit,
        restriction=stored_run.restriction,
        jobs_in=sum(stored.column("n_jobs").to_pylist()),
        age=freshness_of(store, stored_run, now),
    )
    if shown != headline:
        return data
    return replace(data, trends=trends(store, stored_run), profiles=folds(store, stored_run))


def _provenance(store: JobStore, run: StoredRun) -> dict[str, object]:
    """Terms and texts about the origin of the numbers."""
    loads = [_load(row) for row in read_table(store, LOADS).to_pylist() if _touches(row, run.window)]
    return {
        "Cleaning rules": json.dumps(run.settings["rules"]),
        "Settings of the fit": json.dumps(run.settings["fit"]),
        "Restricted to": ", ".join(run.restriction) or "none (all buckets)",
        "Loads": "; ".join(loads) or "none",
        "CPU resolver": str(run.settings["resolver"]),
        "Method version": str(run.settings["method_version"]),
        "Report written by": f"esjobs {__version__}",
    }


def rows_of(store: JobStore, table: Table, run: StoredRun) -> pa.Table:
    """The rows of a table that belong to a run: its results, what was kept of its days; else all.

    Of a table that runs of another kind make: those of its run of the same window, else of its latest.
    """
    kind = kind_of(table)
    if kind is not None:
        beside = run if kind is SPEED else _beside(store, kind, run.window)
        return read_results(store, table, beside) if beside is not None else table_schema(table).empty_table()
    if "run" in table.column_names:
        return read_table(store, table, [In("run", (run.run,))])
    by_day = table.time and table.column(table.time).type == "day"
    return read_table(store, table, [Days.of_window(run.window, table.time)] if by_day else [])


def _beside(store: JobStore, kind: Kind, window: Window) -> StoredRun | None:
    """The complete run of another kind that stands best beside a window; None when there is none."""
    for span in (window, None):
        with contextlib.suppress(NoResultError):
            return find_run(store, kind, kind.steps, window=span)
    return None


def _touches(load: Mapping[str, Any], window: Window) -> bool:
    first, last = load["first_end"], load["last_end"]
    return first is not None and last is not None and first < window.end and last >= window.start


def _load(load: Mapping[str, Any]) -> str:
    filled = f", filled {load['filled']}" if load["filled"] else ""
    return f"{load['load_id']}: {load['format']}, {load['files']}{filled}"
