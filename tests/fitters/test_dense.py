"""The robust path of the package against a second implementation with dense matrices."""

import numpy as np
import pytest

from fitters import Buckets, fit_speed_factors, inner_scatter, kind_scatter
from tests.fitters.dense import Floats, Ints, inner_sigma, kind_sigma, robust_fit


def grid(
    rng: np.random.Generator, units: int, tasks: int, per_task: int, *, sigma: float, stray: float
) -> tuple[Ints, Ints, Floats, Floats]:
    """Buckets of one component with uneven statistical errors, an interaction, and values that are wrong."""
    task = np.repeat(np.arange(tasks), per_task)
    unit = np.concatenate([rng.permutation(units)[:per_task] for _ in range(tasks)])
    rel_var = 0.05**2 * np.exp(rng.normal(0, 1.0, task.size))
    ln_value = rng.normal(3, 1, tasks)[task] - rng.normal(0, 0.2, units)[unit]
    ln_value += rng.normal(0, np.sqrt(rel_var + sigma**2))
    ln_value += np.where(rng.random(task.size) < stray, rng.choice([-1.5, 1.5], task.size), 0.0)
    return task, unit, np.exp(ln_value), rel_var


@pytest.mark.parametrize("stray", [0.0, 0.05])
@pytest.mark.parametrize("sigma", [0.0, 0.2])
@pytest.mark.parametrize(("units", "tasks", "per_task"), [(6, 20, 6), (15, 30, 6)])
def test_rejection_and_interaction(units: int, tasks: int, per_task: int, sigma: float, stray: float) -> None:
    rng = np.random.default_rng([units, int(100 * sigma), int(100 * stray)])
    task, unit, value, rel_var = grid(rng, units, tasks, per_task, sigma=sigma, stray=stray)
    buckets = Buckets.from_columns(task, unit, value, rel_var=rel_var)
    found = fit_speed_factors(buckets, "gamma", "variance", robust="reject")
    other = robust_fit(task, unit, value, rel_var)
    assert found.weighting.n_rejected == np.count_nonzero(~other.kept)
    assert found.weighting.rounds == other.rounds
    assert found.sigma_int.value == pytest.approx(other.sigma_int, abs=1e-6)
    assert np.abs((found.units.k - other.k) / found.units.k_err).max() < 1e-6


@pytest.mark.parametrize("effect", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("kinds", [2, 4])
def test_effects_of_kinds(kinds: int, effect: float) -> None:
    rng = np.random.default_rng([kinds, int(100 * effect)])
    unit, kind = rng.integers(0, 30, 400), rng.integers(0, kinds, 400)
    variance = 0.05**2 * np.exp(rng.normal(0, 1, 400))
    residual = (rng.normal(0, effect, (30, kinds)) if effect else np.zeros((30, kinds)))[unit, kind]
    residual = residual + rng.normal(0, np.sqrt(variance))
    found = kind_scatter(unit, kind, residual, variance, 30)
    sigma, share = kind_sigma(unit, kind, residual, variance)
    assert found.sigma == pytest.approx(sigma, abs=1e-6)
    assert found.share == pytest.approx(share, rel=1e-12)


def test_scatter_inside_cells() -> None:
    rng = np.random.default_rng(7)
    cell = rng.integers(0, 60, 500)
    variance = 0.05**2 * np.exp(rng.normal(0, 1, 500))
    residual = rng.normal(0, 1, 60)[cell] + rng.normal(0, np.sqrt(variance + 0.08**2))
    found = inner_scatter(cell, residual, variance, 430)
    assert found == pytest.approx(inner_sigma(cell, residual, variance, 430), rel=1e-4)
