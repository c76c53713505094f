"""All detectors on batches of jobs, beside a loop over jobs with NumPy and SciPy, and beside pandas.

    python -m benchmarks.scores --part detectors --out benchmarks/results/scores_detectors.md

Jobs of 16 cores with 480 samples, three kinds of I/O and memory; a third of them with periodic phases. All
ways get the same arrays, in memory, and their answers are compared. They take turns, so that other programs
slow all of them alike: ratios of processor seconds are what counts.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import fft

from benchmarks.machine import describe, load, publish
from esjobs.issues.detectors import (
    PUBLISHED,
    collapse,
    congestion,
    flagged,
    idle,
    imbalance,
    io_blocking,
    late_start,
    leak,
    samples,
    unused,
)
from tests.issues.detectors import per_job
from tests.issues.detectors.made_series import STEP_S, periodic, telegraph, white

CORES, SAMPLES = 16, 480
KINDS = ("read_b_s", "write_b_s", "metadata_ops_s")
Answers = dict[str, Any]


def inputs(jobs: int, seed: int) -> Mapping[str, Any]:
    """Series of jobs, float32: loads per core, I/O and memory of the node."""
    rng = np.random.default_rng(seed)
    third = jobs // 3
    cores, write = periodic(rng, third, SAMPLES, jitter=0.02, cores=CORES)
    other_load, read = telegraph(rng, jobs - third, SAMPLES)
    noisy = np.clip(other_load + 0.05 * rng.standard_normal((jobs - third, CORES, SAMPLES)), 0, 1)
    _, metadata = white(rng, jobs, SAMPLES)
    return {
        "load": np.concatenate([cores, noisy]).astype(np.float32),
        "read_b_s": np.concatenate([write * 0.3, read]),
        "write_b_s": np.concatenate([write, read * 0.1]),
        "metadata_ops_s": metadata * np.float32(1e-6),
        "memory": np.cumsum(rng.random((jobs, 1, SAMPLES)), axis=2).astype(np.float32) * np.float32(1e8),
    }


def batched(given: Mapping[str, Any]) -> Answers:
    """The detectors of esjobs, all jobs at once."""
    cores = samples(given["load"])
    phases = io_blocking(cores, {kind: given[kind] for kind in KINDS}, STEP_S).strongest
    leaking = leak(given["memory"], STEP_S)
    return {
        "idle": idle(cores, STEP_S).value,
        "unused": unused(cores).value,
        "imbalance": imbalance(cores).value,
        "congestion": congestion(given["metadata_ops_s"]).value,
        "periods": np.where(flagged(phases, PUBLISHED["io_blocking"]), phases.value, 0),
        "leak": flagged(leaking, PUBLISHED["leak"]),
        "collapse": collapse(cores.mean[:, None, :]).value,
        "late": late_start(cores, STEP_S).value,
    }


Periods = Callable[[Any, Mapping[str, Any]], int]


def looped(given: Mapping[str, Any]) -> Answers:
    """One job after the other, pair after pair of load and I/O, with the usual functions."""
    return _looped(given, _periods_by_pair)


def sharing_loop(given: Mapping[str, Any]) -> Answers:
    """The same, for who notices that all pairs of a job have the same load."""
    return _looped(given, _periods)


def _looped(given: Mapping[str, Any], periods: Periods) -> Answers:
    rows = [
        _one(
            given["load"][job],
            {kind: given[kind][job] for kind in KINDS},
            given["memory"][job, 0].astype(np.float64),
            periods,
        )
        for job in range(len(given["load"]))
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _one(cores: Any, io: Mapping[str, Any], memory: Any, periods: Periods) -> Answers:
    n = cores.shape[1]
    idle_samples = cores < np.float32(0.01)
    idle_count = idle_samples.sum(axis=1)
    spread = np.std(cores, axis=0, ddof=1)
    cpu = cores.mean(axis=0, dtype=np.float64)
    first_busy = [np.flatnonzero(~unit)[:2] for unit in idle_samples]
    begins = [int(at[0] if at[1] == at[0] + 1 else at[1]) for at in first_busy if len(at) > 1]
    time_axis = np.linspace(0.0, 1.0, n)
    y = memory / memory.max()
    m, b = np.polyfit(time_axis, y, 1)
    residual = np.abs(y - (m * time_axis + b)).max()
    return {
        "idle": idle_count.sum() / cores.size,
        "unused": (idle_count >= n - 1).mean(),
        "imbalance": spread.mean(),
        "congestion": io["metadata_ops_s"].sum(axis=0).max(),
        "periods": periods(cpu, io),
        "leak": 0.01 <= m <= 1 and residual < min(0.1, m),
        "collapse": per_job.collapse_of_complete(cpu[None, :]),
        "late": min(begins) / n if begins else np.nan,
    }


def _periods_by_pair(cpu: Any, io: Mapping[str, Any]) -> int:
    """Of the kind of I/O with most, each as the rule says it."""
    most = 0
    for kind, rates in io.items():
        found = per_job.spectra(cpu, rates.sum(axis=0, dtype=np.float64), STEP_S)
        if per_job.is_inverse(found, least=1.0 if kind == "metadata_ops_s" else 1e6):
            most = max(most, round(found["periods"]))
    return most


def _periods(cpu: Any, io: Mapping[str, Any]) -> int:
    """Of the kind of I/O with most; the spectrum of the load is made once."""
    if cpu.mean() < 0.1 or np.ptp(cpu) < 0.7 - 2e-7:
        return 0
    c = np.round(cpu, 1)
    a = np.abs(fft.rfft(c - c.mean()))[1:]
    most = 0
    for kind, rates in io.items():
        total = rates.sum(axis=0, dtype=np.float64)
        mean = total.mean()
        y = np.where(total < mean, 0.0, total)
        spectrum = np.abs(fft.rfft(y - y.mean()))[1:]
        summed = a / a.max() + spectrum / spectrum.max()
        k = int(np.argmax(np.round(summed, 9))) + 1
        dominant = summed[k - 1] >= 1.8 and np.median(summed) <= 0.1
        r = np.corrcoef(c, y)[0, 1]
        if dominant and r <= -0.4 and k >= 10 and mean >= (1.0 if kind == "metadata_ops_s" else 1e6):
            most = max(most, k)
    return most


def simple(given: Mapping[str, Any]) -> Answers:
    """What pandas does below, by the detectors of esjobs."""
    cores = samples(given["load"])
    return {
        "idle": idle(cores, STEP_S).value,
        "unused": unused(cores).value,
        "imbalance": imbalance(cores).value,
        "congestion": congestion(given["metadata_ops_s"]).value,
    }


def by_pandas(given: Mapping[str, Any]) -> Answers:
    """Idle and unused units, imbalance and congestion, on a frame with a column per core."""
    jobs, cores, n = given["load"].shape
    job = np.repeat(np.arange(jobs), n)
    frame = pd.DataFrame(given["load"].transpose(0, 2, 1).reshape(-1, cores))
    idle_count = (frame < np.float32(0.01)).groupby(job).sum()
    operations = pd.Series(given["metadata_ops_s"].sum(axis=1).ravel())
    return {
        "idle": idle_count.sum(axis=1).to_numpy() / (cores * n),
        "unused": (idle_count >= n - 1).mean(axis=1).to_numpy(),
        "imbalance": frame.std(axis=1, ddof=1).groupby(job).mean().to_numpy(),
        "congestion": operations.groupby(job).max().to_numpy(),
    }


WAYS: dict[str, Callable[[Mapping[str, Any]], Answers]] = {
    "all detectors, batched": batched,
    "all detectors, loop over jobs": looped,
    "the same loop, load's spectrum shared": sharing_loop,
    "idle, unused, imbalance, congestion, batched": simple,
    "idle, unused, imbalance, congestion, pandas": by_pandas,
}


def check(given: Mapping[str, Any]) -> int:
    """Compare the answers of all ways; how many jobs have periodic phases."""
    ours = batched(given)
    for way in (looped, sharing_loop, by_pandas):
        for name, theirs in way(given).items():
            assert np.allclose(ours[name], theirs, rtol=1e-4, atol=1e-6, equal_nan=True), (way, name)
    return int((ours["periods"] > 0).sum())


def measure(given: Mapping[str, Any], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each way, in turns; the first turn warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for number in range(rounds + 1):
        for name, way in WAYS.items():
            begun = time.process_time()
            way(given)
            if number:
                seconds[name].append(time.process_time() - begun)
    return seconds


TEXT = """# Detectors, batched, beside a loop over jobs and beside pandas

`python -m benchmarks.scores --part detectors --jobs {jobs} --rounds {rounds}`. {machine}; load {load:.1f}
before.

{jobs} jobs of {cores} cores x {samples} samples, float32, with three kinds of I/O and memory of the node;
{periodic} have periodic phases. Collapse is of the load of the node. The answers of all ways are compared
before. Ways take turns; the least and the median of {rounds} turns, in processor seconds.

| way | least s | median s | jobs/s (least) |
|---|---|---|---|
{rows}

Loop over jobs / batched: **{ratio:.1f}** (least), {ratio_median:.1f} (median); loop with the spectrum of the
load shared / batched: {shared:.1f} (least), {shared_median:.1f} (median). pandas / batched: {pandas:.1f}
(least), {pandas_median:.1f} (median).
"""


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scores_detectors.md"))
    options = parser.parse_args()
    machine, before = describe("scipy", "pandas"), load()
    given = inputs(options.jobs, seed=7)
    with_periods = check(given)
    seconds = measure(given, options.rounds)
    least = {name: min(each) for name, each in seconds.items()}
    median = {name: float(np.median(each)) for name, each in seconds.items()}
    ours, loop, sharing, some, pandas = WAYS
    rows = [
        f"| {name} | {least[name]:.3f} | {median[name]:.3f} | {options.jobs / least[name]:,.0f} |"
        for name in WAYS
    ]
    text = TEXT.format(
        jobs=options.jobs,
        rounds=options.rounds,
        machine=", ".join(
            f"{name} {machine[name]}" for name in ("cpu", "python", "numpy", "scipy", "pandas")
        ),
        load=before[0],
        cores=CORES,
        samples=SAMPLES,
        periodic=with_periods,
        rows="\n".join(rows),
        ratio=least[loop] / least[ours],
        ratio_median=median[loop] / median[ours],
        shared=least[sharing] / least[ours],
        shared_median=median[sharing] / median[ours],
        pandas=least[pandas] / least[some],
        pandas_median=median[pandas] / median[some],
    )
    publish(options.out, text, {"machine": machine, "load": before, "seconds": seconds})


if __name__ == "__main__":
    main()
