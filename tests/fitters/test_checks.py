"""Tests of the model on toys: silent where it holds, and the size of what is planted where it does not."""

import numpy as np
import pytest

import fitters
from fitters.layout.arrays import Floats, Ints

UNITS, TASKS = 30, 40


def pairs(rng: np.random.Generator, per_task: int = 12) -> tuple[Ints, Ints]:
    """Units and tasks of rows, by task."""
    unit = np.concatenate([np.sort(rng.permutation(UNITS)[:per_task]) for _ in range(TASKS)])
    return unit, np.repeat(np.arange(TASKS), per_task)


def time_toy(seed: int, drift: float) -> tuple[fitters.TimeCheck, Floats]:
    """Check of four weeks at units that are active at different times, and what the drift moves ln k by."""
    rng = np.random.default_rng(seed)
    unit, task = pairs(rng)
    unit, task, period = (np.repeat(each, 4) for each in (unit, task, np.zeros(unit.size, int)))
    period = np.arange(unit.size) % 4
    active = rng.uniform(0, 3, UNITS)
    variance = 0.03**2 * np.exp(0.5 * (period - active[unit]) ** 2)
    slope = rng.normal(0, drift, TASKS)
    late = slope[task] * (period - 1.5) / 3
    shared = rng.normal(0, 0.05, (TASKS, UNITS))[task, unit]
    value = late + shared + rng.normal(0, 1, unit.size) * np.sqrt(variance)
    found = fitters.time_check(unit, task, period, value, variance, 0.05, UNITS)
    return found, late


def test_tasks_that_do_not_change_are_rarely_said_to_and_their_shifts_stay_small() -> None:
    found = [time_toy(seed, 0.0)[0] for seed in range(40)]
    p = np.array([each.p for each in found])
    assert p.min() > 0.001
    assert 0.3 < p.mean() < 0.7
    assert max(np.abs(each.shift).max() for each in found) < 0.05


def test_tasks_that_drift_are_told_with_the_size_of_their_change() -> None:
    for seed in range(5):
        found, late = time_toy(seed, 0.3)
        assert found.p < 1e-10
        assert found.effect == pytest.approx(np.sqrt(np.mean(late**2)), rel=0.5)
        assert found.shift.std() > 2 * time_toy(seed, 0.0)[0].shift.std()


def test_one_period_has_no_test() -> None:
    rng = np.random.default_rng(1)
    unit, task = pairs(rng)
    nothing = fitters.time_check(unit, task, 0 * unit, np.zeros(unit.size), np.ones(unit.size), 0.1, UNITS)
    assert np.isnan(nothing.p)


def structure_toy(seed: int, size: float, by_kind: float = 0.0) -> tuple[fitters.StructureCheck, Floats]:
    """Check of tasks of which half suffers at half of the units; units differ by kinds of tasks, too."""
    rng = np.random.default_rng(seed)
    unit, task = pairs(rng)
    suffers = np.where(rng.permutation(TASKS) < TASKS // 2, 1.0, 0.0)
    slow = rng.permutation(UNITS) < UNITS // 2
    kind = np.arange(TASKS)[task] % 3
    value = rng.normal(0, 0.05, unit.size) + size * suffers[task] * slow[unit]
    value += by_kind * rng.normal(0, 1, (UNITS, 3))[unit, kind]
    weight = np.full(unit.size, 400.0)
    return fitters.structure_check(unit, task, weight, value, UNITS, TASKS, kinds=[kind]), suffers


def test_residuals_without_a_pattern_have_none() -> None:
    p = np.array([structure_toy(seed, 0.0)[0].p for seed in range(40)])
    assert p.min() > 0.001
    assert 0.3 < p.mean() < 0.7


def test_a_pattern_is_told_and_which_tasks_it_parts() -> None:
    for seed in range(5):
        found, suffers = structure_toy(seed, 0.15)
        assert found.p < 0.001
        # half of the tasks and half of the units: a quarter of the size, less what levels take
        assert 0.012 < found.sigma < 0.0375
        assert abs(np.corrcoef(found.of_task, suffers)[0, 1]) > 0.7


def test_what_units_do_to_all_tasks_of_a_kind_is_no_pattern() -> None:
    p = np.array([structure_toy(seed, 0.0, by_kind=0.2)[0].p for seed in range(20)])
    assert p.min() > 0.001


def test_few_units_or_tasks_have_no_pattern() -> None:
    one = np.zeros(8, np.int64)
    found = fitters.structure_check(one, np.arange(8), np.ones(8), np.ones(8), 1, 8)
    assert np.isnan(found.p)


def power_toy(
    seed: int, power: float, cost: float, *, by_unit: bool, scatter: float = 0.0
) -> fitters.PowerCheck:
    """Check of elasticities whose lengths differ by unit or by bucket."""
    rng = np.random.default_rng(seed)
    unit, task = pairs(rng)
    shift = rng.normal(0, 0.5, UNITS)[unit] if by_unit else rng.normal(0, 0.5, unit.size)
    length = 100 * np.exp(shift)
    rho = 100 * cost * np.exp(rng.normal(0, scatter, UNITS))[unit]
    units = length**power * 100 ** (1 - power)
    elasticity = power * units / (units + rho) + rng.normal(0, 0.1, unit.size)
    return fitters.power_check(unit, task, elasticity, np.full(unit.size, 0.1), length, UNITS)


@pytest.mark.parametrize("by_unit", [False, True])
@pytest.mark.parametrize(("cost", "scatter"), [(0.0, 0.0), (0.3, 0.0), (1.0, 0.0), (1.0, 0.4)])
def test_a_fixed_cost_is_not_taken_for_a_power(cost: float, scatter: float, *, by_unit: bool) -> None:
    found = [power_toy(seed, 1.0, cost, by_unit=by_unit, scatter=scatter) for seed in range(25)]
    assert sum(each.p < 0.001 and each.size > 0.05 for each in found) == 0


@pytest.mark.parametrize("by_unit", [False, True])
@pytest.mark.parametrize("power", [0.8, 1.15])
def test_a_power_is_told_with_its_size(power: float, *, by_unit: bool) -> None:
    for seed in range(5):
        found = power_toy(seed, power, 0.0, by_unit=by_unit)
        assert found.p < 0.001
        assert found.size > 0.05
        assert found.power == pytest.approx(power, abs=0.03)


def test_slopes_that_fit_by_chance_are_no_surer_than_their_errors() -> None:
    """Every bucket has its own unit: costs by unit fit all of them."""
    unit, task = np.arange(24), np.repeat(np.arange(12), 2)
    length = 100 * np.exp(np.random.default_rng(3).normal(0, 0.3, 24))
    found = fitters.power_check(unit, task, length / (length + 50), np.full(24, 0.3), length, 24)
    assert found.p > 0.1


def test_two_tasks_tell_no_power() -> None:
    two = np.array([0, 0, 1, 1])
    found = fitters.power_check(two[::-1] * 0, two, np.ones(4), np.ones(4), np.ones(4), 1)
    assert np.isnan(found.p)
