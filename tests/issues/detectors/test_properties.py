"""What must hold for any series: neighbours, units that are not there, order of units, scale."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.issues.detectors import (
    Measured,
    collapse,
    congestion,
    idle,
    imbalance,
    inverse_phases,
    late_start,
    leak,
    samples,
    unused,
)
from tests.issues.detectors.made_series import STEP_S

SIZES = st.tuples(st.integers(1, 7), st.integers(1, 5), st.integers(1, 50), st.integers(0, 2**32 - 1))


def batch(jobs: int, units: int, n: int, seed: int) -> Any:
    """Series of any kind: idle, busy, with gaps, with faults; some jobs without any."""
    rng = np.random.default_rng(seed)
    values = rng.random((jobs, units, n)) * rng.choice([1.0, 2.0, 1e6], (jobs, 1, 1))
    values[rng.random(values.shape) < rng.choice([0, 0.3, 0.97], (jobs, units, 1))] = 0.0
    values[rng.random(values.shape) < rng.choice([0, 0, 0.02, 0.3], (jobs, 1, 1))] = np.nan
    values[rng.random((jobs, units)) < rng.choice([0, 0, 0.4])] = np.nan
    values[rng.random(values.shape) < rng.choice([0, 0, 0.02])] = rng.choice([-1.0, np.inf, 1e20])
    return values.astype(rng.choice(["float32", "float64"]))


def everything(values: Any, other: Any, *, share: bool = True) -> dict[str, Measured]:
    prepared = samples(values) if share else values
    return {
        "idle": idle(prepared, STEP_S),
        "idle gpu": idle(prepared, STEP_S, "gpu"),
        "unused": unused(prepared),
        "imbalance": imbalance(prepared),
        "congestion": congestion(prepared),
        "phases": inverse_phases(prepared, other, STEP_S),
        "offloading": inverse_phases(prepared, other, STEP_S, partner="gpu"),
        "leak": leak(values, STEP_S),
        "collapse": collapse(prepared),
        "late_start": late_start(prepared, STEP_S),
    }


def columns(found: Measured) -> dict[str, Any]:
    plain = {name: getattr(found, name) for name in ("value", "unit", "begin", "end", "share", "reason")}
    return plain | dict(found.numbers)


def assert_same(one: Measured, other: Measured, *, but: tuple[str, ...] = (), rel: float = 0.0) -> None:
    ours, theirs = columns(one), columns(other)
    for name in ours.keys() - set(but):
        expected = pytest.approx(theirs[name].tolist(), rel=rel, abs=rel, nan_ok=True)
        assert ours[name].tolist() == expected, name


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_neighbours_make_no_difference_not_in_the_last_digit(size: tuple[int, int, int, int]) -> None:
    values, other = batch(*size), batch(*size[:3], size[3] ^ 1)
    together = everything(values, other)
    for job in range(size[0]):
        alone = everything(values[job : job + 1], other[job : job + 1])
        for name, found in together.items():
            for column, ours in columns(found).items():
                theirs = columns(alone[name])[column]
                assert np.array_equal(ours[job : job + 1], theirs, equal_nan=True), (name, column)


def test_a_large_batch_is_worked_on_in_parts_that_do_not_show() -> None:
    values, other = batch(700, 3, 480, 5), batch(700, 1, 480, 6)
    together = everything(values, other)
    few = np.arange(3, 700, 97)
    apart = everything(values[few], other[few])
    for name, found in together.items():
        for column, ours in columns(found).items():
            assert np.array_equal(ours[few], columns(apart[name])[column], equal_nan=True), (name, column)


@given(SIZES, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_units_that_are_not_there_make_no_difference(size: tuple[int, int, int, int], more: int) -> None:
    values, other = batch(*size), batch(*size[:3], size[3] ^ 1)

    def padded(series: Any) -> Any:
        return np.pad(series, ((0, 0), (0, more), (0, 0)), constant_values=np.nan)

    plain, wider = everything(values, other), everything(padded(values), padded(other))
    for name, found in plain.items():
        assert_same(found, wider[name], but=("lost",))
        # a sum over units, whose order of addition depends on how many there are
        assert_same(found, wider[name], rel=1e-12)


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_the_order_of_units_names_other_units_and_nothing_else(size: tuple[int, int, int, int]) -> None:
    values, other = batch(*size), batch(*size[:3], size[3] ^ 1)
    order = np.random.default_rng(size[3]).permutation(size[1])
    plain, moved = everything(values, other), everything(values[:, order], other[:, order])
    for name, found in plain.items():
        # of equal units the first is shown, and with it its range
        unit_columns = ("unit", "begin", "end", "share", "job_begin", "before", "after", "bytes_per_hour")
        sums = ("peak", "median", "median_adaptive", "r", "frequency_index", "periods", "period_s", "value")
        but = (*unit_columns, *(sums if name in ("phases", "offloading") else ()))
        if name == "leak":
            but = (*but, "peak_b", "intercept", "residual", "ratio")
        assert_same(found, moved[name], but=but, rel=1e-5)


@given(SIZES, st.sampled_from([0.25, 2.0, 1024.0]))
@settings(max_examples=60, deadline=None)
def test_scale(size: tuple[int, int, int, int], factor: float) -> None:
    """By powers of two: exact. Shapes stay, sizes grow with the values."""
    values, other = batch(*size), batch(*size[:3], size[3] ^ 1)
    values[values > 1e15], other[other > 1e15] = np.nan, np.nan
    scaled, load = values * factor, samples(np.minimum(values, 2.0))
    by = ("other_mean", "other_range", "io_ratio")
    assert_same(
        inverse_phases(load, other, STEP_S), inverse_phases(load, other * factor, STEP_S), but=by, rel=1e-9
    )
    assert_same(collapse(values), collapse(scaled), but=("before", "after"), rel=1e-9)
    bytes_of = ("bytes_per_hour", "peak_b", "leaking_bytes_per_hour")
    assert_same(leak(values, STEP_S), leak(scaled, STEP_S), but=bytes_of, rel=1e-9)
    for name in bytes_of:
        ours, theirs = leak(values, STEP_S).numbers[name], leak(scaled, STEP_S).numbers[name]
        assert (ours * factor).tolist() == pytest.approx(theirs.tolist(), rel=1e-9, nan_ok=True)
    for detector in (imbalance, congestion):
        ours, theirs = detector(values).value * factor, detector(scaled).value
        assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-5, abs=1e-5 * factor, nan_ok=True)


@given(SIZES)
@settings(max_examples=30, deadline=None)
def test_what_is_worked_out_once_is_what_everybody_works_out(size: tuple[int, int, int, int]) -> None:
    values, other = batch(*size), batch(*size[:3], size[3] ^ 1)
    shared, own = everything(values, other), everything(values, other, share=False)
    for name, found in shared.items():
        assert_same(found, own[name])
