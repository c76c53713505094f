"""By how much the fixed cost of a unit's jobs differs from that of the same tasks elsewhere.

Start-up, conditions and caches differ between sites: rho_ij = rho_j f_i. The jobs of a bucket tell their own
fixed cost by how CPU time grows with events, so that f_i follows from all buckets of a unit together,
whatever its speed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.fixed_cost.job_sums import ROUND_OFF
from fitters.fixed_cost.of_buckets import job_noise
from fitters.layout.arrays import Floats, group_sums
from fitters.robust import MAD_FACTOR
from fitters.variance.of_estimates import paule_mandel

LEAST_UNITS = 10
"""Units from which the scatter of fixed costs between them can be had."""

LARGEST_ERROR = 0.5
"""Of ln f; what is known worse says nothing about the scatter."""

FAR = 4.0
_STEPS = 12
_REACH = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class UnitCosts:
    """ln f of each unit, and how it scatters between them.

    Attributes
    ----------
    ln_f, ln_f_err : float64 arrays, shape (n_units,)
        NaN for units whose jobs do not tell.
    sigma, sigma_err : float
        Scatter of ln f between units beyond the errors; NaN with fewer than 10 units that tell.
    n_units : int
        Units that tell.
    drawn, drawn_err : float64 arrays, shape (n_units,)
        ln f drawn to 0 as far as its error says, and what is unknown of it then: sigma for a unit that does
        not tell.
    """

    ln_f: Floats
    ln_f_err: Floats
    sigma: float
    sigma_err: float
    n_units: int
    drawn: Floats
    drawn_err: Floats


@dataclass(frozen=True, slots=True, eq=False)
class BucketSlopes:
    """How CPU time grows with events inside each bucket, one entry per bucket.

    Attributes
    ----------
    elasticity : float64 array
        S_nc / (cbar nbar) / (S_nn / nbar^2): 1 where CPU time is proportional to events, 0 where it is all
        fixed, nbar / (nbar + rho) in between. NaN where the jobs do not tell.
    error : float64 array
        From the scatter of jobs that was given.
    mean_events : float64 array
    """

    elasticity: Floats
    error: Floats
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
    """The elasticity of CPU time inside each bucket.

    Parameters
    ----------
    n_jobs, events, cpu_s, events_sq, events_cpu_s : float64 arrays, shape (n,)
        Jobs and sums over them, as in `estimate_fixed_cost`.
    rho, per_job : float64 arrays, shape (n,)
        Fixed cost of the task, and relative variance of one job's CPU time about it.
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


def unit_costs(slopes: BucketSlopes, rho: Floats, unit: NDArray[Any], n_units: int) -> UnitCosts:
    """Find ln f of every unit by least squares of its buckets' elasticities, nbar / (nbar + rho f).

    Parameters
    ----------
    slopes
        Of the buckets.
    rho : float64 array, shape (n,)
        Fixed cost of each bucket's task, in events.
    unit : integer array, shape (n,)

    Notes
    -----
    Gauss-Newton steps for all units at once, kept within e^4; the scatter by Paule & Mandel. The mean of ln
    f is taken out: rho is that of the task's mean unit.
    """
    use = np.isfinite(slopes.elasticity) & (rho > 0)
    q, error = slopes.elasticity[use], slopes.error[use]
    mean, cost, here = slopes.mean_events[use], rho[use], unit[use]
    ln_f = np.zeros(n_units)
    information = np.zeros(n_units)
    for _ in range(_STEPS):
        expected = mean / (mean + cost * np.exp(ln_f[here]))
        slope = -expected * (1.0 - expected)
        information = group_sums(here, (slope / error) ** 2, n_units)
        step = group_sums(here, slope * (q - expected) / error**2, n_units)
        step = np.divide(step, information, out=np.zeros(n_units), where=information > 0)
        ln_f = np.clip(ln_f + np.clip(step, -1.0, 1.0), -_REACH, _REACH)
    with np.errstate(divide="ignore"):
        ln_f_err = 1.0 / np.sqrt(information)
    known = ln_f_err < LARGEST_ERROR
    number = int(known.sum())
    nothing = np.full(n_units, np.nan)
    if number < LEAST_UNITS:
        return UnitCosts(
            np.where(known, ln_f, np.nan),
            np.where(known, ln_f_err, np.nan),
            np.nan,
            np.nan,
            number,
            nothing,
            nothing,
        )
    inside = _like_the_others(ln_f, ln_f_err, known)
    number = int(inside.sum())
    variance = ln_f_err[inside] ** 2
    scatter, centre, _ = paule_mandel(ln_f[inside], variance, np.zeros(number, np.int64), 1)
    sigma, ln_f = float(scatter[0]), ln_f - float(centre[0])
    # Var(chi2) = 2 dof at the solution; its slope there turns it into an error of sigma^2
    weight = 1.0 / (variance + sigma**2)
    slope_of = float(np.sum((weight * ln_f[inside]) ** 2))
    deviation = np.sqrt(2.0 * (number - 1)) / slope_of if slope_of > 0 else 0.0
    sigma_err = float(np.sqrt(sigma**2 + deviation)) - sigma
    own = np.where(known, ln_f_err**2, np.inf)
    trust = sigma**2 / (sigma**2 + own) if sigma > 0 else np.zeros(n_units)
    return UnitCosts(
        ln_f=np.where(known, ln_f, np.nan),
        ln_f_err=np.where(known, ln_f_err, np.nan),
        sigma=sigma,
        sigma_err=sigma_err,
        n_units=number,
        drawn=np.where(known, trust * ln_f, 0.0),
        drawn_err=sigma * np.sqrt(1.0 - trust),
    )


def _like_the_others(ln_f: Floats, error: Floats, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Units within 4 robust standard deviations of the median: wrong records are no scatter of start-up."""
    distance = np.abs(ln_f - np.median(ln_f[known]))
    scatter = MAD_FACTOR * float(np.median(distance[known]))
    return np.asarray(known & (distance <= FAR * np.hypot(np.where(known, error, 0.0), scatter)))
