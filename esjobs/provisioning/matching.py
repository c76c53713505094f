"""What changed for one name, against names like it to which nothing happened. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

MOST_MATCHED = 30
"""Names in a comparison group at most: the nearest."""
LEAST_MATCHED = 8
"""Names without which there is no interval."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Change:
    """A score of a name before and after, and the hours of its jobs in both."""

    name: str
    before: float
    after: float
    hours: float


@dataclass(frozen=True)
class Effect:
    """What is left of a change when what names like it did is taken off.

    ``expected``: the change of a name of the same score before. ``effect``: change - expected, with its 95 %
    interval. ``extrapolated``: no name of the group had a score as far out, so that nothing is decided.
    ``common``: by name of the group, the error that its scatter puts into the effect, with its sign: effects
    that are held against the same names share it.
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
        """``improved``, ``worse``, ``no change seen``, or ``not comparable``."""
        if self.extrapolated:
            return "not comparable"
        if self.low > 0 or self.high < 0:
            return "improved" if (self.low > 0) == high_is_good else "worse"
        return "no change seen"


def effect(contacted: Change, others: Sequence[Change]) -> Effect | None:
    """The effect on a contacted name; None where fewer than 8 others can be compared.

    The group are the 30 nearest by score before and logarithm of hours, each in its standard deviations. Who
    is contacted did badly, and who did badly does better next time without any doing: the change of the group
    is therefore a line through its scores before, taken at that of the contacted name. The interval is that
    of a prediction for one more name, whose own scatter it contains:
    s sqrt(1 + 1/n + (x - mean x)² / sum((x - mean x)²)), Student's t with n - 2 degrees of freedom.
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
    spread = math.sqrt(float(residuals @ residuals) / (n - 2))
    leverage = away * away / width if width > 0 else 0.0
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 2)) * spread * math.sqrt(1 + 1 / n + leverage)
    change = contacted.after - contacted.before
    expected = float(y.mean()) + slope * away
    found = change - expected
    outside = not x.min() <= contacted.before <= x.max()
    # expected is sum(weights y): a mean, and a slope times the way from it
    weights = 1 / n + (away * centred / width if width > 0 else np.zeros(n))
    common = {each.name: spread * float(weight) for each, weight in zip(matched, weights, strict=True)}
    return Effect(change, expected, found, found - reach, found + reach, n, outside, common)


def _matched(contacted: Change, others: Sequence[Change]) -> list[Change]:
    """The nearest names, those of equal distance by name."""
    if len(others) < LEAST_MATCHED:
        return []
    places = np.array([(each.before, math.log(each.hours)) for each in others])
    scale = places.std(axis=0)
    scale[scale == 0] = 1.0
    away = np.hypot(*((places - (contacted.before, math.log(contacted.hours))) / scale).T)
    order = sorted(range(len(others)), key=lambda number: (away[number], others[number].name))
    return [others[number] for number in order[:MOST_MATCHED]]
