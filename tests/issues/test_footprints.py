"""Footprints against a plain loop over jobs, with gaps, units that are not there, and several nodes."""

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from esjobs.issues.block_jobs import split_by_metrics
from esjobs.issues.footprints import footprints
from esjobs.records.series.blocks import Block

UNITS = (("n1/0", "n1/1", "n2/0"), ("n1/0",), ("",), ("n1", "n2"))
SCOPES = ("core", "core", "job", "node")
NODES = np.array([2.0, np.nan, 4.0, 2.0])


def made(metric: str, seed: int) -> Block:
    rng = np.random.default_rng(seed)
    # a share is at most 1
    scale = 3.0 if metric == "mem_bw_b_s" else 0.05
    values = np.minimum(rng.gamma(2.0, scale, (4, 3, 50)), 1.0 if scale < 1 else np.inf).astype(np.float32)
    values[rng.random(values.shape) < 0.2] = np.nan
    values[0, 1] = np.nan
    for row, units in enumerate(UNITS):
        values[row, len(units) :] = np.nan
    return Block(
        jobs=pa.table({"source": ["c"] * 4, "job_id": list("abcd"), "end_time": [0] * 4}),
        start_time=np.array(["2026-01-01"] * 4, "datetime64[us]"),
        step_s=np.array([10.0, 20.0, 30.0, 40.0]),
        values={metric: values},
        units={metric: UNITS},
        scopes={metric: SCOPES},
        resampled=np.zeros(4, np.bool_),
    )


def plain(samples: npt.NDArray[np.float64], step: float, nodes: float, *, summed: bool) -> dict[str, float]:
    """The figures of one job, of its units with any sample, the slow way."""
    there = samples[np.isfinite(samples).any(axis=1)]
    known = there[np.isfinite(there)]
    means = [float(np.nanmean(unit)) for unit in there]
    together = [
        float(np.nanmean(column)) * (len(there) if summed else 1)
        for column in there.T
        if np.isfinite(column).any()
    ]
    return {
        "mean": known.mean(),
        "max": known.max(),
        "min": known.min(),
        "sd": known.std(ddof=1),
        "p05": float(np.quantile(known, 0.05)),
        "p95": float(np.quantile(known, 0.95)),
        "imbalance": 1 - float(np.mean(means)) / max(means) if len(means) > 1 else math.nan,
        "n_samples": len(known),
        "n_units": len(there),
        "gap_frac": 1 - len(known) / there.size,
        "job_mean": float(np.mean(together)),
        "job_max": max(together),
        "total": float(np.mean(together)) * step * samples.shape[1] if summed else math.nan,
    }


@pytest.mark.parametrize(("metric", "summed"), [("mem_bw_b_s", True), ("gpu_load", False)])
@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_a_loop(metric: str, summed: bool, seed: int) -> None:
    block = made(metric, seed)
    (made_of,) = footprints(block, NODES)
    rows, figures = made_of
    assert rows.tolist() == [0, 1, 2, 3]
    for row, units in enumerate(UNITS):
        samples = block.values[metric][row, : len(units)].astype(np.float64)
        expected = plain(samples, float(block.step_s[row]), float(NODES[row]), summed=summed)
        for name, value in expected.items():
            assert figures[name][row] == pytest.approx(value, rel=1e-9, nan_ok=True), (name, row)
    # a series of the job as a whole is divided by its nodes, one of cores is summed over those of a node
    job = figures["job_mean"][2]
    assert figures["node_mean"][2] == pytest.approx(job / 4 if summed else job)
    assert figures["node_mean"][1] == pytest.approx(figures["job_mean"][1])


def test_what_no_sensor_can_mean_is_a_gap() -> None:
    block = made("cpu_load", 1)
    block.values["cpu_load"][1, 0] = [-1.0] * 25 + [1e35] * 24 + [0.5]
    (made_of,) = footprints(block, NODES)
    _, figures = made_of
    assert (figures["mean"][1], figures["n_samples"][1], figures["gap_frac"][1]) == (0.5, 1, 0.98)
    assert math.isnan(figures["sd"][1])


def test_jobs_are_put_with_those_that_have_the_same_metrics() -> None:
    block = made("cpu_load", 2)
    other = {"gpu_load": np.full((4, 1, 50), np.nan, np.float32)}
    units = {"gpu_load": ((), ("g",), (), ())}
    both = Block(
        jobs=block.jobs,
        start_time=block.start_time,
        step_s=block.step_s,
        values={**block.values, **other},
        units={**block.units, **units},
        scopes={**block.scopes, "gpu_load": ("", "accelerator", "", "")},
        resampled=block.resampled,
    )
    parts = {tuple(part.jobs.column("job_id").to_pylist()): part for part in split_by_metrics(both)}
    assert set(parts) == {("a", "c", "d"), ("b",)}
    assert set(parts["a", "c", "d"].values) == {"cpu_load"}
    assert parts["b",].values["cpu_load"].shape == (1, 1, 50)
    assert np.array_equal(
        parts["a", "c", "d"].values["cpu_load"], both.values["cpu_load"][[0, 2, 3]], equal_nan=True
    )
