"""Statistics of repeated times: intervals, outliers, tests, detection limits. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.99
"""Level of every interval."""
_Z = 2.576  # Normal quantile of that level
_MOST_RUNS = 10**7


@dataclass(frozen=True)
class Mean:
    """Mean of n times, standard deviation of one, and interval."""

    n: int
    mean: float
    sd: float

    @property
    def half_width(self) -> float:
        """t(0.995, n - 1) sd / sqrt(n); infinite for one time."""
        if self.n < 2:
            return math.inf
        return float(stats.t.ppf(0.5 + CONFIDENCE / 2, self.n - 1)) * self.sd / math.sqrt(self.n)

    @property
    def low(self) -> float:
        """Lower end of the 99 % interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width


@dataclass(frozen=True)
class Times:
    """Statistics of repeated times.

    ``median_low``, ``median_high``: 99 % interval by ranks, None for too few times. ``normal_p``:
    Shapiro-Wilk, None for fewer than 3 or equal times. ``n_outliers``: beyond 1.5 interquartile ranges
    (Tukey); not excluded.
    """

    mean: Mean
    median: float
    median_low: float | None
    median_high: float | None
    normal_p: float | None
    n_outliers: int


def summary(values: Sequence[float]) -> Times:
    """Return mean and median with their 99 % intervals, spread and outliers of repeated times."""
    times = np.sort(np.asarray(values, float))
    n = len(times)
    mean = Mean(n, float(times.mean()), float(times.std(ddof=1)) if n > 1 else 0.0)
    # ranks between which the median lies whatever the distribution: the normal limit of a binomial count
    low, high = math.floor((n - _Z * math.sqrt(n)) / 2), math.ceil(1 + (n + _Z * math.sqrt(n)) / 2)
    # with too few times the interval reaches beyond the smallest or largest one
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
    """Return the runs for which the half-width is ``precision`` of the mean; None: beyond ten million.

    Smallest n with t(0.995, n - 1) sd / sqrt(n) <= precision x mean.

    >>> runs_needed(Mean(22, 431.0, 1.3), 0.002)
    19
    """
    # n is on both sides, in t and in the root: doubled until it suffices, then bisected
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
    """True if the intervals do not overlap."""
    return other.low > clean.high or other.high < clean.low


def above(clean: Mean, other: Mean) -> bool:
    """True if the mean is above the interval without noise; ignores its own error."""
    return other.mean > clean.high


def threshold(detected: Sequence[tuple[float, bool]]) -> float | None:
    """Return the smallest level from which every level was detected, None if the largest was not.

    >>> threshold([(0.01, True), (0.1, False), (0.3, True), (1.0, True)])
    0.3
    """
    smallest = None
    # from the top: a lucky hit below a level that was missed is no limit of detection
    for level, seen in sorted(detected, reverse=True):
        if not seen:
            break
        smallest = level
    return smallest


def difference_p(clean: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p-value of Mann and Whitney."""
    return float(stats.mannwhitneyu(clean, other, alternative="two-sided").pvalue)


@dataclass(frozen=True)
class Cost:
    """Relative overhead with 99 % interval: 0.01 is 1 %."""

    cost: float
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """True if the interval excludes 0."""
        return self.low > 0 or self.high < 0


def cost(off: Sequence[float], on: Sequence[float]) -> Cost:
    """Return the ratio of geometric means minus 1, by Welch's t on logarithms.

    Both need at least two times, all above 0.
    """
    # a collector costs a share of the time: on logarithms a ratio is a difference
    a, b = np.log(np.asarray(off, float)), np.log(np.asarray(on, float))
    part_a, part_b = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = math.sqrt(part_a + part_b)
    found = float(b.mean() - a.mean())
    if error == 0:  # equal times on both sides: Welch's formula would divide by 0
        return Cost(math.expm1(found), math.expm1(found), math.expm1(found))
    # Welch and Satterthwaite: the two sides need not have the same spread
    freedom = (part_a + part_b) ** 2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * error
    return Cost(math.expm1(found), math.expm1(found - reach), math.expm1(found + reach))
