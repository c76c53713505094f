"""Linear trends of daily values, with errors that allow for autocorrelation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from scipy import stats

LEAST_DAYS = 21
"""Days required for a trend."""
CONFIDENCE = 0.95
_WEEK = 7.0


@dataclass(frozen=True)
class Trend:
    """Slope of daily values, per week, with 95 % interval.

    ``n_effective``: number of independent days with the same information.
    """

    per_week: float
    low: float
    high: float
    n_days: int
    n_effective: float

    @property
    def verdict(self) -> str:
        """``growing``, ``shrinking``, or ``no change seen`` if the interval contains 0.

        >>> Trend(0.1, 0.02, 0.18, 30, 21.0).verdict
        'growing'
        """
        if self.low > 0:
            return "growing"
        return "shrinking" if self.high < 0 else "no change seen"


def trend(days: Sequence[date], values: Sequence[float]) -> Trend | None:
    """Return the least-squares trend of daily values, None below 21 days.

    Adjacent days are correlated: n_effective = n (1 - r) / (1 + r), with r the lag-1 correlation of the
    residuals, corrected for the fitted line, which reduces it by (2 + 4 r) / n, and at least 0. Error and
    Student's t have n_effective - 2 degrees of freedom, at least 1 (B. D. Santer et al., J. Geophys. Res. 105
    (2000) 7337).
    """
    n = len(days)
    if n < LEAST_DAYS:
        return None
    x = np.array([day.toordinal() for day in days], float)
    order = np.argsort(x)
    x, y = x[order], np.asarray(values, float)[order]
    # ordinals are about 740,000: squares of them would cancel in the usual formula
    centred = x - x.mean()
    width = float(centred @ centred)
    slope = float(centred @ y) / width
    residuals = y - y.mean() - slope * centred
    memory = _memory(x, residuals)
    effective = n * (1 - memory) / (1 + memory)
    # one degree of freedom at least: the interval is wide enough that nothing follows from it
    freedom = max(effective - 2, 1.0)
    error = math.sqrt(float(residuals @ residuals) / freedom / width)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * error
    return Trend(slope * _WEEK, (slope - reach) * _WEEK, (slope + reach) * _WEEK, n, effective)


def _memory(x: np.ndarray, residuals: np.ndarray) -> float:
    """Return the corrected lag-1 correlation of residuals, 0 to 0.99."""
    # days on both sides of a gap are not neighbours
    neighbours = np.diff(x) == 1
    n = len(x)
    spread = float(residuals @ residuals) / n
    # a line through exact values leaves rounding, whose correlation means nothing
    if not neighbours.any() or spread <= 1e-24:
        return 0.0
    products = residuals[:-1] * residuals[1:]
    raw = float(products[neighbours].mean()) / spread
    # solved for r: raw = r - (2 + 4 r) / n
    return min(max((raw + 2 / n) / (1 - 4 / n), 0.0), 0.99)
