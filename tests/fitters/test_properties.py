"""What must not change, and what must change by exactly so much, for any data."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fitters import Buckets, FitResult, bucket_table, fit_speed_factors
from tests.fitters.toys import Objective, Robust, Toy, Weights, make

seeds = st.integers(0, 2**32 - 1)
objectives: st.SearchStrategy[Objective] = st.sampled_from(["paper", "gamma"])
weightings: st.SearchStrategy[Weights] = st.sampled_from(["none", "jobs", "floor"])
robusts: st.SearchStrategy[Robust] = st.sampled_from(["none", "reject"])
few = settings(max_examples=25, deadline=None)
many = settings(max_examples=100, deadline=None)


def toy_of(seed: int) -> Toy:
    rng = np.random.default_rng(seed)
    units, tasks = int(rng.integers(2, 9)), int(rng.integers(1, 25))
    toy = make(rng, units, tasks, float(rng.uniform(2, 6)), sigma=float(rng.uniform(0.01, 0.25)))
    jobs = rng.integers(1, 100, toy.task.size).astype(float)
    return Toy(toy.task, toy.unit, toy.value, toy.k, toy.A, jobs, 0.2 / jobs)


def fit(toy: Toy, objective: Objective = "paper", weights: Weights = "none") -> FitResult:
    return fit_speed_factors(toy.buckets(), objective, weights)


def assert_same(a: FitResult, b: FitResult, level: float = 1.0) -> None:
    """All numbers of all units and tasks agree; `level` is the factor between the A."""
    assert a.units.status.tolist() == b.units.status.tolist()
    for column in ("k", "k_err", "k_err_stat", "k_err_int", "k_err_model", "k_err_sandwich"):
        np.testing.assert_allclose(getattr(a.units, column), getattr(b.units, column), rtol=1e-7, atol=1e-13)
    np.testing.assert_allclose(a.tasks.A * level, b.tasks.A, rtol=1e-9)
    np.testing.assert_allclose(a.components.f, b.components.f, rtol=1e-8, atol=1e-18)


@few
@given(seeds, objectives, weightings)
def test_the_order_of_rows_does_not_matter(seed: int, objective: Objective, weights: Weights) -> None:
    toy = toy_of(seed)
    order = np.random.default_rng(seed).permutation(toy.task.size)
    assert toy.jobs is not None
    assert toy.rel_var is not None
    columns = toy.task[order], toy.unit[order], toy.value[order]
    shuffled = Toy(*columns, toy.k, toy.A, toy.jobs[order], toy.rel_var[order])
    assert_same(fit(toy, objective, weights), fit(shuffled, objective, weights))


@few
@given(seeds, objectives)
def test_other_labels_give_the_same_numbers(seed: int, objective: Objective) -> None:
    toy = toy_of(seed)
    rng = np.random.default_rng(seed)
    new_unit, new_task = rng.permutation(1000), rng.permutation(1000)
    renamed = Toy(new_task[toy.task], new_unit[toy.unit], toy.value, toy.k, toy.A, toy.jobs, toy.rel_var)
    a, b = fit(toy, objective), fit(renamed, objective)
    for row, name in enumerate(a.units.name.tolist()):
        other = b.units.row(new_unit[name])
        for column in ("k", "k_err", "k_err_model"):
            np.testing.assert_allclose(other[column], getattr(a.units, column)[row], rtol=1e-7, atol=1e-13)
        assert other["status"] == a.units.status[row]


@few
@given(seeds, objectives, st.floats(-9, 9))
def test_another_unit_of_time_only_scales_the_levels(seed: int, objective: Objective, power: float) -> None:
    toy = toy_of(seed)
    scaled = Toy(toy.task, toy.unit, toy.value * 10**power, toy.k, toy.A, toy.jobs, toy.rel_var)
    assert_same(fit(toy, objective), fit(scaled, objective), 10**power)


@few
@given(seeds, objectives, st.floats(-7, 7))
def test_a_task_of_longer_events_only_has_another_level(
    seed: int, objective: Objective, power: float
) -> None:
    toy = toy_of(seed)
    factor = np.where(toy.task == toy.task[0], 10**power, 1.0)
    scaled = Toy(toy.task, toy.unit, toy.value * factor, toy.k, toy.A, toy.jobs, toy.rel_var)
    a, b = fit(toy, objective), fit(scaled, objective)
    np.testing.assert_allclose(a.units.k, b.units.k, rtol=1e-9)
    np.testing.assert_allclose(a.units.k_err, b.units.k_err, rtol=1e-7)
    row = a.tasks.name.tolist().index(toy.task[0])
    np.testing.assert_allclose(b.tasks.A[row] / a.tasks.A[row], 10**power, rtol=1e-9)


@few
@given(seeds, objectives, st.floats(0.2, 5))
def test_a_unit_that_is_faster_everywhere_is_faster_by_that_factor(
    seed: int, objective: Objective, factor: float
) -> None:
    toy = toy_of(seed)
    faster = Toy(
        toy.task,
        toy.unit,
        toy.value / np.where(toy.unit == toy.unit[0], factor, 1.0),
        toy.k,
        toy.A,
        toy.jobs,
        toy.rel_var,
    )
    a, b = fit(toy, objective), fit(faster, objective)
    change = np.log(b.units.k) - np.log(a.units.k)
    expected = np.where(a.units.name == toy.unit[0], np.log(factor), 0.0)
    for component in np.unique(a.units.component[np.isfinite(a.units.k)]):
        inside = a.units.component == component
        np.testing.assert_allclose(np.ptp((change - expected)[inside]), 0, atol=1e-8)
    np.testing.assert_allclose(a.components.f, b.components.f, rtol=1e-7, atol=1e-18)


@few
@given(seeds, objectives)
def test_a_bucket_split_in_two_is_merged_again(seed: int, objective: Objective) -> None:
    toy = toy_of(seed)
    assert toy.jobs is not None
    assert toy.rel_var is not None
    halves = Buckets.from_columns(
        np.concatenate([toy.task[:1], toy.task]),
        np.concatenate([toy.unit[:1], toy.unit]),
        cpu_s=np.concatenate([toy.value[:1] * 50, toy.value[:1] * 50, toy.value[1:] * 100]),
        events=np.concatenate([[50.0, 50.0], np.full(toy.task.size - 1, 100.0)]),
        jobs=np.concatenate([toy.jobs[:1] / 2, toy.jobs[:1] / 2, toy.jobs[1:]]),
        rel_var=np.concatenate([toy.rel_var[:1] * 2, toy.rel_var[:1] * 2, toy.rel_var[1:]]),
    )
    result = fit_speed_factors(halves, objective)
    assert_same(fit(toy, objective), result)
    assert result.n_rows == toy.task.size + 1


@few
@given(seeds, objectives)
def test_a_task_of_a_single_unit_changes_nothing(seed: int, objective: Objective) -> None:
    toy = toy_of(seed)
    assert toy.rel_var is not None
    more = Buckets.from_columns(
        np.append(toy.task, 999),
        np.append(toy.unit, toy.unit[0]),
        np.append(toy.value, 77.0),
        rel_var=np.append(toy.rel_var, 0.1),
    )
    with_it = fit_speed_factors(more, objective)
    without = fit_speed_factors(
        Buckets.from_columns(toy.task, toy.unit, toy.value, rel_var=toy.rel_var), objective
    )
    for column in ("k", "k_err", "k_err_model", "n_tasks"):
        np.testing.assert_allclose(getattr(with_it.units, column), getattr(without.units, column), rtol=1e-9)
    assert with_it.dropped["task with one unit"] == 1
    assert with_it.dof == without.dof


@few
@given(seeds, objectives)
def test_an_island_changes_only_the_pooled_spread(seed: int, objective: Objective) -> None:
    toy = toy_of(seed)
    island = toy_of(seed + 1)
    both = Buckets.from_columns(
        np.concatenate([toy.task, island.task + 1000]),
        np.concatenate([toy.unit, island.unit + 1000]),
        np.concatenate([toy.value, island.value]),
    )
    result = fit_speed_factors(both, objective)
    for part, shift in ((toy, 0), (island, 1000)):
        alone = fit_speed_factors(
            Buckets.from_columns(part.task, part.unit, part.value),
            objective,
        )
        rows = np.isin(result.units.name, alone.units.name + shift)
        np.testing.assert_allclose(result.units.k[rows], alone.units.k, rtol=1e-9)
        if alone.dof > 0 and np.isfinite(alone.units.k_err_model).any():
            np.testing.assert_allclose(
                result.units.k_err_model[rows] / result.S, alone.units.k_err_model / alone.S, rtol=1e-6
            )
    assert result.dof == sum(result.components.dof)


@many
@given(st.data())
def test_any_input_gives_rows_with_a_status_and_books_that_balance(data: st.DataObject) -> None:
    """Whatever the numbers are: no exception, no NumPy warning, no number without a status."""
    n = data.draw(st.integers(1, 30))
    task = data.draw(st.lists(st.integers(0, 4) | st.none(), min_size=n, max_size=n))
    unit = data.draw(st.lists(st.integers(0, 5) | st.none(), min_size=n, max_size=n))
    value = data.draw(st.lists(st.floats() | st.none() | st.floats(0.1, 10), min_size=n, max_size=n))
    jobs = data.draw(st.lists(st.floats() | st.floats(1, 100), min_size=n, max_size=n))
    rel_var = data.draw(st.lists(st.floats() | st.floats(0, 0.1), min_size=n, max_size=n))
    buckets = Buckets.from_columns(task, unit, value, jobs=jobs, rel_var=rel_var)
    result = fit_speed_factors(
        buckets, data.draw(objectives), data.draw(weightings), robust=data.draw(robusts)
    )
    assert len(bucket_table(result)) == buckets.n_buckets
    units = result.units
    assert result.n_used + sum(result.dropped.values()) == n == result.n_rows
    assert set(units.status) <= {"ok", "no dof", "no common task", "no data", "fit failed"}
    has_k = np.isin(units.status.astype(str), ["ok", "no dof"])
    assert np.isfinite(units.k[has_k]).all()
    assert np.isnan(units.k[~has_k]).all()
    assert np.isfinite(units.k_err[units.status == "ok"]).all()
    assert np.isnan(units.k_err[units.status != "ok"]).all()
    assert all(reason for reason, good in zip(units.reason, units.status == "ok", strict=True) if not good)
