"""Factors of one day: a fit of its buckets with the start-up times of a run.

Tasks of one day are linked by the names that they share, as those of a window are; each day is fitted on its
own, so that series of days do not overlap and nothing of one day enters another.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import date
from hashlib import blake2b

import numpy as np

import fitters
from esjobs.core.window import Window
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.solved import KnownOfTasks, job_variance
from esjobs.records.tasks.sums import TaskSums, read_sums, with_sites
from esjobs.store.base import JobStore
from fitters.layout.arrays import Floats, Ints, Texts

_MOST_TASKS = 64  # Of a name and day that are kept: the others are taken to last as long as these
_LEAST_NAMES = 5  # Names of a day below which no factor of it says anything of one of them


def factors_of_day(
    store: JobStore, day: date, fingerprint: str, solved: KnownOfTasks, sites: Sites
) -> Iterator[dict[str, object]]:
    """Yield the rows of ``daily_factors`` of a day; its buckets are read once."""
    sums = with_sites(read_sums(store, Window.of_days(day, day)), sites)
    for level, rows in sums.levels.items():
        for row in _of_level(level, rows, solved):
            site = sites.at(level, str(row["name"]))
            yield {
                "day": day,
                "level": level,
                **row,
                "site": None if site is None else site.name,
                "fingerprint": fingerprint,
                "speed_run": solved.run.run,
                "fit_until": solved.run.window.end,
            }


def _of_level(level: str, rows: TaskSums, solved: KnownOfTasks) -> Iterator[dict[str, object]]:
    parts = [(task, core_class, kind) for task, core_class, kind, _ in rows.keys.listed()]
    rho = np.array([solved.rho.get(key, 0.0) for key in parts])
    usable = np.array([key not in solved.aside for key in parts], np.bool_)
    number = np.asarray(rows.task.names, np.int64)[rows.task.codes] if len(rows) else np.empty(0, np.int64)
    inside = usable[number] & (rows.sums["events"] > 0) & (rows.sums["cpu_s"] > 0)
    if not inside.any():
        return
    rows, number = rows[inside], number[inside]
    n_jobs = rows.sums["n_jobs"]
    effective = rows.sums["events"] + rho[number] * n_jobs
    variance = job_variance(rows.sums, effective)
    scatter = fitters.job_scatter(rows.task.codes, rows.keys.kinds()[number], n_jobs, variance)
    # of queues, not of tasks alone: machines that are unlike make every day of their queue less sure
    per_job = fitters.unit_scatter(scatter, rows.name.codes, n_jobs, variance)
    buckets = fitters.Buckets.from_columns(
        rows.task,
        rows.name,
        cpu_s=rows.sums["cpu_s"],
        events=effective,
        jobs=n_jobs,
        rel_var=per_job / n_jobs,
    )
    fit = fitters.fit_speed_factors(
        buckets, "gamma", "variance", robust="reject", sigma_int=solved.sigma_int.get(level)
    )
    units = fit.units
    # other components have scales of their own
    good = (units.status == "ok") & (units.component == 0) & np.isfinite(units.k_err_stat)
    if good.sum() < _LEAST_NAMES:
        return
    # the same number for a task on every day; 48 bits, which any engine's floats keep
    digests = (blake2b(repr(part).encode(), digest_size=6).digest() for part in parts)
    number_of = np.array([float(int.from_bytes(digest, "big")) for digest in digests])
    shares = _shares(fitters.bucket_table(fit))
    # each day has a scale of its own: that of the run, over the median name, makes days comparable
    scale = _scale(units.name[good], units.k[good], solved.factors.get(level, {}))
    # a few tasks that contradict each other move all names that they link, by more than their errors say
    misfit = float(np.fmax(1.0, fit.components.S[0]))
    for index in np.flatnonzero(good):
        yield {
            "name": str(units.name[index]),
            "k": float(units.k[index] * scale),
            "k_err_stat": float(units.k_err_stat[index] * scale * misfit),
            "k_err_int": float(units.k_err_int[index] * scale * misfit),
            "n_units": int(units.n_tasks[index]),
            "n_jobs": int(units.n_jobs[index]),
            "tasks": number_of[shares[units.name[index]][0]].tolist(),
            "task_parts": shares[units.name[index]][1].tolist(),
        }


def _shares(table: fitters.BucketTable) -> dict[str, tuple[Ints, Floats]]:
    """By name, its tasks with the largest influence on its factor first, and that influence.

    An error of a bucket moves the factor by w (1 - w / W), w its weight and W that of its task: by the share
    w / W it moves the level of the task. The effect of others' errors on that level is small and neglected.
    """
    used = table.status == "used"
    name, task, weight = table.name[used], table.task[used].astype(np.int64), table.weight[used]
    part = weight * (1.0 - weight / np.bincount(task, weight)[task])
    order = np.lexsort((task, -part, name))
    name, task, part = name[order], task[order], part[order]
    names, start = np.unique(name, return_index=True)
    ends = [*start[1:], len(name)]
    return {
        unit: (task[first:end][:_MOST_TASKS], part[first:end][:_MOST_TASKS] / part[first:end].max())
        for unit, first, end in zip(names, start, ends, strict=True)
    }


def _scale(names: Texts, k: Floats, solved: Mapping[str, float]) -> float:
    ratios = [solved[name] / value for name, value in zip(names, k, strict=True) if name in solved]
    return math.exp(float(np.median(np.log(ratios)))) if ratios else 1.0
