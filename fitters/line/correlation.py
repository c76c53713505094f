"""Correlation of two columns.

The formulas of `scipy.stats`, to the last digit: importing that package takes longer than a fit of some
thousand jobs.
"""

from dataclasses import dataclass

import numpy as np

from fitters.layout.arrays import Floats

LEAST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r and Spearman's rank correlation of n points."""

    n: int
    pearson: float
    spearman: float


def correlate(k: Floats, c: Floats) -> Correlation:
    """Return both correlations of two columns; NaN below three points or if one is constant."""
    n = int(k.size)
    none = Correlation(n, float("nan"), float("nan"))
    if n < LEAST_POINTS or np.ptp(k) == 0 or np.ptp(c) == 0:
        return none
    k, c = k / k.max(), c / c.max()
    if np.std(k) < 1e-12 or np.std(c) < 1e-12:  # constant but for round-off
        return none
    x, y = _unit_length(k - k.mean()), _unit_length(c - c.mean())
    pearson = float(np.clip(np.vecdot(x, y), -1.0, 1.0))
    return Correlation(n, pearson, float(np.corrcoef(_ranks(k), _ranks(c))[1, 0]))


def _unit_length(x: Floats) -> Floats:
    # Along an axis squares are added in pairs, as scipy.stats does, and not by the linear algebra library.
    largest = np.max(np.abs(x))
    unit: Floats = x / (largest * np.linalg.norm(x / largest, axis=0))
    return unit


def _ranks(x: Floats) -> Floats:
    # From 1; equal values share their mean rank.
    _, index, count = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[index]
