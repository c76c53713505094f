"""Cases in which a plain start ends in a wrong minimum that Minuit calls valid."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fitters import Buckets, fit_speed_factors
from tests.fitters.reference import Problem
from tests.fitters.toys import Floats, Objective, Toy, make


def wide(rng: np.random.Generator) -> Toy:
    """Factors over two orders of magnitude."""
    toy = make(rng, 20, 60, 6.0, spread=0.0)
    k = np.exp(rng.uniform(np.log(0.1), np.log(10), 20))
    return Toy(toy.task, toy.unit, toy.value / k[toy.unit], k, toy.A)


def outliers(rng: np.random.Generator) -> Toy:
    """Every twentieth value wrong by a factor 3 to 30, up or down."""
    toy = make(rng, 20, 60, 6.0)
    bad = rng.random(toy.task.size) < 0.05
    wrong = np.exp(rng.choice([-1, 1], toy.task.size) * rng.uniform(np.log(3), np.log(30), toy.task.size))
    return Toy(toy.task, toy.unit, np.where(bad, toy.value * wrong, toy.value), toy.k, toy.A)


def clusters(rng: np.random.Generator) -> Toy:
    """Four groups of units with tasks of their own, each linked to the next by two tasks."""
    task: list[int] = []
    unit: list[int] = []
    for group in range(4):
        for _ in range(15):
            chosen = 5 * group + rng.choice(5, 3, replace=False)
            task += [len(set(task))] * 3
            unit += chosen.tolist()
    for group in range(3):
        for _ in range(2):
            task += [len(set(task))] * 2
            unit += [5 * group + int(rng.integers(5)), 5 * (group + 1) + int(rng.integers(5))]
    return make(rng, 20, len(set(task)), spread=1.0, layout=(np.array(task), np.array(unit)))


def sparse(rng: np.random.Generator) -> Toy:
    """Two or three units a task."""
    return make(rng, 20, 60, 2.3, spread=0.5)


def noisy(rng: np.random.Generator) -> Toy:
    """Half as much scatter as signal."""
    return make(rng, 20, 60, 5.0, sigma=0.5, law="gamma")


def best_known(toy: Toy, buckets: Buckets, starts: int) -> float:
    """Lowest cost of full-parameter searches from the truth, the log-linear answer and random places."""
    _, task = np.unique(toy.task, return_inverse=True)
    _, unit = np.unique(toy.unit, return_inverse=True)
    problem = Problem(task, unit, toy.value, np.ones(task.size), "paper")
    rng = np.random.default_rng(0)
    truth: Floats = np.log(np.concatenate([toy.k[np.unique(toy.unit)], toy.A[np.unique(toy.task)]]))
    places = [truth, problem.start()]
    places += [problem.start() + rng.normal(0, 0.5, truth.size) for _ in range(starts)]
    costs = [minimize(problem.cost, at, jac=problem.gradient, method="L-BFGS-B").fun for at in places]
    assert buckets.n_buckets == task.size
    return float(min(costs))


@pytest.mark.parametrize("case", [wide, outliers, clusters, sparse, noisy])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.matrix) for seed in range(2, 6))]
)
def test_no_search_from_elsewhere_finds_a_lower_cost(case: object, seed: int) -> None:
    toy = case(np.random.default_rng(1000 + seed))  # type: ignore[operator]
    buckets = toy.buckets()
    result = fit_speed_factors(buckets)
    assert set(result.components.status) <= {"ok", "no dof", "no common task"}
    found = float(np.nansum(result.components.f))
    assert found <= best_known(toy, buckets, 3) * (1 + 1e-6) + 1e-12
    assert result.components.max_step[0] < 1e-7


@pytest.mark.parametrize("seed", [0, 11, 25, 35])
def test_a_minimum_on_the_wrong_side_of_an_outlier_is_left(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The convex start alone ends higher in these sets; moving single units finds the better side."""
    toy = outliers(np.random.default_rng(77000 + seed))
    buckets = toy.buckets()
    result = fit_speed_factors(buckets)
    assert result.components.f[0] <= best_known(toy, buckets, 3) * (1 + 1e-6)
    assert result.components.max_residual[0] > 0.5
    monkeypatch.setattr("fitters.fit.solve.FAR_RESIDUAL", np.inf)
    settled = fit_speed_factors(buckets)
    assert settled.components.f[0] > result.components.f[0] * (1 + 1e-4)


def chain(rng: np.random.Generator) -> Toy:
    """Twelve groups of units, each tied to the next by one task of two units: the weakest link there is."""
    groups = 12
    task: list[int] = []
    unit: list[int] = []
    for group in range(groups):
        for _ in range(40):
            task += [len(set(task))] * 4
            unit += (6 * group + rng.choice(6, 4, replace=False)).tolist()
    for group in range(groups - 1):
        task += [len(set(task))] * 2
        unit += [6 * group + int(rng.integers(6)), 6 * (group + 1) + int(rng.integers(6))]
    return make(rng, 6 * groups, len(set(task)), spread=0.7, layout=(np.array(task), np.array(unit)))


@pytest.mark.parametrize("objective", ["paper", "gamma"])
@pytest.mark.parametrize("case", [wide, outliers, clusters, sparse, noisy, chain])
def test_newtons_search_and_accelerated_alternation_end_in_the_same_minimum(
    case: object, objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(4):
        buckets = case(np.random.default_rng(300 + seed)).buckets()  # type: ignore[operator]
        either = fit_speed_factors(buckets, objective)
        with monkeypatch.context() as patch:
            patch.setattr("fitters.fit.alternation.MOST_PASSES", 1)
            newton = fit_speed_factors(buckets, objective)
        for number in newton.fitted:
            assert newton.fitted[number].solution.step < 1e-7
        np.testing.assert_allclose(either.components.f, newton.components.f, rtol=1e-11)
        np.testing.assert_allclose(either.units.k, newton.units.k, rtol=1e-9)
        np.testing.assert_allclose(either.units.k_err, newton.units.k_err, rtol=3e-8)


def test_where_few_links_hold_groups_together_newtons_search_takes_over() -> None:
    linked = fit_speed_factors(chain(np.random.default_rng(1)).buckets()).fitted[0].solution
    dense = fit_speed_factors(make(np.random.default_rng(1), 72, 500, 6.0).buckets()).fitted[0].solution
    assert (linked.converged, linked.hessians > 1) == (True, True)
    assert (dense.hessians, dense.passes <= 14) == (1, True)
