"""One task: CPU time by queue against the forecast from all others, failures, stragglers, progress."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import written
from esjobs.core.numbers import many, percent, signed_percent
from esjobs.core.words import HALF_WIDTH_90
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.store.base import JobStore
from esjobs.what_if.cells import (
    MIN_JOBS,
    efficiencies,
    efficiency_note,
    read_cells,
    recent_efficiencies,
)
from esjobs.what_if.model import Model, fit_model
from esjobs.what_if.moving import model_notes

SURE_ERRORS = 3.0
"""Standard errors beyond which the CPU time of a queue is not as expected."""

FAILS_MORE = 2.0
"""Ratio of failures to those of other jobs of the same queues from which they are not as usual."""

STRAGGLES = 3.0
"""Ratio of the longest wall time to the median of a queue from which there are stragglers."""

_LEAST_FAILED = 5
_JOBS = {
    "n_jobs": "jobs",
    "failed": "failed",
    "failure_rate": "failure_rate",
    "efficiency": "efficiency",
    "wall_p50_s": "median:wall_s",
    "wall_p95_s": "p95:wall_s",
    "wall_max_s": "max:wall_s",
}
_NUMBERS = (
    "cpu_ratio",
    "cpu_ratio_low",
    "cpu_ratio_high",
    "n_sigma",
    *_JOBS,
    "usual_failure_rate",
    "usual_efficiency",
)
_COUNTS = ("n_jobs", "failed")
_SCHEMA = pa.schema(
    [("queue", pa.string()), ("core_class", pa.string())]
    + [(name, pa.int64() if name in _COUNTS else pa.float64()) for name in _NUMBERS]
)


def task_story(store: JobStore, task: str) -> Answer:
    """Return a task by queue, most jobs first.

    ``cpu_ratio``: CPU time over the forecast from all other queues that ran it, with its 90 % interval,
    ``n_sigma``: how many standard errors it is off 1; null without a forecast. ``usual_failure_rate``: of all
    other jobs of the queue; ``usual_efficiency``: of other tasks of its kind at the queue; null if it has
    none. Raises :class:`UsageError` for a task without jobs in the latest run. Cost: the buckets of the run,
    three queries.
    """
    cells = read_cells(store)
    units, where = cells.units(task), [written("task_id", "=", [task])]
    model, window, efficiency = fit_model(cells), cells.run.window, efficiencies(cells)
    # the units of a task are its core classes: that of most jobs stands for it
    own = efficiency.of_task(units[0], recent_efficiencies(store, cells, units[0]))
    kind = int(cells.keys.kinds()[units[0]])
    jobs = query_jobs(store, ["queue"], [*_JOBS.values()], where=where, window=window).to_pylist()
    every = query_jobs(store, ["queue"], ["jobs", "failed"], window=window).to_pylist()
    of_queue = {row["queue"]: (row["jobs"], row["failed"] or 0) for row in every}
    rows = []
    for each in jobs:
        n_jobs, failed = of_queue[each["queue"]]
        base = {"queue": each["queue"], **{name: each[metric] for name, metric in _JOBS.items()}}
        # what is usual must not hold the task: at a small queue it may be most of the jobs
        others, failed = n_jobs - each["jobs"], failed - (each["failed"] or 0)
        base["usual_failure_rate"] = failed / others if others > 0 else None
        found = []
        if each["queue"] in cells.queues:
            found, number = _ratios(model, units, each["queue"]), cells.number(each["queue"])
            if number in own.part:
                # here, too, without the task itself
                usual = efficiency.mean[number, kind] - own.part[number]
                base["usual_efficiency"] = float(np.exp(usual))
        # a queue that only failed has no CPU time to compare, but a row
        rows += [base | ratio for ratio in found or [{}]]
    unusual = filter(None, [efficiency_note(own, efficiency.within)])
    notes = (_site_or_task(rows), *unusual, *_stragglers(rows), *model_notes(model))
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    return Answer(table, notes, title=f"task {task}", run=cells.run)


def progress(store: JobStore, task: str) -> Answer:
    """Return jobs, failed jobs, events, core-hours and CPU efficiency of a task by day.

    Raises :class:`NoJobsError`.
    """
    where = [written("task_id", "=", [task])]
    rows = query_jobs(store, ["day"], ["jobs", "failed", "events", "core_h", "efficiency"], where=where)
    return Answer(rows, title=f"task {task} by day")


def _ratios(model: Model, units: Sequence[int], queue: str) -> list[dict[str, Any]]:
    """Compare what a queue ran of each unit with the forecast."""
    cells, number, found = model.cells, model.cells.number(queue), []
    for unit in units:
        mine = np.flatnonzero((cells.unit == unit) & (cells.queue == number) & (cells.n_jobs >= MIN_JOBS))
        if not mine.size:
            continue
        n_jobs, cpu_s = cells.n_jobs[mine[0]], cells.sums["cpu_s"][mine[0]]
        forecast = model.forecast(unit, number, cells.sums["events"][mine[0]] / n_jobs)
        row: dict[str, Any] = {"core_class": cells.keys.core_class[unit]}
        if forecast.reason is None:
            ln_ratio = float(np.log(cpu_s / n_jobs)) - forecast.ln_cpu_s
            # the forecast is of a mean job; what was seen is a mean of n
            error = float(np.sqrt(forecast.error**2 + cells.job_var[mine[0]] / n_jobs))
            low, high = (float(np.exp(ln_ratio + side * HALF_WIDTH_90 * error)) for side in (-1, 1))
            row |= {"cpu_ratio": float(np.exp(ln_ratio)), "cpu_ratio_low": low, "cpu_ratio_high": high}
            row["n_sigma"] = ln_ratio / error
        found.append(row)
    return found


def _site_or_task(rows: Sequence[Mapping[str, Any]]) -> str:
    """Answer the question in a sentence: queues that stand out, or failures at most queues."""
    off = [row for row in rows if abs(row.get("n_sigma") or 0.0) > SURE_ERRORS]
    listed = ", ".join(f"{row['queue']} {signed_percent(row['cpu_ratio'] - 1)}" for row in off)
    cpu = f"site: CPU time is off at {listed}" if off else "CPU time is as expected at all compared queues"
    return f"{_failures(rows)}; {cpu}"


def _failures(rows: Sequence[Mapping[str, Any]]) -> str:
    # a queue has a row per core class, all with the same failures
    queues = list({row["queue"]: row for row in rows if row["failure_rate"] is not None}.values())
    failing = list(filter(_fails, queues))
    if not failing:
        return _failing_anyway(queues) or "failures are as usual"
    # one queue alone cannot tell the task from the site
    if len(failing) > len(queues) / 2 and len(queues) > 1:
        share = percent(sum(row["failed"] for row in queues) / sum(row["n_jobs"] for row in queues))
        return f"task: {share} of its jobs fail, more than usual at {len(failing)} of {len(queues)} queues"
    listed = ", ".join(f"{row['queue']} ({percent(row['failure_rate'])})" for row in failing)
    return f"site: more failures than usual at {listed}, not at most queues"


def _failing_anyway(queues: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a sentence about queues at which other jobs fail as often as those of the task."""
    shared = [row for row in queues if row["usual_failure_rate"] is not None]
    if not shared:
        return None
    # against other queues: at these all tasks fail alike
    limit = FAILS_MORE * float(np.median([row["usual_failure_rate"] for row in shared]))
    listed = ", ".join(
        f"{row['queue']} ({percent(row['failure_rate'])}, "
        f"{percent(row['usual_failure_rate'])} of its other jobs)"
        for row in shared
        if row["failed"] >= _LEAST_FAILED and min(row["failure_rate"], row["usual_failure_rate"]) > limit
    )
    return f"site: many jobs of all tasks fail at {listed}" if listed else None


def _fails(row: Mapping[str, Any]) -> bool:
    usual = row["usual_failure_rate"]
    return usual is not None and row["failed"] >= _LEAST_FAILED and row["failure_rate"] > FAILS_MORE * usual


def _stragglers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    found = {
        row["queue"]: row["wall_max_s"] / row["wall_p50_s"]
        for row in rows
        if row["wall_p50_s"] and row["wall_max_s"] > STRAGGLES * row["wall_p50_s"]
    }
    longest = sorted(found, key=lambda queue: -found[queue])[:3]
    listed = ", ".join(f"{queue} ({found[queue]:.1f} x the median)" for queue in longest)
    return [f"stragglers at {many(len(found), 'queue')}, longest at {listed}"] if found else []
