"""Robust mean of values with known errors and an unknown common scatter, of many subsets at once."""

from dataclasses import dataclass

import numpy as np
from iminuit import Minuit  # type: ignore[import-untyped]
from numpy.typing import NDArray

from fitters.layout.arrays import Floats
from fitters.robust import MAD_FACTOR, TUKEY_LIMIT


@dataclass(frozen=True, slots=True, eq=False)
class Location:
    """Robust means of the subsets, shape (m,): position, its error, and the scatter tau beyond the errors."""

    mean: Floats
    error: Floats
    tau: Floats


def locate(y: Floats, variance: Floats, subsets: NDArray[np.bool_], tau_floor: float) -> Location:
    """Tukey's biweight mean of each subset, started at its median.

    Parameters
    ----------
    y, variance : shape (n,)
        Values and their error variances.
    subsets : bool array, shape (m, n)
        Which values each subset has.
    tau_floor
        Least scatter that is added to all errors.

    Notes
    -----
    tau^2 = max(tau_floor^2, (1.4826 MAD)^2 - median variance); weights are those of the biweight with the
    scale sqrt(variance + tau^2), times its inverse square; the error is 1 / sqrt(sum of weights). An empty
    subset gives NaN. Time and memory O(m n).
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
        moved = np.divide((weight * y).sum(axis=1), total, out=mean.copy(), where=total > 0)
        change = np.abs(moved - mean)
        mean = moved
        if not np.any(change > 1e-10):
            break
    total = weight.sum(axis=1)
    error = np.full(mean.size, np.nan)
    np.divide(1.0, np.sqrt(total), out=error, where=total > 0)
    return Location(mean, error, np.where(n_inside > 0, tau, np.nan))


def _medians(values: Floats, subsets: NDArray[np.bool_], n_inside: NDArray[np.int64]) -> Floats:
    """Median of each subset's values; NaN where it is empty."""
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


def minuit_location(y: Floats, variance: Floats, tau: float, start: float) -> tuple[float, bool]:
    """Minimise the same biweight cost with Minuit; return the position and Minuit's valid flag."""
    full = variance + tau**2

    def cost(position: float) -> float:
        u = (y - position) / (TUKEY_LIMIT * np.sqrt(full))
        inner = np.where(np.abs(u) < 1, 1 - (1 - u * u) ** 3, 1.0)
        return float(TUKEY_LIMIT**2 / 3 * inner.sum())

    minuit = Minuit(cost, position=start)
    minuit.errordef = Minuit.LEAST_SQUARES
    minuit.errors["position"] = float(np.sqrt(full.min()))
    minuit.tol = 1e-4
    minuit.migrad()
    return float(minuit.values["position"]), bool(minuit.valid)
