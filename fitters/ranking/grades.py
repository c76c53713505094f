"""Grades in place of a league table: how far estimates with errors can be put in order.

Estimates have a normal prior whose width they tell themselves. Of two names the one with the larger posterior
mean is the smaller with the probability 1 - Phi((m_i - m_j) / sqrt(s_i^2 + s_j^2)). Names are cut into at
most six grades, contiguous in the order of the means; pairs in different grades are told apart. Of all cuts
whose expected share of wrongly told pairs is at most ``DISCORDANCE`` the one that tells most pairs is taken
(the loss of P. Kline, E. Rose, C. Walters, Am. Econ. Rev. 114 (2024), without its integer program).
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from fitters.layout.arrays import Floats, Ints, Mask

DISCORDANCE = 0.05
"""Largest expected share of pairs of different grades that are in the wrong order."""
LETTERS = "ABCDEF"
MOST_GRADES = len(LETTERS)
HALF_WIDTH_90 = 1.645
_PRICES = (0.5, 0.35, 0.25, 0.15, 0.1, 0.07, 0.05, 0.03)  # Of a pair that is not told, in pairs told wrongly
_DRAWS = 2000
_SWEEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Names in order of their estimates; arrays of one entry per estimate.

    ``mean``, ``low``, ``high``: of the posterior, with its 90 % interval. ``grade``: 0 is the highest, -1 for
    names that are not graded. ``rank_low``, ``rank_high``: 90 % interval of the rank, 1 is the largest.
    ``separated``: share of the graded pairs that are told apart; ``discordance``: expected share of these
    that are in the wrong order. ``scatter``: of the true values.
    """

    mean: Floats
    low: Floats
    high: Floats
    grade: Ints
    rank_low: Ints
    rank_high: Ints
    separated: float
    discordance: float
    scatter: float

    @property
    def letters(self) -> list[str | None]:
        """Grades as letters from A; None for names that are not graded."""
        return [LETTERS[number] if number >= 0 else None for number in self.grade.tolist()]


def rank_estimates(value: Floats, error: Floats, graded: Mask | None = None) -> Ranking:
    """Return the standing of estimates with standard errors.

    ``graded``: the names that make the grades; others get one if their whole interval lies in it. Cost: 6 n^2
    and 2000 draws of all.

    >>> found = rank_estimates(np.array([0.5, 0.52, 0.0]), np.full(3, 0.03))
    >>> found.grade.tolist(), found.rank_low.tolist(), found.rank_high.tolist()
    ([0, 0, 1], [1, 1, 3], [2, 2, 3])
    """
    graded = np.ones(len(value), np.bool_) if graded is None else graded
    centre, scatter = _prior(value, error)
    reliability = scatter**2 / (scatter**2 + error**2)
    mean = centre + reliability * (value - centre)
    spread = error * np.sqrt(reliability)
    low, high = mean - HALF_WIDTH_90 * spread, mean + HALF_WIDTH_90 * spread
    chosen = np.flatnonzero(graded)
    chosen = chosen[np.argsort(-mean[chosen], kind="stable")]
    ends, separated, discordance = _cut(mean[chosen], spread[chosen])
    grade = np.full(len(value), -1, np.int64)
    grade[chosen] = np.searchsorted(ends, np.arange(len(chosen)), side="right")
    if len(chosen):
        last = np.append(mean[chosen], -np.inf)
        borders = np.array([(last[end - 1] + last[end]) / 2 for end in ends[:-1]])
        highest, lowest = (np.searchsorted(-borders, -at, side="right") for at in (high, low))
        grade[~graded & (highest == lowest)] = highest[~graded & (highest == lowest)]
    rank_low, rank_high = _ranks(mean, spread)
    return Ranking(mean, low, high, grade, rank_low, rank_high, separated, discordance, scatter)


def _prior(value: Floats, error: Floats) -> tuple[float, float]:
    """Mean and scatter for which chi-squared is as expected (R. C. Paule, J. Mandel)."""
    if len(value) < 2:
        return float(value.mean()) if len(value) else 0.0, 1.0
    low, high = 0.0, float(np.ptp(value)) + 1e-9
    for _ in range(_SWEEPS):
        middle = (low + high) / 2
        weight = 1.0 / (error**2 + middle**2 + 1e-18)
        mean = float(weight @ value / weight.sum())
        low, high = (middle, high) if weight @ (value - mean) ** 2 > len(value) - 1 else (low, middle)
    # where nothing is seen beyond errors, less than their half cannot be excluded
    scatter = max(high, float(np.median(error)) / 2, 1e-9)
    weight = 1.0 / (error**2 + scatter**2)
    return float(weight @ value / weight.sum()), scatter


def _cut(mean: Floats, spread: Floats) -> tuple[Ints, float, float]:
    """Ends of the grades of sorted names, the share of pairs told apart, and of these told wrongly."""
    n = len(mean)
    best = (np.array([n], np.int64), 0.0, 0.0)
    if n < 2:
        return best
    wrong = special.ndtr(-(mean[:, None] - mean) / np.hypot(spread[:, None], spread))
    # sums over pairs i < j with i below a and j below b, shape (n + 1, n + 1)
    pairs, wrongly = (_prefix(np.triu(values, 1)) for values in (np.ones((n, n)), wrong))
    n_pairs, n_wrong = pairs[n, n], wrongly[n, n]
    tied_pairs, tied_wrong = (np.diag(sums) - sums for sums in (pairs, wrongly))  # of names a to b
    for price in _PRICES:
        cost = np.where(np.tri(n + 1, k=-1, dtype=np.bool_), np.inf, price * tied_pairs - tied_wrong)
        for ends in _segments(cost):
            starts = np.append(0, ends[:-1])
            apart = n_pairs - tied_pairs[starts, ends].sum()
            mistaken = n_wrong - tied_wrong[starts, ends].sum()
            if apart > best[1] * n_pairs + 0.5 and mistaken <= DISCORDANCE * apart:
                best = (ends, float(apart / n_pairs), float(mistaken / apart))
    return best


def _prefix(values: Floats) -> Floats:
    sums = np.zeros((len(values) + 1, len(values) + 1))
    sums[1:, 1:] = values.cumsum(axis=0).cumsum(axis=1)
    return sums


def _segments(cost: Floats) -> list[Ints]:
    """Ends of the cheapest cuts into 2, 3, ... segments; ``cost``: of names a to b, shape (n + 1, n + 1)."""
    total, found, before = cost[0].copy(), [], []
    total[0] = np.inf
    for _ in range(min(MOST_GRADES, len(cost) - 1) - 1):
        sums = total[:, None] + cost
        np.fill_diagonal(sums, np.inf)
        before.append(sums.argmin(axis=0))
        total = sums.min(axis=0)
        ends = [len(cost) - 1]
        for previous in reversed(before):
            ends.append(int(previous[ends[-1]]))
        found.append(np.array(ends[::-1], np.int64))
    return found


def _ranks(mean: Floats, spread: Floats) -> tuple[Ints, Ints]:
    # always the same draws: a run that is made again leaves the same rows
    drawn = mean + spread * np.random.default_rng(1).standard_normal((_DRAWS, len(mean)))
    rank = np.argsort(np.argsort(-drawn, axis=1), axis=1) + 1
    low, high = np.quantile(rank, (0.05, 0.95), axis=0, method="inverted_cdf")
    return low.astype(np.int64), high.astype(np.int64)
