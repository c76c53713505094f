"""Statistics of repeated times: intervals, outliers, tests, what a detector can see. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.99
"""Of every interval."""
_Z = 2.576
_MOST_RUNS = 10**7


@dataclass(frozen=True)
class Mean:
    """The mean of n times with the standard deviation of one, and its interval."""

    n: int
    mean: float
    sd: float

    @property
    def half_width(self) -> float:
        """t(0.995, n - 1) sd / sqrt(n); infinite of a single time."""
        if self.n < 2:
            return math.inf
        return float(stats.t.ppf(0.5 + CONFIDENCE / 2, self.n - 1)) * self.sd / math.sqrt(self.n)

    @property
    def low(self) -> float:
        """The lower end of the 99 % interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Its upper end."""
        return self.mean + self.half_width


@dataclass(frozen=True)
class Times:
    """What is told of repeated times.

    ``median_low``, ``median_high``: its 99 % interval by ranks, None of too few times. ``normal_p``: of the
    test of Shapiro and Wilk, None of fewer than 3 times or equal ones. ``n_outliers``: beyond 1.5
    interquartile ranges (Tukey); they count like all others.
    """

    mean: Mean
    median: float
    median_low: float | None
    median_high: float | None
    normal_p: float | None
    n_outliers: int


def told(values: Sequence[float]) -> Times:
    """The statistics of one or more times."""
    times = np.sort(np.asarray(values, float))
    n = len(times)
    mean = Mean(n, float(times.mean()), float(times.std(ddof=1)) if n > 1 else 0.0)
    low, high = math.floor((n - _Z * math.sqrt(n)) / 2), math.ceil(1 + (n + _Z * math.sqrt(n)) / 2)
    ranked = low >= 1 and high <= n
    first, third = np.percentile(times, [25, 75])
    reach = 1.5 * (third - first)
    return Times(
        mean,
        float(np.median(times)),
        float(times[low - 1]) if ranked else None,
        float(times[high - 1]) if ranked else None,
        float(stats.shapiro(times).pvalue) if n >= 3 and times[0] < times[-1] else None,
        int(((times < first - reach) | (times > third + reach)).sum()),
    )


def runs_needed(mean: Mean, precision: float) -> int | None:
    """So many runs make the half width of the interval ``precision`` of the mean; None: beyond ten million.

    The smallest n with t(0.995, n - 1) sd / sqrt(n) <= precision x mean.

    >>> runs_needed(Mean(22, 431.0, 1.3), 0.002)
    19
    """
    low, high = 2, 2
    while Mean(high, mean.mean, mean.sd).half_width > precision * mean.mean:
        low, high = high, high * 2
        if high > _MOST_RUNS:
            return None
    while low < high:
        middle = (low + high) // 2
        if Mean(middle, mean.mean, mean.sd).half_width <= precision * mean.mean:
            high = middle
        else:
            low = middle + 1
    return high


def disjoint(clean: Mean, other: Mean) -> bool:
    """The verdict: the intervals have no time in common."""
    return other.low > clean.high or other.high < clean.low


def above(clean: Mean, other: Mean) -> bool:
    """The laxer criterion: the mean lies above the interval without noise. It forgets the other's error."""
    return other.mean > clean.high


def threshold(detected: Sequence[tuple[float, bool]]) -> float | None:
    """The smallest level from which on every level was detected; None: not even the largest was.

    >>> threshold([(0.01, True), (0.1, False), (0.3, True), (1.0, True)])
    0.3
    """
    smallest = None
    for level, seen in sorted(detected, reverse=True):
        if not seen:
            break
        smallest = level
    return smallest


def difference_p(clean: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided test of Mann and Whitney."""
    return float(stats.mannwhitneyu(clean, other, alternative="two-sided").pvalue)


@dataclass(frozen=True)
class Cost:
    """How much longer something takes, as a part of the time without: 0.01 is 1 %; with a 99 % interval."""

    cost: float
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


def cost(off: Sequence[float], on: Sequence[float]) -> Cost:
    """What a collector costs: the ratio of geometric means less 1, by Welch's t on logarithms.

    Both need two times or more, all above 0.
    """
    a, b = np.log(np.asarray(off, float)), np.log(np.asarray(on, float))
    part_a, part_b = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = math.sqrt(part_a + part_b)
    found = float(b.mean() - a.mean())
    if error == 0:
        return Cost(math.expm1(found), math.expm1(found), math.expm1(found))
    freedom = (part_a + part_b) ** 2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * error
    return Cost(math.expm1(found), math.expm1(found - reach), math.expm1(found + reach))
