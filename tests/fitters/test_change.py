"""Steps in daily series: against a plain likelihood scan, under noise with memory, and with bad days."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

from fitters import Series, align_days, fading, find_slope, find_steps, shared
from fitters.change.noise import covariance, error_scale
from fitters.change.steps import stray_days

Floats = NDArray[np.float64]
MEMORY = 0.5


def series(value: Floats, white: float = 0.02, lasting: float = 0.02) -> Series:
    n = len(value)
    return Series(np.arange(n), value, np.full(n, white), np.full(n, lasting), fading(np.arange(n), MEMORY))


def assumed(n: int, white: float = 0.02, lasting: float = 0.02) -> Floats:
    """The covariance of :func:`series`."""
    return covariance(np.full(n, white), np.full(n, lasting), fading(np.arange(n), MEMORY))


def noise(rng: np.random.Generator, n: int, white: float = 0.02, lasting: float = 0.02) -> Floats:
    """Noise of exactly the covariance that is assumed."""
    return np.asarray(linalg.cholesky(assumed(n, white, lasting), lower=True) @ rng.standard_normal(n))


def test_size_error_and_significance_are_those_of_generalised_least_squares() -> None:
    value = noise(np.random.default_rng(3), 30) + 0.25 * (np.arange(30) >= 17)
    (step,) = find_steps(series(value))
    inverse = linalg.inv(assumed(30))
    chi2 = {}
    for day in range(3, 28):
        design = np.column_stack([np.ones(30), np.arange(30) >= day])
        normal = design.T @ inverse @ design
        fitted = linalg.solve(normal, design.T @ inverse @ value)
        chi2[day] = (fitted[1], np.sqrt(linalg.inv(normal)[1, 1]))
    best = max(chi2, key=lambda day: abs(chi2[day][0] / chi2[day][1]))
    assert step.day == best
    assert (step.size, step.error) == pytest.approx(chi2[best], rel=1e-9)
    assert step.significance == pytest.approx(abs(step.size / step.error))


def test_pulls_of_the_size_and_coverage_of_the_day() -> None:
    rng = np.random.default_rng(11)
    pulls, inside, n = [], 0, 100
    for _ in range(n):
        value = noise(rng, 40) + 0.15 * (np.arange(40) >= 25)
        found = find_steps(series(value), threshold=4.0)
        step = min(found, key=lambda step: abs(step.day - 25))
        pulls += [(step.size - 0.15) / step.error] if step.day == 25 else []
        inside += step.day_low <= 25 <= step.day_high
    assert len(pulls) > 90
    assert abs(np.mean(pulls)) < 0.35
    assert 0.8 < np.std(pulls) < 1.2
    assert inside >= 85


def test_two_steps_are_told_apart() -> None:
    value = noise(np.random.default_rng(5), 50)
    value += 0.2 * (np.arange(50) >= 15) - 0.3 * (np.arange(50) >= 33)
    steps = find_steps(series(value))
    assert [step.day for step in steps] == [15, 33]
    assert [step.size for step in steps] == pytest.approx([0.2, -0.3], abs=0.08)


@pytest.mark.parametrize("bad", [[12], [0], [29], [11, 12], [27, 29], [0, 2], [5, 20]])
def test_bad_days_make_no_step(bad: list[int]) -> None:
    value = noise(np.random.default_rng(7), 30)
    value[bad] += 0.8
    assert find_steps(series(value)) == ()


def test_a_bad_day_beside_a_step_hides_none() -> None:
    value = noise(np.random.default_rng(9), 30) + 0.2 * (np.arange(30) >= 20)
    value[10] -= 0.9
    (step,) = find_steps(series(value))
    assert abs(step.day - 20) <= 1


def test_a_day_that_stands_alone_is_stray_and_a_step_is_not() -> None:
    value = np.zeros(12)
    value[4] = 1.0
    value[8:] = 1.0
    assert np.flatnonzero(stray_days(series(value), 1.0)).tolist() == [4]


@pytest.mark.parametrize("n", [0, 1, 5, 6])
def test_a_step_needs_three_days_on_either_side(n: int) -> None:
    value = 0.5 * (np.arange(n) >= 3).astype(float)
    assert [step.day for step in find_steps(series(value))] == ([3] if n == 6 else [])


def test_days_have_in_common_what_their_tasks_did_to_them() -> None:
    """Against many draws of what tasks do: the same on all days of a task, independent between tasks."""
    rng = np.random.default_rng(8)
    tasks: list[list[float]] = [[11, 12, 13], [12, 13], [14, 12], [15]]
    parts = [[1.0, 2.0, 0.5], [3.0, 1.0], [2.0, 2.0], [1.0]]
    of_task = {task: rng.standard_normal(100_000) for task in range(11, 16)}
    drawn = [
        np.sum([part * of_task[int(task)] for task, part in zip(*of_day, strict=True)], axis=0)
        for of_day in zip(tasks, parts, strict=True)
    ]
    assert shared(tasks, parts) == pytest.approx(np.corrcoef(drawn), abs=0.02)
    assert shared([[], [1]], [[], [2.0]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_task_that_goes_on_tells_a_step_that_its_end_would_not() -> None:
    """The same values: one task over all days errs alike before and after, other tasks need not."""
    day = np.arange(16)
    value = np.where(day < 8, 0.0, 0.12) + 0.004 * (-1.0) ** day
    error = np.full(16, 0.05)
    one = shared([[1]] * 16, [[1.0]] * 16)
    other = shared([[1]] * 8 + [[2]] * 8, [[1.0]] * 16)
    assert [step.day for step in find_steps(Series(day, value, 0.2 * error, error, one))] == [8]
    assert find_steps(Series(day, value, 0.2 * error, error, other)) == ()


def test_days_are_brought_to_one_scale_by_those_who_do_not_change() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(0, 0.3, 20)
    shifts = rng.normal(0, 1.0, 30)
    value = truth + np.zeros((30, 1)) + rng.normal(0, 0.01, (30, 20))
    value[15:, :5] += 0.4  # a quarter of the names
    value[3, 7] = np.nan
    aligned = align_days(value + shifts[:, None], np.full((30, 20), 0.01))
    assert np.nanstd(aligned[:, 10] - value[:, 10]) < 0.01
    assert np.nanmean(aligned[15:, 0]) - np.nanmean(aligned[:15, 0]) == pytest.approx(0.4, abs=0.03)
    assert np.isnan(aligned[3, 7])


def test_the_scale_of_errors_is_measured_and_a_step_moves_it_little() -> None:
    rng = np.random.default_rng(2)
    white, lasting, alike = np.full(60, 0.02), np.full(60, 0.02), fading(np.arange(60), MEMORY)
    values = [noise(rng, 60) for _ in range(40)]
    right = [error_scale(value, white, lasting, alike) for value in values]
    small = [error_scale(3.0 * value, white, lasting, alike) for value in values]
    step = 0.15 * (np.arange(60) >= 40)
    moved = [error_scale(value + step, white, lasting, alike) for value in values]
    assert min(right) >= 1.0
    assert np.median(right) < 1.25
    assert 2.2 < np.median(small) < 3.3
    assert np.median(np.array(moved) / right) < 1.1


def test_errors_that_are_too_small_for_one_day_in_four_are_noticed() -> None:
    """Half of the days tell nothing of it: a queue that some tasks do not suit."""
    rng = np.random.default_rng(6)
    white, lasting, alike = np.full(60, 0.02), np.full(60, 0.001), np.eye(60)
    wide = [
        error_scale(value, white, lasting, alike)
        for value in rng.standard_normal((40, 60)) * np.where(rng.random((40, 60)) < 0.25, 0.08, 0.02)
    ]
    assert np.median(wide) > 1.5


def test_few_days_tell_no_scale() -> None:
    assert error_scale(np.array([0.0, 9.0]), np.ones(2), np.ones(2), np.eye(2)) == 1.0


def test_a_stationary_series_has_a_step_about_as_often_as_chance_allows() -> None:
    """One look at each of 500 series: at 4.5 errors hardly one of them has any."""
    rng = np.random.default_rng(4)
    told = sum(bool(find_steps(series(noise(rng, 40)), threshold=4.5)) for _ in range(500))
    assert told <= 3
    low = sum(bool(find_steps(series(noise(rng, 40)), threshold=2.0)) for _ in range(30))
    assert low > 6, "a threshold of two errors must tell of many: the test above can fail"


def test_a_step_matters_if_it_is_larger_than_the_least_by_two_errors() -> None:
    """Half of the steps of two errors more than the least are told, and hardly any of the least itself."""
    rng = np.random.default_rng(9)
    day, error = np.arange(40), np.full(40, 0.02)
    step_error = 0.02 / math.sqrt(10.0)  # of 20 days on each side
    shares = []
    for size in (0.05, 0.05 + 2 * step_error, 0.05 + 4 * step_error):
        values = size * (day >= 20) + error * rng.standard_normal((200, 40))
        told = [
            any(
                step.exceeds(0.05) for step in find_steps(Series(day, value, error, 1e-6 * error, np.eye(40)))
            )
            for value in values
        ]
        shares.append(np.mean(told))
    assert shares[0] < 0.08
    assert 0.35 < shares[1] < 0.65
    assert shares[2] > 0.92


def test_a_slope_is_the_one_of_generalised_least_squares() -> None:
    value = noise(np.random.default_rng(3), 40) - 0.008 * np.maximum(np.arange(40) - 12, 0)
    slope = find_slope(series(value))
    assert slope is not None
    inverse = linalg.inv(assumed(40))
    design = np.column_stack([np.ones(40), np.maximum(np.arange(40) - (slope.day - 1), 0)])
    normal = design.T @ inverse @ design
    per_day, error = linalg.solve(normal, design.T @ inverse @ value)[1], np.sqrt(linalg.inv(normal)[1, 1])
    lasted = 39 - (slope.day - 1)
    assert slope.per_day == pytest.approx(per_day, rel=1e-9)
    assert (slope.size, slope.error) == pytest.approx((per_day * lasted, error * lasted), rel=1e-9)
    assert slope.significance == pytest.approx(abs(per_day / error), rel=1e-9)
    assert slope.day_low <= slope.day <= slope.day_high


def test_slopes_are_told_from_steps_and_from_nothing() -> None:
    """Of 40 worlds each; a step is none on any of the nights after it, nor are two in one direction."""
    rng = np.random.default_rng(21)
    day = np.arange(45)
    worlds: dict[str, tuple[Floats, list[int]]] = {
        "slope": (-0.008 * np.maximum(day - 12.0, 0.0), [44]),
        "nothing": (np.zeros(45), [30, 37, 44]),
        "step": (np.where(day >= 30, 0.15, 0.0), [33, 36, 39, 44]),
        "steps": (np.where(day >= 15, -0.12, 0.0) + np.where(day >= 33, -0.12, 0.0), [38, 44]),
    }
    told = dict.fromkeys(worlds, 0)
    for name, (truth, nights) in worlds.items():
        for _ in range(40):
            whole = series(truth + noise(rng, 45))
            told[name] += any(
                find_slope(seen, seen.scale) is not None
                for seen in (whole.keep(day <= night) for night in nights)
            )
    assert told["slope"] >= 34
    assert (told["nothing"], told["step"]) == (0, 0)
    assert told["steps"] <= 4


@pytest.mark.parametrize("n", [0, 1, 6, 14])
def test_a_slope_needs_two_weeks_and_one_more(n: int) -> None:
    value: Floats = -0.05 * np.arange(n, dtype=np.float64)
    assert find_slope(series(value)) is None
