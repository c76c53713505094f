"""Difference of factors between two fits."""

from dataclasses import dataclass

import numpy as np

from fitters.fit.results import FitResult, Units
from fitters.layout.arrays import Floats, Texts, texts
from fitters.layout.table import Table


@dataclass(frozen=True, eq=False)
class Comparison(Table):
    """One row per unit with a factor in either result, sorted as in the first, then as in the second."""

    name: Texts
    # ln(k_a / k_b), both scaled to the same sum over the units that they share in the pair of components. NaN
    # if one of them has no factor.
    ln_ratio: Floats
    sigma: Floats  # The difference in units of the relative error of `a`
    status: Texts  # ``ok``, ``only in a``, ``only in b`` or ``no error`` (no sigma)


def compare(result_a: FitResult, result_b: FitResult) -> Comparison:
    """Compare the factors of two fits unit by unit, scaled to a common sum.

    The difference of methods on the same data, in units of the statistical error of `a`, is a systematic
    uncertainty. Linear in the units.

    >>> from fitters import Buckets, fit_speed_factors
    >>> tasks, units = ["t", "t", "u", "u", "v", "v"], ["A", "B"] * 3
    >>> buckets = Buckets.from_columns(tasks, units, [1.0, 2.0, 1.0, 2.1, 1.0, 1.9])
    >>> result = compare(fit_speed_factors(buckets), fit_speed_factors(buckets, "gamma"))
    >>> bool(np.abs(result.sigma).max() < 0.1)
    True
    """
    sides = [_fitted(result.units) for result in (result_a, result_b)]
    names = [*sides[0], *(name for name in sides[1] if name not in sides[0])]
    n = len(names)
    k, k_err, component = (np.full((2, n), np.nan) for _ in range(3))
    for row, side in enumerate(sides):
        for index, name in enumerate(names):
            if name in side:
                k[row, index], k_err[row, index], component[row, index] = side[name]
    both = np.isfinite(k).all(axis=0)
    ratio, sigma = np.full(n, np.nan), np.full(n, np.nan)
    if both.any():
        _, pair = np.unique(component[:, both], axis=1, return_inverse=True)
        pair = pair.ravel()
        sums = [np.bincount(pair, k[side, both]) for side in range(2)]
        ratio[both] = np.log(k[0, both] / sums[0][pair]) - np.log(k[1, both] / sums[1][pair])
    err = np.divide(k_err[0], k[0], out=np.full(n, np.nan), where=np.isfinite(k[0]))
    np.divide(ratio, err, out=sigma, where=both & (err > 0))
    status = texts(n, "ok")
    status[both & ~np.isfinite(sigma)] = "no error"
    status[np.isfinite(k[0]) & ~both] = "only in a"
    status[np.isfinite(k[1]) & ~both] = "only in b"
    labels = texts(n)
    labels[:] = names
    return Comparison(labels, ratio, sigma, status)


def _fitted(units: Units) -> dict[object, tuple[float, float, int]]:
    rows = zip(
        units.name.tolist(), units.k.tolist(), units.k_err.tolist(), units.component.tolist(), strict=True
    )
    return {name: (k, k_err, component) for name, k, k_err, component in rows if np.isfinite(k)}
