"""Forecast for jobs of one queue at another one: CPU time, wall time, memory and waiting."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import written
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import core_h, duration, exact_percent, many, number
from esjobs.core.words import HALF_WIDTH_90
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.records.names.spelling import accepted
from esjobs.store.base import JobStore
from esjobs.what_if.cells import MIN_JOBS, Cells, read_cells
from esjobs.what_if.efficiency import Efficiencies, efficiencies
from esjobs.what_if.model import Calibration, Forecast, Model, fit_model

AT_TARGET = {
    "mem_per_core_p50_b": "median:mem_per_core_b",
    "mem_per_core_p95_b": "p95:mem_per_core_b",
    "waiting_p50_s": "waiting_median_s",
    "waiting_p95_s": "waiting_p95_s",
}
"""Columns about memory and waiting at a queue, and their metrics."""
_NUMBERS = (
    *("cpu_s", "cpu_s_low", "cpu_s_high", "wall_s", "cpu_s_from"),
    *("cpu_s_low_68", "cpu_s_high_68", "job_cpu_s_low", "job_cpu_s_high", "wall_s_low", "wall_s_high"),
    *("cores", "efficiency", "events_per_job", *AT_TARGET, "observed_cpu_s"),
)
_COUNTS = ("n_jobs", "n_jobs_left_out", "n_queues", "n_common_tasks")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("task_id", "core_class", "processing_type", "from", "to")),
        *((name, pa.int64()) for name in _COUNTS),
        *((name, pa.float64()) for name in _NUMBERS),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class _Part:
    """Jobs of one task unit at the origin, with the forecast at the target."""

    unit: int
    n_jobs: float
    events_per_job: float
    cpu_s_from: float
    observed_cpu_s: float | None
    cores: float | None
    efficiency: tuple[float, float] | None
    forecast: Forecast

    @property
    def cpu_s(self) -> float:
        """CPU seconds expected of all jobs."""
        return self.n_jobs * float(np.exp(self.forecast.ln_cpu_s))

    @property
    def wall_s(self) -> tuple[float, float] | None:
        """Wall seconds of a mean job, and the variance of their ln; None without jobs of the kind."""
        if self.efficiency is None or self.cores is None:
            return None
        ln_eff, variance = self.efficiency
        value = float(np.exp(self.forecast.ln_cpu_s - ln_eff)) / self.cores
        return value, variance + self.forecast.error**2


def move(
    store: JobStore,
    origin: str,
    target: str,
    *,
    task: str | None = None,
    processing_type: str | None = None,
    n_jobs: int | None = None,
) -> Answer:
    """Return what jobs of queue ``origin`` would cost at queue ``target``.

    ``task``: one row per task unit; ``processing_type``: one row for all of its jobs at the origin.
    ``n_jobs``: jobs to move (None: all of the run's window). ``cpu_s``: CPU time of all of them with a 90 %
    interval (``_68``: 68 %), from the same task at all other queues and the factors of the latest run
    (:class:`~esjobs.what_if.model.Model`); of a task with factors from which the task is taken out by one
    step of the fit, of a type with those of the run. ``job_cpu_s_low``, ``job_cpu_s_high``: 90 % of single
    jobs. ``wall_s``: wall time of a mean job, by the target's own efficiency for the kind of work, with the
    cores that the jobs have at the origin. ``cpu_s_from``: at the origin. ``observed_cpu_s``: scaled from
    jobs of the task that the target did run; no part of the forecast. Memory and waiting are those of the
    target's own jobs of the type. ``reason``: why there is no forecast.

    Cost: the buckets of the run, a query of the origin's and two of the target's jobs. Raises
    :class:`UsageError` for an unknown name, :class:`NoResultError` without a run.
    """
    if (task is None) == (processing_type is None):
        raise UsageError("specify either a task or a processing type to move")
    cells = read_cells(store)
    source, destination = (_number(cells, name) for name in (origin, target))
    if source == destination:
        raise UsageError(f"'{origin}' is both origin and target; specify two queues")
    units = cells.of_task(task) if task is not None else cells.of_type(str(processing_type))
    at_origin = {unit: cell for unit in units if (cell := _cell(cells, unit, source)) is not None}
    if not at_origin:
        subject = f"task {task}" if task is not None else f"processing type '{processing_type}'"
        ran = sorted({cells.queues[number] for number in cells.queue[np.isin(cells.unit, units)]})
        raise UsageError(f"{origin} has no job of {subject} in {cells.run.window}; {accepted(origin, ran)}")
    model, efficiency = fit_model(cells), efficiencies(cells)
    condition = written("task_id", "=", [task]) if task else f"processing_type={processing_type}"
    if processing_type is not None:
        condition = written("processing_type", "=", [processing_type])
    cores = _cores(store, cells, origin, condition)
    scale = 1.0 if n_jobs is None else n_jobs / sum(cells.n_jobs[cell] for cell in at_origin.values())
    parts = [
        _part(model, efficiency, cell, destination, scale, cores, without_task=task is not None)
        for cell in at_origin.values()
    ]
    common = _common_tasks(cells, source, destination)
    fixed = {"from": origin, "to": target, "n_common_tasks": common, "task_id": task}
    if task is not None:
        rows = [_row(model, part) for part in parts]
    else:
        rows = [{"processing_type": processing_type, **_total(model, parts)}]
    rows = [row | fixed | _at_target(store, cells, target, row["processing_type"]) for row in rows]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    title = f"{task or processing_type} from {origin} to {target}"
    notes = [*(note for row in table.to_pylist() for note in _notes(row)), *model_notes(model)]
    return Answer(table, tuple(notes), title=title, run=cells.run, details=model)


def model_notes(model: Model) -> Iterator[str]:
    """Yield the run behind a forecast, the scatter between task and queue, and the calibration."""
    yield f"forecast from {model.cells.run.title}"
    origin = "assumed" if model.tau_assumed else "estimated"
    yield f"task x queue scatter {exact_percent(model.tau)} ({origin}); {calibration_text(model.calibration)}"


def calibration_text(calibration: Calibration) -> str:
    """Format the leave-one-out check of a run."""
    if calibration.coverage_90 is None:
        return "too few cells for a check of the intervals"
    share = f"{calibration.coverage_90:.2f} of {calibration.n_cells:,} left-out cells"
    text = f"calibration: 90 % intervals hold {share}"
    if calibration.widened > 1.0:
        text += f"; all intervals are {number(calibration.widened)} times wider for that"
    return text


def _number(cells: Cells, queue: str) -> int:
    found = cells.number(queue)
    if found is None:
        hint = accepted(queue, cells.queues, "esjobs show factors --level queue")
        raise UsageError(f"no job of queue '{queue}' entered the buckets of {cells.run.window}; {hint}")
    return found


def _cell(cells: Cells, unit: int, queue: int) -> int | None:
    found = np.flatnonzero((cells.unit == unit) & (cells.queue == queue))
    return int(found[0]) if found.size else None


def _part(
    model: Model,
    efficiency: Efficiencies,
    cell: int,
    target: int,
    scale: float,
    cores: Mapping[str, float],
    *,
    without_task: bool,
) -> _Part:
    cells = model.cells
    unit, jobs = int(cells.unit[cell]), float(cells.n_jobs[cell])
    events = float(cells.sums["events"][cell]) / jobs
    existing = _cell(cells, unit, target)
    observed = None
    if existing is not None:
        length = events + float(cells.rho[existing])
        observed = scale * jobs * length * float(np.exp(cells.ln_cost[existing]))
    return _Part(
        unit,
        scale * jobs,
        events,
        scale * float(cells.sums["cpu_s"][cell]),
        observed,
        cores.get(str(cells.keys.core_class[unit])),
        efficiency.at(target, unit),
        model.forecast(unit, target, events, without_task=without_task),
    )


def _row(model: Model, part: _Part) -> dict[str, Any]:
    keys, forecast = model.cells.keys, part.forecast
    row: dict[str, Any] = {
        "core_class": keys.core_class[part.unit],
        "processing_type": keys.processing_type[part.unit],
        "n_jobs": round(part.n_jobs),
        "events_per_job": part.events_per_job,
        "cpu_s_from": part.cpu_s_from,
        "observed_cpu_s": part.observed_cpu_s,
        "cores": part.cores,
        "reason": forecast.reason,
    }
    if forecast.reason is not None:
        return row
    low, high = (part.n_jobs * each for each in forecast.interval(n_jobs=part.n_jobs))
    low_68, high_68 = (part.n_jobs * each for each in forecast.interval(1.0, part.n_jobs))
    job_low, job_high = forecast.interval(n_jobs=1.0)
    row |= {"cpu_s": part.cpu_s, "cpu_s_low": low, "cpu_s_high": high}
    row |= {"cpu_s_low_68": low_68, "cpu_s_high_68": high_68, "n_queues": forecast.n_queues}
    row |= {"job_cpu_s_low": job_low, "job_cpu_s_high": job_high}
    return row | _wall(part.wall_s, part.efficiency)


def _wall(wall: tuple[float, float] | None, efficiency: tuple[float, float] | None) -> dict[str, float]:
    if wall is None or efficiency is None:
        return {}
    spread = float(np.exp(HALF_WIDTH_90 * np.sqrt(wall[1])))
    limits = {"wall_s_low": wall[0] / spread, "wall_s_high": wall[0] * spread}
    return {"efficiency": float(np.exp(efficiency[0])), "wall_s": wall[0], **limits}


def _total(model: Model, parts: list[_Part]) -> dict[str, Any]:
    """Sum over the tasks of a type: errors of factors and types are common to them, the rest is not."""
    able = [part for part in parts if part.forecast.reason is None]
    left_out = sum(part.n_jobs for part in parts if part.forecast.reason is not None)
    if not able:
        return {"n_jobs_left_out": round(left_out), "reason": parts[0].forecast.reason, "n_jobs": 0}
    cpu_s = np.array([part.cpu_s for part in able])
    jobs, shares = sum(part.n_jobs for part in able), cpu_s / cpu_s.sum()
    directions = np.array([part.forecast.direction for part in able])
    own = np.array([part.forecast.task_part + part.forecast.job_var / part.n_jobs for part in able])
    error = float(np.sqrt(model.common_variance(directions, shares) + shares**2 @ own))
    row = {
        "n_jobs": round(jobs),
        "n_jobs_left_out": round(left_out),
        "n_queues": max(part.forecast.n_queues for part in able),
        "events_per_job": sum(part.events_per_job * part.n_jobs for part in able) / jobs,
        "cpu_s_from": sum(part.cpu_s_from for part in able),
        "cpu_s": float(cpu_s.sum()),
    }
    for suffix, width in (("", HALF_WIDTH_90), ("_68", 1.0)):
        row[f"cpu_s_low{suffix}"] = row["cpu_s"] * float(np.exp(-width * error))
        row[f"cpu_s_high{suffix}"] = row["cpu_s"] * float(np.exp(width * error))
    walls = [part.wall_s for part in able]
    if all(wall is not None for wall in walls):
        seconds = np.array([part.n_jobs * wall[0] for part, wall in zip(able, walls, strict=True) if wall])
        variance = max(
            wall[1] - part.forecast.error**2 for part, wall in zip(able, walls, strict=True) if wall
        )
        core_s = sum(part.cpu_s / np.exp(part.efficiency[0]) for part in able if part.efficiency)
        mean = float(seconds.sum() / jobs), variance + error**2
        row |= _wall(mean, (float(np.log(row["cpu_s"] / core_s)), 0.0))
    return row


def _common_tasks(cells: Cells, first: int, second: int) -> int:
    enough = cells.n_jobs >= MIN_JOBS
    both = (set(cells.unit[enough & (cells.queue == queue)].tolist()) for queue in (first, second))
    return len({cells.keys.task_id[unit] for unit in set.intersection(*both)})


def _cores(store: JobStore, cells: Cells, queue: str, condition: str) -> dict[str, float]:
    """Return the mean cores of jobs by core class, weighted by wall time."""
    rows = query_jobs(
        store,
        ["cores"],
        ["wall_h"],
        where=[written("queue", "=", [queue]), condition, "state=finished"],
        window=cells.run.window,
    ).to_pylist()
    several = [row for row in rows if (row["cores"] or 0) > 1 and row["wall_h"]]
    hours = sum(row["wall_h"] for row in several)
    mean = {"multi": sum(row["cores"] * row["wall_h"] for row in several) / hours} if hours else {}
    return {"single": 1.0, **mean}


def _at_target(store: JobStore, cells: Cells, target: str, kind: str | None) -> dict[str, float | None]:
    """Return memory and waiting of the target's own jobs, of the type if it ran it, else of all."""
    conditions = [written("queue", "=", [target])]
    for where in ([*conditions, written("processing_type", "=", [kind])] if kind else conditions, conditions):
        try:
            rows = query_jobs(store, [], list(AT_TARGET.values()), where=where, window=cells.run.window)
        except NoJobsError:
            continue
        row = rows.to_pylist()[0]
        return {name: row[metric] for name, metric in AT_TARGET.items()}
    return {}


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    target = row["to"]
    if row["reason"] is not None:
        yield f"no forecast for {target}: {row['reason']}"
        return
    low, high = (core_h(row[name] / 3600, "CPU-hours") for name in ("cpu_s_low", "cpu_s_high"))
    mean = core_h(row["cpu_s"] / 3600, "CPU-hours")
    jobs, before = many(row["n_jobs"], "job"), core_h(row["cpu_s_from"] / 3600, "CPU-hours")
    yield f"{jobs} take {mean} at {target} (90 %: {low} to {high}); at {row['from']} {before}"
    if row.get("job_cpu_s_low") is not None:
        limits = " to ".join(duration(row[name]) for name in ("job_cpu_s_low", "job_cpu_s_high"))
        yield f"CPU time of a single job: 90 % between {limits}"
    if row.get("wall_s") is None:
        yield f"no wall time: {target} ran no job of this kind of work and core class"
    else:
        limits = " to ".join(duration(row[name]) for name in ("wall_s_low", "wall_s_high"))
        yield f"wall time of a mean job {duration(row['wall_s'])} (90 %: {limits})"
    if row.get("n_jobs_left_out"):
        yield f"{many(row['n_jobs_left_out'], 'job')} left out: their tasks allow no forecast"
    if row["waiting_p50_s"] is not None:
        times = " and ".join(duration(row[name]) for name in ("waiting_p50_s", "waiting_p95_s"))
        yield f"half and 95 % of the jobs at {target} waited less than {times}"
