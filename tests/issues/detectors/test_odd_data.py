"""Data as it comes: gaps, nothing, faults, extremes. Warnings are errors in all tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from esjobs.issues.detectors import (
    PUBLISHED,
    REASONS,
    TRIM,
    Measured,
    Reason,
    collapse,
    congestion,
    flagged,
    idle,
    imbalance,
    inverse_phases,
    io_blocking,
    late_start,
    leak,
    samples,
    synchronous_offloading,
    unused,
)
from tests.issues.detectors.made_series import STEP_S, periodic

Detector = Callable[[Any], Measured]

DETECTORS: dict[str, Detector] = {
    "idle": lambda values: idle(values, STEP_S),
    "idle gpu": lambda values: idle(values, STEP_S, "gpu"),
    "unused": unused,
    "imbalance": imbalance,
    "congestion": congestion,
    "io_blocking": lambda values: io_blocking(values, {"read_b_s": values}, STEP_S).strongest,
    "offloading": lambda values: synchronous_offloading(values, values, STEP_S),
    "leak": lambda values: leak(values, STEP_S),
    "leak trim": lambda values: leak(values, STEP_S, trim=TRIM),
    "collapse": collapse,
    "late_start": lambda values: late_start(values, STEP_S),
}
NAN = np.nan


def check_shape(found: Measured, jobs: int, units: int, n: int) -> None:
    """What every answer keeps, whatever the data."""
    blank = found.reason != Reason.ASSESSED
    columns: list[Any] = [found.value, found.unit, found.begin, found.end, found.share, found.reason]
    assert all(len(each) == jobs for each in (*columns, *found.numbers.values()))
    assert np.isnan(found.value[blank]).all()
    assert np.isfinite(found.value[~blank]).all()
    for name, number in found.numbers.items():
        assert np.isnan(number[blank]).all(), name
        assert not np.isinf(number).any(), name
    assert ((found.share >= 0) & (found.share <= 1)).all()
    assert ((found.unit >= -1) & (found.unit < max(units, 1))).all()
    assert ((found.begin == -1) == (found.end == -1)).all()
    some = found.begin >= 0
    assert (found.begin[some] < found.end[some]).all()
    assert (found.end[some] <= n).all()
    assert (found.begin[blank] == -1).all()
    assert set(found.reason.tolist()) <= {int(each) for each in REASONS}


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize(
    "shape", [(0, 2, 5), (2, 0, 5), (2, 3, 0), (3, 1, 1), (3, 2, 2), (2, 1, 3), (1, 4, 9)]
)
@pytest.mark.parametrize("value", [NAN, 0.0, 1.0, -1.0, np.inf, -np.inf, 1e38, 1e-38])
def test_constants_of_every_shape(name: str, shape: tuple[int, int, int], value: float) -> None:
    for kind in (np.float32, np.float64):
        found = DETECTORS[name](np.full(shape, value, kind))
        check_shape(found, *shape)
        if not np.isfinite(value) or value < 0 or value > 1e18 or 0 in shape:
            assert set(found.reason.tolist()) <= {Reason.NO_DATA, Reason.TOO_FEW_SAMPLES}
        elif shape[2] < 3:
            assert set(found.reason.tolist()) == {Reason.TOO_FEW_SAMPLES}


@pytest.mark.parametrize("name", DETECTORS)
def test_garbage(name: str) -> None:
    rng = np.random.default_rng(5)
    pool = np.array([NAN, np.inf, -np.inf, -1, 0, 1e-300, 0.01, 0.5, 1, 2, 1e9, 1e25, 3e38, 1e300])
    with np.errstate(over="ignore"):
        for kind in (np.float32, np.float64):
            for shape in ((40, 3, 30), (10, 1, 200)):
                weight = rng.dirichlet(np.full(len(pool), 0.3), shape[0])
                values = np.stack([rng.choice(pool, shape[1:], p=each) for each in weight]).astype(kind)
                check_shape(DETECTORS[name](values), *shape)


@pytest.mark.parametrize("name", DETECTORS)
def test_whole_numbers_lists_and_strided_arrays_are_fine(name: str) -> None:
    values = np.arange(2 * 3 * 40).reshape(2, 3, 40)
    plain = DETECTORS[name](values.astype(np.float64))
    for other in (values, values.tolist(), np.asfortranarray(values), values[:, :, ::-1][:, :, ::-1]):
        found = DETECTORS[name](other)
        assert np.array_equal(found.value, plain.value, equal_nan=True)
    swapped = DETECTORS[name](values.astype(">f8"))
    assert np.array_equal(swapped.value, plain.value, equal_nan=True)


def test_missing_samples_are_not_idle() -> None:
    load = np.ones((1, 4, 100))
    load[0, :, 40:60] = NAN
    load[0, 3] = NAN
    assert idle(load, STEP_S).value.tolist() == [0.0]
    found = unused(load)
    assert (found.value[0], found.numbers["used"][0]) == (0.0, 3.0)
    assert late_start(np.where(np.arange(100) < 40, NAN, np.ones((1, 2, 100))), STEP_S).value.tolist() == [
        0.0
    ]


@pytest.mark.parametrize("units", [1, 3])
def test_pauses_before_a_collapse_are_measured(units: int) -> None:
    rates = np.full((3, units, 480), 0.9, np.float32)
    rates[0, :, 180:240] = rates[0, :, -60:] = 0  # periodic: ends in a pause as long as the one before
    rates[1, :, :100] = rates[1, :, -200:] = 0  # a late start is no pause
    found = collapse(rates).numbers
    assert found["job_share"][:2].tolist() == pytest.approx([60 / 480, 200 / 480])
    assert found["job_pause"].tolist() == pytest.approx([60 / 480, 0, 0])


def test_a_silent_node_is_no_collapse() -> None:
    flops = np.ones((1, 3, 200))
    flops[0, 1, 90:] = NAN
    found = collapse(flops)
    assert found.value.tolist() == [1.0]
    flops[0, 1, 120:] = 0.0
    found = collapse(flops)
    assert (found.value[0], found.unit[0], found.begin[0], found.end[0]) == (0.0, 1, 90, 200)
    assert found.numbers["job"][0] == pytest.approx(2 / 3, abs=0.02)
    assert found.numbers["job_share"][0] == pytest.approx((200 - found.numbers["job_begin"][0]) / 200)


def test_most_of_the_series_must_be_there() -> None:
    load = np.zeros((1, 2, 100))
    load[0, :, 49:] = NAN
    assert idle(load, STEP_S).reason.tolist() == [Reason.GAPS]
    load[0, :, 49] = 0.0
    assert idle(load, STEP_S).value.tolist() == [1.0]


def test_gaps_of_many_nodes_at_different_times_cost_no_verdict() -> None:
    """With 500 nodes hardly an instant is complete; each is judged by its own samples then."""
    rng = np.random.default_rng(2)
    load = np.ones((1, 500, 200), np.float32)
    load[0, 7] = 0.0
    load[0][rng.random((500, 200)) < 0.05] = NAN
    prepared = samples(load)
    assert prepared.reason.tolist() == [Reason.ASSESSED]
    assert unused(prepared).numbers["unused"].tolist() == [1.0]
    assert unused(prepared).unit.tolist() == [7]
    # nothing deviates at the instants at which the idle node is silent itself
    assert imbalance(prepared).value[0] == pytest.approx(0.95 * np.sqrt(1 / 500), rel=0.03)


def test_a_busy_sample_counts_where_another_unit_is_silent() -> None:
    """The instants at which the second unit worked are left out for the first one's gaps."""
    load = np.ones((1, 2, 100))
    load[0, 1, 2:] = 0.0
    load[0, 0, :2] = NAN
    assert unused(load).value.tolist() == [0.0]


@pytest.mark.parametrize(("missing", "reason"), [(24, Reason.ASSESSED), (25, Reason.GAPS)])
def test_periods_need_95_percent_of_the_instants(missing: int, reason: Reason) -> None:
    load, rates = periodic(np.random.default_rng(1), 3, 480)
    gone = np.random.default_rng(4).permutation(480)[:missing]
    for series in (load, rates):
        holey = series.copy()
        holey[:, :, gone] = NAN
        pair = (holey, rates) if series is load else (load, holey)
        found = inverse_phases(*pair, STEP_S)
        assert found.reason.tolist() == [reason] * 3
        if reason == Reason.ASSESSED:
            assert flagged(found, PUBLISHED["io_blocking"]).all()


def test_constant_series_have_no_period() -> None:
    load, rates = periodic(np.random.default_rng(1), 4, 480)
    for a, b in ((np.full_like(load, 0.3), rates), (load, np.full_like(rates, 0.1)), (load, rates * 0)):
        assert inverse_phases(a, b, STEP_S).reason.tolist() == [Reason.FLAT] * 4


def test_io_without_any_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="io has no series"):
        io_blocking(np.ones((1, 1, 9)), {}, STEP_S)
    with pytest.raises(ValueError, match="equal numbers of jobs and samples"):
        inverse_phases(np.ones((1, 1, 9)), np.ones((1, 1, 8)), STEP_S)


@pytest.mark.parametrize("step_s", [0.0, -1.0, NAN, np.inf])
def test_without_a_length_of_the_step_times_are_missing_and_shares_are_not(step_s: float) -> None:
    load, rates = periodic(np.random.default_rng(1), 2, 480)
    found = idle(load * 0, step_s)
    assert found.value.tolist() == [1.0, 1.0]
    assert np.isnan(found.numbers["idle_s"]).all()
    assert inverse_phases(load, rates, step_s, duration_s=3600.0).value.tolist() == [48.0, 48.0]
    memory = np.linspace(1, 2, 480)[None, None, :]
    assert np.isnan(leak(memory, step_s).numbers["bytes_per_hour"]).all()
    assert flagged(leak(memory, step_s), PUBLISHED["leak"]).tolist() == [True]


def test_duplicated_samples_change_nothing_that_is_a_share() -> None:
    rng = np.random.default_rng(9)
    load = (rng.random((20, 4, 50)) * (rng.random((20, 4, 50)) < 0.5)).astype(np.float32)
    twice = np.repeat(load, 2, axis=2)
    for name in ("idle", "imbalance"):
        assert np.allclose(DETECTORS[name](load).value, DETECTORS[name](twice).value)
    assert np.array_equal(congestion(load).value, congestion(twice).value)


def test_ten_thousand_cores() -> None:
    rng = np.random.default_rng(1)
    load = rng.random((1, 10_000, 130), dtype=np.float32)
    load[0, 9_999] = 0.0
    prepared = samples(load)
    assert unused(prepared).unit.tolist() == [9_999]
    expected = load[0].astype(np.float64).std(axis=0, ddof=1).mean()
    assert imbalance(prepared).value[0] == pytest.approx(expected, rel=1e-6)


def test_no_number_is_a_flag_where_something_is_missing() -> None:
    found = leak(np.full((2, 1, 50), NAN), STEP_S)
    assert not flagged(found, PUBLISHED["leak"]).any()
    assert not flagged(found, ()).any()
    with pytest.raises(KeyError):
        flagged(found, PUBLISHED["io_blocking"])
