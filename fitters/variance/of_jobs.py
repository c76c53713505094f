"""Scatter of single jobs in each bucket, also in buckets of one or two jobs.

The variance from the jobs of a bucket is its own where these are many; where they are few it is known no
better than a chi-squared of as many degrees of freedom, and its task's, or its kind's, says more. In between
both count for what they know (G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fitters.layout.arrays import Floats, Mask, group_sums
from fitters.robust import MAD_FACTOR

LEAST_VARIANCE = 1e-8  # Below it jobs are alike to four digits, and their sums are round-off
# Degrees of freedom that a task's variance counts for where too few buckets can tell
ASSUMED_PRIOR_DOF = 10.0
PRIOR_DOF_RANGE = (4.0, 200.0)
LEAST_BUCKETS = 20  # Buckets of 5 jobs or more from which the scatter of variances can be had
_UNIT_PRIOR_DOF = 20.0
_TELLING_DOF = 4.0
_STRAY = 4.0  # How much beyond what chance explains a variance may be and still be one of its task


@dataclass(frozen=True, slots=True, eq=False)
class JobScatter:
    """Relative variances of single jobs, one entry per bucket."""

    # shape (n,): Relative variance of one job's CPU time in the bucket; divided by the jobs it is that of
    # the mean. NaN where no bucket at all says anything.
    per_job: Floats
    of_task: Floats  # The same for the bucket's task, stray buckets left out; shape (n,)
    is_stray: Mask  # True if a bucket's own variance is far beyond that of its task; shape (n,)


def job_scatter(task: NDArray[Any], kind: NDArray[Any], n_jobs: Floats, variance: Floats) -> JobScatter:
    """Shrink the variances of buckets to those of their tasks, and these to those of their kinds.

    ``variance``: relative, of one job about the bucket's mean; NaN for a single job. ``kind``: per task. With
    d = jobs - 1, s^2 of a bucket and s0^2 of its task: (d s^2 + d0 s0^2) / (d + d0). s0^2 is the mean of the
    s^2 weighted with d, without those above 4 times the 0.9999 quantile of chi^2_d / d: one site with wrong
    records would dominate its task. d0 follows from the scatter of ln s^2 beyond trigamma(d / 2).

    >>> task, jobs = np.array([0, 0, 0]), np.array([101.0, 1.0, 2.0])
    >>> job_scatter(task, np.array([0]), jobs, np.array([0.10, np.nan, 0.30])).per_job.round(3).tolist()
    [0.1, 0.102, 0.12]
    """
    valid = np.isfinite(variance) & (n_jobs > 1)
    n = n_jobs.size
    if not valid.any():
        return JobScatter(np.full(n, np.nan), np.full(n, np.nan), valid)
    dof = np.where(valid, n_jobs - 1.0, 0.0)
    own = np.where(valid, np.maximum(variance, LEAST_VARIANCE), 1.0)
    chance = _Chance.of(dof)
    n_tasks, n_kinds = kind.size, int(kind.max()) + 1
    everywhere = _pooled(np.zeros(n, np.int64), own, chance, 1, np.empty(0))
    of_kind = _pooled(kind[task], own, chance, n_kinds, everywhere)
    of_task = _pooled(task, own, chance, n_tasks, of_kind[kind])
    telling = dof >= _TELLING_DOF
    base = of_task[task]
    excess = np.log(own[telling] / base[telling]) - chance.bias[telling]
    prior = _prior_dof(excess, chance.scatter[telling])
    stray = valid & (own > chance.limit * base)
    return JobScatter((dof * own + prior * base) / (dof + prior), base, stray)


def unit_scatter(scatter: JobScatter, unit: NDArray[Any], n_jobs: Floats, variance: Floats) -> Floats:
    """Return relative variances of single jobs: of their task, times the excess scatter of their unit.

    A queue of unequal machines scatters more in every task: by the mean of its buckets' variance over that of
    their task, weighted with degrees of freedom, shrunk to 1 by 20 of them, without stray buckets. Unlike a
    bucket's own variance this hardly correlates with its mean.

    >>> task, jobs, own = np.array([0, 0]), np.array([101.0, 101.0]), np.array([0.10, 0.30])
    >>> of_tasks = job_scatter(task, np.array([0]), jobs, own)
    >>> unit_scatter(of_tasks, np.array([0, 1]), jobs, own).round(2).tolist()
    [0.12, 0.28]
    """
    valid = np.isfinite(variance) & (n_jobs > 1) & ~scatter.is_stray
    dof = np.where(valid, n_jobs - 1.0, 0.0)
    ratio = np.divide(variance, scatter.of_task, out=np.zeros(unit.size), where=valid)
    n_units = int(unit.max(initial=-1)) + 1
    total, mean = group_sums(unit, dof, n_units), group_sums(unit, dof * ratio, n_units)
    more = (mean + _UNIT_PRIOR_DOF) / (total + _UNIT_PRIOR_DOF)
    per_job: Floats = scatter.of_task * more[unit]
    return per_job


@dataclass(frozen=True, slots=True, eq=False)
class _Chance:
    """Sampling distribution of the s^2 of each bucket, shape (n,).

    ``bias``, ``scatter``: mean and variance of ln(s^2 / sigma^2). ``limit``: how many times the variance of
    its task its own may be; infinite without degrees of freedom.
    """

    dof: Floats
    bias: Floats
    scatter: Floats
    limit: Floats

    @classmethod
    def of(cls, dof: Floats) -> "_Chance":
        # Many buckets share few degrees of freedom, and the functions are slow.
        distinct, index = np.unique(dof, return_inverse=True)
        half = np.maximum(distinct, 1.0) / 2.0
        limit = np.full(distinct.size, np.inf)
        valid = distinct > 0
        limit[valid] = _STRAY * special.chdtri(distinct[valid], 1e-4) / distinct[valid]
        bias, scatter = special.digamma(half) - np.log(half), special.polygamma(1, half)
        return cls(dof, bias[index], scatter[index], limit[index])


def _pooled(group: NDArray[Any], own: Floats, chance: _Chance, n: int, above: Floats) -> Floats:
    # Variance per group without stray buckets, shrunk to that of the group above.
    valid = chance.dof > 0
    start = _log_mean(group, own, chance, n, above)
    level = start
    # strays follow from the level, and the level from what is left: four rounds settle it
    for _ in range(4):
        inside = valid & (own <= chance.limit * level[group])
        weight = np.where(inside, chance.dof, 0.0)
        total, mean = group_sums(group, weight, n), group_sums(group, weight * own, n)
        if above.size:
            total, mean = total + ASSUMED_PRIOR_DOF, mean + ASSUMED_PRIOR_DOF * above
        level = np.divide(mean, total, out=start.copy(), where=total > 0)
    return level


def _log_mean(group: NDArray[Any], own: Floats, chance: _Chance, n: int, above: Floats) -> Floats:
    # Mean of ln s^2, corrected for few degrees of freedom: no single bucket can move it far.
    weight = np.where(chance.dof > 0, 1.0 / (chance.scatter + 0.25), 0.0)
    value = weight * (np.log(own) - chance.bias)
    total, mean = group_sums(group, weight, n), group_sums(group, value, n)
    if above.size:
        total, mean = total + 1.0, mean + np.log(above)
    return np.exp(np.divide(mean, total, out=np.zeros(n), where=total > 0))


def _prior_dof(excess: Floats, by_chance: Floats) -> float:
    # d0 with trigamma(d0 / 2) = excess scatter of ln s^2; robust against stray buckets.
    if excess.size < LEAST_BUCKETS:
        return ASSUMED_PRIOR_DOF
    scatter = (MAD_FACTOR * float(np.median(np.abs(excess - np.median(excess))))) ** 2
    more = scatter - float(np.median(by_chance))
    low, high = PRIOR_DOF_RANGE
    if more <= special.polygamma(1, high / 2.0):
        return high
    # trigamma(x) is 1/x + 1/(2 x^2) to within a few percent for x above 2
    half = (1.0 + np.sqrt(1.0 + 2.0 * more)) / (2.0 * more)
    return float(np.clip(2.0 * half, low, high))
