"""What changes do to factors by one linear step: against least squares of all logarithms, and refits."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

from fitters import Buckets, FitResult, LinearResponse, fit_speed_factors
from tests.fitters.toys import Floats, Toy, make, shape


def least_squares(toy: Toy, weight: Floats, chosen: NDArray[np.bool_], n: int) -> Floats:
    """ln k of the largest linked set of units, median 0, from all ln k and ln A as free parameters."""
    task, unit = toy.task[chosen], toy.unit[chosen]
    n_tasks = int(toy.task.max()) + 1
    graph = csr_array((np.ones(task.size), (task, n_tasks + unit)), shape=(n_tasks + n, n_tasks + n))
    label = csgraph.connected_components(graph, directed=False)[1][n_tasks:]
    inside = label == np.bincount(label).argmax()
    rows = inside[unit]
    design = np.zeros((rows.sum(), n_tasks + n))
    design[np.arange(rows.sum()), task[rows]] = 1.0
    design[np.arange(rows.sum()), n_tasks + unit[rows]] = -1.0
    root = np.sqrt(weight[chosen][rows])
    solution = np.linalg.lstsq(design * root[:, None], np.log(toy.value[chosen][rows]) * root, rcond=None)[0]
    k = np.full(n, np.nan)
    k[inside] = solution[n_tasks:][inside]
    return k


def weighted(seed: int, units: int, tasks: int, per_task: float) -> tuple[Toy, FitResult, Floats]:
    rng = np.random.default_rng(seed)
    layout = shape(rng, units, tasks, per_task)
    order = np.lexsort(layout[::-1])
    layout = layout[0][order], layout[1][order]
    toy = make(rng, units, tasks, layout=layout)
    jobs = rng.integers(5, 50, toy.task.size).astype(float)
    buckets = Buckets.from_columns(toy.task, toy.unit, toy.value, jobs=jobs)
    return toy, fit_speed_factors(buckets, "gamma", "jobs"), jobs


def gauged(change: Floats) -> Floats:
    return np.asarray(change - np.nanmedian(change))


def test_changed_values_and_parts_are_those_of_least_squares() -> None:
    toy, result, jobs = weighted(2, 12, 35, 5.0)
    response = LinearResponse(result)
    everything = np.ones(toy.task.size, bool)
    base = least_squares(toy, jobs, everything, 12)
    change = np.random.default_rng(3).normal(0, 0.5, toy.task.size)
    moved = Toy(toy.task, toy.unit, toy.value * np.exp(change), toy.k, toy.A)
    expected = gauged(least_squares(moved, jobs, everything, 12) - base)
    np.testing.assert_allclose(response.with_values(change), expected, atol=1e-10)
    for part in (toy.task % 3 == 0, toy.task < 3, toy.task == 1):
        expected = gauged(least_squares(toy, jobs, part, 12) - base)
        np.testing.assert_allclose(response.of_part(part), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("units", "tasks", "per_task"), [(12, 35, 5.0), (9, 16, 2.0), (7, 8, 2.5), (36, 50, 30.0)]
)
def test_extremes_of_tasks_left_out_are_those_of_least_squares(
    units: int, tasks: int, per_task: float
) -> None:
    """With few tasks of few units some are the last link: then a unit has no factor without them. Where many
    tasks share many units, each changes little."""
    toy, result, jobs = weighted(5, units, tasks, per_task)
    assert result.fitted[0].part.n_units == units
    left = LinearResponse(result).without_tasks()
    base = least_squares(toy, jobs, np.ones(toy.task.size, bool), units)
    changes = np.full((tasks, units), np.nan)
    runs = np.zeros((tasks, units), bool)
    runs[toy.task, toy.unit] = True
    for task in range(tasks):
        changes[task] = gauged(least_squares(toy, jobs, toy.task != task, units) - base)
    known = np.where(runs, changes, np.nan)
    for place in range(units):
        mine = known[:, place]
        lost = runs[:, place] & np.isnan(changes[:, place])
        assert lost.any() == (left.lost_task[place] >= 0)
        assert left.n_tasks[place] == runs[:, place].sum()
        if np.isfinite(mine).any():
            assert left.low[place] == pytest.approx(np.nanmin(mine), abs=1e-9)
            assert left.high[place] == pytest.approx(np.nanmax(mine), abs=1e-9)
            assert mine[left.low_task[place]] == pytest.approx(left.low[place], abs=1e-9)


def test_the_step_is_close_to_a_fit_again() -> None:
    toy, result, jobs = weighted(7, 15, 60, 6.0)
    response = LinearResponse(result)
    for part in (toy.task % 2 == 0, toy.task != 4):
        chosen = Buckets.from_columns(toy.task[part], toy.unit[part], toy.value[part], jobs=jobs[part])
        again = fit_speed_factors(chosen, "gamma", "jobs")
        expected = gauged(np.log(again.units.k / result.units.k))
        np.testing.assert_allclose(response.of_part(part), expected, atol=0.01)
        assert np.std(expected) > 0


def test_leaving_the_only_task_out_leaves_nothing() -> None:
    result = fit_speed_factors(Buckets.from_columns(["t"] * 3, list("ABC"), [1.0, 2.0, 3.0]))
    left = LinearResponse(result).without_tasks()
    assert left.lost_task.tolist() == [0, 0, 0]
    assert np.isnan(left.low).all()
    assert np.isnan(left.high).all()
