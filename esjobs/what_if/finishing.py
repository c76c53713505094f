"""Queues by the probability that they finish a task in time."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import many
from esjobs.core.query import In, Query, Sum, exactly
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore
from esjobs.what_if.cells import (
    Cells,
    efficiencies,
    efficiency_note,
    last_days,
    read_cells,
    recent_efficiencies,
)
from esjobs.what_if.model import fit_model
from esjobs.what_if.moving import model_notes
from fitters.layout.arrays import Floats

SHARE_DAYS = 28
"""Days from which the cores of a kind of work are drawn, in blocks of ``BLOCK_DAYS``."""

BLOCK_DAYS = 7
DRAWS = 2000
_HORIZON_DAYS = 364
_WAITS = (5, 25, 50, 75, 95)
_NUMBERS = ("p_done", "days_p50", "cpu_s", "cores", "waiting_p50_s", "waiting_p95_s")
_SCHEMA = pa.schema(
    [("queue", pa.string()), *((name, pa.float64()) for name in _NUMBERS), ("reason", pa.string())]
)


def finish(store: JobStore, task: str, due: date, *, jobs: int | None = None, seed: int = 0) -> Answer:
    """Rank queues by the probability that they finish jobs of a task by the end of a day.

    Counted from the end of the run's data. ``jobs``: jobs left (None: as many as the task has had).
    ``p_done``: share of 2000 draws in which it is done. Drawn are CPU time (:class:`Model`), efficiency for
    the kind of work times that of the task beside its kind in the last 7 days, cores that the queue gave to
    this kind (blocks of 7 of the last 28 days; the task is taken to get them all) and the waiting of the
    first job. ``cores``: mean of the 28 days. ``days_p50``: median time needed; null beyond a year. Raises
    :class:`UsageError` for an unknown task or a day that is over. Cost: the buckets of the run, three
    queries.
    """
    cells = read_cells(store)
    unit, *others = cells.units(task)
    start = cells.run.reach.date()
    # first and last day are there as a whole
    days = (due - start).days + 1
    if days < 1:
        raise UsageError(f"{due} is over: the data end with {start - timedelta(days=1)}; use a later day")
    model, efficiency, kind = fit_model(cells), efficiencies(cells), int(cells.keys.kinds()[unit])
    own = efficiency.of_task(unit, recent_efficiencies(store, cells, unit))
    mine = cells.unit == unit
    left = float(jobs or cells.n_jobs[mine].sum())
    length = float(cells.sums["events"][mine].sum() / cells.n_jobs[mine].sum())
    cores, waits = _cores_by_day(store, cells, unit), _waits(store, cells)
    rows: list[dict[str, Any]] = []
    for queue, name in enumerate(cells.queues):
        row: dict[str, Any] = {"queue": name, "p_done": None, "days_p50": None}
        at, forecast = efficiency.at(queue, kind, own), model.forecast(unit, queue, length)
        if at is None or name not in cores or forecast.reason is not None:
            row["reason"] = forecast.reason or f"no job of this kind of work in {SHARE_DAYS} days"
        else:
            # a stream per queue: another queue in the grid does not change the answer for this one
            rng = np.random.default_rng([seed, queue])
            # one draw for all jobs: errors of task and queue are the same for each of them
            error = np.sqrt(forecast.error**2 + forecast.job_var / left + at[1])
            need = left * np.exp(forecast.ln_cpu_s - at[0] + error * rng.normal(size=DRAWS))
            row |= _chance(need, cores[name], waits.get(name), days, rng)
            row["cpu_s"] = left * float(np.exp(forecast.ln_cpu_s))
        rows.append(row)
    rows.sort(key=_order)
    subject = f"{many(round(left), 'job')} of {cells.keys.readable(unit)}"
    notes = [
        f"{subject} from {start} to the end of {due}, with all cores that a queue gives to this kind of work"
    ]
    notes += filter(None, [efficiency_note(own, efficiency.within)])
    if others:
        notes.append(f"left out: {', '.join(cells.keys.readable(other) for other in others)}")
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    return Answer(table, (*notes, *model_notes(model)), title=f"task {task} by {due}", run=cells.run)


def _order(row: Mapping[str, Any]) -> tuple[float, float]:
    never = float("inf")
    return (never if row["p_done"] is None else -row["p_done"]), row["days_p50"] or never


def _chance(
    need: Floats, cores: Floats, waits: list[float] | None, days: int, rng: np.random.Generator
) -> dict[str, float | None]:
    """Return the columns of a queue that follow from drawn core-seconds; waiting of null counts as none."""
    needed, row = _days_needed(need, cores, rng), {"cores": float(np.mean(cores))}
    if waits is not None:
        # of the first job only: the others wait while it runs
        needed += np.interp(100 * rng.random(DRAWS), _WAITS, waits) / 86_400.0
        row |= {"waiting_p50_s": waits[2], "waiting_p95_s": waits[4]}
    middle = float(np.median(needed))
    chances = {"p_done": float((needed <= days).mean()), "days_p50": middle if np.isfinite(middle) else None}
    return row | chances


def _days_needed(need: Floats, cores: Floats, rng: np.random.Generator) -> Floats:
    """Return days until drawn days of these cores reach the core-seconds needed; infinite beyond a year."""
    # blocks of days, round the end: a week has a rhythm, and good days come together
    first = rng.integers(0, len(cores), (DRAWS, _HORIZON_DAYS // BLOCK_DAYS, 1))
    of_day = cores[(first + np.arange(BLOCK_DAYS)) % len(cores)].reshape(DRAWS, -1) * 86_400.0
    done = np.cumsum(of_day, axis=1)
    complete = (done < need[:, None]).sum(axis=1)
    row, last = np.arange(DRAWS), np.minimum(complete, done.shape[1] - 1)
    # of the last day only what was still needed
    part = 1.0 - (done[row, last] - need) / np.maximum(of_day[row, last], 1e-9)
    return np.where(complete < done.shape[1], complete + part, np.inf)


def _cores_by_day(store: JobStore, cells: Cells, unit: int) -> dict[str, Floats]:
    """Return the mean cores that each queue gave to the kind of work of a unit, by day, oldest first."""
    days = last_days(cells.run, SHARE_DAYS)
    kind, core_class = cells.keys.processing_type[unit], cells.keys.core_class[unit]
    where = (days, In("core_class", (core_class,)), exactly("processing_type", kind))
    query = Query(("day", "queue"), (Sum("core_s", "core_s"),), where=where, over=BUCKETS)
    found: dict[str, Floats] = {}
    for row in store.aggregate(query).table.to_pylist():
        # days without a bucket are days without cores
        by_day = found.setdefault(row["queue"], np.zeros((days.last - days.first).days + 1))
        by_day[(row["day"] - days.first).days] += (row["core_s"] or 0.0) / 86_400.0
    return found


def _waits(store: JobStore, cells: Cells) -> dict[str, list[float]]:
    metrics = [f"p{each}:queue_s" for each in _WAITS]
    try:
        rows = query_jobs(store, ["queue"], metrics, window=cells.run.window).to_pylist()
    except NoJobsError:
        return {}
    return {row["queue"]: [row[name] for name in metrics] for row in rows if row[metrics[0]] is not None}
