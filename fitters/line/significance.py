"""Significance of many tests."""

import numpy as np
from numpy.typing import ArrayLike

from fitters.errors import InputError
from fitters.layout.arrays import Floats


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Return q-values of the step-up procedure of Benjamini & Hochberg (J. R. Stat. Soc. B 57 (1995) 289).

    NaN is not a test and stays NaN. Findings with q <= 0.05 have an expected share of false ones below 5 %.
    Raises :class:`InputError` for a p-value outside 0..1.

    >>> benjamini_hochberg([0.01, 0.02, float("nan"), 0.5]).tolist()
    [0.03, 0.03, nan, 0.5]
    """
    values = np.asarray(p, np.float64)
    if values.ndim != 1:
        raise InputError(f"p has {values.ndim} dimensions; expected one")
    tested = ~np.isnan(values)
    inside = values[tested]
    if inside.size and not (inside.min() >= 0 and inside.max() <= 1):
        raise InputError("p has values outside 0..1")
    q = np.full(values.shape, np.nan)
    if inside.size:
        q[tested] = _step_up(inside)
    return q


def _step_up(p: Floats) -> Floats:
    order = np.argsort(p)
    of_rank = p[order] * (p.size / np.arange(1, p.size + 1))
    q = np.empty_like(p)
    q[order] = np.minimum.accumulate(of_rank[::-1])[::-1]
    return np.clip(q, 0.0, 1.0)
