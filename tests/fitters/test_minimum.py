"""Minimum and errors against the second implementation and foreign minimisers."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from fitters import Buckets, FitResult, fit_speed_factors
from tests.fitters.reference import Answer, Problem, answer, numeric_gradient, propagated
from tests.fitters.toys import Floats, Objective, Toy, make


def problem_of(toy: Toy, objective: str, weight: Floats | None = None) -> Problem:
    _, task = np.unique(toy.task, return_inverse=True)
    _, unit = np.unique(toy.unit, return_inverse=True)
    return Problem(task, unit, toy.value, np.ones(task.size) if weight is None else weight, objective)


def assert_agrees(result: FitResult, expected: Answer) -> None:
    units = result.units
    sigma = np.sqrt(np.diagonal(expected.covariance))
    assert result.components.f[0] == pytest.approx(expected.cost, rel=1e-8)
    assert np.abs(np.log(units.k / expected.k)).max() < 1e-3 * sigma.min()
    assert np.abs(np.log(units.k / expected.k)).max() < 1e-9
    np.testing.assert_allclose(units.k_err_model / units.k, sigma, rtol=1e-6)
    np.testing.assert_allclose(result.tasks.A, expected.level, rtol=1e-9)
    assert result.dof == expected.dof
    assert pytest.approx(np.sqrt(expected.squares / expected.dof), rel=1e-9) == result.S
    _, covariance = result.covariance(0)
    np.testing.assert_allclose(covariance, expected.covariance, rtol=1e-6, atol=1e-6 * sigma.max() ** 2)
    assert abs((covariance @ units.k).max()) < 1e-12
    assert units.k.sum() == pytest.approx(len(units), rel=1e-12)


@pytest.mark.parametrize("objective", ["paper", "gamma"])
@pytest.mark.parametrize(("sigma", "per_task"), [(0.05, 5.0), (0.3, 5.0), (0.1, 2.3)])
def test_minimum_and_errors_agree_with_the_second_implementation(
    objective: Objective, sigma: float, per_task: float
) -> None:
    toy = make(np.random.default_rng(1), 8, 40, per_task, sigma=sigma)
    expected = answer(problem_of(toy, objective))
    result = fit_speed_factors(toy.buckets(), objective)
    assert_agrees(result, expected)
    enough = result.units.n_tasks >= 20
    sandwich = result.units.k * np.sqrt(np.diagonal(expected.sandwich))
    np.testing.assert_allclose(result.units.k_err_sandwich[enough], sandwich[enough], rtol=1e-6)
    assert np.isnan(result.units.k_err_sandwich[~enough]).all()


@pytest.mark.parametrize("objective", ["paper", "gamma"])
def test_weights_are_the_jobs(objective: Objective) -> None:
    rng = np.random.default_rng(2)
    toy = make(rng, 7, 30, 4.0)
    jobs = rng.integers(1, 50, toy.task.size).astype(float)
    buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, jobs=jobs)
    result = fit_speed_factors(buckets, objective, "jobs")
    assert_agrees(result, answer(problem_of(toy, objective, jobs)))
    assert not np.allclose(result.units.k, fit_speed_factors(buckets, objective).units.k, rtol=1e-4)


def test_the_gradient_vanishes_and_the_reference_is_right_itself() -> None:
    toy = make(np.random.default_rng(3), 6, 15, 4.0)
    problem = problem_of(toy, "paper")
    at = problem.start()
    np.testing.assert_allclose(problem.gradient(at), numeric_gradient(problem.cost, at), atol=1e-6)
    result = fit_speed_factors(toy.buckets())
    parameters = np.log(np.concatenate([result.units.k, result.tasks.A]))
    assert np.abs(problem.gradient(parameters)).max() < 1e-11


def test_scipy_least_squares_finds_no_lower_cost() -> None:
    toy = make(np.random.default_rng(4), 12, 60, 5.0, sigma=0.2)
    problem = problem_of(toy, "paper")

    def residuals(parameters: Floats) -> Floats:
        return np.asarray(problem.ratio(parameters) - 1, np.float64)

    found = least_squares(residuals, problem.start(), xtol=1e-12, ftol=1e-14)
    result = fit_speed_factors(toy.buckets())
    assert result.components.f[0] <= 2 * found.cost * (1 + 1e-9)
    assert result.components.f[0] == pytest.approx(2 * found.cost, rel=1e-8)


@pytest.mark.parametrize("objective", ["paper", "gamma"])
@pytest.mark.parametrize("weighted", [False, True])
def test_stat_and_interaction_errors_are_those_of_refits_with_moved_buckets(
    objective: Objective, weighted: bool
) -> None:
    """Exact for exact values: nothing else than first-order propagation is meant."""
    rng = np.random.default_rng(5)
    toy = make(rng, 5, 9, 3.0, sigma=0.0)
    rel_var = rng.uniform(0.0005, 0.02, toy.task.size)
    jobs = rng.integers(1, 20, toy.task.size).astype(float)
    buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, jobs=jobs, rel_var=rel_var)
    result = fit_speed_factors(buckets, objective, "jobs" if weighted else "none", sigma_int=0.07)
    problem = problem_of(toy, objective, jobs if weighted else None)
    order = np.lexsort((problem.unit, problem.task))
    weight = problem.weight[order]
    problem = Problem(problem.task[order], problem.unit[order], problem.value[order], weight, objective)
    stat = propagated(problem, rel_var[order])
    both = propagated(problem, rel_var[order] + 0.07**2)
    units = result.units
    np.testing.assert_allclose((units.k_err_stat / units.k) ** 2, stat, rtol=1e-5)
    np.testing.assert_allclose((units.k_err / units.k) ** 2, both, rtol=1e-5)
    np.testing.assert_allclose(units.k_err, np.hypot(units.k_err_stat, units.k_err_int), rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_interaction_error_is_sigma_over_root_of_tasks_at_leading_order(noise: float) -> None:
    """However noisy the data: what is propagated is the variance, not the residuals once more."""
    tasks, units = 25, 40
    task, unit = (grid.ravel() for grid in np.meshgrid(np.arange(tasks), np.arange(units), indexing="ij"))
    toy = make(np.random.default_rng(6), units, tasks, layout=(task, unit), sigma=noise, spread=0.0)
    buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, rel_var=np.full(task.size, 1e-8))
    result = fit_speed_factors(buckets, sigma_int=0.1)
    p = result.units.k / units
    scale = 1 - 2 * p + np.sum(p**2)  # 1 - 1 / units where all factors are equal
    expected = 0.1 / np.sqrt(tasks) * np.sqrt(scale)
    np.testing.assert_allclose(result.units.k_err_int / result.units.k, expected, rtol=1e-6)


def test_one_task_over_many_units_has_factors_and_errors_without_degrees_of_freedom() -> None:
    rng = np.random.default_rng(7)
    value, rel_var = rng.uniform(5, 20, 40), rng.uniform(1e-4, 1e-2, 40)
    result = fit_speed_factors(Buckets.from_columns(["t"] * 40, np.arange(40), value, rel_var=rel_var))
    units = result.units
    assert result.dof == 0
    assert np.isnan(result.S)
    assert set(units.status) == {"ok"}
    np.testing.assert_allclose(units.k, (1 / value) / np.mean(1 / value), rtol=1e-12)
    p = units.k / 40
    total = rel_var + 0.1**2
    # ln k_i = -ln a_i + ln mean(1/a): errors of the unit itself and of the scale
    expected = total * (1 - 2 * p) + np.sum(p**2 * total)
    np.testing.assert_allclose((units.k_err / units.k) ** 2, expected, rtol=1e-9)
    assert (result.sigma_int.value, result.sigma_int.source) == (0.1, "assumed")
    assert np.isnan(units.k_err_model).all()
