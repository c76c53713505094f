"""Jobs whose cores are monitored by ``cpu_user``, while ``cpu_load`` is the load average of the node."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from tests.records.ingest.test_clustercockpit import META, archive, metric

CORES, SAMPLES = 8, 150
RNG = np.random.default_rng(20261124)
JOB = {
    **META,
    "duration": 60 * SAMPLES,
    "partition": "main",
    "user": "u1",
    "jobState": "completed",
    "numHwthreads": CORES,
    "exclusive": 1,
}


def busy(share: float) -> list[float]:
    """Per cent of user time of a core, around a share."""
    return [float(each) for each in 100 * share + RNG.uniform(-2, 2, SAMPLES)]


def idle() -> list[float]:
    return [0.0] * SAMPLES


def detected(
    session: Session, folder: Path, users: Sequence[Sequence[float]], meta: dict[str, Any] = JOB
) -> set[str]:
    """Names of the issues of a job with these threads; the load average of its node hides them."""
    mean = sum(map(np.mean, users)) / 100
    data = {
        "cpu_load": metric([mean] * SAMPLES),
        "cpu_user": metric(*users, scope="hwthread", ids=[str(number) for number in range(len(users))]),
    }
    session.ingest("clustercockpit", archive(folder / "7", data, meta))
    session.issues.detect()
    return {row["detector"] for row in session.tables.issues().rows.to_pylist()}


def test_half_of_the_cores_idle(session: Session, tmp_path: Path) -> None:
    users = [busy(0.95) for _ in range(CORES // 2)] + [idle() for _ in range(CORES // 2)]
    assert "cpu-idle" in detected(session, tmp_path, users)


def test_all_cores_busy(session: Session, tmp_path: Path) -> None:
    found = detected(session, tmp_path, [busy(0.95) for _ in range(CORES)])
    assert not found & {"cpu-idle", "cpu-unused", "cpu-imbalance"}


def test_imbalance(session: Session, tmp_path: Path) -> None:
    users = [busy(0.95) for _ in range(CORES // 2)] + [busy(0.3) for _ in range(CORES // 2)]
    assert "cpu-imbalance" in detected(session, tmp_path, users)


def test_a_busy_thread_of_two_is_a_busy_core(session: Session, tmp_path: Path) -> None:
    users = [busy(0.95) for _ in range(CORES)] + [idle() for _ in range(CORES)]
    found = detected(session, tmp_path, users, {**JOB, "numHwthreads": 2 * CORES, "smt": 1})
    assert not found & {"cpu-idle", "cpu-unused", "cpu-imbalance"}


def test_idle_cores_of_two_threads(session: Session, tmp_path: Path) -> None:
    half = [busy(0.95) for _ in range(CORES // 2)] + [idle() for _ in range(CORES // 2)]
    found = detected(session, tmp_path, [*half, *half], {**JOB, "numHwthreads": 2 * CORES, "smt": 1})
    assert "cpu-idle" in found


def test_the_footprint_is_that_of_the_cores(session: Session, tmp_path: Path) -> None:
    users = [busy(0.95) for _ in range(CORES // 2)] + [idle() for _ in range(CORES // 2)]
    detected(session, tmp_path, users)
    rows = session.tables.footprints().rows.to_pylist()
    (load,) = [row for row in rows if row["metric"] == "cpu_load"]
    assert (load["scope"], load["n_units"]) == ("thread", CORES)
    assert load["job_mean"] == pytest.approx(0.95 * CORES / 2, abs=0.05)
    assert load["imbalance"] == pytest.approx(0.5, abs=0.03)
