"""Resampling of tasks: its errors, and replicas that lose units or links."""

import numpy as np
import pytest

from fitters import Buckets, SettingError, bootstrap, fit_speed_factors
from tests.fitters.toys import Objective, Robust, make, shape


@pytest.mark.parametrize(
    ("objective", "robust"), [("paper", "none"), ("gamma", "none"), ("paper", "reject"), ("gamma", "tukey")]
)
def test_spread_of_replicas_is_the_model_error_where_the_model_holds(
    objective: Objective, robust: Robust
) -> None:
    toy = make(np.random.default_rng(61), 12, 250, 6.0)
    found = bootstrap(toy.buckets(), 600, objective, robust=robust)
    result = fit_speed_factors(toy.buckets(), objective, robust=robust)
    assert set(found.units.status) == {"ok"}
    np.testing.assert_array_equal(found.units.k, result.units.k)
    ratio = found.units.k_err / result.units.k_err_model
    assert ratio.mean() == pytest.approx(1, abs=0.08)
    np.testing.assert_allclose(found.units.k_err, result.units.k_err_sandwich, rtol=0.15)
    half = 0.5 * (found.units.high - found.units.low)
    np.testing.assert_allclose(half, found.units.k_err, rtol=0.15)
    assert np.abs(np.mean(found.ln_k, axis=0) - np.log(found.units.k)).max() < 0.003
    np.testing.assert_allclose(np.exp(found.ln_k).sum(axis=1), 12, rtol=0.02 if robust == "tukey" else 1e-9)


def test_it_sees_scatter_that_unweighted_fits_do_not_know() -> None:
    """Two kinds of tasks, one five times as noisy: equal weights, an S in between, yet right errors."""
    rng = np.random.default_rng(62)
    layout = shape(rng, 10, 300, 5.0)
    toy = make(rng, 10, 300, sigma=np.where(layout[1] < 2, 0.25, 0.05), layout=layout)
    found = bootstrap(toy.buckets(), 400, "gamma").units
    result = fit_speed_factors(toy.buckets(), "gamma").units
    assert (found.k_err[:2] > 1.4 * result.k_err_model[:2]).all()
    np.testing.assert_allclose(found.k_err, result.k_err_sandwich, rtol=0.2)


def test_replicas_are_those_of_full_fits() -> None:
    toy = make(np.random.default_rng(63), 8, 40, 5.0, sigma=0.2)
    found = bootstrap(toy.buckets(), 100, "gamma", seed=5)
    _, codes = np.unique(toy.task, return_inverse=True)
    for number in (0, 7, 99):
        drawn = np.random.default_rng([5, 0, number]).integers(0, 40, 40)
        rows = [np.flatnonzero(codes == task) for task in drawn]
        task = np.repeat(np.arange(40), [len(row) for row in rows])
        chosen = np.concatenate(rows)
        full = fit_speed_factors(Buckets.from_columns(task, toy.unit[chosen], toy.value[chosen]), "gamma")
        np.testing.assert_allclose(np.exp(found.ln_k[number]), full.units.k, atol=2e-4)


@pytest.mark.parametrize("weights", ["jobs", "floor"])
def test_weights_stay_those_of_the_fit(weights: str) -> None:
    rng = np.random.default_rng(64)
    toy = make(rng, 8, 120, 5.0)
    jobs = rng.integers(5, 200, toy.task.size)
    buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, jobs=jobs)
    found = bootstrap(buckets, 300, "gamma", weights)  # type: ignore[arg-type]
    full = fit_speed_factors(buckets, "gamma", weights).units  # type: ignore[arg-type]
    np.testing.assert_allclose(found.units.k_err, full.k_err_sandwich, rtol=0.25)


def test_threads_change_nothing_and_seeds_do() -> None:
    toy = make(np.random.default_rng(65), 6, 30, 4.0)
    one, two = (bootstrap(toy.buckets(), 120, seed=1, threads=threads).ln_k for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, bootstrap(toy.buckets(), 120, seed=2).ln_k)


def test_units_and_links_that_replicas_lose() -> None:
    rng = np.random.default_rng(66)
    left, right = make(rng, 5, 30, 4.0), make(rng, 4, 30, 4.0)
    task = [*(f"L{t}" for t in left.task), *(f"R{t}" for t in right.task), "bridge", "bridge", "rare", "rare"]
    unit = [*(f"a{u}" for u in left.unit), *(f"b{u}" for u in right.unit), "a0", "b0", "a0", "z"]
    value = np.concatenate([left.value, right.value, [1.0, 1.0, 1.0, 1.0]])
    found = bootstrap(Buckets.from_columns(task, unit, value), 300)
    assert found.n_refitted > 100
    assert found.units.row("a0")["n_replicas"] == 300
    for name in ("b0", "z"):  # each hangs on one task, drawn in 63 % of the replicas
        assert found.units.row(name)["n_replicas"] == pytest.approx(300 * (1 - np.exp(-1)), abs=35)
    assert found.units.row("a0")["status"] == "ok"
    pair = Buckets.from_columns([*task, "p", "q"], [*unit, "lone", "lone"], np.append(value, [1.0, 1.0]))
    assert bootstrap(pair, 100).units.row("lone")["status"] == "no fit"


def test_a_unit_that_is_rarely_drawn_has_no_error() -> None:
    toy = make(np.random.default_rng(67), 6, 40, 4.0)
    buckets = Buckets.from_columns([*toy.task, 0], [*toy.unit, 77], [*toy.value, float(toy.value[0])])
    units = bootstrap(buckets, 120).units
    row = units.row(77)
    assert row["status"] == "too few replicas"
    assert np.isnan(row["k_err"])


def test_too_few_replicas_are_refused() -> None:
    toy = make(np.random.default_rng(68), 5, 20, 3.0)
    with pytest.raises(SettingError, match="at least 100"):
        bootstrap(toy.buckets(), 99)
