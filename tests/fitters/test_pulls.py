"""Pulls and coverage of the errors on made-up data, and the law of the bias.

The limits are statistical: 0.03 + 4 standard errors for mean and width, 0.015 + 4 for coverage.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from fitters import Buckets, fit_speed_factors
from tests.fitters.toys import Floats, Objective, make, shape

TOYS = 100


@dataclass(frozen=True)
class Pulls:
    values: Floats

    def check(self, low: float = 1.0, high: float = 1.0) -> None:
        """Width between low and high, mean 0; for a width of 1 the coverage too."""
        n = self.values.size
        assert abs(self.values.mean()) < 0.03 + 4 / np.sqrt(n)
        slack = 0.03 + 4 / np.sqrt(2 * n)
        assert low - slack < self.values.std() < high + slack
        if low == high == 1.0:
            for inside, share in ((1.0, 0.6827), (1.96, 0.95)):
                covered = np.mean(np.abs(self.values) < inside)
                assert abs(covered - share) < 0.015 + 4 * np.sqrt(share * (1 - share) / n)


def pulls(
    error: str,
    objective: Objective,
    sigma: float = 0.1,
    law: str = "gauss",
    per_task: float = 8.0,
    tasks: int = 300,
) -> Pulls:
    rng = np.random.default_rng(17)
    found = []
    for _ in range(TOYS):
        toy = make(rng, 30, tasks, per_task, sigma=sigma, law=law)
        units = fit_speed_factors(toy.buckets(), objective).units
        found.append((np.log(units.k) - toy.ln_k) * units.k / getattr(units, error))
    return Pulls(np.concatenate(found))


@pytest.mark.parametrize("objective", ["paper", "gamma"])
@pytest.mark.parametrize("error", ["k_err", "k_err_sandwich"])
def test_pulls_are_standard_normal(objective: Objective, error: str) -> None:
    pulls(error, objective).check()


def test_pulls_of_gamma_hold_at_large_spread() -> None:
    pulls("k_err", "gamma", sigma=0.3, law="gamma").check()


def test_pulls_with_two_to_four_units_a_task_are_a_little_wide() -> None:
    pulls("k_err", "paper", per_task=2.3).check(1.0, 1.12)


@pytest.mark.parametrize(
    ("sigma_int", "tasks", "objective"),
    [
        # of each case one objective, in turn
        pytest.param(*case, objective, marks=() if (number + turn) % 2 == 0 else pytest.mark.matrix)
        for number, case in enumerate([(0.0, 60), (0.05, 60), (0.1, 12), (0.2, 60), (0.2, 200)])
        for turn, objective in enumerate(("gamma", "paper"))
    ],
)
def test_errors_from_jobs_and_interaction_cover(objective: Objective, sigma_int: float, tasks: int) -> None:
    """rel_var is known and uneven, sigma_int is estimated from the data."""
    rng = np.random.default_rng(23)
    found, estimates = [], []
    for _ in range(TOYS):
        layout = shape(rng, 20, tasks, 6.0)
        rel_var = 0.5**2 / np.exp(rng.normal(np.log(100), 1, layout[0].size))
        noise = np.sqrt(rel_var + sigma_int**2)
        toy = make(rng, 20, tasks, sigma=noise, layout=layout)
        buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, rel_var=rel_var)
        result = fit_speed_factors(buckets, objective)
        units = result.units
        entered = np.isfinite(units.k_err)
        truth = np.log(toy.k[units.name.astype(int)][entered])
        k, error = units.k[entered], units.k_err[entered]
        truth -= np.log(np.mean(np.exp(truth)))
        found.append((np.log(k) - truth) * k / error)
        assert result.sigma_int.source == "estimated"
        estimates.append((result.sigma_int.value, result.sigma_int.error))
    # with few tasks and a sigma_int estimated from them, the pull follows Student's t
    Pulls(np.concatenate(found)).check(0.95 if sigma_int > 0.1 else 1.0, 1.08 if tasks < 50 else 1.0)
    value, error = np.array(estimates).T
    if sigma_int > 0:
        assert abs(value.mean() - sigma_int) < 0.06 * sigma_int + 4 * value.std() / np.sqrt(TOYS)
        assert error.mean() == pytest.approx(value.std(), rel=0.3)
    else:
        assert np.median(value) < 0.03


def test_paper_is_biased_where_errors_differ_between_units_and_gamma_hardly() -> None:
    """Units of relative error 0.05, 0.1, 0.2 in turn: the missing ln(mu) term of chi2 moves paper by 2 %."""
    rng = np.random.default_rng(31)
    sizes = np.array([0.05, 0.1, 0.2])
    moves: dict[str, list[Floats]] = {"paper": [], "gamma": []}
    for _ in range(20):
        layout = shape(rng, 30, 1000, 8.0)
        toy = make(rng, 30, 1000, sigma=sizes[layout[1] % 3], layout=layout)
        for objective, found in moves.items():
            result = fit_speed_factors(toy.buckets(), objective)  # type: ignore[arg-type]
            found.append(np.log(result.units.k) - toy.ln_k)
    bias = {name: np.mean(found, axis=0).reshape(10, 3).mean(axis=0) for name, found in moves.items()}
    assert bias["paper"][0] - bias["paper"][2] == pytest.approx(0.0216, abs=0.003)
    assert bias["gamma"][0] - bias["gamma"][2] == pytest.approx(-0.0055, abs=0.003)


def test_assumed_interaction_stands_in_below_ten_degrees_of_freedom() -> None:
    rng = np.random.default_rng(37)
    found = []
    for _ in range(TOYS):
        layout = np.repeat([0, 1], 8), np.tile(np.arange(8), 2)
        rel_var = rng.uniform(1e-4, 1e-2, 16)
        toy = make(rng, 8, 2, sigma=np.sqrt(rel_var + 0.1**2), layout=layout)
        result = fit_speed_factors(Buckets.from_columns(toy.task, toy.unit, toy.value, rel_var=rel_var))
        assert result.sigma_int.source == "assumed"
        assert result.dof == 7
        found.append((np.log(result.units.k) - toy.ln_k) * result.units.k / result.units.k_err)
    Pulls(np.concatenate(found)).check()
