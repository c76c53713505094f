"""Effect on one name against similar names without a contact. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

MOST_MATCHED = 30
"""Largest control group: the nearest names."""
LEAST_MATCHED = 8
"""Smallest control group with an interval."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Change:
    """Score of a name before and after, and hours of its jobs in both."""

    name: str
    before: float
    after: float
    hours: float


@dataclass(frozen=True)
class Effect:
    """Change of a name minus the change of its control group.

    ``expected``: change of a name with the same score before. ``effect``: change - expected, with 95 %
    interval. ``extrapolated``: no control had a score as extreme. ``common``: by control, its signed
    contribution to the error: effects against the same controls share it.
    """

    change: float
    expected: float
    effect: float
    low: float
    high: float
    n_matched: int
    extrapolated: bool
    common: Mapping[str, float] = field(default_factory=dict)

    def verdict(self, *, high_is_good: bool) -> str:
        """Return ``improved``, ``worse``, ``no change seen`` or ``too little history``."""
        if self.extrapolated:
            return "too little history"
        return verdict_of(self.low, self.high, high_is_good=high_is_good)


def verdict_of(low: float, high: float, *, high_is_good: bool) -> str:
    """Return ``improved``, ``worse``, or ``no change seen`` if the interval contains 0."""
    if low > 0 or high < 0:
        return "improved" if (low > 0) == high_is_good else "worse"
    return "no change seen"


def effect(contacted: Change, others: Sequence[Change]) -> Effect | None:
    """Return the effect on a contacted name, None with fewer than 8 controls.

    Controls are the 30 nearest by score before and ln(hours), each in standard deviations. Names with bad
    scores improve by chance (regression to the mean): the expected change is a line through the controls'
    scores before. The interval is a prediction interval: s sqrt(1 + 1/n + (x - mean x)² / sum((x - mean
    x)²)), Student's t with n - 2 degrees of freedom.
    """
    matched = _matched(contacted, others)
    n = len(matched)
    if n < LEAST_MATCHED:
        return None
    x = np.array([each.before for each in matched])
    y = np.array([each.after - each.before for each in matched])
    centred = x - x.mean()
    width = float(centred @ centred)
    slope = float(centred @ y) / width if width > 0 else 0.0
    residuals = y - y.mean() - slope * centred
    away = contacted.before - float(x.mean())
    spread = math.sqrt(float(residuals @ residuals) / (n - 2))  # Two degrees of freedom go to the line
    # the line is known worse away from the mean of its points
    leverage = away * away / width if width > 0 else 0.0
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 2)) * spread * math.sqrt(1 + 1 / n + leverage)
    change = contacted.after - contacted.before
    expected = float(y.mean()) + slope * away
    found = change - expected
    # beyond its controls the line is a guess, however narrow its interval
    outside = not x.min() <= contacted.before <= x.max()
    # expected is sum(weights y): a mean, and a slope times the way from it
    weights = 1 / n + (away * centred / width if width > 0 else np.zeros(n))
    common = {each.name: spread * float(weight) for each, weight in zip(matched, weights, strict=True)}
    return Effect(change, expected, found, found - reach, found + reach, n, outside, common)


def _matched(contacted: Change, others: Sequence[Change]) -> list[Change]:
    """Return the nearest names; ties by name."""
    if len(others) < LEAST_MATCHED:
        return []
    # hours span decades: ten times as many are as far for small names as for large ones
    points = np.array([(each.before, math.log(each.hours)) for each in others])
    scale = points.std(axis=0)
    # all equal in one of the two: it decides nothing
    scale[scale == 0] = 1.0
    away = np.hypot(*((points - (contacted.before, math.log(contacted.hours))) / scale).T)
    order = sorted(range(len(others)), key=lambda number: (away[number], others[number].name))
    return [others[number] for number in order[:MOST_MATCHED]]
