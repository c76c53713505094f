"""Intervals of rankings: few jobs lead nothing, alike jobs are no evidence, who differs is told."""

import numpy as np
import pytest

from esjobs.scores.intervals import means


def test_the_error_is_that_of_clusters() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        centre = rng.normal(50.0, 10.0, 20)  # 20 users of 10 equal jobs each
        one = means(np.zeros(20, int), 10 * centre, np.full(20, 10.0), np.full(20, 10.0), 1)
        found.append(one.low[0] <= 50.0 <= one.high[0])
    assert np.mean(found) == pytest.approx(0.95, abs=0.04)


def test_few_jobs_or_few_clusters_have_no_interval() -> None:
    name = np.array([0, 1, 1, 1, 1, 1, 1])
    weights = np.ones(7)
    made = means(name, np.array([99.0, 1, 2, 1, 2, 1, 2]), weights, np.array([3.0, 1, 1, 1, 1, 1, 1]), 2)
    assert np.isnan(made.low[0])
    assert made.differs[0] is None
    assert made.low[1] < 1.5 < made.high[1]


def test_who_differs_is_told_and_does_not_make_the_others_differ() -> None:
    name = np.repeat(np.arange(5), 20)
    noise = np.tile([-1.0, 1.0], 50)
    score = np.where(name == 4, 80.0, 50.0) + noise
    made = means(name, score, np.ones(100), np.ones(100), 5)
    assert made.differs == [False, False, False, False, True]
