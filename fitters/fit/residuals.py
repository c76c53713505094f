"""Residuals of buckets after the fit."""

from dataclasses import dataclass

import numpy as np

from fitters.fit.rejection import kept_room
from fitters.fit.results import FitResult
from fitters.layout.arrays import Floats, Texts, texts
from fitters.layout.table import Table


@dataclass(frozen=True, eq=False)
class BucketTable(Table):
    """One row per bucket as it came, sorted by task and unit."""

    # name, task: Unit and task
    name: Texts
    task: Texts
    # value, jobs: As given; jobs NaN if they were not
    value: Floats
    jobs: Floats
    # x = value k / A, 1 if the fit were exact. NaN where unit or task has no fit, or they belong to different
    # components.
    ratio: Floats
    # (x - 1) in units of its own standard deviation: from rel_var and sigma_int where given, otherwise from S
    # and the weight; corrected by sqrt(1 - w / W_task - w / W_unit) for what the fit takes up, but for
    # rejected buckets. NaN without degrees of freedom.
    pull: Floats
    weight: Floats  # As the fit used it
    status: Texts  # ``used``, ``rejected``, ``one unit`` (the only one left of its task) or ``no fit``


def bucket_table(result: FitResult) -> BucketTable:
    """List all buckets with residuals, pulls and weights; linear in the buckets.

    >>> from fitters import Buckets, fit_speed_factors
    >>> tasks, units = ["t", "t", "u", "u"], ["A", "B", "A", "B"]
    >>> table = bucket_table(fit_speed_factors(Buckets.from_columns(tasks, units, [1.0, 2.0, 1.1, 2.0])))
    >>> table.ratio.round(3).tolist(), table.status.tolist()
    ([0.976, 1.023, 1.023, 0.976], ['used', 'used', 'used', 'used'])
    """
    buckets, units, tasks = result.source, result.units, result.tasks
    n = buckets.n_buckets
    kept = np.ones(n, bool) if result.weighting.kept is None else result.weighting.kept
    index = {name: number for number, name in enumerate(tasks.name.tolist())}
    of_task = np.array([index.get(name, -1) for name in buckets.task_names.tolist()], np.int64)
    level = np.append(tasks.A, np.nan)[of_task]
    component = np.append(tasks.component, -1)[of_task]
    sizes = np.diff(buckets.ptr)
    ratio = buckets.value * units.k[buckets.unit] / np.repeat(level, sizes)
    ratio[np.repeat(component, sizes) != units.component[buckets.unit]] = np.nan
    weight = result.weighting.weight if result.weighting.weight.size else np.ones(n)
    weight = np.where(kept, weight, 0.0)
    in_task = np.repeat(np.add.reduceat(kept.astype(np.int64), buckets.ptr[:-1]), sizes) if n else kept
    used = kept & (in_task >= 2)
    status = texts(n, "used")
    status[~np.isfinite(ratio)] = "no fit"
    status[kept & (in_task == 1)] = "one unit"
    status[~kept] = "rejected"
    deviation = np.sqrt(_variance(result, weight))
    room = np.where(used, kept_room(buckets, weight, used), 1.0) if n else weight
    pull = np.full(n, np.nan)
    valid = np.isfinite(ratio) & np.isfinite(deviation) & (deviation > 0)
    np.divide(ratio - 1.0, deviation * np.sqrt(room), out=pull, where=valid)
    return BucketTable(
        name=units.name[buckets.unit],
        task=np.repeat(buckets.task_names, sizes),
        value=buckets.value.copy(),
        jobs=np.full(n, np.nan) if buckets.jobs is None else buckets.jobs.copy(),
        ratio=ratio,
        pull=pull,
        weight=weight,
        status=status,
    )


def _variance(result: FitResult, weight: Floats) -> Floats:
    # Relative variance of each bucket; `weight` is not its inverse where it has robust weights.
    buckets, weighting = result.source, result.weighting
    if result.rel_var.size and np.isfinite(result.sigma_int.value):
        return result.rel_var + result.sigma_int.value**2
    base = np.ones(buckets.n_buckets)
    # a weight next to nothing has an infinite variance
    with np.errstate(over="ignore"):
        if weighting.kind == "jobs" and buckets.jobs is not None:
            base = 1.0 / buckets.jobs
        elif weighting.kind == "floor" and buckets.jobs is not None:
            base = weighting.job_scatter**2 / buckets.jobs + weighting.floor**2
        elif weighting.kind == "floor":
            np.divide(1.0, weight, out=base, where=weight > 0)
    return base * result.S**2
