"""Calibrated errors of predictions: split conformal intervals, scaled by the spread of neighbours.

J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, Distribution-Free Predictive Inference for
Regression, JASA 113 (2018), sections 2.2 and 5.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitters.layout.arrays import Floats

LEVELS = (0.68, 0.95)
"""Coverage of the errors."""
LEAST = (350, 75)
"""Residuals for each level: coverage scatters by sqrt(p (1 - p) / (n + 2)), 2.5 points with so many."""
_LEAST_SCALE = 0.1  # Per cent: scores are not measured better


@dataclass(frozen=True)
class Calibration:
    """Errors of new predictions, from ``n`` residuals.

    ``base``: added to the spread of neighbours; ``usual``: spread of a single neighbour; ``factors``:
    multiple of both by level, None for too few residuals.
    """

    n: int
    base: float
    usual: float
    factors: tuple[float | None, ...]

    def errors(self, spread: float) -> tuple[float | None, ...]:
        """Return the half-widths of the intervals by level, at most 100."""
        scale = self.base + (self.usual if math.isnan(spread) else spread)
        return tuple(None if factor is None else min(100.0, factor * scale) for factor in self.factors)


def calibrated(residuals: Floats, spreads: Floats, fewest: Sequence[int] = LEAST) -> Calibration:
    """Calibrate errors on predictions of jobs with measured scores.

    The factor of a level is the ceil((n + 1) x level)-th smallest |residual| / (base + spread): it covers at
    least that share of exchangeable new cases, whatever the distribution. Fewer residuals than
    ``fewest`` give none.

    >>> calibrated(np.arange(1.0, 4.0), np.full(3, np.nan)).factors[1] is None
    True
    """
    n = len(residuals)
    absolute = np.abs(residuals)
    base = max(_LEAST_SCALE, float(np.median(absolute))) if n else _LEAST_SCALE
    several = spreads[~np.isnan(spreads)]
    usual = float(several.mean()) if len(several) else 0.0
    # a single neighbour has no spread: the usual one instead
    ratios = np.sort(absolute / (base + np.where(np.isnan(spreads), usual, spreads)))
    ranks = [math.ceil((n + 1) * level) for level in LEVELS]
    factors = (
        float(ratios[k - 1]) if n >= max(k, least) else None for k, least in zip(ranks, fewest, strict=True)
    )
    return Calibration(n, base, usual, tuple(factors))
