"""What every detector says of real jobs, and why."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from esjobs.issues.detectors import (
    PUBLISHED,
    TRIM,
    Reason,
    collapse,
    flagged,
    idle,
    imbalance,
    inverse_phases,
    io_blocking,
    late_start,
    leak,
    samples,
    unused,
)

Series = NDArray[Any]

EMMY_CORES = 20
"""Of a node; its load is given as the sum over them."""


@pytest.fixture(scope="module")
def emmy(shared_data: Path) -> dict[str, Series]:
    """32 nodes, 24 hours, a sample a minute; 4221 samples of each metric are missing."""
    with gzip.open(shared_data / "job-archive/emmy/1403244/data.json.gz") as stream:
        metrics = json.load(stream)

    def series(name: str) -> Series:
        nodes = [node["data"] for node in metrics[name]["node"]["series"]]
        return np.array(
            [[[np.nan if value is None else value for value in node] for node in nodes]], np.float32
        )

    return {name: series(name) for name in metrics}


@pytest.fixture(scope="module")
def supercloud(shared_data: Path) -> dict[str, Series]:
    """31 hours of one node, a sample in 10 s; without the extern step."""
    with gzip.open(shared_data / "supercloud-timeseries/timeseries.csv.gz", "rt") as stream:
        rows = [row for row in csv.DictReader(stream) if row["Step"] != "-1"]
    return {
        "cpu_load": np.array([[[float(row["CPUUtilization"]) / 100 for row in rows]]]),
        "mem_used_b": np.array([[[float(row["RSS"]) * 1024 for row in rows]]]),
        "read_b_s": np.array([[[float(row["ReadMB"]) * 1e6 / 10 for row in rows]]]),
        "write_b_s": np.array([[[float(row["WriteMB"]) * 1e6 / 10 for row in rows]]]),
    }


def prmon(path: Path) -> dict[str, Series]:
    """Columns by name in small letters."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    columns = np.array(lines[1:], float).T
    return {name.lower(): column for name, column in zip(lines[0], columns, strict=True)}


def rate(columns: dict[str, Series], *names: str) -> Series:
    """What counters grow by in a second; nothing is known at the first sample."""
    counter = np.sum([columns[name] for name in names], axis=0)
    return np.concatenate([[np.nan], np.diff(counter) / np.diff(columns["time"])])[None, None, :]


def test_emmy_is_judged_although_hardly_an_instant_is_complete(emmy: dict[str, Series]) -> None:
    """Of 1441 instants 1341 miss a node or more: each node counts with its own samples."""
    load = samples(emmy["cpu_load"] / EMMY_CORES)
    assert np.isfinite(load.values).all(axis=1).sum() == 100
    assert (load.reason[0], load.n[0], load.n_units[0]) == (Reason.ASSESSED, 1441, 32)


def test_emmy_computes_evenly_all_day(emmy: dict[str, Series]) -> None:
    load = samples(emmy["cpu_load"] / EMMY_CORES)
    assert idle(load, 60.0).value[0] < 1e-4
    assert unused(load).value.tolist() == [0.0]
    assert imbalance(load).value[0] == pytest.approx(0.05, abs=0.01)
    assert not flagged(imbalance(load), PUBLISHED["imbalance"])[0]
    assert late_start(load, 60.0).value.tolist() == [0.0]
    for metric in ("cpu_load", "flops_any", "mem_bw"):
        found = collapse(emmy[metric])
        assert found.value[0] > 0.9, metric
        assert found.numbers["job"][0] > 0.9, metric


def test_emmy_does_not_leak(emmy: dict[str, Series]) -> None:
    """Its memory is full from the start and breathes; no node follows a line, trimmed or not."""
    memory = emmy["mem_used"] * 1e9
    for trim in (0.0, TRIM, (0.1, TRIM)):
        found = leak(memory, 60.0, trim=trim)
        assert (found.reason[0], found.numbers["leaking"][0]) == (Reason.ASSESSED, 0.0)
        assert abs(found.value[0]) < 0.03
        assert not flagged(found, PUBLISHED["leak"])[0]


def test_emmy_has_a_period_without_waiting(emmy: dict[str, Series]) -> None:
    """Memory bandwidth in the place of I/O: the nodes work in steps, but no core waits meanwhile."""
    found = inverse_phases(emmy["cpu_load"] / EMMY_CORES, emmy["mem_bw"] * 1e9, 60.0)
    assert found.reason[0] == Reason.ASSESSED
    assert abs(found.numbers["r"][0]) < 0.1
    assert not flagged(found, PUBLISHED["io_blocking"])[0]


def test_supercloud_leaks_once_its_start_is_trimmed(supercloud: dict[str, Series]) -> None:
    """35 minutes of parallel start, and what they leave, bend the line until 8 % of the job are over."""
    memory = supercloud["mem_used_b"]
    for trim in (0.0, TRIM):
        strict = leak(memory, 10.0, trim=trim)
        assert strict.value[0] == pytest.approx(0.82, abs=0.02)
        assert strict.numbers["ratio"][0] > 1
        assert not flagged(strict, PUBLISHED["leak"])[0]
    trimmed = leak(memory, 10.0, trim=(0.1, TRIM))
    assert flagged(trimmed, PUBLISHED["leak"]).tolist() == [True]
    assert trimmed.numbers["ratio"][0] < 0.7
    # from 13.7 to 62.7 GB in some 30 hours
    assert trimmed.numbers["bytes_per_hour"][0] == pytest.approx(1.8e9, rel=0.1)
    assert trimmed.begin[0] == pytest.approx(1118, abs=1)


def test_supercloud_collapses_from_many_cores_to_one(supercloud: dict[str, Series]) -> None:
    found = collapse(supercloud["cpu_load"])
    assert found.value[0] < 0.05
    assert found.numbers["before"][0] > 20
    assert found.numbers["after"][0] == pytest.approx(1.0, abs=0.05)
    # after 35 minutes
    assert found.begin[0] * 10 / 60 == pytest.approx(35, abs=3)


def test_supercloud_is_neither_idle_nor_periodic(supercloud: dict[str, Series]) -> None:
    load = samples(supercloud["cpu_load"])
    assert idle(load, 10.0).numbers["idle_s"].tolist() == [10.0]
    assert late_start(load, 10.0).value[0] < 0.001
    found = io_blocking(load, {name: supercloud[name] for name in ("read_b_s", "write_b_s")}, 10.0)
    for pair in found.pairs.values():
        assert pair.numbers["io_ratio"][0] < 0.01, "kilobytes a second"
        assert not flagged(pair, PUBLISHED["io_blocking"])[0]


def test_the_grid_job_of_7_hours_is_suspected_without_its_first_sample(shared_data: Path) -> None:
    """PSS doubles along a line; the first sample, before the payload starts, hides it if it is kept."""
    columns = prmon(shared_data / "prmon" / "memory_monitor_output.txt")
    memory = columns["pss"][None, None, :] * 1024
    strict = leak(memory, 61.0)
    assert not flagged(strict, PUBLISHED["leak"])[0]
    assert strict.numbers["residual"][0] > 0.4
    trimmed = leak(memory, 61.0, trim=TRIM)
    assert flagged(trimmed, PUBLISHED["leak"]).tolist() == [True]
    assert trimmed.numbers["bytes_per_hour"][0] == pytest.approx(2.4e8, rel=0.05)


def test_the_grid_job_of_one_hour_has_nothing(shared_data: Path) -> None:
    """Eight cores with an event loop: busy from the first sample to the last, memory flat after the start."""
    columns = prmon(shared_data / "prmon" / "memory_monitor_output-prmon.txt")
    load = rate(columns, "utime", "stime")
    assert idle(load, 61.0).value.tolist() == [0.0]
    assert late_start(load, 61.0).value.tolist() == [0.0]
    assert collapse(load).value[0] > 0.8
    memory = columns["pss"][None, None, :] * 1024
    for trim in (0.0, TRIM):
        assert not flagged(leak(memory, 61.0, trim=trim), PUBLISHED["leak"])[0]
    io = {"read_b_s": rate(columns, "read_bytes"), "write_b_s": rate(columns, "write_bytes")}
    assert not flagged(io_blocking(load, io, 61.0).strongest, PUBLISHED["io_blocking"])[0]
