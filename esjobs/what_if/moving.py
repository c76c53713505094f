"""Forecast for jobs of one queue at another one: CPU time, wall time, memory and waiting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import written
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import core_h, duration, exact_percent, many
from esjobs.core.words import HALF_WIDTH_90
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.records.names.spelling import accepted
from esjobs.schema.what_if import AT_QUEUE, MOVE_NUMBERS
from esjobs.store.base import JobStore
from esjobs.what_if.cells import (
    MIN_JOBS,
    Cells,
    efficiencies,
    efficiency_note,
    read_cells,
    recent_efficiencies,
)
from esjobs.what_if.model import Forecast, Model, fit_model
from fitters.layout.arrays import Ints

_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("task_id", "core_class", "processing_type", "from", "to")),
        *((name, pa.int64()) for name in ("n_jobs", "n_jobs_left_out", "n_queues", "n_common_tasks")),
        *((name, pa.float64()) for name in (*MOVE_NUMBERS, *AT_QUEUE)),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class _Part:
    """Jobs of one task unit at the origin, with CPU seconds there, and what is expected at the target."""

    unit: int
    n_jobs: float
    length: float
    cpu_s_from: float
    cores: float
    efficiency: tuple[float, float] | None
    forecast: Forecast

    @property
    def cpu_s(self) -> float:
        """CPU seconds expected of all jobs."""
        return self.n_jobs * float(np.exp(self.forecast.ln_cpu_s))


def move(
    store: JobStore,
    origin: str,
    target: str,
    *,
    task: str | None = None,
    processing_type: str | None = None,
    jobs: int | None = None,
) -> Answer:
    """Return what jobs of queue ``origin`` would cost at queue ``target``.

    ``task``: a row per task unit; ``processing_type``: one row for all of its jobs at the origin. ``jobs``:
    number of jobs (None: all in the window of the latest run). ``cpu_s``: CPU time of all of them with a 90 %
    interval (``_68``: 68 %), from the same task at all other queues and the factors of the run
    (:class:`~esjobs.what_if.model.Model`); of a task without its part in the factors, of a type with it.
    ``job_cpu_s_low``, ``job_cpu_s_high``: 90 % of single jobs. ``wall_s``: mean wall time of a job, by the
    target's own efficiency for the kind of work, that of the task beside its kind (of a named task in the
    last 7 days), and the cores that the jobs have at the origin.
    ``observed_cpu_s``: scaled from what the target ran of the task, which the forecast does not use. Memory
    and waiting: of the target's jobs, of the type if it ran it. ``reason``: why there is no forecast.

    Cost: the buckets of the run, and four queries. Raises :class:`UsageError` for an unknown name,
    :class:`NoResultError` without a run.
    """
    if (task is None) == (processing_type is None):
        raise UsageError("specify either a task or a processing type to move")
    cells = read_cells(store)
    source, destination = cells.number(origin), cells.number(target)
    chosen = _chosen(cells, origin, target, cells.units(task, processing_type))
    scale = 1.0 if jobs is None else jobs / float(cells.n_jobs[chosen].sum())
    model, efficiency, cores = fit_model(cells), efficiencies(cells), _cores(store, cells, origin)
    kinds = cells.keys.kinds()
    parts: list[_Part] = []
    unusual: list[str] = []
    for cell in chosen:
        unit, n_jobs = int(cells.unit[cell]), float(cells.n_jobs[cell])
        length, cpu_s = float(cells.sums["events"][cell]) / n_jobs, float(cells.sums["cpu_s"][cell])
        forecast = model.forecast(unit, destination, length, without_task=task is not None)
        own = efficiency.of_task(unit, {} if task is None else recent_efficiencies(store, cells, unit))
        if task is not None:
            unusual += filter(None, [efficiency_note(own, efficiency.within)])
        at = efficiency.at(destination, int(kinds[unit]), own)
        # buckets know one core or several, not how many
        of_class = 1.0 if cells.keys.core_class[unit] == "single" else cores
        parts.append(_Part(unit, scale * n_jobs, length, scale * cpu_s, of_class, at, forecast))
    fixed: dict[str, Any] = {
        "task_id": task,
        "processing_type": processing_type,
        "from": origin,
        "to": target,
        "n_common_tasks": _common_tasks(cells, source, destination),
    }
    rows = []
    # a named task has few units, each of its own; a type has too many to show
    for each in zip(parts) if task else [parts]:
        row = fixed | _row(model, destination, each)
        rows.append(row | at_queue(store, cells, target, row["processing_type"]))
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    notes = [*chain.from_iterable(map(_notes, table.to_pylist())), *unusual, *model_notes(model)]
    title = f"{task or processing_type} from {origin} to {target}"
    return Answer(table, tuple(notes), title=title, run=cells.run, details=model)


def _chosen(cells: Cells, origin: str, target: str, units: list[int]) -> Ints:
    """Return the cells of units at the origin; :class:`UsageError` if it has none."""
    mine = np.isin(cells.unit, units)
    chosen = np.flatnonzero(mine & (cells.queue == cells.number(origin)))
    if origin == target or not chosen.size:
        # where the jobs could be moved from
        ran = {cells.queues[number] for number in cells.queue[mine]} - {target}
        hint = accepted(origin, ran, "esjobs query --by queue")
        raise UsageError(f"no jobs to move from '{origin}' to '{target}'; {hint}")
    return chosen


def _common_tasks(cells: Cells, first: int, second: int) -> int:
    enough = cells.n_jobs >= MIN_JOBS
    tasks = (cells.keys.task_id[cells.unit[enough & (cells.queue == queue)]] for queue in (first, second))
    return len(set.intersection(*map(set, tasks)))


def model_notes(model: Model) -> Iterator[str]:
    """Yield the run behind a forecast, the scatter between task and queue, and the check of its intervals."""
    yield f"forecast from {model.cells.run.title}"
    check, scatter = model.calibration, f"task x queue scatter {exact_percent(model.tau)}"
    if check.coverage_90 is None:
        yield f"{scatter} assumed: too few cells to estimate it and to check the intervals"
        return
    text = f"calibration: 90 % intervals hold {check.coverage_90:.2f} of {check.n_cells:,} cells"
    yield f"{scatter}; {text}" + (f"; widened by {check.widened:.2f}" if check.widened > 1.0 else "")


def at_queue(store: JobStore, cells: Cells, queue: str, kind: str | None = None) -> dict[str, float | None]:
    """Return memory and waiting of a queue's jobs by ``AT_QUEUE``: of a type if it ran it, else of all."""
    where = [written("queue", "=", [queue])]
    of_kind = [] if kind is None else [written("processing_type", "=", [kind])]
    try:
        rows = query_jobs(store, [], [*AT_QUEUE.values()], where=where + of_kind, window=cells.run.window)
    except NoJobsError:
        # none of this type: memory and waiting of all jobs are better than nothing
        return at_queue(store, cells, queue) if of_kind else {}
    return {name: rows[metric][0].as_py() for name, metric in AT_QUEUE.items()}


def _row(model: Model, target: int, parts: Sequence[_Part]) -> dict[str, Any]:
    """Sum over the units of a row, with the reason of the first one if none has a forecast."""
    # a type of hundreds of tasks always has some without a forecast: counted, not a reason to refuse
    able = [part for part in parts if part.forecast.reason is None]
    jobs, every = (float(np.sum([part.n_jobs for part in some])) for some in (able, parts))
    row: dict[str, Any] = {"n_jobs": round(jobs), "n_jobs_left_out": round(every - jobs)}
    if len(parts) == 1:
        row |= _of_unit(model.cells, target, parts[0])
    if not able:
        return row | {"reason": parts[0].forecast.reason}
    cpu_s, variance = sum(part.cpu_s for part in able), _variance(model, able)
    return row | {
        **_interval("cpu_s", cpu_s, variance),
        **_interval("cpu_s", cpu_s, variance, 1.0, "_68"),
        **_others(able, jobs),
        **_wall(able, variance),
    }


def _others(parts: Sequence[_Part], jobs: float) -> dict[str, float]:
    return {
        "n_queues": max(part.forecast.n_queues for part in parts),
        "events_per_job": sum(part.length * part.n_jobs for part in parts) / jobs,
        "cpu_s_from": sum(part.cpu_s_from for part in parts),
    }


def _variance(model: Model, parts: Sequence[_Part]) -> float:
    """Relative variance of a sum: errors of factors and of the type are common to units, others are not."""
    first = parts[0].forecast
    if len(parts) == 1:
        # the mean of n jobs scatters less than a job, whatever the error of the forecast
        return first.error**2 + first.job_var / parts[0].n_jobs
    cpu_s = np.array([part.cpu_s for part in parts])
    # relative errors of parts enter by their share in the sum
    shares = cpu_s / cpu_s.sum()
    own = np.array([part.forecast.own + part.forecast.job_var / part.n_jobs for part in parts])
    directions = np.array([part.forecast.direction for part in parts])
    return model.common_variance(directions, shares) + float(shares**2 @ own)


def _wall(parts: Sequence[_Part], variance: float) -> dict[str, float]:
    """Efficiency and mean wall time of a job; empty where the target ran no such kind of work."""
    rated = [(part, part.efficiency) for part in parts if part.efficiency is not None]
    # a mean over some of the tasks would look like one over all
    if len(rated) < len(parts):
        return {}
    core_s = np.array([part.cpu_s / np.exp(at[0]) for part, at in rated])
    cores, jobs, cpu_s = np.array([(part.cores, part.n_jobs, part.cpu_s) for part in parts]).T
    # efficiencies of one queue err together: the widest stands for all
    wall_s, widest = float((core_s / cores).sum() / jobs.sum()), max(at[1] for _, at in rated)
    return {"efficiency": float(cpu_s.sum() / core_s.sum())} | _interval("wall_s", wall_s, variance + widest)


def _interval(
    name: str, value: float, variance: float, width: float = HALF_WIDTH_90, suffix: str = ""
) -> dict[str, float]:
    # errors are relative: symmetric in the logarithm, so that no time is negative
    spread = float(np.exp(width * np.sqrt(variance)))
    return {name: value, f"{name}_low{suffix}": value / spread, f"{name}_high{suffix}": value * spread}


def _of_unit(cells: Cells, target: int, part: _Part) -> dict[str, Any]:
    """Columns that a single unit has: its key, what the target ran of it, and the interval of a job."""
    _, core_class, processing_type, _ = cells.keys.parts(part.unit)
    row: dict[str, Any] = {"core_class": core_class, "processing_type": processing_type}
    # beside the forecast, which does not use it: people see whether it can be believed
    existing = np.flatnonzero((cells.unit == part.unit) & (cells.queue == target))
    if existing.size:
        per_event = float(np.exp(cells.ln_cost[existing[0]]))
        row["observed_cpu_s"] = part.n_jobs * (part.length + float(cells.rho[part.unit])) * per_event
    if part.forecast.reason is None:
        variance = part.forecast.error**2 + part.forecast.job_var
        row |= _interval("job_cpu_s", part.cpu_s / part.n_jobs, variance)
    return row


def _cores(store: JobStore, cells: Cells, queue: str) -> float:
    """Return the mean cores of the multi-core jobs of a queue, weighted by wall time; NaN without any."""
    where = [written("queue", "=", [queue]), "cores>1"]
    try:
        rows = query_jobs(store, [], ["core_h", "wall_h"], where=where, window=cells.run.window)
    except NoJobsError:
        return float("nan")
    return float(rows["core_h"][0].as_py() / rows["wall_h"][0].as_py())


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    if row["reason"] is not None:
        yield f"no forecast for {row['to']}: {row['reason']}"
        return
    mean, low, high, before = (
        core_h(row[name] / 3600, "h") for name in ("cpu_s", "cpu_s_low", "cpu_s_high", "cpu_s_from")
    )
    jobs = many(row["n_jobs"], "job")
    yield f"{jobs}: {mean} of CPU time at {row['to']} (90 %: {low} to {high}), {before} at {row['from']}"
    if row["job_cpu_s_low"] is not None:
        limits = " to ".join(duration(row[name]) for name in ("job_cpu_s_low", "job_cpu_s_high"))
        yield f"a single job: 90 % within {limits} of CPU time"
    if row["wall_s"] is None:
        yield f"no wall time: {row['to']} ran no task of this kind of work and core class"
    if row["n_jobs_left_out"]:
        yield f"{many(row['n_jobs_left_out'], 'job')} left out: no forecast for their tasks"
