"""The examples and the arguments that the published rules come with, one by one."""

from typing import Any

import numpy as np
import pytest

from esjobs.issues.detectors import (
    PUBLISHED,
    TRIM,
    Reason,
    congestion,
    flagged,
    idle,
    imbalance,
    inverse_phases,
    late_start,
    leak,
    memory_lines,
    synchronous_offloading,
    unused,
)
from tests.issues.detectors import per_job
from tests.issues.detectors.made_series import STEP_S, periodic

RNG = np.random.default_rng(3)


def one(*units: Any) -> Any:
    """A batch of one job."""
    return np.array([units], dtype=np.float64)


@pytest.mark.parametrize(("load", "idle_share"), [(0.0099, 1.0), (0.01, 0.0), (0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_core_is_idle_strictly_below_a_hundredth(kind: Any, load: float, idle_share: float) -> None:
    assert idle(np.full((1, 2, 5), load, kind), STEP_S).value.tolist() == [idle_share]


@pytest.mark.parametrize(("load", "idle_share"), [(0.0, 1.0), (-0.0, 1.0), (1e-12, 0.0)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_gpu_is_idle_at_zero(kind: Any, load: float, idle_share: float) -> None:
    assert idle(np.full((1, 2, 5), load, kind), STEP_S, "gpu").value.tolist() == [idle_share]


def test_idle_time_is_of_all_units_in_the_jobs_own_step() -> None:
    load = np.array([[[0, 0, 1, 1], [0, 0.5, 0.5, 0]], [[1, 1, 1, 1], [1, 1, 1, 1]]])
    found = idle(load, np.array([30.0, 10.0]))
    assert found.numbers["idle_s"].tolist() == [120.0, 0.0]
    assert found.value.tolist() == [0.5, 0.0]
    assert (found.unit[0], found.begin[0], found.end[0]) == (0, 0, 2)
    assert (found.unit[1], found.begin[1], found.end[1]) == (-1, -1, -1)


@pytest.mark.parametrize(("busy", "share"), [(0, 0.5), (1, 0.5), (2, 0.0)])
def test_one_busy_sample_is_a_blip(busy: int, share: float) -> None:
    """Idle at n - 1 samples or more: at most one busy one is allowed."""
    unit = np.zeros(100)
    unit[:busy] = 1.0
    found = unused(one(np.ones(100), unit))
    assert found.value.tolist() == [share]
    assert found.unit.tolist() == [1 if share else -1]


@pytest.mark.parametrize("n", [1, 2])
def test_two_samples_would_make_everything_unused(n: int) -> None:
    found = unused(np.zeros((1, 4, n)))
    assert found.reason.tolist() == [Reason.TOO_FEW_SAMPLES]
    assert unused(np.zeros((1, 4, 3))).value.tolist() == [1.0]


def test_the_lenient_count_allows_a_busy_percent() -> None:
    unit = np.zeros(1000)
    unit[:10] = 1.0
    found = unused(one(np.ones(1000), unit))
    assert found.value.tolist() == [0.0]
    assert found.numbers["unused_lenient"].tolist() == [1.0]


def test_two_gpus_of_which_one_works_deviate_by_more_than_a_half() -> None:
    """PIKA shows 0.54 and 0.60: possible with n - 1 only, the limit is 0.707."""
    found = imbalance(one(np.ones(10), np.zeros(10)), "gpu")
    assert found.value.tolist() == pytest.approx([np.sqrt(0.5)])
    assert flagged(found, PUBLISHED["imbalance"]).tolist() == [True]
    assert found.numbers["used_only"].tolist() == [0.0]


def test_merged_threads_allow_deviations_above_those_of_loads_to_one() -> None:
    found = imbalance(one(np.full(10, 2.0), np.zeros(10)))
    assert found.value.tolist() == pytest.approx([np.sqrt(2.0)])


def test_one_unit_is_balanced() -> None:
    found = imbalance(one(RNG.random(50)))
    assert (found.value[0], found.reason[0], found.unit[0]) == (0.0, Reason.ASSESSED, -1)


def test_the_limit_of_imbalance_is_not_imbalance() -> None:
    half = 0.1 * np.sqrt(2.0)
    values = one(np.full(9, 0.5 - half), np.full(9, 0.5 + half))
    assert imbalance(values).value[0] == pytest.approx(0.2)
    assert not flagged(imbalance(values * (1 - 1e-6)), PUBLISHED["imbalance"])[0]
    assert flagged(imbalance(values * (1 + 1e-6)), PUBLISHED["imbalance"])[0]


def test_congestion_is_the_largest_sum_over_nodes() -> None:
    found = congestion(one([10, 30, 0, 0], [0, 9, 0, 60]), level=40)
    assert (found.value[0], found.unit[0], found.begin[0], found.end[0]) == (60, 1, 3, 4)
    assert found.share.tolist() == [0.25]
    assert flagged(congestion(one([0, 40, 0])), PUBLISHED["congestion"]).tolist() == [True]
    assert flagged(congestion(one([0, 39.9, 0])), PUBLISHED["congestion"]).tolist() == [False]


def test_the_constant_term_would_always_win() -> None:
    """Means are removed: without that, k = 0 is the maximum of every positive job."""
    load, rates = periodic(RNG, 50, 480)
    found = inverse_phases(load, rates, STEP_S)
    with_means = [
        np.argmax(sum(a / a.max() for a in np.abs(np.fft.rfft([c, y]))))
        for c, y in zip(load.mean(axis=1), rates[:, 0], strict=True)
    ]
    assert set(with_means) == {0}
    assert set(found.numbers["frequency_index"].tolist()) == {48.0}


def limits_met(load: Any, rates: Any, **options: Any) -> bool:
    found = inverse_phases(load, rates, STEP_S, **options)
    return bool(flagged(found, PUBLISHED["io_blocking"])[0])


def test_every_condition_of_blocking_is_needed() -> None:
    n = 480
    waiting = np.arange(n) % 10 < 3
    load, rates = one(np.where(waiting, 0.1, 0.8)), one(np.where(waiting, 5e6, 0.0))
    assert limits_met(load, rates)
    assert limits_met(load.astype(np.float32), rates), "a range of 0.7 that float32 makes 0.69999999"
    assert not limits_met(load - one(np.where(waiting, 0.0, 0.01)), rates), "range below 0.7"
    assert not limits_met(load * 0.1, rates)
    assert limits_met(load, rates * (1.000001e6 / 1.5e6)), "a mean of 1 MB/s suffices"
    assert not limits_met(load, rates * 0.66), "and less does not"
    assert limits_met(load, rates / 1.5e6, least=1.0), "operations: 1 a second"
    assert not limits_met(load, one(np.where(waiting, 0.0, 5e6))), "in phase"
    slow = np.arange(n) % 60 < 18
    assert not limits_met(one(np.where(slow, 0.1, 0.8)), one(np.where(slow, 5e6, 0.0))), "8 periods"


def test_the_tenth_period_counts() -> None:
    waiting = np.arange(480) % 48 < 16
    load, rates = one(np.where(waiting, 0.1, 0.9)), one(np.where(waiting, 5e6, 0.0))
    found = inverse_phases(load, rates, STEP_S)
    assert found.value.tolist() == [10.0]
    assert flagged(found, PUBLISHED["io_blocking"]).tolist() == [True]
    shorter = inverse_phases(load, rates, STEP_S, duration_s=480 * STEP_S * 0.99)
    assert shorter.value.tolist() == [10.0], "rounded"
    assert flagged(shorter, PUBLISHED["io_blocking"]).tolist() == [False], "by what it is"


def test_rates_at_their_mean_are_kept() -> None:
    """Values strictly below the mean are set to 0; a constant rate is kept, and does not change."""
    found = inverse_phases(one(np.arange(40) % 4 / 4), one(np.full(40, 2e6)), STEP_S)
    assert found.reason.tolist() == [Reason.FLAT]


def test_pulses_have_the_frequency_of_the_pulses() -> None:
    """All harmonics of a train of short pulses are equally high."""
    waiting = np.arange(480) % 10 == 0
    found = inverse_phases(one(np.where(waiting, 0.0, 1.0)), one(np.where(waiting, 5e7, 0.0)), STEP_S)
    assert found.value.tolist() == [48.0]


def test_gpus_are_neither_rounded_nor_cut() -> None:
    computing = np.arange(480) % 12 < 6
    load, gpu = one(np.where(computing, 0.0, 1.0)), one(np.where(computing, 0.94, 0.04))
    found = synchronous_offloading(load, gpu, STEP_S)
    assert flagged(found, PUBLISHED["synchronous_offloading"]).tolist() == [True]
    assert found.value.tolist() == [40.0]
    assert found.numbers["r"].tolist() == pytest.approx([-1.0])
    weak = synchronous_offloading(load, gpu * 0.7, STEP_S)
    assert flagged(weak, PUBLISHED["synchronous_offloading"]).tolist() == [False], "range of the GPUs"


def growth(shape: Any, n: int = 500) -> Any:
    return one(shape(np.linspace(0, 1, n)))


STAIRS = 8e9
LEAKS = {
    "linear from 20 to 100": (lambda t: 20 + 80 * t, True),
    "98 to 100 with small noise": (
        lambda t: 98 + 2 * t + 0.05 * np.random.default_rng(1).random(len(t)),
        True,
    ),
    "10 steps": (lambda t: STAIRS * (1 + np.minimum(np.floor(t * 10), 9)), True),
    "5 steps": (lambda t: STAIRS * (1 + np.minimum(np.floor(t * 5), 4)), False),
    "garbage collection": (lambda t: 1 + t + (t * 12) % 1, False),
    "square root": (lambda t: 1 + 10 * np.sqrt(t), False),
    "logarithm": (lambda t: 1 + np.log1p(100 * t), False),
    "quadratic": (lambda t: 1 + 10 * t**2, False),
    "ramp, then flat": (lambda t: 1 + 9 * np.minimum(t * 3, 1), False),
    "constant": (lambda t: 5 + 0 * t, False),
    "falling": (lambda t: 100 - 50 * t, False),
}


@pytest.mark.parametrize("name", LEAKS)
def test_shapes_of_memory(name: str) -> None:
    shape, expected = LEAKS[name]
    assert flagged(leak(growth(shape), STEP_S), PUBLISHED["leak"]).tolist() == [expected]


@pytest.mark.parametrize("spoilt", ["warm-up", "freed at the end"])
def test_a_few_samples_hide_a_leak_unless_they_are_trimmed(spoilt: str) -> None:
    memory = growth(lambda t: 20 + 80 * t)
    if spoilt == "warm-up":
        memory[0, 0, :5] = 0.1
        memory[0, 0, 5:] += 80
    else:
        memory[0, 0, -1] = 1.0
    assert flagged(leak(memory, STEP_S), PUBLISHED["leak"]).tolist() == [False]
    trimmed = leak(memory, STEP_S, trim=TRIM)
    assert flagged(trimmed, PUBLISHED["leak"]).tolist() == [True]
    assert (trimmed.begin[0], trimmed.end[0]) == (10, 490)
    one_end = leak(memory, STEP_S, trim=(TRIM, 0.0) if spoilt == "warm-up" else (0.0, TRIM))
    assert flagged(one_end, PUBLISHED["leak"]).tolist() == [True]


def test_severity_is_growth_in_bytes_an_hour_on_the_worst_node() -> None:
    n, step_s = 361, 30.0
    hours = (n - 1) * step_s / 3600
    t = np.linspace(0, 1, n)
    found = leak(one(2e9 + 1e9 * t, 1e9 + 6e9 * t, np.full(n, 5e9)), step_s)
    assert found.unit.tolist() == [1]
    assert found.value.tolist() == pytest.approx([6 / 7])
    assert found.numbers["bytes_per_hour"].tolist() == pytest.approx([6e9 / hours])
    assert found.numbers["leaking"].tolist() == [2.0]
    assert found.numbers["leaking_bytes_per_hour"].tolist() == pytest.approx([7e9 / hours])


def test_a_node_that_leaks_goes_before_one_that_only_grows_more() -> None:
    n = 500
    t = np.linspace(0, 1, n)
    found = leak(one(50 + 50 * t, np.where(t > 0.5, 100.0, 1.0)), STEP_S)
    assert found.unit.tolist() == [0]


def test_the_collapsed_geometry_is_the_published_one() -> None:
    """8000 series: verdicts of min(0.1, m) and of two points, P and Euclidean distances are the same."""
    rng = np.random.default_rng(8)
    jobs, n = 8000, 60
    t = np.linspace(0, 1, n)
    a, b, c = rng.random((3, jobs, 1))
    memory = 1 + a**3 * 9 * t + 3 * b**4 * np.sin(6 * c * t) + 0.3 * c**2 * rng.random((jobs, n))
    memory = np.clip(memory, 0.01, None)[:, None, :]
    found = leak(memory, STEP_S)
    verdicts = flagged(found, PUBLISHED["leak"])
    literal = [per_job.leak_geometry(np.arange(n, dtype=float), each[0]) for each in memory]
    assert found.value.tolist() == pytest.approx([m for m, _ in literal], abs=1e-12)
    assert verdicts.tolist() == [verdict for _, verdict in literal]
    assert 1000 < verdicts.sum() < 7000
    lines, _ = memory_lines(memory)
    assert np.array_equal(lines.leaking[:, 0], verdicts)


def test_late_start_forgives_a_blip_of_the_script() -> None:
    load = np.zeros((3, 2, 100))
    load[:, :, 60:] = 1.0
    load[0, 0, 0] = 1.0
    load[1, 1, 10:] = 1.0
    load[2] = 0.0
    found = late_start(load, 60.0)
    assert found.value[:2].tolist() == [0.6, 0.1]
    assert found.numbers["wait_s"][:2].tolist() == [3600.0, 600.0]
    assert found.numbers["last_share"][:2].tolist() == [0.6, 0.6]
    assert (found.begin[1], found.end[1], found.unit[1]) == (0, 10, 1)
    assert found.reason[2] == Reason.NEVER_BUSY
