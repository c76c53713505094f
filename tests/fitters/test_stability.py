"""Comparing fits, and leaving tasks out."""

import numpy as np
import pytest

from fitters import Buckets, compare, fit_speed_factors, leave_one_task_out
from fitters.fit.interaction import complete_rel_var
from tests.fitters.toys import Objective, Weights, make, shape


@pytest.mark.parametrize("objective", ["paper", "gamma"])
def test_left_out_tasks_are_refits_without_them(objective: Objective) -> None:
    toy = make(np.random.default_rng(1), 6, 12, 3.0)
    result = fit_speed_factors(toy.buckets(), objective)
    left = leave_one_task_out(result)
    assert len(left) == sum(result.components.n_buckets_used)
    checked = 0
    for name, task, change, status in zip(left.name, left.task, left.ln_change, left.status, strict=True):
        rest = toy.task != task
        refit = fit_speed_factors(
            Buckets.from_columns(toy.task[rest], toy.unit[rest], toy.value[rest]), objective
        )
        if name not in refit.units.name:
            assert status == "only task"
            continue
        here = refit.units.component == refit.units.row(name)["component"]
        if here.sum() < 2:
            assert status == "alone"
            continue
        assert status == "ok"
        friends = refit.units.name[here]
        before = {
            unit: k for unit, k in zip(result.units.name, result.units.k, strict=True) if unit in friends
        }
        after = refit.units.k[here] * sum(before.values()) / here.sum()
        expected = np.log(after[friends == name][0] / before[name])
        assert change == pytest.approx(expected, abs=1e-8)
        checked += 1
    assert checked > 20


@pytest.mark.parametrize("objective", ["paper", "gamma"])
@pytest.mark.parametrize("weights", ["none", "jobs"])
def test_the_newton_step_is_close_to_the_refit(objective: Objective, weights: Weights) -> None:
    rng = np.random.default_rng(2)
    layout = shape(rng, 12, 35, 5.0)
    toy = make(rng, 12, 35, layout=layout)
    buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, jobs=rng.integers(5, 50, toy.task.size))
    result = fit_speed_factors(buckets, objective, weights)
    exact, step = leave_one_task_out(result), leave_one_task_out(result, refit_up_to=0)
    assert set(exact.method) == {"refit"}
    assert set(step.method) == {"newton"}
    assert exact.status.tolist() == step.status.tolist()
    good = exact.status == "ok"
    difference = exact.ln_change[good] - step.ln_change[good]
    assert np.abs(difference).max() < 0.15 * np.abs(exact.ln_change[good]).max()
    assert difference.std() < 0.05 * exact.ln_change[good].std()


def test_a_unit_of_one_task_and_a_bridge_are_named() -> None:
    rows = [(t, u, 1.0 + 0.1 * t * i) for t in (1, 2, 3) for i, u in enumerate("ABC")]
    rows += [(t, u, 1.0 + 0.1 * t * i) for t in (4, 5, 6) for i, u in enumerate("DEF")]
    rows += [(7, "A", 1.0), (7, "D", 1.0), (8, "A", 1.0), (8, "X", 2.0)]
    task, unit, value = zip(*rows, strict=True)
    result = fit_speed_factors(Buckets.from_columns(task, unit, value))
    for limit, split_status in ((40, "ok"), (0, "splits")):
        left = leave_one_task_out(result, refit_up_to=limit)
        status = {(t, n): s for t, n, s in zip(left.task, left.name, left.status, strict=True)}
        change = {(t, n): c for t, n, c in zip(left.task, left.name, left.ln_change, strict=True)}
        assert status[8, "X"] == "only task"
        assert status[8, "A"] == "ok"
        assert change[8, "A"] == pytest.approx(0, abs=1e-9)
        assert status[7, "A"] == split_status
        assert np.isnan(change[8, "X"])


def test_leaving_the_only_task_out_leaves_nothing() -> None:
    result = fit_speed_factors(Buckets.from_columns(["t"] * 3, list("ABC"), [1.0, 2.0, 3.0]))
    assert set(leave_one_task_out(result).status) == {"only task"}
    empty = fit_speed_factors(Buckets.from_columns(["t"], ["A"], [1.0]))
    assert len(leave_one_task_out(empty)) == 0


def test_comparing_a_fit_with_itself_and_with_another_scale() -> None:
    toy = make(np.random.default_rng(3), 10, 40, 4.0)
    result = fit_speed_factors(toy.buckets())
    same = compare(result, result)
    np.testing.assert_allclose(same.ln_ratio, 0, atol=1e-14)
    assert set(same.status) == {"ok"}
    fewer = toy.unit != 3
    part = fit_speed_factors(Buckets.from_columns(toy.task[fewer], toy.unit[fewer], toy.value[fewer]))
    other = compare(result, part)
    assert other.status[other.name.tolist().index(3)] == "only in a"
    reverse = compare(part, result)
    assert reverse.status[-1] == "only in b"
    common = other.status == "ok"
    # a scale of its own: the common units have the same sum in both
    k_a = result.units.k[np.isin(result.units.name, part.units.name)]
    np.testing.assert_allclose(np.sum(k_a * np.exp(-other.ln_ratio[common])), k_a.sum(), rtol=1e-12)
    error = (result.units.k_err / result.units.k)[np.isin(result.units.name, part.units.name)]
    np.testing.assert_allclose(other.sigma[common], other.ln_ratio[common] / error, rtol=1e-12)


def test_paper_minus_gamma_is_the_systematic_of_the_method() -> None:
    rng = np.random.default_rng(4)
    layout = shape(rng, 30, 1000, 8.0)
    sizes = np.array([0.05, 0.1, 0.2])[layout[1] % 3]
    toy = make(rng, 30, 1000, sigma=sizes, layout=layout)
    difference = compare(fit_speed_factors(toy.buckets()), fit_speed_factors(toy.buckets(), "gamma"))
    group = difference.ln_ratio.reshape(10, 3).mean(axis=0)
    assert group[0] - group[2] > 0.01
    assert np.abs(difference.sigma).max() > 1


def test_unknown_variances_are_filled_and_never_zero() -> None:
    nan = float("nan")
    jobs, rel_var = [10, 20, 40, 80], [0.02, 0.01, nan, nan]
    buckets = Buckets.from_columns(["t"] * 4, list("ABCD"), [1.0] * 4, jobs=jobs, rel_var=rel_var)
    filled, missing = complete_rel_var(buckets)
    assert missing == 2
    np.testing.assert_allclose(filled, [0.02, 0.01, 0.005, 0.0025])
    result = fit_speed_factors(buckets)
    assert result.n_imputed == 2
    assert (result.units.k_err_stat > 0).all()
    unknown = Buckets.from_columns(["t"] * 4, list("ABCD"), [1.0] * 4, jobs=jobs, rel_var=[nan] * 4)
    assert complete_rel_var(unknown)[0].size == 0
    assert set(fit_speed_factors(unknown).units.status) == {"no dof"}
