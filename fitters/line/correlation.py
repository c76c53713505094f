"""Correlation of two columns, with the probability of one as large where there is none.

The formulas of `scipy.stats` in its own special functions, to the last digit: importing that package takes
longer than a fit of some thousand jobs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from fitters.layout.arrays import Floats

LEAST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r and Spearman's rank correlation of k and c, each with its two-sided p; NaN below n = 3."""

    n: int
    pearson: float
    pearson_p: float
    spearman: float
    spearman_p: float


def correlate(k: Floats, c: Floats) -> Correlation:
    """Both correlations of two columns of equal length; NaN below three points or where one is constant."""
    n, nothing = int(k.size), float("nan")
    none = Correlation(n, nothing, nothing, nothing, nothing)
    if n < LEAST_POINTS or np.ptp(k) == 0 or np.ptp(c) == 0:
        return none
    k, c = k / k.max(), c / c.max()
    if np.std(k) < 1e-12 or np.std(c) < 1e-12:  # constant but for round-off
        return none
    return Correlation(n, *_pearson(k, c), *_spearman(k, c))


def _pearson(x: Floats, y: Floats) -> tuple[float, float]:
    """Pearson's r, and its p: without correlation (r + 1) / 2 is beta distributed, a = b = n / 2 - 1."""
    x, y = _unit_length(x - x.mean()), _unit_length(y - y.mean())
    r = float(np.clip(np.vecdot(x, y), -1.0, 1.0))
    shape = x.size / 2 - 1
    return r, min(float(2 * special.betaincc(shape, shape, (abs(r) + 1) / 2)), 1.0)


def _unit_length(x: Floats) -> Floats:
    # Along an axis squares are added in pairs, as scipy.stats does, and not by the linear algebra library.
    largest = np.max(np.abs(x))
    unit: Floats = x / (largest * np.linalg.norm(x / largest, axis=0))
    return unit


def _spearman(x: Floats, y: Floats) -> tuple[float, float]:
    """Spearman's rank correlation, and its p from Student's t with n - 2 degrees of freedom."""
    r = float(np.corrcoef(_ranks(x), _ranks(y))[1, 0])
    dof = x.size - 2
    with np.errstate(divide="ignore"):  # |r| = 1 is an infinite t
        t = r * np.sqrt(np.maximum(np.divide(dof, (r + 1.0) * (1.0 - r)), 0.0))
    return r, float(2 * special.stdtr(dof, -abs(t)))


def _ranks(x: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, index, count = np.unique(x, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2)[index]
    return ranks
