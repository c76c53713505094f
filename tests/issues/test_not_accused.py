"""Healthy jobs whose records or series are short of something: nothing of that is held against them."""

from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esjobs
from esjobs.records.series.rows import Series
from tests.issues.made_jobs import START, STEP_S, N, busy, cores, put_records, put_series, record, series


def accused(session: esjobs.Session) -> set[str]:
    """Rules that find something to be mended; tags are none."""
    session.issues.detect()
    rows = session.tables.issues().rows.to_pylist()
    return {row["detector"] for row in rows if row["detector"] not in ("gpu-bound", "unrestrained")}


def found(session: esjobs.Session, folder: Path, listed: list[Series], **fields: Any) -> set[str]:
    put_records(session, folder, [record("1", **fields)])
    put_series(session, {"1": listed})
    return accused(session)


@pytest.mark.parametrize("n_seen", [1, 2, 3])
def test_a_node_that_nothing_measured(session: esjobs.Session, tmp_path: Path, n_seen: int) -> None:
    seen = [*chain(*(cores([busy()] * 4, f"n{number}") for number in range(n_seen)))]
    assert found(session, tmp_path, seen, nodes=4, cores=16, cpu_s=0.95 * 16 * 14400) == set()


def test_half_of_the_cores_of_one_node_of_four(session: esjobs.Session, tmp_path: Path) -> None:
    seen = cores([busy(), busy(), busy(0), busy(0)])
    assert found(session, tmp_path, seen, nodes=4, cores=16) == set()
    assert (
        "less than half of it was measured" in session.tables.issue_days().rows.to_pylist()[0]["not_eligible"]
    )


def test_a_node_that_was_measured_and_idle_still_counts(session: esjobs.Session, tmp_path: Path) -> None:
    of_nodes = [cores([load] * 4, f"n{number}") for number, load in enumerate([busy(), busy(0)])]
    assert "low-load" in found(session, tmp_path, [*chain(*of_nodes)], nodes=2, cores=8)


@pytest.mark.parametrize(("before", "after"), [(240, 240), (60, 0), (0, 60), (10, 10), (0, 400)])
def test_samples_of_before_and_after_the_job(
    session: esjobs.Session, tmp_path: Path, before: int, after: int
) -> None:
    load = np.concatenate([np.zeros(before), busy(), np.zeros(after)])
    listed = cores([load] * 4, start=START - timedelta(seconds=before * STEP_S))
    assert found(session, tmp_path, listed) == set()
    rows = session.tables.footprints().rows.to_pylist()
    # the last sample is of the instant at which the job ends, where there is one
    assert [row["n_samples"] // 4 for row in rows] == [N + (after > 0)]


def test_series_of_another_time_are_not_cut(session: esjobs.Session, tmp_path: Path) -> None:
    """A record whose clock was in another zone: what overlaps a little is no part of the job's time."""
    listed = cores([busy()] * 4, start=START - timedelta(hours=3))
    assert found(session, tmp_path, listed) == set()
    assert [row["n_samples"] // 4 for row in session.tables.footprints().rows.to_pylist()] == [N]


@pytest.fixture
def threaded(tmp_path: Path) -> Any:
    """A cluster whose nodes have four cores of two hardware threads each."""
    path = tmp_path / "clusters.toml"
    path.write_text(
        '[[cluster]]\nname = "emmy"\n[[cluster.subcluster]]\nname = "a"\ncpu_model = "X"\nsockets = 1\n'
        "cores = 4\nsmt = true\nmemory_b = 64e9\n"
    )
    given = {"store": f"duckdb:{tmp_path / 's.duckdb'}", "clusters": {"files": [str(path)]}}
    with esjobs.open(settings=esjobs.Settings.model_validate(given)) as session:
        yield session


@pytest.mark.parametrize(
    ("facts", "load", "hurt"),
    [("smt = false", 8, True), ("smt = true", 8, False), ("smt = true", 12, True), ("gpus = 0", 8, False)],
)
def test_threads_on_a_core_by_what_the_description_says(
    tmp_path: Path, facts: str, load: int, hurt: bool
) -> None:
    path = tmp_path / "clusters.toml"
    path.write_text(f'[[cluster]]\nname = "emmy"\n[[cluster.subcluster]]\nname = "a"\ncores = 4\n{facts}\n')
    given = {"store": f"duckdb:{tmp_path / 's.duckdb'}", "clusters": {"files": [str(path)]}}
    with esjobs.open(settings=esjobs.Settings.model_validate(given)) as session:
        listed = [series("cpu_load", "node", "n0", load * busy())]
        rules = found(session, tmp_path, listed, cluster="emmy", cores=4, cpu_s=4 * 14400)
    assert ("high-load" in rules) == hurt


@pytest.mark.parametrize(("used_b", "told"), [(62e9, True), (160e9, False)])
def test_more_memory_than_a_node_has_is_a_wrong_description(
    threaded: esjobs.Session, tmp_path: Path, used_b: float, told: bool
) -> None:
    listed = [series("mem_used_b", "node", "n0", np.full(N, used_b))]
    rules = found(threaded, tmp_path, listed, cluster="emmy", subcluster="a")
    assert ("memory-near-node" in rules) == told


def test_a_thread_for_each_core(threaded: esjobs.Session, tmp_path: Path) -> None:
    loads = [busy()] * 4 + [busy(0)] * 4
    assert found(threaded, tmp_path, cores(loads), cores=8, cpu_s=0.95 * 4 * 14400) == set()


def test_cores_that_are_idle_with_their_threads(threaded: esjobs.Session, tmp_path: Path) -> None:
    loads = [busy()] * 2 + [busy(0)] * 6
    assert {"cpu-idle", "cpu-unused", "low-load"} <= found(threaded, tmp_path, cores(loads), cores=8)
    values = {row["detector"]: row["value"] for row in threaded.tables.issues().rows.to_pylist()}
    assert (values["cpu-idle"], values["cpu-unused"]) == (0.5, 0.5)


def test_one_core_beside_a_busy_gpu(session: esjobs.Session, tmp_path: Path) -> None:
    loads = [*cores([busy(), *[busy(0)] * 3]), series("gpu_load", "accelerator", "n1/0", busy(0.9))]
    assert found(session, tmp_path, loads, gpus=1, cpu_s=0.95 * 14400) == set()


@pytest.mark.parametrize("pause", [15, 30, 45])
def test_a_short_pause_at_the_end(session: esjobs.Session, tmp_path: Path, pause: int) -> None:
    load = np.where(np.arange(N) < N - pause, 0.95, 0.0)
    assert found(session, tmp_path, cores([load] * 4)) == set()


def test_the_end_of_a_large_job_that_hung(session: esjobs.Session, tmp_path: Path) -> None:
    load = np.where(np.arange(N) < N - 40, 0.95, 0.0)
    listed = [*chain(*(cores([load] * 4, f"n{number}") for number in range(100)))]
    assert "collapse" in found(session, tmp_path, listed, nodes=100, cores=400)


def test_what_others_had_swapped_before(session: esjobs.Session, tmp_path: Path) -> None:
    listed = [*cores([busy()] * 4), series("swap_used_b", "node", "n1", np.full(N, 2e9))]
    assert found(session, tmp_path, listed) == set()


@pytest.mark.parametrize("state", ["cancelled", "node_fail", "preempted", "boot_fail"])
def test_jobs_that_others_ended(session: esjobs.Session, tmp_path: Path, state: str) -> None:
    fields = {"state": state, "wall_s": 20, "requested_wall_s": 172800}
    put_records(session, tmp_path, [record("1", **fields)])
    assert accused(session) == set()


def test_a_share_of_more_than_1_is_a_fault_of_the_sensor(session: esjobs.Session, tmp_path: Path) -> None:
    kernel = np.where(np.arange(N) % 100 == 0, 40.0, 0.02)
    listed = [
        *cores([busy()] * 4),
        *(series("cpu_system", "core", f"n1/{core}", kernel) for core in range(4)),
    ]
    assert found(session, tmp_path, listed) == set()
