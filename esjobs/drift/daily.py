"""The factors of one day: a fit of its buckets, with the fixed costs that a run has found.

Tasks of one day are linked by the names that they share, as those of a window are; each day is fitted on its
own, so that series of days do not overlap and nothing of one day enters another.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.core.query import In
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.runs.publication import read_table
from esjobs.runs.stored import StoredRun
from esjobs.speed.tables import FACTORS, FITS, TASK_RESULTS
from esjobs.speed.task_sums import FloatArray, TaskSums, read_sums
from esjobs.store.base import JobStore

_USABLE = ("kept", "corrected")
"""Decisions about tasks that a day can follow; for the others single jobs would have to be read again."""
_LEAST_NAMES = 5
"""Names of a day below which no factor of it says anything of one of them."""

_Task = tuple[str | None, str | None, str | None]


@dataclass(frozen=True)
class KnownOfTasks:
    """What a run knows: fixed costs (in events) and unusable tasks; factors and interaction by level."""

    run: StoredRun
    rho: Mapping[_Task, float]
    aside: frozenset[_Task]
    factors: Mapping[str, Mapping[str, float]]
    sigma_int: Mapping[str, float | None]

    @classmethod
    def of_run(cls, store: JobStore, run: StoredRun) -> "KnownOfTasks":
        """Read it; three tables, few columns."""
        mine = In("run", (run.run,))
        columns = ["task_id", "core_class", "task_type", "decision", "rho"]
        tasks = read_table(store, TASK_RESULTS, [mine], columns).to_pylist()
        keys = [(row["task_id"], row["core_class"], row["task_type"]) for row in tasks]
        of_all = [mine, In("processing_type", (ALL_TYPES,)), In("method", (run.headline or "",))]
        rows = read_table(store, FACTORS, of_all, ["level", "name", "k", "component"]).to_pylist()
        factors: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["component"] == 0 and row["k"] is not None:
                factors.setdefault(row["level"], {})[row["name"]] = row["k"]
        fits = read_table(store, FITS, of_all, ["level", "sigma_int"]).to_pylist()
        return cls(
            run,
            {
                key: row["rho"]
                for key, row in zip(keys, tasks, strict=True)
                if row["decision"] == "corrected" and row["rho"] is not None
            },
            frozenset(key for key, row in zip(keys, tasks, strict=True) if _is_aside(row["decision"])),
            factors,
            {row["level"]: row["sigma_int"] for row in fits},
        )


def _is_aside(decision: str | None) -> bool:
    return decision not in _USABLE


def factors_of_day(store: JobStore, day: date, mark: str, known: KnownOfTasks) -> Iterator[dict[str, object]]:
    """The rows of ``daily_factors`` of a day. Cost: its buckets are read once."""
    sums = read_sums(store, Window.of_days(day, day))
    for level, rows in sums.levels.items():
        for row in _of_level(level, rows, known):
            yield {
                "day": day,
                "level": level,
                **row,
                "mark": mark,
                "speed_run": known.run.run,
                "made_to": known.run.window.end,
            }


def _of_level(level: str, rows: TaskSums, known: KnownOfTasks) -> Iterator[dict[str, object]]:
    parts = [(task, core_class, kind) for task, core_class, kind, _ in rows.keys.listed()]
    rho = np.array([known.rho.get(key, 0.0) for key in parts])
    usable = np.array([key not in known.aside for key in parts], np.bool_)
    number = np.asarray(rows.task.names, np.int64)[rows.task.codes] if len(rows) else np.empty(0, np.int64)
    inside = usable[number] & (rows.sums["events"] > 0) & (rows.sums["cpu_s"] > 0)
    if not inside.any():
        return
    rows, number = rows[inside], number[inside]
    n_jobs = rows.sums["n_jobs"]
    effective = rows.sums["events"] + rho[number] * n_jobs
    per_job = fitters.job_scatter(
        rows.task.codes, rows.keys.kinds()[number], n_jobs, _scatter(rows, effective)
    ).per_job
    buckets = fitters.Buckets.from_columns(
        rows.task,
        rows.name,
        cpu_s=rows.sums["cpu_s"],
        events=effective,
        jobs=n_jobs,
        rel_var=per_job / n_jobs,
    )
    units = fitters.fit_speed_factors(
        buckets, "gamma", "variance", robust="reject", sigma_int=known.sigma_int.get(level), judge="none"
    ).units
    good = (units.status == "ok") & (units.component == 0) & np.isfinite(units.k_err_stat)
    if good.sum() < _LEAST_NAMES:
        return
    scale = _scale(units.name[good], units.k[good], known.factors.get(level, {}))
    for place in np.flatnonzero(good):
        yield {
            "name": str(units.name[place]),
            "k": float(units.k[place] * scale),
            "k_err_stat": float(units.k_err_stat[place] * scale),
            "k_err_int": float(units.k_err_int[place] * scale),
            "n_tasks": int(units.n_tasks[place]),
            "n_jobs": int(units.n_jobs[place]),
        }


def _scatter(rows: TaskSums, effective: FloatArray) -> FloatArray:
    """Relative variance of the CPU time of a job about its expectation; NaN for a single job."""
    sums, n = rows.sums, rows.sums["n_jobs"]
    slope = sums["cpu_s"] / effective
    squares = (
        (sums["cpu_s_sq"] - sums["cpu_s"] ** 2 / n)
        - 2.0 * slope * (sums["events_cpu_s"] - sums["events"] * sums["cpu_s"] / n)
        + slope**2 * (sums["events_sq"] - sums["events"] ** 2 / n)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares, 0.0) / (n - 1.0) / (sums["cpu_s"] / n) ** 2
    return np.where(n > 1, variance, np.nan)


def _scale(names: npt.NDArray[np.object_], k: FloatArray, known: Mapping[str, float]) -> float:
    """What brings the factors of a day into the scale of those of a run: the median ratio."""
    ratios = [known[name] / value for name, value in zip(names, k, strict=True) if name in known]
    return math.exp(float(np.median(np.log(ratios)))) if ratios else 1.0
