"""Rejection of stray buckets: a robust start, and a limit on the residuals."""

import numpy as np

from fitters.fit.kernels import GAMMA
from fitters.layout.arrays import Floats, Mask, grouped_median
from fitters.layout.buckets import Buckets
from fitters.robust import MAD_FACTOR

REJECT_LIMIT = 4.0
MEDIAN_SWEEPS = 4
LEAST_ROOM = 0.05  # Residuals with less are nearly zero by construction
LEAST_SCALE = 1e-9  # Of exact values: round-off is not a residual


def median_start(buckets: Buckets) -> tuple[Floats, Floats]:
    """ln k per unit and ln A per bucket from alternating medians of ln a, four sweeps."""
    task = np.repeat(np.arange(buckets.n_tasks), np.diff(buckets.ptr))
    logs = np.log(buckets.value)
    theta = np.zeros(buckets.n_units)
    level = np.zeros(buckets.n_buckets)
    for _ in range(MEDIAN_SWEEPS):
        level = grouped_median(task, logs + theta[buckets.unit], buckets.n_tasks)[task]
        theta = -grouped_median(buckets.unit, logs - level, buckets.n_units)
    return theta, grouped_median(task, logs + theta[buckets.unit], buckets.n_tasks)[task]


def ratios(buckets: Buckets, theta: Floats, weight: Floats, mode: int) -> Floats:
    """x = a k / A of every bucket with the profiled levels; 1 in tasks without any weight."""
    starts, sizes = buckets.ptr[:-1], np.diff(buckets.ptr)
    y = buckets.value * np.exp(theta[buckets.unit])
    first = np.add.reduceat(weight * y, starts)
    if mode == GAMMA:
        above, below = np.add.reduceat(weight, starts), first
    else:
        above, below = first, np.add.reduceat(weight * y * y, starts)
    inverse = np.divide(above, below, out=1.0 / np.add.reduceat(y, starts), where=below > 0)
    ratio: Floats = y * np.repeat(inverse, sizes)
    return ratio


def kept_room(buckets: Buckets, weight: Floats, used: Mask) -> Floats:
    """1 - w / W_task - w / W_unit, the share of its variance that a residual keeps; at least 0.05."""
    inside = np.where(used, weight, 0.0)
    of_task = np.repeat(np.add.reduceat(inside, buckets.ptr[:-1]), np.diff(buckets.ptr))
    of_unit = np.bincount(buckets.unit, inside, buckets.n_units)[buckets.unit]
    both = (of_task > 0) & (of_unit > 0)
    share = np.ones(weight.size)
    np.divide(inside, of_task, out=share, where=both)
    share[both] += inside[both] / of_unit[both]
    return np.maximum(1.0 - share, LEAST_ROOM)


def kept_after(buckets: Buckets, ln_ratio: Floats, weight: Floats, shared: Mask, n_exact: int = 0) -> Mask:
    """Return the mask of buckets with |ln x| at most 4 times 1.4826 times its median over all.

    ln x is divided by sqrt(1/w) and by sqrt(1 - w / W_task - w / W_unit), so that buckets of different
    weight, and those in tasks of few units, can be compared; those whose residual is nearly zero by
    construction have no part in the scale. `n_exact`: so many residuals are zero because medians pass
    through points, and are left out of it too; with them the scale would be too small and good values would
    be rejected for ever.
    """
    room = kept_room(buckets, weight, shared)
    pull = ln_ratio * np.sqrt(weight / room)
    telling = shared & (room > LEAST_ROOM)
    if not telling.any():
        return np.ones(pull.size, bool)
    sizes = np.abs(pull[telling])
    exact = min(n_exact, sizes.size - 1)
    # the median of what is left without the `exact` smallest
    low, high = exact + (sizes.size - exact - 1) // 2, exact + (sizes.size - exact) // 2
    sizes.partition((low, high))
    scale = max(
        MAD_FACTOR * 0.5 * float(sizes[low] + sizes[high]), LEAST_SCALE * float(np.sqrt(weight.max()))
    )
    return ~(shared & (np.abs(pull) > REJECT_LIMIT * scale))
