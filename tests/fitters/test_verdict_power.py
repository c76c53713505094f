"""Verdicts on grids with planted wrong declarations; the full table is made by benchmarks.data_need."""

import numpy as np
import pytest

from tests.fitters.declared_toys import Tally, judge_grid


@pytest.mark.parametrize(("tasks", "jobs"), [(5, 100), (20, 20)])
def test_wrong_declarations_are_found_and_honest_sites_left_alone(tasks: int, jobs: int) -> None:
    tally = Tally()
    for seed in range(20):
        judge_grid(np.random.default_rng([seed, tasks]), tasks, jobs, 0.10, tally)
    assert tally.accused <= 0.01 * tally.honest
    assert tally.clear > 50
    assert tally.clear_found >= 0.9 * tally.clear
    assert tally.wrong_side == 0


def test_verdicts_wait_for_data() -> None:
    few, many = Tally(), Tally()
    for seed in range(5):
        judge_grid(np.random.default_rng(seed), 2, 20, 0.20, few)
        judge_grid(np.random.default_rng(seed), 50, 20, 0.20, many)
    assert few.undecided > 0.9 * few.honest
    assert few.accused <= 0.01 * few.honest
    assert many.undecided < 0.1 * many.honest
