"""Matrices units x units from tasks: densely and pair by pair they are the same."""

import numpy as np
import pytest

from fitters import Buckets, fit_speed_factors
from fitters.fit import outer_sums
from fitters.fit.kernels import GAMMA, GAUSS_NEWTON, PAPER
from fitters.fit.passes import curvature, evaluate
from fitters.layout.components import Part, partition
from tests.fitters.toys import Floats, make, shape


def crowded(seed: int) -> Buckets:
    """Tasks at 30 of 40 units, some of whose buckets weigh nothing."""
    rng = np.random.default_rng(seed)
    return make(rng, 40, 70, layout=shape(rng, 40, 70, 30.0)).buckets()


def weighted(buckets: Buckets, seed: int) -> Part:
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, buckets.n_buckets)
    weight[buckets.ptr[3] : buckets.ptr[4]] = 0.0
    return partition(buckets, weight, np.empty(0)).parts[0]


def both(
    part: Part, k: Floats, mode: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Floats], list[Floats]]:
    assert outer_sums.is_dense(part.ptr, part.n_units)
    dense = list(curvature(part, k, mode))
    with monkeypatch.context() as patched:
        patched.setattr(outer_sums, "DENSE_SHARE", np.inf)
        assert not outer_sums.is_dense(part.ptr, part.n_units)
        return dense, list(curvature(part, k, mode))


@pytest.mark.parametrize("mode", [PAPER, GAUSS_NEWTON, GAMMA])
def test_curvature(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    part = weighted(crowded(1), 2)
    k = np.exp(np.random.default_rng(3).normal(0, 0.2, part.n_units))
    for one, other in zip(*both(part, k, mode, monkeypatch), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_curvature_is_the_change_of_the_gradient() -> None:
    part = weighted(crowded(1), 2)
    theta = np.random.default_rng(3).normal(0, 0.2, part.n_units)
    hessian, _, gradient = curvature(part, np.exp(theta), PAPER)
    np.testing.assert_allclose(gradient, evaluate(part, np.exp(theta), PAPER)[3], atol=1e-10)
    for unit in (0, 17):
        step = np.zeros(part.n_units)
        step[unit] = 1e-6
        up, down = (evaluate(part, np.exp(theta + sign * step), PAPER)[3] for sign in (1, -1))
        np.testing.assert_allclose((up - down) / 2e-6, hessian[:, unit], rtol=1e-5, atol=1e-5)


def test_a_fit_does_not_depend_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    buckets = crowded(5)
    dense = fit_speed_factors(buckets, "gamma", robust="reject")
    monkeypatch.setattr(outer_sums, "DENSE_SHARE", np.inf)
    pairs = fit_speed_factors(buckets, "gamma", robust="reject")
    for name in ("k", "k_err_model", "k_err_sandwich"):
        np.testing.assert_allclose(getattr(dense.units, name), getattr(pairs.units, name), rtol=1e-9)


def test_blocks_of_tasks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    buckets = crowded(7)
    values = np.random.default_rng(8).normal(size=(2, buckets.n_buckets))
    arguments = buckets.ptr, buckets.unit, values[0], values[1], buckets.n_units
    at_once = outer_sums.dense_sums(*arguments)
    monkeypatch.setattr(outer_sums, "_BLOCK", 200)
    np.testing.assert_allclose(outer_sums.dense_sums(*arguments), at_once, atol=1e-12)
    expected = np.zeros_like(at_once)
    for task in range(buckets.n_tasks):
        rows = slice(buckets.ptr[task], buckets.ptr[task + 1])
        expected[np.ix_(buckets.unit[rows], buckets.unit[rows])] += np.outer(values[0][rows], values[1][rows])
    np.testing.assert_allclose(at_once, expected, atol=1e-12)
