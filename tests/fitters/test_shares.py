"""Shares of variance: leave-out by refitting, planted truth; a mixed model against dense algebra."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fitters import VarianceShares, fit_mixed, variance_shares
from tests.fitters.effect_toys import World, world

Floats = NDArray[np.float64]


def shares(made: World, interaction: float, groups: int = 0) -> VarianceShares:
    weight = 1.0 / (made.variance + interaction**2)
    found = variance_shares(*made.codes, made.value, weight, made.mix, groups=groups)
    assert found is not None
    return found


def refitted(made: World, interaction: float) -> Floats:
    """Variances by classes, units and sorting, each cluster left out by a fit of all other rows."""
    task, unit, of_class = made.codes
    n_tasks, n_units, n_classes = int(task.max()) + 1, *made.mix.shape
    rows = np.arange(len(task))
    design = np.zeros((len(task), n_tasks + n_units + n_classes))
    design[rows, task] = 1.0
    design[rows, n_tasks + unit] = -1.0
    design[rows, n_tasks + n_units + of_class] = -1.0
    root = np.sqrt(1.0 / (made.variance + interaction**2))
    level = np.bincount(task, made.value) / np.bincount(task)
    design, value = design * root[:, None], (made.value - level[task]) * root
    inverse = np.linalg.pinv(design.T @ design)
    effects = inverse @ design.T @ value
    centre = np.eye(n_units) - 1.0 / n_units
    zeros = np.zeros((n_units, n_tasks))
    classes = np.hstack([zeros, np.zeros((n_units, n_units)), centre @ made.mix])
    units = np.hstack([zeros, centre, np.zeros((n_units, n_classes))])
    found = []
    for first, second, times in ((classes, classes, 1.0), (units, units, 1.0), (classes, units, 2.0)):
        matrix = times * (first.T @ second + second.T @ first) / 2 / (n_units - 1)
        plain = effects @ matrix @ effects
        expected = 0.0
        for cluster in np.unique(np.stack([task, unit]), axis=1).T:
            inside = (task == cluster[0]) & (unit == cluster[1])
            others = np.linalg.lstsq(design[~inside], value[~inside], rcond=None)[0]
            left = value[inside] - design[inside] @ others
            block = design[inside] @ inverse @ matrix @ inverse @ design[inside].T
            expected += left @ block @ value[inside]
        found.append(plain - expected)
    return np.array(found)


def test_leaving_out_is_what_refitting_without_each_cluster_gives() -> None:
    made = world(
        np.random.default_rng(4), n_units=10, n_classes=4, tasks_per_unit=6, units_per_task=5, per_unit=2
    )
    found = shares(made, 0.1)
    assert found.inside.all()
    assert found.n_left_out == 0
    values = [found.classes.value, found.units.value, found.sorting.value]
    assert values == pytest.approx(refitted(made, 0.1), rel=1e-6, abs=1e-9)
    assert found.total.value == pytest.approx(sum(values))
    assert sum(part.share for part in (found.classes, found.units, found.sorting)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("tasks", "interaction", "scatter", "sorted_by"),
    [(4, 0.10, 0.05, 0.0), (8, 0.05, 0.05, 0.0), (4, 0.10, 0.0, 0.0), (8, 0.05, 0.05, 0.7)],
    ids=["few tasks", "more tasks", "no site", "sorted"],
)
def test_planted_variances_come_back(
    tasks: int, interaction: float, scatter: float, sorted_by: float
) -> None:
    """Estimated effects alone give twice the variance of sites with few tasks; corrected it is right."""
    rng = np.random.default_rng(3)
    told, plain, true, pulls = [], [], [], []
    for number in range(24):
        made = world(rng, tasks_per_unit=tasks, interaction=interaction, scatter=scatter, sorted_by=sorted_by)
        found = shares(made, interaction, groups=20 if number < 12 else 0)
        inside = found.inside
        speed, unit = (made.mix @ made.of_class)[inside], made.unit[inside]
        truth = [np.var(speed, ddof=1), np.var(unit, ddof=1), 2 * np.cov(speed, unit)[0, 1]]
        parts = (found.classes, found.units, found.sorting)
        told.append([part.value for part in parts])
        plain.append(found.units.plug_in)
        true.append(truth)
        if number < 12:
            pulls.append([(part.value - at) / part.error for part, at in zip(parts, truth, strict=True)])
    off = np.mean(told, axis=0) - np.mean(true, axis=0)
    error = np.std(np.array(told) - true, axis=0) / np.sqrt(len(told))
    assert (np.abs(off) < 3.5 * error + 1e-5).all()
    assert abs(off[0]) < 0.03 * np.mean(true, axis=0)[0]
    assert abs(off[1]) < max(0.1 * scatter**2, 3 * error[1])
    assert np.mean(plain) > np.mean(true, axis=0)[1] + 2 * abs(off[1])
    assert 0.5 < np.sqrt(np.mean(np.square(pulls))) < 1.5


def test_a_cluster_that_alone_tells_something_is_left_out() -> None:
    """The last unit ran one task with another unit: without it nothing tells how fast the unit is."""
    made = world(np.random.default_rng(5), n_units=12, tasks_per_unit=5, units_per_task=6)
    task, unit, of_class = made.codes
    kept = (unit != 11) | (task == task[unit == 11][0])
    found = variance_shares(
        task[kept], unit[kept], of_class[kept], made.value[kept], np.full(int(kept.sum()), 90.0), made.mix, 0
    )
    assert found is not None
    assert found.n_left_out == 1
    assert found.inside.tolist() == [True] * 11 + [False]


def test_two_units_tell_no_shares() -> None:
    made = world(np.random.default_rng(6), n_units=2, tasks_per_unit=6, units_per_task=2)
    assert variance_shares(*made.codes, made.value, np.full(len(made.value), 90.0), made.mix) is None


def test_the_mixed_model_is_generalised_least_squares_with_the_random_parts_in_the_covariance() -> None:
    made = world(
        np.random.default_rng(7), n_units=8, n_classes=4, tasks_per_unit=3, units_per_task=4, apart=2
    )
    task, unit, of_class = made.codes
    found = fit_mixed(*made.codes, made.value, made.variance, 0.1, 0.05, 10, 4)
    rows = np.arange(len(task))
    units, pairs = np.zeros((len(task), 10)), (task[:, None] == task) & (unit[:, None] == unit)
    units[rows, unit] = -1.0
    covariance = np.diag(made.variance) + 0.05**2 * units @ units.T + 0.1**2 * pairs
    fixed = np.zeros((len(task), int(task.max()) + 1 + 4))
    fixed[rows, task] = 1.0
    fixed[rows, int(task.max()) + 1 + of_class] = -1.0
    inverse = np.linalg.inv(covariance)
    estimated = np.linalg.pinv(fixed.T @ inverse @ fixed) @ fixed.T @ inverse @ made.value
    predicted = 0.05**2 * units.T @ inverse @ (made.value - fixed @ estimated)
    classes = estimated[-4:]
    assert found.unit == pytest.approx(predicted, abs=1e-8)
    assert found.of_class - found.of_class.mean() == pytest.approx(classes - classes.mean(), abs=1e-7)
    assert found.determined.all()


@pytest.mark.parametrize(("apart", "expected"), [(1, 0.052), (4, 0.027), (8, 0.020)])
def test_units_that_no_task_links_are_known_as_well_as_said(apart: int, expected: float) -> None:
    rng = np.random.default_rng(8)
    pulls, errors = [], []
    for _ in range(40):
        made = world(
            rng, n_units=40, n_classes=10, tasks_per_unit=15, units_per_task=12, interaction=0.05, apart=apart
        )
        n_units = 40 + apart
        found = fit_mixed(*made.codes, made.value, made.variance, 0.05, 0.05, n_units, 10)
        weights = np.where(np.arange(n_units) < 40, -1 / 40, 1 / apart)
        value, error = found.contrast(weights, weights @ made.mix)
        pulls.append((value - weights @ made.speed) / error)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(expected, rel=0.15)
    assert 0.7 < np.sqrt(np.mean(np.square(pulls))) < 1.35


def test_classes_that_only_units_apart_have_are_not_determined() -> None:
    made = world(
        np.random.default_rng(9), n_units=10, n_classes=4, tasks_per_unit=4, units_per_task=5, apart=1
    )
    task, unit, of_class = made.codes
    alone = np.where(unit == 10, 4, of_class).astype(np.int32)
    kept = np.unique(np.stack([task, unit, alone]), axis=1, return_index=True)[1]
    codes = (task[kept], unit[kept], alone[kept])
    found = fit_mixed(*codes, made.value[kept], made.variance[kept], 0.1, 0.05, 11, 5)
    assert found.determined.tolist() == [True] * 4 + [False]
