"""Grades and ranks: against all cuts of a few names, planted truth, and names that nothing tells apart."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from fitters import rank_estimates
from fitters.ranking.grades import DISCORDANCE, MOST_GRADES


@pytest.mark.parametrize(
    ("count", "error", "told"), [(40, 0.04, 0.80), (40, 0.08, 0.50), (200, 0.05, 0.78), (12, 0.05, 0.75)]
)
def test_few_pairs_of_different_grades_are_in_the_wrong_order(count: int, error: float, told: float) -> None:
    rng = np.random.default_rng(5)
    wrong, said, league, share, ranks, inside = [], [], [], [], [], []
    for _ in range(30):
        true = rng.normal(0, 0.2, count)
        errors = error * np.exp(rng.normal(0, 0.4, count))
        value = true + errors * rng.normal(size=count)
        found = rank_estimates(value, errors)
        above = found.grade[:, None] < found.grade
        mistaken = true[:, None] < true
        wrong.append((above & mistaken).sum() / max(above.sum(), 1))
        said.append(found.discordance)
        league.append(((value[:, None] > value) & mistaken).sum() * 2 / (count * (count - 1)))
        share.append(found.separated)
        rank = stats.rankdata(-true)
        ranks.append(np.mean((rank >= found.rank_low) & (rank <= found.rank_high)))
        inside.append(np.mean((true > found.low) & (true < found.high)))
        assert found.grade.max() < MOST_GRADES
        assert found.discordance <= DISCORDANCE
    assert np.mean(wrong) <= DISCORDANCE
    assert np.mean(wrong) == pytest.approx(np.mean(said), abs=0.015)
    assert np.mean(league) > 1.5 * np.mean(wrong)
    assert np.mean(share) > told
    assert np.mean(ranks) > 0.87
    assert 0.86 < np.mean(inside) < 0.94


def test_no_other_cut_of_few_names_tells_more_pairs() -> None:
    """All cuts of eight names are tried; the one that is found tells at most a pair in twenty less."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        value, errors = np.sort(rng.normal(0, 0.2, 8))[::-1].copy(), rng.uniform(0.03, 0.12, 8)
        found = rank_estimates(value, errors)
        order = np.argsort(-found.mean)
        mean, spread = found.mean[order], (found.high - found.low)[order] / 2 / 1.645
        wrong = stats.norm.sf((mean[:, None] - mean) / np.hypot(spread[:, None], spread))
        best = 0
        for number in range(1, MOST_GRADES):
            for ends in combinations(range(1, 8), number):
                grade = np.searchsorted(ends, np.arange(8), side="right")
                pairs = np.triu(grade[:, None] != grade, 1)
                if wrong[pairs].sum() <= DISCORDANCE * pairs.sum():
                    best = max(best, int(pairs.sum()))
        assert found.separated * 28 >= best - 1.5


def test_names_that_nothing_tells_apart_have_one_grade_and_any_rank() -> None:
    found = rank_estimates(np.full(6, 0.1), np.full(6, 0.05))
    assert found.grade.tolist() == [0] * 6
    assert found.separated == 0.0
    assert (found.rank_low == 1).all()
    assert (found.rank_high == 6).all()


def test_a_name_that_makes_no_grades_gets_one_only_if_its_interval_lies_in_it() -> None:
    value = np.array([0.4, 0.395, 0.0, 0.005, 0.397, 0.2])
    error = np.array([0.02, 0.02, 0.02, 0.02, 0.01, 0.15])
    found = rank_estimates(value, error, np.array([True, True, True, True, False, False]))
    assert found.grade.tolist() == [0, 0, 1, 1, 0, -1]
    assert found.high[5] - found.low[5] > 0.3
    assert abs(found.mean[5] - 0.2) < 0.1


def test_one_name_and_none_are_ranked() -> None:
    alone = rank_estimates(np.array([0.3]), np.array([0.1]))
    assert (alone.grade.tolist(), alone.rank_low.tolist(), alone.rank_high.tolist()) == ([0], [1], [1])
    assert len(rank_estimates(np.empty(0), np.empty(0)).grade) == 0
