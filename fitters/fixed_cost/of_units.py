"""Start-up time of a unit's jobs relative to the same tasks elsewhere.

Start-up, conditions and caches differ between sites: rho_ij = rho_j f_i. The jobs of a bucket tell their own
start-up time by how CPU time grows with events, so that f_i follows from all buckets of a unit together,
whatever its speed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.fixed_cost.job_sums import ROUND_OFF
from fitters.fixed_cost.of_buckets import job_noise
from fitters.layout.arrays import Floats, Mask, group_sums
from fitters.robust import MAD_FACTOR
from fitters.variance.of_estimates import drawn_to_mean, paule_mandel

LEAST_UNITS = 10  # Units from which the scatter of start-up times between them can be had
LARGEST_ERROR = 0.5  # Of ln f; what is known worse says nothing about the scatter
CHANGED = 4.0  # Errors between a window and the earlier ones beyond which these no longer count
FAR = 4.0
_STEPS, _JACOBI_STEPS = 12, 30
_REACH = 4.0  # Of ln f: a start-up time fifty times that of the others is none
_QUIET = 1e-3  # A step of so many errors or less is the last one
_MOST_ITSELF = 0.9  # Of a unit that is nearly alone in its tasks nothing can be told from theirs


@dataclass(frozen=True, slots=True, eq=False)
class UnitCosts:
    """ln f of each unit, and its scatter between units."""

    # ln_f, ln_f_err: NaN for units whose jobs do not tell; shape (n_units,)
    ln_f: Floats
    ln_f_err: Floats
    # sigma, sigma_err: Scatter of ln f between units beyond the errors; NaN with fewer than 10 units that
    # tell
    sigma: float
    sigma_err: float
    n_units: int  # Units that tell
    # drawn, drawn_err: shape (n_units,): ln f drawn to 0 as far as its error says, and what is unknown of it
    # then, that of sigma included; of a unit that does not tell 0 and the scatter. NaN where sigma is.
    drawn: Floats
    drawn_err: Floats
    # first, first_err: shape (n_units,): The first step towards ln f, from 0. Of a unit whose CPU time
    # hardly follows events f may be anything large, and `ln_f` is NaN; how far it is from the others can be
    # said all the same.
    first: Floats
    first_err: Floats


@dataclass(frozen=True, slots=True, eq=False)
class BucketSlopes:
    """Slope of CPU time against events, one entry per bucket."""

    # S_nc / (cbar nbar) / (S_nn / nbar^2): 1 where CPU time is proportional to events, 0 where it is all
    # fixed, nbar / (nbar + rho) in between. NaN where the jobs do not tell.
    elasticity: Floats
    error: Floats  # From the scatter of jobs that was given
    mean_events: Floats


def bucket_slopes(
    n_jobs: Floats,
    events: Floats,
    cpu_s: Floats,
    events_sq: Floats,
    events_cpu_s: Floats,
    *,
    rho: Floats,
    per_job: Floats,
) -> BucketSlopes:
    """Return the elasticity of CPU time inside each bucket.

    Jobs and sums as in `estimate_fixed_cost`; ``rho``: start-up time of the task; ``per_job``: relative
    variance of one job's CPU time about it.
    """
    with np.errstate(all="ignore"):
        mean, level = events / n_jobs, cpu_s / n_jobs
        nn = events_sq - events * mean
        square = np.where(nn > ROUND_OFF * events_sq, nn, 0.0) / mean**2
        cross = (events_cpu_s - events * level) / (level * mean)
        telling = (n_jobs > 1) & (square > 0) & np.isfinite(cross) & np.isfinite(per_job) & np.isfinite(rho)
        weight = mean / (mean + rho)
        one = np.ones_like(mean)
        # The noise of one job holds at the scatter that the jobs have about their line.
        noise = job_noise(weight, square / n_jobs, one, per_job) * n_jobs
        error = np.sqrt(noise) / square
    telling &= np.isfinite(error) & (error > 0)
    return BucketSlopes(
        np.where(telling, cross / np.where(square > 0, square, 1.0), np.nan),
        np.where(telling, error, np.nan),
        mean,
    )


def unit_costs(
    slopes: BucketSlopes,
    rho: Floats,
    unit: NDArray[Any],
    n_units: int,
    *,
    task: NDArray[Any] | None = None,
    own: Floats | None = None,
    earlier: tuple[Floats, Floats] | None = None,
) -> UnitCosts:
    """Find ln f of every unit by least squares of its buckets' elasticities, nbar / (nbar + rho f).

    ``rho``: start-up time of each bucket's task, in events. ``own``: weight of these buckets in rho, below 1
    if it was shrunk; without ``task`` and ``own`` rho is independent of them. ``earlier``: ln f of each unit
    from other jobs and its variance, NaN where there is none; scatter, ``drawn`` and ``drawn_err`` rest on
    both, ``ln_f`` on these jobs alone. Gauss-Newton steps for all units at once, within e^4; the scatter by
    Paule & Mandel; the mean of ln f is subtracted: rho is that of the mean unit.

    rho contains the f of its units, so with 15 units per task f comes out a fifteenth too near 1. With
    weights w and o = `own` the steps find ln f_i - sum_j (w_ij / w_i) o_j sum_k (w_kj / w_j) ln f_k, which is
    solved for ln f. The shrinkage is averaged over all sigma that the values allow (`drawn_to_mean`): a sigma
    of 0 by chance would shrink completely.
    """
    use = np.isfinite(slopes.elasticity) & (rho > 0)
    q, error = slopes.elasticity[use], slopes.error[use]
    mean, cost, here = slopes.mean_events[use], rho[use], unit[use]
    ln_f, information, weight = np.zeros(n_units), np.zeros(n_units), np.zeros(q.size)
    first, first_err = np.full((2, n_units), np.nan)
    for number in range(_STEPS):
        expected = mean / (mean + cost * np.exp(ln_f[here]))
        slope = -expected * (1.0 - expected)
        weight = (slope / error) ** 2
        information = group_sums(here, weight, n_units)
        step = group_sums(here, slope * (q - expected) / error**2, n_units)
        step = np.divide(step, information, out=np.zeros(n_units), where=information > 0)
        if number == 0:
            usable = information > LARGEST_ERROR**-2
            first[usable], first_err[usable] = step[usable], information[usable] ** -0.5
        # where CPU time hardly follows events the model is flat, and a full step would leave the range
        updated = np.clip(ln_f + np.clip(step, -1.0, 1.0), -_REACH, _REACH)
        far = np.abs(updated - ln_f) * np.sqrt(information)
        ln_f = updated
        if far.max(initial=0.0) < _QUIET:
            break
    if task is not None and own is not None:
        ln_f, information = _without_own_part(ln_f, weight, here, task[use], own[use])
    with np.errstate(divide="ignore"):
        ln_f_err = 1.0 / np.sqrt(information)
    here_valid = ln_f_err < LARGEST_ERROR
    value, error = ln_f, ln_f_err
    if earlier is not None:
        ln_f = ln_f - _offset(ln_f, here_valid, earlier[0])
        value, error = pooled(ln_f, ln_f_err, *earlier)
    valid = error < LARGEST_ERROR
    number = int(valid.sum())
    if number < LEAST_UNITS:
        ln_f, ln_f_err = np.where(here_valid, [ln_f, ln_f_err], np.nan)
        nothing = np.full(n_units, np.nan)
        return UnitCosts(ln_f, ln_f_err, np.nan, np.nan, number, nothing, nothing, first, first_err)
    inside = _like_the_others(value, error, valid)
    number = int(inside.sum())
    variance = error[inside] ** 2
    scatter, centre, _ = paule_mandel(value[inside], variance, np.zeros(number, np.int64), 1)
    sigma, ln_f, value = float(scatter[0]), ln_f - float(centre[0]), value - float(centre[0])
    # Var(chi2) = 2 dof at the solution; its slope there turns it into an error of sigma^2
    weight = 1.0 / (variance + sigma**2)
    slope_of = float(np.sum((weight * value[inside]) ** 2))
    deviation = np.sqrt(2.0 * (number - 1)) / slope_of if slope_of > 0 else 0.0
    sigma_err = float(np.sqrt(sigma**2 + deviation)) - sigma
    drawn, unknown = drawn_to_mean(np.where(valid, value, np.nan), error**2, inside)
    return UnitCosts(
        ln_f=np.where(here_valid, ln_f, np.nan),
        ln_f_err=np.where(here_valid, ln_f_err, np.nan),
        sigma=sigma,
        sigma_err=sigma_err,
        n_units=number,
        drawn=drawn,
        drawn_err=np.sqrt(unknown),
        first=first,
        first_err=first_err,
    )


def _offset(ln_f: Floats, valid: Mask, earlier: Floats) -> float:
    # The mean unit of each window is another one: both are brought to the same zero.
    both = valid & np.isfinite(earlier)
    return float(np.median(ln_f[both] - earlier[both])) if both.any() else 0.0


def pooled(ln_f: Floats, error: Floats, earlier: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return the weighted means of ln f in a window and in the earlier ones, and their errors.

    A unit that differs by more than four errors has changed: then this window counts alone. Missing: an
    infinite error, an infinite ``variance``.

    >>> mean, _ = pooled(np.array([0.1, 0.9]), np.full(2, 0.1), np.full(2, 0.3), np.full(2, 0.01))
    >>> mean.round(3).tolist()
    [0.2, 0.9]
    """
    with np.errstate(invalid="ignore"):
        same = np.abs(ln_f - earlier) <= CHANGED * np.sqrt(variance + error**2)
    before, now = np.where(same, 1.0 / variance, 0.0), error**-2.0
    weighted, total = ln_f * now + before * np.nan_to_num(earlier), now + before
    mean = np.divide(weighted, total, out=ln_f.copy(), where=total > 0)
    return mean, np.divide(1.0, np.sqrt(total), out=np.full(total.size, np.inf), where=total > 0)


def _without_own_part(
    ln_f: Floats, weight: Floats, unit: NDArray[Any], task: NDArray[Any], own: Floats
) -> tuple[Floats, Floats]:
    # A task's rho contains the f of its units: solve for ln f by Jacobi steps, which contract as long as
    # tasks link the units; otherwise f stays between both values.
    n_units, n_tasks = ln_f.size, int(task.max(initial=-1)) + 1
    of_unit, of_task = group_sums(unit, weight, n_units), group_sums(task, weight, n_tasks)
    inverse_unit, inverse_task = (
        np.divide(1.0, total, out=np.zeros(total.size), where=total > 0) for total in (of_unit, of_task)
    )
    shared = own * weight
    itself = group_sums(unit, shared * weight * inverse_task[task], n_units) * inverse_unit
    itself = np.minimum(itself, _MOST_ITSELF)
    left, solved = ln_f, ln_f
    for _ in range(_JACOBI_STEPS):
        of_tasks = group_sums(task, weight * solved[unit], n_tasks) * inverse_task
        others = group_sums(unit, shared * of_tasks[task], n_units) * inverse_unit - itself * solved
        updated = (left + others) / (1.0 - itself)
        updated -= float(of_unit @ updated) / float(of_unit.sum()) if of_unit.any() else 0.0
        change = np.abs(updated - solved) * np.sqrt(of_unit)
        solved = updated
        if change.max(initial=0.0) < _QUIET:
            break
    return np.clip(solved, -_REACH, _REACH), of_unit * (1.0 - itself)


def _like_the_others(ln_f: Floats, error: Floats, valid: Mask) -> Mask:
    # Units beyond 4 robust standard deviations have wrong records, not another start-up time.
    distance = np.abs(ln_f - np.median(ln_f[valid]))
    scatter = MAD_FACTOR * float(np.median(distance[valid]))
    return np.asarray(valid & (distance <= FAR * np.hypot(np.where(valid, error, 0.0), scatter)))
