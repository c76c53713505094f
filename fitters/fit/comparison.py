"""How much factors differ between two fits."""

from dataclasses import dataclass

import numpy as np

from fitters.fit.results import FitResult
from fitters.layout.arrays import Floats, Texts
from fitters.layout.table import Table


@dataclass(frozen=True, eq=False)
class Comparison(Table):
    """One row per unit that either result has a factor for, sorted as in the first result, then the second.

    Attributes
    ----------
    name : array of labels
    ln_ratio : float64 array
        ln(k_a / k_b), both scaled to the same sum over the units that they share in the pair of components.
        NaN if one of them has no factor.
    sigma : float64 array
        The difference in units of the relative error of `a`.
    component_a, component_b : float64 arrays
        Their components; NaN without a factor.
    status : array of str
        ``ok``, ``only in a``, ``only in b`` or ``no error`` (no sigma).
    """

    name: Texts
    ln_ratio: Floats
    sigma: Floats
    component_a: Floats
    component_b: Floats
    status: Texts


def compare(result_a: FitResult, result_b: FitResult) -> Comparison:
    """Compare the factors of two fits unit by unit.

    Parameters
    ----------
    result_a, result_b
        For example the ``paper`` and ``gamma`` fits of the same buckets, whose difference is a systematic
        uncertainty of the method.

    Notes
    -----
    The scale of a fit is arbitrary, hence the common sum. The difference between methods on the same data
    is given in units of the statistical error of `a` and has no error of its own here. Linear in the units.

    >>> from fitters import Buckets, fit_speed_factors
    >>> tasks, units = ["t", "t", "u", "u", "v", "v"], ["A", "B"] * 3
    >>> buckets = Buckets.from_columns(tasks, units, [1.0, 2.0, 1.0, 2.1, 1.0, 1.9])
    >>> result = compare(fit_speed_factors(buckets), fit_speed_factors(buckets, "gamma"))
    >>> bool(np.abs(result.sigma).max() < 0.1)
    True
    """
    a, b = result_a.units, result_b.units
    place_b = {name: index for index, name in enumerate(b.name.tolist()) if np.isfinite(b.k[index])}
    names = [name for index, name in enumerate(a.name.tolist()) if np.isfinite(a.k[index])]
    place_a = {name: index for index, name in enumerate(a.name.tolist()) if np.isfinite(a.k[index])}
    names += [name for name in place_b if name not in place_a]
    n = len(names)
    nothing = float("nan")
    k, component = (np.full((2, n), np.nan) for _ in range(2))
    for side, (units, indices) in enumerate(((a, place_a), (b, place_b))):
        here = np.array([name in indices for name in names], bool)
        there = np.array([indices[name] for name in names if name in indices], np.int64)
        k[side, here], component[side, here] = units.k[there], units.component[there]
    err = np.full(n, np.nan)
    err[: len(place_a)] = [a.k_err[index] / a.k[index] for index in place_a.values()]
    both = np.isfinite(k).all(axis=0)
    ratio, sigma = np.full(n, nothing), np.full(n, nothing)
    if both.any():
        _, pair = np.unique(component[:, both], axis=1, return_inverse=True)
        pair = pair.ravel()
        sums = [np.bincount(pair, k[side, both]) for side in range(2)]
        ratio[both] = np.log(k[0, both] / sums[0][pair]) - np.log(k[1, both] / sums[1][pair])
    np.divide(ratio, err, out=sigma, where=both & (err > 0))
    status = np.empty(n, object)
    status[:] = "ok"
    status[both & ~np.isfinite(sigma)] = "no error"
    status[np.isfinite(k[0]) & ~both] = "only in a"
    status[np.isfinite(k[1]) & ~both] = "only in b"
    labels = np.empty(n, object)
    labels[:] = names
    return Comparison(labels, ratio, sigma, component[0], component[1], status)
