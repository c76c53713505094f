"""The minimum that Minuit finds from k = 1, its errors, and the choice where it is not the lowest."""

import numpy as np
import pytest
from iminuit import Minuit  # type: ignore[import-untyped]

from fitters import Buckets, FitResult, fit_speed_factors
from fitters.fit.kernels import PAPER
from fitters.fit.passes import curvature_diagonal
from fitters.layout.arrays import EMPTY
from fitters.layout.components import partition
from tests.fitters.reference import answer
from tests.fitters.test_hard_starts import outliers, wide
from tests.fitters.test_minimum import problem_of
from tests.fitters.toys import Floats, Objective, Toy, make


def by_minuit(toy: Toy, objective: Objective = "paper") -> FitResult:
    return fit_speed_factors(toy.buckets(), objective, search="minuit")


@pytest.mark.parametrize("objective", ["paper", "gamma"])
@pytest.mark.parametrize(("sigma", "per_task"), [(0.05, 5.0), (0.3, 5.0), (0.1, 2.3)])
def test_minimum_and_errors_are_those_of_the_second_implementation(
    objective: Objective, sigma: float, per_task: float
) -> None:
    toy = make(np.random.default_rng(1), 8, 40, per_task, sigma=sigma)
    expected = answer(problem_of(toy, objective))
    result = by_minuit(toy, objective)
    error = np.sqrt(np.diagonal(expected.covariance))
    assert np.abs(np.log(result.units.k / expected.k) / error).max() < 1e-4
    np.testing.assert_allclose(result.units.k_err / result.units.k, error, rtol=1e-4)
    assert result.components.f[0] == pytest.approx(expected.cost, rel=1e-9)
    assert result.units.k.sum() == pytest.approx(8, rel=1e-12)


def test_minuit_in_all_parameters_has_the_same_minimum_and_errors() -> None:
    """As in the article: ln k and ln A of every task, numerical derivatives; only the scale is held."""
    toy = make(np.random.default_rng(2), 7, 25, 4.0)
    problem, n = problem_of(toy, "paper"), 7
    result = by_minuit(toy)
    variance = result.S**2

    def cost(place: Floats) -> float:
        scale = float(np.log(np.exp(place[:n]).mean()))
        return (problem.cost(place) + 1e4 * scale**2) / variance

    minuit = Minuit(cost, problem.start())
    minuit.errordef = 1
    minuit.tol = 1e-4
    minuit.migrad(ncall=10**6)
    minuit.hesse()
    ln_k, error = np.asarray(minuit.values)[:n], np.asarray(minuit.errors)[:n]
    assert minuit.valid
    ln_k = ln_k - np.log(np.exp(ln_k).mean())
    assert np.abs((np.log(result.units.k) - ln_k) / error).max() < 5e-3
    np.testing.assert_allclose(result.units.k_err_model / result.units.k, error, rtol=0.01)


def test_what_minuit_did_is_in_the_result() -> None:
    toy = make(np.random.default_rng(9), 20, 100, 6.0)
    found = by_minuit(toy).components.minuit[0]
    assert (found.valid, found.accurate, found.hesse_failed, found.found_by) == (True, True, False, "minuit")
    assert 0 < found.edm < found.edm_goal
    assert 0 < found.n_gradients < found.n_calls < 500
    assert 0 < found.agreement < 1e-3
    assert fit_speed_factors(toy.buckets()).components.minuit[0] is None


def test_above_the_limit_of_hesse_errors_are_those_of_the_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = make(np.random.default_rng(9), 20, 100, 6.0)
    monkeypatch.setattr("fitters.fit.migrad.HESSE_LIMIT", 19)
    result, own = by_minuit(toy), fit_speed_factors(toy.buckets())
    assert np.isnan(result.components.minuit[0].ln_k_err).all()
    assert result.components.minuit[0].agreement < 1e-2
    np.testing.assert_allclose(result.units.k_err_model, own.units.k_err_model, rtol=1e-3)


@pytest.mark.parametrize(("case", "seed"), [(wide, 1024), (outliers, 1010), (outliers, 1020)])
def test_a_valid_minimum_that_is_not_the_lowest_is_not_the_result(case: object, seed: int) -> None:
    toy = case(np.random.default_rng(seed))  # type: ignore[operator]
    result = by_minuit(toy)
    found = result.components.minuit[0]
    assert found.found_by == "own"
    assert found.valid
    assert found.agreement > 1
    assert found.cost > result.components.f[0] * (1 + 1e-6)
    own = fit_speed_factors(toy.buckets())
    np.testing.assert_array_equal(result.units.k, own.units.k)
    np.testing.assert_array_equal(result.units.k_err_model, own.units.k_err_model)


def test_a_lower_minimum_of_minuit_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own search is kept on the wrong side of an outlier; MIGRAD comes from the right one."""
    monkeypatch.setattr("fitters.fit.solve.FAR_RESIDUAL", np.inf)
    toy = outliers(np.random.default_rng(77025))
    own, result = fit_speed_factors(toy.buckets()), by_minuit(toy)
    found = result.components.minuit[0]
    assert found.agreement > 1
    assert found.found_by == "minuit"
    assert result.components.f[0] < own.components.f[0] * (1 - 1e-6)
    assert result.components.f[0] == pytest.approx(found.cost, rel=1e-6)


def test_components_are_searched_apart_and_exact_ones_too() -> None:
    rows = [("t1", "A", 1.0), ("t1", "B", 2.0), ("t2", "A", 3.0), ("t2", "B", 6.6)]
    rows += [("t3", "P", 5.0), ("t3", "Q", 1.0), ("t4", "L", 7.0)]
    task, unit, value = zip(*rows, strict=True)
    result = fit_speed_factors(Buckets.from_columns(task, unit, value), search="minuit")
    k = dict(zip(result.units.name, result.units.k, strict=True))
    assert k["P"] == pytest.approx(2 / 6, rel=1e-4)
    assert k["A"] + k["B"] == pytest.approx(2, rel=1e-12)
    assert [each is None for each in result.components.minuit] == [False, False, True]


def test_a_negative_second_derivative_at_the_start_is_no_obstacle() -> None:
    toy = make(np.random.default_rng(3), 10, 60, 4.0, spread=1.5)
    split = partition(toy.buckets(), EMPTY, EMPTY)
    assert curvature_diagonal(split.parts[0], np.ones(10), PAPER).min() < 0
    result = by_minuit(toy)
    assert result.components.minuit[0].valid
    assert result.components.f[0] <= fit_speed_factors(toy.buckets()).components.f[0] * (1 + 1e-6)
