"""Planted jobs that keep others off a node or serve the kernel, each beside a sound one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esjobs
from esjobs import Settings
from tests.issues.made_jobs import N, busy, put_records, put_series, record, series

NODE = """
[[cluster]]
name = "emmy"
[[cluster.subcluster]]
name = "a"
cores = 128
memory_b = 512e9
gpus = 4
gpu_memory_b = 40e9
"""
RULES = {
    *("cores-beside-gpus", "memory-beside-gpus", "gpu-too-large", "gpus-spread", "cores-spread"),
    "gpu-node-without-gpus",
    *("kernel-time", "kernel-time-recorded", "io-wait", "interrupts"),
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[esjobs.Session]:
    described = tmp_path / "clusters.toml"
    described.write_text(NODE)
    with esjobs.open("duckdb::memory:", settings=Settings(clusters={"files": [described]})) as opened:
        yield opened


def found(session: esjobs.Session) -> dict[str, dict[str, dict[str, Any]]]:
    """Issues of these rules by job and rule."""
    session.issues.detect()
    issues: dict[str, dict[str, dict[str, Any]]] = {}
    for row in session.tables.issues().rows.to_pylist():
        if row["detector"] in RULES:
            issues.setdefault(row["job_id"], {})[row["detector"]] = row
    return issues


def test_records_of_allocations(session: esjobs.Session, tmp_path: Path) -> None:
    put_records(
        session,
        tmp_path,
        [
            record("all cores, a GPU", cores=128, gpus=1),
            record("fair share", cores=32, gpus=1),
            record("all cores, all GPUs", cores=128, gpus=4),
            record("all cores, soon over", cores=128, gpus=1, wall_s=600),
            record("all memory, a GPU", cores=32, gpus=1, requested_memory_b=512e9, max_rss_b=50e9),
            record("used memory", cores=32, gpus=1, requested_memory_b=512e9, max_rss_b=500e9),
            record("a GPU a node", cores=32, gpus=4, nodes=4),
            record("complete nodes", cores=256, gpus=8, nodes=2),
            record("few cores a node", cores=64, nodes=4),
            record("for its memory", cores=64, nodes=4, max_rss_b=1.6e12),
            record("one too many", cores=250, nodes=2),
            record("no description", cores=128, gpus=1, cluster="other"),
            record("no GPU", cores=96, gpus=0),
            record("no GPU, few cores", cores=32, gpus=0),
            record("GPUs unknown", cores=96),
        ],
    )
    issues = found(session)
    assert {job: set(rules) for job, rules in issues.items()} == {
        "all cores, a GPU": {"cores-beside-gpus"},
        "all memory, a GPU": {"memory-beside-gpus"},
        "a GPU a node": {"gpus-spread"},
        "few cores a node": {"cores-spread"},
        "no GPU": {"gpu-node-without-gpus"},
    }
    # three of four GPUs for four hours; all its node-hours are in the wrong partition
    without = issues["no GPU"]["gpu-node-without-gpus"]
    assert (without["value"], without["idle_gpu_h"], without["lost_node_h"]) == (0.75, 12.0, 4.0)
    cores = issues["all cores, a GPU"]["cores-beside-gpus"]
    # three GPUs without cores for four hours, as many as there were beside the one
    assert (cores["value"], cores["idle_gpu_h"], cores["severity"]) == (4.0, 12.0, "minor")
    assert issues["all memory, a GPU"]["memory-beside-gpus"]["idle_gpu_h"] == 12.0
    assert issues["a GPU a node"]["gpus-spread"]["value"] == 0.25
    assert issues["few cores a node"]["cores-spread"]["value"] == 0.125


def test_time_in_the_kernel_is_not_efficient(session: esjobs.Session, tmp_path: Path) -> None:
    used = 4 * 14400.0
    put_records(
        session,
        tmp_path,
        [
            record("recorded", cpu_s=used, system_s=0.61 * used),
            record("usual", cpu_s=used, system_s=0.05 * used),
            record("unknown", cpu_s=used),
            *(record(name, cpu_s=used, system_s=0.61 * used) for name in ("measured", "quiet")),
        ],
    )
    of_node = ("cpu_system", "cpu_iowait", "cpu_irq")
    put_series(
        session,
        {
            "measured": [series(name, "node", "n1", np.full(N, 0.61)) for name in of_node],
            "quiet": [series(name, "node", "n1", np.full(N, 0.01)) for name in of_node],
        },
    )
    issues = found(session)
    assert {job: set(rules) for job, rules in issues.items()} == {
        "recorded": {"kernel-time-recorded"},
        "measured": {"kernel-time", "io-wait", "interrupts"},
    }
    recorded, measured = issues["recorded"]["kernel-time-recorded"], issues["measured"]["kernel-time"]
    assert (recorded["severity"], recorded["lost_node_h"]) == ("major", pytest.approx(0.61 * 4))
    assert (measured["severity"], measured["lost_node_h"]) == ("major", pytest.approx(0.61 * 4))
    assert measured["value"] == pytest.approx(0.61)


def test_a_gpu_that_is_larger_than_its_job(session: esjobs.Session, tmp_path: Path) -> None:
    def gpu(load: float, memory_b: float) -> list[Any]:
        return [
            series("gpu_load", "accelerator", "n1/0", load * busy()),
            series("gpu_mem_used_b", "accelerator", "n1/0", np.full(N, memory_b)),
        ]

    jobs = {
        "small": gpu(0.1, 2e9),
        "busy": gpu(0.9, 2e9),
        "full": gpu(0.1, 30e9),
        "never busy": gpu(0.0, 2e9),
    }
    put_records(session, tmp_path, [record(name, gpus=1) for name in jobs])
    put_series(session, jobs)
    assert {job: set(rules) for job, rules in found(session).items()} == {"small": {"gpu-too-large"}}
