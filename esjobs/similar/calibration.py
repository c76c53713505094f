"""Errors of predictions that say what they promise: split conformal intervals, wider where neighbours differ.

J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, Distribution-Free Predictive Inference for
Regression, JASA 113 (2018), sections 2.2 and 5.2 (residuals in units of a local scale).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEVELS = (0.68, 0.95)
"""Parts of the cases in which the measured score lies within the error."""
_LEAST_SCALE = 0.1
"""Per cent: scores are not measured better."""


@dataclass(frozen=True)
class Calibration:
    """Errors of new predictions, from residuals of ``n`` known ones.

    ``base``: what is added to the spread of neighbours; ``usual``: the spread taken for a single neighbour;
    ``factors``: by level the multiple of both together; None where too few residuals tell.
    """

    n: int
    base: float
    usual: float
    factors: tuple[float | None, ...]

    def errors(self, spread: float) -> tuple[float | None, ...]:
        """Half the interval by level; scores end at 0 and 100, so that it is never above 100."""
        scale = self.base + (self.usual if math.isnan(spread) else spread)
        return tuple(None if factor is None else min(100.0, factor * scale) for factor in self.factors)


def calibrated(residuals: Floats, spreads: Floats) -> Calibration:
    """From predictions of jobs whose score is known, each without what is too much like itself.

    The factor of a level is the ceil((n + 1) x level)-th smallest of |residual| / (base + spread): with it at
    least that part of new cases is within, whatever the distribution, if they are drawn like the known ones.

    >>> calibrated(np.arange(1.0, 4.0), np.full(3, np.nan)).factors[1] is None
    True
    """
    n = len(residuals)
    absolute = np.abs(residuals)
    base = max(_LEAST_SCALE, float(np.median(absolute))) if n else _LEAST_SCALE
    several = spreads[~np.isnan(spreads)]
    usual = float(several.mean()) if len(several) else 0.0
    ratios = np.sort(absolute / (base + np.where(np.isnan(spreads), usual, spreads)))
    ranks = [math.ceil((n + 1) * level) for level in LEVELS]
    return Calibration(n, base, usual, tuple(float(ratios[k - 1]) if k <= n else None for k in ranks))
