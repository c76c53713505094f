"""Reads results back: the newest run's unless another is named."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from esjobs.core import tables
from esjobs.core.errors import NoResultError
from esjobs.core.query import Filter, In
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.steps.publication import read_table, run_step
from esjobs.store.base import JobStore, Retired

MADE_BY = {
    "factors": "fit",
    "fits": "fit",
    "components": "fit",
    "tasks": "fit",
    "residuals": "fit",
    "lines": "correlate",
    "flags": "flag",
    "conclusions": "flag",
}
"""Which step writes a table of results."""


@dataclass(frozen=True)
class StoredRun:
    """A run as its steps left it: the question, and when each step answered."""

    run: str
    window: Window
    settings: Mapping[str, Any]
    steps: Mapping[str, datetime]

    @property
    def newest(self) -> datetime:
        """When its last step ended."""
        return max(self.steps.values())


def retired_results(run: str, steps: Collection[str]) -> list[Retired]:
    """Take what these steps of a run have left out of sight, once it is published."""
    left = [Retired(tables.table(name), run) for name, step in MADE_BY.items() if step in steps]
    return left + [Retired(tables.RUNS, run_step(run, step)) for step in steps]


def stored_runs(store: JobStore) -> list[StoredRun]:
    """Every visible run with at least one step of results, newest first."""
    columns = ("run", "step", "at", "window_start", "window_end", "settings")
    found: dict[str, dict[str, Any]] = {}
    for row in read_table(store, tables.RUNS, columns=columns).to_pylist():
        if row["step"] not in MADE_BY.values():
            continue
        entry = found.setdefault(row["run"], {**row, "steps": {}})
        entry["steps"][row["step"]] = row["at"]
    runs = [
        StoredRun(
            run, Window(row["window_start"], row["window_end"]), json.loads(row["settings"]), row["steps"]
        )
        for run, row in found.items()
    ]
    return sorted(runs, key=lambda run: (run.newest, run.run), reverse=True)


def find_run(store: JobStore, step: str, run: str | None = None, window: Window | None = None) -> StoredRun:
    """The named run, or the newest that has the step (and the window); :class:`NoResultError` otherwise."""
    runs = stored_runs(store)
    if not runs:
        raise NoResultError(
            f"no result of step {step}: nothing has been run yet in {store.capabilities().location}; "
            "run it: esjobs run"
        )
    if run is not None:
        matching = [item for item in runs if item.run.startswith(run)]
        if len(matching) > 1 and not any(item.run == run for item in matching):
            raise NoResultError(f"'{run}' is the start of several run ids; give more of it")
        runs = [item for item in matching if item.run == run] or matching
    with_step = [item for item in runs if step in item.steps and (window is None or item.window == window)]
    if with_step:
        return with_step[0]
    which = f"run '{run}'" if run else "a run"
    where = f" of the window {window}" if window else ""
    raise NoResultError(
        f"no result of step {step} for {which}{where}; see: esjobs show runs, or run it: esjobs run"
    )


def read_results(
    store: JobStore, table: tables.Table, run: StoredRun, filters: Sequence[Filter] = ()
) -> pa.Table:
    """The rows of one run, sorted for people: sites first, all types first, the headline method first.

    Tasks come by their jobs, residuals by their rank.
    """
    rows = read_table(store, table, [In("run", (run.run,)), *filters])
    methods = list(run.settings.get("fit", {}).get("methods", ()))
    keys = rows.select([name for name in _SORTED_BY if name in rows.column_names]).to_pylist()
    order = sorted(range(rows.num_rows), key=lambda place: _sort_key(keys[place], methods))
    return rows.take(pa.array(order, pa.int64()))


_SORTED_BY = ("level", "processing_type", "method", "rank", "name", "component", "task_id", "n_jobs")


def _sort_key(row: Mapping[str, Any], methods: Sequence[str]) -> tuple[Any, ...]:
    method, kind = row.get("method"), row.get("processing_type", ALL_TYPES)
    rank = row.get("rank")
    by_jobs = -(row.get("n_jobs") or 0) if "level" not in row else 0
    return (
        row.get("level", "site") != "site",
        kind != ALL_TYPES,
        kind,
        methods.index(method) if method in methods else len(methods),
        (rank is None, rank or 0) if "rank" in row else (False, 0),
        by_jobs,
        row.get("name") or "",
        row.get("component") or 0,
        row.get("task_id") or "",
    )
