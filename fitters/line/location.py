"""Robust mean of values with known errors and an unknown common scatter, of many subsets at once."""

from dataclasses import dataclass

import numpy as np

from fitters.layout.arrays import Floats, Ints, Mask
from fitters.robust import MAD_FACTOR, TUKEY_LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class Location:
    """Robust means of the subsets, shape (m,): position, its error, and the scatter tau beyond the errors."""

    mean: Floats
    error: Floats
    tau: Floats


def locate(y: Floats, variance: Floats, subsets: Mask, tau_floor: float) -> Location:
    """Return Tukey's biweight mean of each subset, started at its median.

    ``subsets``: masks, shape (m, n). tau^2 = max(tau_floor^2, (1.4826 MAD)^2 - median variance); weights are
    those of the biweight with the scale sqrt(variance + tau^2), times its inverse square; the error is 1 /
    sqrt(sum of weights). NaN for an empty subset. O(m n).
    """
    n_inside = subsets.sum(axis=1)
    mean = _medians(y, subsets, n_inside)
    distance = np.abs(y - mean[:, None])
    spread = MAD_FACTOR * _medians(distance, subsets, n_inside)
    excess = spread**2 - _medians(variance, subsets, n_inside)
    tau = np.sqrt(np.maximum(tau_floor**2, excess))
    full = variance + tau[:, None] ** 2
    weight = np.where(subsets, 1.0, 0.0)
    for _ in range(200):
        u = (y - mean[:, None]) / (TUKEY_LIMIT * np.sqrt(full))
        weight = np.where(subsets & (np.abs(u) < 1), (1 - u * u) ** 2, 0.0) / full
        total = weight.sum(axis=1)
        updated = np.divide((weight * y).sum(axis=1), total, out=mean.copy(), where=total > 0)
        change = np.abs(updated - mean)
        mean = updated
        if not np.any(change > 1e-10):
            break
    total = weight.sum(axis=1)
    error = np.full(mean.size, np.nan)
    np.divide(1.0, np.sqrt(total), out=error, where=total > 0)
    return Location(mean, error, np.where(n_inside > 0, tau, np.nan))


def _medians(values: Floats, subsets: Mask, n_inside: Ints) -> Floats:
    result = np.full(subsets.shape[0], np.nan)
    if values.size == 0:
        return result
    ordered = np.sort(np.where(subsets, values, np.inf), axis=1)
    rows = np.arange(subsets.shape[0])
    low, high = np.maximum(n_inside - 1, 0) // 2, n_inside // 2
    high = np.minimum(high, subsets.shape[1] - 1)
    filled = n_inside > 0
    result[filled] = 0.5 * (ordered[rows, low][filled] + ordered[rows, high][filled])
    return result
