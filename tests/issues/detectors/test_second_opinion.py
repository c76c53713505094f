"""Batched answers against the rules written down once more, job by job."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from esjobs.issues.detectors import (
    PUBLISHED,
    Measured,
    Reason,
    collapse,
    congestion,
    flagged,
    idle,
    imbalance,
    io_blocking,
    late_start,
    leak,
    samples,
    synchronous_offloading,
    unused,
)
from tests.issues.detectors import per_job
from tests.issues.detectors.made_series import STEP_S, periodic, telegraph

JOBS = 60
SHAPES = [(1, 3), (1, 40), (2, 7), (4, 33), (16, 120), (5, 481)]
WORDS = {Reason.NO_DATA: "no data", Reason.TOO_FEW_SAMPLES: "few", Reason.GAPS: "gaps"}


def loads(rng: np.random.Generator, units: int, n: int, *, gaps: bool) -> NDArray[Any]:
    """Loads of many kinds: busy, idle, half and half, blips, merged threads; with gaps of several kinds."""
    values = rng.random((JOBS, units, n)).astype(np.float32)
    values[rng.random(values.shape) < rng.random((JOBS, units, 1))] = 0.0
    values[rng.random((JOBS, units)) < 0.3] = 0.0
    values[rng.random(values.shape) < 0.02] = 1.5
    values[rng.random(values.shape) < 0.05] = 0.01
    blip = rng.random((JOBS, units)) < 0.2
    values[blip] = 0.0
    values[blip, rng.integers(n)] = 0.7
    if gaps:
        share = rng.choice([0.0, 0.01, 0.2, 0.6], (JOBS, units, 1))
        values[rng.random(values.shape) < share] = np.nan
        values[rng.random((JOBS, units)) < 0.1] = np.nan
        values[rng.random(values.shape) < 0.01] = -1.0
        values[rng.random(values.shape) < 0.01] = np.inf
        values[: JOBS // 6] = np.where(rng.random((JOBS // 6, 1, n)) < 0.3, np.nan, values[: JOBS // 6])
        values[JOBS // 6] = np.nan
    return values


def check_reasons(values: NDArray[Any], found: Measured) -> NDArray[np.int64]:
    """Jobs that were assessed, after those that were not have the reason they should have."""
    for job, series in enumerate(values.astype(np.float64)):
        assert WORDS.get(Reason(found.reason[job]), "") == per_job.unassessable(series), job
    return np.flatnonzero(found.reason == Reason.ASSESSED)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("units", "n"), SHAPES)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_loads(units: int, n: int, device: Any, *, gaps: bool) -> None:
    values = loads(np.random.default_rng(units * n), units, n, gaps=gaps)
    prepared = samples(values)
    of_idle, of_unused = idle(prepared, STEP_S, device), unused(prepared, device)
    of_imbalance, of_start = imbalance(prepared, device), late_start(prepared, STEP_S, device)
    assessed = check_reasons(values, of_idle)
    assert len(assessed) > JOBS / 4
    for job in assessed:
        # a stored 0.01 is the float32 next to it: as float64 it would be below 0.01
        series = np.where(values[job] == np.float32(0.01), 0.01, values[job].astype(np.float64))
        expected = per_job.idle(series, STEP_S, device)
        assert of_idle.value[job] == pytest.approx(expected["value"])
        assert of_idle.numbers["idle_s"][job] == expected["idle_s"]
        counts = per_job.unused(series, device)
        assert of_unused.value[job] == pytest.approx(counts["value"])
        assert (of_unused.numbers["unused"][job], of_unused.numbers["used"][job]) == (
            counts["unused"],
            counts["used"],
        )
        spread = per_job.imbalance(series, device)
        assert of_imbalance.value[job] == pytest.approx(spread["value"], rel=1e-5, abs=1e-6)
        assert of_imbalance.numbers["used_only"][job] == pytest.approx(
            spread["used_only"], rel=1e-5, abs=1e-6
        )
        start = per_job.late_start(series, device)
        if start is None:
            assert of_start.reason[job] == Reason.NEVER_BUSY
        else:
            assert of_start.value[job] == pytest.approx(start)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("units", "n"), SHAPES)
def test_rates(units: int, n: int, *, gaps: bool) -> None:
    values = loads(np.random.default_rng(units + n), units, n, gaps=gaps) * 100
    of_congestion, of_collapse = congestion(values), collapse(values)
    for job in check_reasons(values, of_congestion):
        assert of_congestion.value[job] == pytest.approx(per_job.congestion(values[job].astype(np.float64)))
    for job, series in enumerate(values.astype(np.float64)):
        expected = per_job.collapse(series)
        if of_collapse.reason[job]:
            assert not np.isfinite(expected)
        else:
            assert of_collapse.value[job] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("nodes", "n"), SHAPES)
def test_memory(nodes: int, n: int, *, gaps: bool) -> None:
    rng = np.random.default_rng(nodes * 7 + n)
    slope, bend = rng.random((JOBS, nodes, 1)) ** 3, rng.random((JOBS, nodes, 1)) ** 4
    time = np.linspace(0, 1, n)
    memory = 1e9 * (1 + 5 * slope * time + 3 * bend * np.sqrt(time))
    memory *= 1 + 0.05 * rng.random((JOBS, 1, 1)) * rng.random(memory.shape)
    if gaps:
        memory[rng.random(memory.shape) < rng.choice([0, 0.05, 0.7], (JOBS, nodes, 1))] = np.nan
    found = leak(memory, STEP_S)
    verdicts = flagged(found, PUBLISHED["leak"])
    for job in range(JOBS):
        m, suspected = per_job.leak(memory[job])
        if found.reason[job]:
            assert m == -np.inf
        else:
            assert found.value[job] == pytest.approx(m, rel=1e-9, abs=1e-12)
            assert verdicts[job] == suspected
    assert verdicts.any()


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("n", [8, 121, 480])
def test_phases(n: int, *, gaps: bool) -> None:
    rng = np.random.default_rng(n)
    jobs, kinds = 40, ("read_b_s", "write_b_s", "metadata_ops_s")
    load, write = periodic(rng, jobs, n, jitter=0.02, cores=4)
    _, read = telegraph(rng, jobs, n)
    series = dict(zip(kinds, (read * 0.1, write, write * 1e-7), strict=True))
    if gaps:
        load[rng.random(load.shape) < rng.choice([0, 0.005, 0.3], (jobs, 1, 1))] = np.nan
        series["write_b_s"][rng.random(write.shape) < rng.choice([0, 0.02, 0.08], (jobs, 1, 1))] = np.nan
    found = io_blocking(load, series, STEP_S)
    best = np.zeros(jobs)
    for kind in kinds:
        least = 1.0 if kind.endswith("ops_s") else 1e6
        verdicts = flagged(found.pairs[kind], PUBLISHED["io_blocking"])
        for job in range(jobs):
            expected = per_job.phases(
                load[job].astype(np.float64), series[kind][job].astype(np.float64), STEP_S
            )
            check_phases(found.pairs[kind], job, expected)
            assert verdicts[job] == per_job.is_inverse(expected, least=least)
            if verdicts[job]:
                best[job] = max(best[job], expected["periods"])
    flags = flagged(found.strongest, PUBLISHED["io_blocking"])
    assert np.array_equal(np.where(flags, found.strongest.value, 0.0), best)
    if n > 100:
        assert flags.any()


def check_phases(found: Measured, job: int, expected: dict[str, Any]) -> None:
    if expected["reason"]:
        assert found.reason[job] == {"gaps": Reason.GAPS, "flat": Reason.FLAT}[expected["reason"]]
        return
    for name in ("peak", "median", "r", "periods", "load_mean", "load_range", "other_mean"):
        assert found.numbers[name][job] == pytest.approx(expected[name], rel=5e-6, abs=5e-6), name
    assert found.value[job] == round(expected["periods"])


@pytest.mark.parametrize("n", [60, 480])
def test_offloading(n: int) -> None:
    rng = np.random.default_rng(n)
    jobs = 40
    load, io = periodic(rng, jobs, n, cores=8)
    gpu = np.repeat((io / io.max()).astype(np.float32), 2, axis=1)
    gpu[: jobs // 2] *= rng.random((jobs // 2, 1, 1), dtype=np.float32)
    duration = np.full(jobs, n * STEP_S * 1.1)
    found = synchronous_offloading(load, gpu, STEP_S, duration_s=duration)
    verdicts = flagged(found, PUBLISHED["synchronous_offloading"])
    for job in range(jobs):
        expected = per_job.phases(
            load[job].astype(np.float64),
            gpu[job].astype(np.float64),
            STEP_S,
            gpu=True,
            duration=duration[job],
        )
        check_phases(found, job, expected)
        assert verdicts[job] == per_job.is_inverse(expected, least=None)
    if n == 480:
        assert 0 < verdicts.sum() < jobs
