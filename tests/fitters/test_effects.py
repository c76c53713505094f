"""Effects of units and classes: against dense least squares, with planted truth, and where they are one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fitters import InputError, fit_effects

Floats = NDArray[np.float64]


def toy(
    rng: np.random.Generator, n_tasks: int = 60, n_units: int = 12, n_classes: int = 5
) -> tuple[dict[str, NDArray[np.int32]], Floats, Floats, Floats, Floats]:
    """Buckets of every task at some units, on their classes; every unit has three classes."""
    unit_effect = rng.normal(0, 0.2, n_units)
    class_effect = rng.normal(0, 0.3, n_classes)
    rows = []
    for task in range(n_tasks):
        for unit in rng.choice(n_units, 5, replace=False):
            rows += [(task, unit, (unit + shift) % n_classes) for shift in range(3)]
    task, unit, of_class = np.array(rows, np.int32).T
    level = rng.normal(0, 1, n_tasks)
    interaction = rng.normal(0, 0.05, (n_tasks, n_units))
    value = level[task] - unit_effect[unit] - class_effect[of_class] + interaction[task, unit]
    variance = np.full(len(task), 0.03**2)
    value = value + rng.normal(0, 0.03, len(task))
    codes = {"task": task, "unit": unit, "of_class": of_class}
    return codes, value, variance, unit_effect, class_effect


def contrast(n: int, at: int) -> Floats:
    weights = np.full(n, -1.0 / n)
    weights[at] += 1.0
    return weights


def test_pulls_of_both_kinds_of_effects() -> None:
    rng = np.random.default_rng(1)
    pulls: dict[str, list[float]] = {"unit": [], "class": []}
    for _ in range(25):
        codes, value, variance, units, classes = toy(rng)
        found = fit_effects(**codes, value=value, variance=variance, n_units=12, n_classes=5)
        for at in range(12):
            weights = contrast(12, at)
            error = np.sqrt(found.variance(weights, np.zeros(5)))
            pulls["unit"].append(float(weights @ (found.unit - units)) / error)
        for at in range(5):
            weights = contrast(5, at)
            error = np.sqrt(found.variance(np.zeros(12), weights))
            pulls["class"].append(float(weights @ (found.of_class - classes)) / error)
    for values in pulls.values():
        assert abs(np.mean(values)) < 0.3
        assert 0.75 < np.std(values) < 1.25


def test_effects_are_those_of_dense_least_squares() -> None:
    codes, value, variance, _, _ = toy(np.random.default_rng(2), n_tasks=15)
    found = fit_effects(**codes, value=value, variance=variance, n_units=12, n_classes=5)
    assert found.n_rejected == 0
    design = np.zeros((len(value), 15 + 12 + 5))
    rows = np.arange(len(value))
    design[rows, codes["task"]] = 1
    design[rows, 15 + codes["unit"]] = -1
    design[rows, 27 + codes["of_class"]] = -1
    dense = np.linalg.lstsq(design, value, rcond=None)[0]
    assert found.unit - found.unit.mean() == pytest.approx(dense[15:27] - dense[15:27].mean(), abs=1e-9)
    assert found.of_class - found.of_class.mean() == pytest.approx(dense[27:] - dense[27:].mean(), abs=1e-9)


def test_a_unit_with_classes_of_its_own_alone_is_not_told_from_them() -> None:
    codes, value, variance, _, _ = toy(np.random.default_rng(3))
    alone = codes["unit"] == 11
    codes["of_class"] = np.where(alone, 5, codes["of_class"]).astype(np.int32)
    found = fit_effects(**codes, value=value, variance=variance, n_units=12, n_classes=6)
    assert np.isnan(found.unit[11])
    assert np.isnan(found.of_class[5])
    assert np.isfinite(found.unit[:11]).all()


def test_units_without_a_common_task_have_no_common_scale() -> None:
    """The classes are the same, but nothing says how fast the units of one set are beside the other."""
    rng = np.random.default_rng(7)
    codes, value, variance, units, _ = toy(rng, n_units=12)
    few, slower, more, _, _ = toy(rng, n_tasks=30, n_units=6)
    joined = {
        "task": np.concatenate([codes["task"], few["task"] + 60]),
        "unit": np.concatenate([codes["unit"], few["unit"] + 12]),
        "of_class": np.concatenate([codes["of_class"], few["of_class"]]),
    }
    found = fit_effects(
        **joined,
        value=np.concatenate([value, slower]),
        variance=np.concatenate([variance, more]),
        n_units=18,
        n_classes=5,
    )
    assert np.isnan(found.unit[12:]).all()
    assert found.unit[:12] - found.unit[:12].mean() == pytest.approx(units - units.mean(), abs=0.1)
    assert not found.weight[len(value) :].any()
    alone = fit_effects(**codes, value=value, variance=variance, n_units=12, n_classes=5)
    assert found.unit[:12] == pytest.approx(alone.unit)


def test_a_bucket_that_is_far_off_moves_nothing() -> None:
    codes, value, variance, _, _ = toy(np.random.default_rng(4))
    clean = fit_effects(**codes, value=value, variance=variance, n_units=12, n_classes=5)
    value[7] += 3.0
    found = fit_effects(**codes, value=value, variance=variance, n_units=12, n_classes=5)
    assert found.n_rejected >= 1
    assert np.abs(found.unit - clean.unit).max() < 0.02


def test_one_unit_alone_tells_nothing_and_nothing_is_refused() -> None:
    zeros = np.zeros(3, np.int32)
    found = fit_effects(zeros, zeros, np.arange(3, dtype=np.int32), np.zeros(3), np.ones(3), 1, 3)
    assert np.isnan(found.unit).all()
    with pytest.raises(InputError):
        fit_effects(zeros[:0], zeros[:0], zeros[:0], np.zeros(0), np.zeros(0), 1, 1)
