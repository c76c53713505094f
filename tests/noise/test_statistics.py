"""The statistics of the noise test: the tables of the paper as an oracle, SciPy as a second way."""

import math

import numpy as np
import pytest
from scipy import stats

from esjobs.noise.analysis import verdicts
from esjobs.noise.statistics import Mean, above, cost, disjoint, runs_needed, summary, threshold

LEVELS = (0.0, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 1.0)
TABLES = {
    "alltoall 2 KB, 4 nodes": (
        (431, 432, 432, 433, 434, 435, 436, 436),
        (1.3, 1.1, 2.1, 1.5, 1.7, 1.5, 2.2, 1.2),
        (22, 10, 4, 9, 6, 7, 9, 22),
    ),
    "alltoall 2 KB, 8 nodes": (
        (516, 517, 523, 519, 519, 526, 529, 527),
        (1.6, 3.4, 0.7, 4.3, 1.1, 0.9, 2.7, 3.4),
        (13, 5, 5, 5, 5, 5, 4, 13),
    ),
    "barrier, 4 nodes": (
        (547, 552, 549, 551, 552, 553, 555, 556),
        (1.0, 1.5, 1.3, 1.0, 1.7, 0.7, 0.9, 2.1),
        (8, 5, 5, 5, 5, 5, 5, 11),
    ),
    "alltoall 16 KB, 4 nodes": (
        (553, 555, 556, 557, 560, 560, 561, 561),
        (2.2, 0.2, 0.3, 1.2, 1.9, 0.3, 0.7, 2.7),
        (12, 5, 5, 5, 5, 5, 5, 12),
    ),
}
"""Means, standard deviations (s) and runs per level, as tables 3 to 6 of the paper print them."""

EXPECTED = {
    "alltoall 2 KB, 4 nodes": (0.5, 0.01, set()),
    "alltoall 2 KB, 8 nodes": (0.5, 0.05, {0.05}),
    "barrier, 4 nodes": (0.1, 0.01, {0.01}),
    "alltoall 16 KB, 4 nodes": (0.3, 0.01, {0.05}),
}
"""From which level on intervals are disjoint, and means above the clean one; seen below a missed level."""


def means(name: str) -> list[tuple[float, Mean]]:
    return [(level, Mean(n, mean, sd)) for level, mean, sd, n in zip(LEVELS, *TABLES[name], strict=True)]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_of_the_paper(name: str) -> None:
    listed = means(name)
    clean = listed[0][1]
    strict, lax, unconfirmed = EXPECTED[name]
    assert threshold([(level, disjoint(clean, mean)) for level, mean in listed[1:]]) == strict
    assert threshold([(level, above(clean, mean)) for level, mean in listed[1:]]) == lax
    judged = verdicts(listed)
    assert {level for level, verdict in judged.items() if verdict == "unconfirmed"} == unconfirmed
    assert {level for level, verdict in judged.items() if verdict == "detected"} == {
        level for level in LEVELS if level >= strict
    }


def test_collectives_that_the_paper_gave_up() -> None:
    """Table 1, I: all-reduce; table 2, II: all-to-all of 1 KB. Neither tells 1 % from none."""
    assert not disjoint(Mean(6, 318.7, 3.19), Mean(7, 328.3, 4.95))
    assert not disjoint(Mean(23, 558.0, 14.3), Mean(6, 572.0, 16.6))
    assert disjoint(Mean(8, 546.66, 1.03), Mean(11, 555.90, 2.09))


def test_intervals_are_those_of_scipy() -> None:
    values = np.random.default_rng(1).normal(10, 1, 30)
    found = summary(list(values))
    low, high = stats.t.interval(0.99, 29, values.mean(), stats.sem(values))
    assert (found.mean.low, found.mean.high) == pytest.approx((low, high))
    assert found.normal_p == pytest.approx(stats.shapiro(values).pvalue)
    ranked = sorted(values)
    assert found.median_low == ranked[math.floor((30 - 2.576 * math.sqrt(30)) / 2) - 1]
    assert found.median_high == ranked[math.ceil(1 + (30 + 2.576 * math.sqrt(30)) / 2) - 1]


def test_intervals_of_medians_hold_the_median() -> None:
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(500):
        found = summary(list(rng.lognormal(0, 1, 40)))
        assert found.median_low is not None
        assert found.median_high is not None
        held += found.median_low <= 1 <= found.median_high
    assert held / 500 >= 0.97


def test_outliers_are_counted_and_count() -> None:
    found = summary([10.0, 10.1, 9.9, 10.0, 10.2, 9.8, 30.0])
    assert found.n_outliers == 1
    assert found.mean.mean == pytest.approx(90 / 7)
    assert summary([5.0]).median_low is None
    assert summary([5.0, 5.0, 5.0]).normal_p is None


@pytest.mark.parametrize("precision", [0.05, 0.01, 0.002, 0.0005])
def test_needed_runs_are_the_fewest(precision: float) -> None:
    n = runs_needed(Mean(8, 100.0, 1.0), precision)
    assert n is not None
    assert Mean(n, 100.0, 1.0).half_width <= precision * 100
    assert n == 2 or Mean(n - 1, 100.0, 1.0).half_width > precision * 100
    assert runs_needed(Mean(8, 1.0, 1e6), 1e-6) is None


def test_costs_hold_what_was_planted() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(500):
        off, on = rng.normal(100, 1, 12), rng.normal(101, 2, 9)
        found = cost(list(off), list(on))
        held += found.low <= 0.01 <= found.high
    assert 0.97 <= held / 500 <= 1.0
    a, b = np.log(off), np.log(on)
    again = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.99)
    assert (found.low, found.high) == pytest.approx((math.expm1(again.low), math.expm1(again.high)))


def test_same_times_cost_nothing_and_that_is_known() -> None:
    found = cost([2.0, 2.0], [2.0, 2.0])
    assert (found.cost, found.seen) == (0.0, False)
    assert cost([2.0, 2.0], [3.0, 3.0]).seen
