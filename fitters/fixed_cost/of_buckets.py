"""Start-up time of jobs from sums and sums of squares over buckets, for all tasks at once.

q = m / (m + rho) with m the mean events of a job in the task: the CPU time of a
job of n events on unit i is L_i (n + rho), proportional to 1 + q (n / m - 1).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fitters.fixed_cost.job_sums import Scatter
from fitters.layout.arrays import Codes, Floats, group_sums

# Beyond 1 a start-up time is negative, which none is, but estimates of none scatter to both sides
LARGEST_Q = 1.25
LEAST_LEVER = 0.05
SMALLEST_Q = 1e-3  # rho beyond 1000 mean jobs is all start-up time; the correction no longer depends on it
# From so many effective units on, the scatter between units bounds the errors from below
LEAST_EFFECTIVE_UNITS = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class BucketCosts:
    """One entry per task: q, the elasticity slope, errors, mean events, jobs that say something."""

    q: Floats
    q_err: Floats
    slope: Floats
    slope_err: Floats
    mean_events: Floats
    n_used: Floats


def bucket_costs(scatter: Scatter, n_tasks: int) -> BucketCosts:
    """Estimate the start-up time of every task from the second moments of its buckets.

    Minimises sum_i [S_cc - 2 L_i S_nc + L_i^2 S_nn] / cbar_i^2, L_i = cbar_i / (rho + nbar_i), over rho:
    least squares of c / cbar on n inside the units. The slope is the pooled elasticity of CPU time minus one,
    sum_i S_nc / (cbar nbar) / sum_i S_nn / nbar^2 - 1, about -rho / (m + rho).

    Errors take the scatter about the line as independent of n, and n as gamma distributed, which gives the
    variance of S_nc in closed form; from 10 effective units on they are not below the scatter between units
    (a sandwich clustered by unit), which assumes neither. About 90 passes over the buckets.
    """
    valid = np.isfinite(scatter.nn) & (scatter.jobs > 1)
    task = scatter.task[valid]
    jobs, events, cpu_s = scatter.jobs[valid], scatter.events[valid], scatter.cpu_s[valid]

    def total(column: Floats) -> Floats:
        return group_sums(task, column, n_tasks)

    nbar, cbar = events / jobs, cpu_s / jobs
    n_used = total(jobs)
    with np.errstate(all="ignore"):
        mean = total(events) / n_used
        m = mean[task]
        excess = nbar / m - 1.0
        cross, square = scatter.nc[valid] / (cbar * m), scatter.nn[valid] / m**2
        q = _minimum(excess, cross, square, task, n_tasks)
        weight = q[task] / np.maximum(1.0 + q[task] * excess, LEAST_LEVER)
        residual = scatter.cc[valid] / cbar**2 - 2.0 * weight * cross + weight**2 * square
        noise = job_noise(weight, square / jobs, 1.0 + excess, residual / (jobs - 1.0)) * jobs

        # estimating equation of q: sum of w^2 (cross - w square) / q^2, whose derivative is -w^4 square / q^4
        part = (weight / q[task]) ** 2
        information = total(part**2 * square)
        score = part * (cross - weight * square)
        q_err = _error(total, task, part**2 * noise, score, part**2 * square) / information

        level = 1.0 + excess
        elasticity = total(cross / level) / total(square / level**2)
        score = cross / level - elasticity[task] * square / level**2
        slope_err = _error(total, task, noise / level**2, score, square / level**2)
        slope_err = slope_err / total(square / level**2)
    blind = ~(total(square) > 0)
    columns = [np.where(blind, np.nan, column) for column in (q, q_err, elasticity - 1.0, slope_err)]
    return BucketCosts(columns[0], columns[1], columns[2], columns[3], mean, n_used)


def _minimum(excess: Floats, cross: Floats, square: Floats, task: Codes, n_tasks: int) -> Floats:
    def cost(q: Floats) -> Floats:
        weight = q[task] / np.maximum(1.0 + q[task] * excess, LEAST_LEVER)
        return group_sums(task, weight * (weight * square - 2.0 * cross), n_tasks)

    def gradient(q: Floats) -> Floats:
        lever = 1.0 / np.maximum(1.0 + q[task] * excess, LEAST_LEVER)
        return group_sums(task, lever**2 * (q[task] * lever * square - cross), n_tasks)

    grid: Floats = np.linspace(SMALLEST_Q, LARGEST_Q, 41)
    best, lowest = np.zeros(n_tasks, np.intp), np.full(n_tasks, np.inf)
    for number, q in enumerate(grid.tolist()):
        here = cost(np.full(n_tasks, q))
        better = here < lowest
        best[better], lowest[better] = number, here[better]
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, grid.size - 1)]
    for _ in range(50):
        middle = np.asarray(0.5 * (low + high), np.float64)
        rising = gradient(middle) > 0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return np.asarray(0.5 * (low + high))


def job_noise(weight: Floats, variance: Floats, mean: Floats, residual: Floats) -> Floats:
    """Return the variance that one job adds to `cross`, in closed form.

    x = (n - nbar) / m has the given variance, the relative scatter sigma is the same for all jobs, so that a
    job's residual is w (x + 1 / w) sigma times a unit number; centring on the unit's mean turns x into x - w
    variance.
    """
    reach = 1.0 / weight
    cv_sq = variance / mean**2
    third = 2.0 * cv_sq**2 * mean**3
    fourth = (3.0 * cv_sq**2 + 6.0 * cv_sq**3) * mean**4
    shift = variance * weight
    product = (
        fourth
        + 2.0 * (reach - shift) * third
        + ((reach - shift) ** 2 - 2.0 * reach * shift) * variance
        + (reach * shift) ** 2
    )
    scatter = np.maximum(residual, 0.0) / (weight**2 * (reach**2 + variance))
    return np.asarray(scatter * weight**2 * product)


def _error(
    total: Callable[[Floats], Floats], task: Codes, variance: Floats, score: Floats, information: Floats
) -> Floats:
    # From the variances, but not below the scatter between the units' scores.
    all_information = total(information)
    units = total(np.where(information > 0, 1.0, 0.0))
    effective = all_information * all_information / total(information * information)
    centred = score - (total(score) / all_information)[task] * information
    between = total(centred * centred) * units / np.maximum(units - 1.0, 1.0)
    within = total(variance)
    return np.asarray(
        np.sqrt(np.where(effective >= LEAST_EFFECTIVE_UNITS, np.maximum(within, between), within))
    )
