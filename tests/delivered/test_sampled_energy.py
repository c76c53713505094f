"""Energy by power series: jobs whose joules are known by construction, beside estimates."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.delivered.energy import ASSUMED_W
from esjobs.render.text.job import record_lines
from tests.conftest import memory_session, with_settings
from tests.delivered.test_pledges import written

ISO = "%Y-%m-%dT%H:%M:%SZ"
HOUR = timedelta(hours=1)
CLUSTER = """
[[cluster]]
name = "emmy"
[[cluster.subcluster]]
name = "a"
cores = 4
"""
SOCKETS = [("power_w", "socket", "n1/0", 100.0), ("power_w", "socket", "n1/1", 100.0)]
MEMORY = [("mem_power_w", "socket", "n1/0", 20.0)]
GPU = [("gpu_power_w", "accelerator", "n1/0", 300.0)]
METER = [("power_w", "node", "n1", 700.0)]
CPUS_OF_NODE = [("power_w", "node", "n1", 200.0)]
# user: cores, GPUs, joules of the record, series, share of the hour with samples
JOBS = {
    "parts": (4, 1, "", SOCKETS + MEMORY + GPU, 1.0),
    "meter": (4, 1, "", METER + GPU, 1.0),
    "node": (4, 1, "", CPUS_OF_NODE + GPU, 1.0),
    "some": (4, 0, "", SOCKETS, 0.9),
    "shared": (2, 0, "", SOCKETS, 1.0),
    "few": (4, 0, "", SOCKETS, 0.5),
    "recorded": (4, 0, "360000", SOCKETS, 1.0),
    "gpu": (4, 1, "", GPU, 1.0),
    "none": (4, 1, "", [], 1.0),
}
CORES_KWH = 4 * ASSUMED_W / 1000
KWH = {
    "parts": 0.52,
    "meter": 0.7,
    "node": 0.5,
    "some": 0.2,
    "shared": CORES_KWH / 2,
    "few": CORES_KWH,
    "recorded": 0.1,
    "gpu": 0.3 + CORES_KWH,
    "none": CORES_KWH,
}


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Session]:
    """A store with an hour of each job, two of them that end just before midnight."""
    described = written(tmp_path, CLUSTER, "clusters.toml")
    with memory_session() as empty:
        session = with_settings(empty, Settings(clusters={"files": [described]}))
        head = "source,job_id,queue,cluster,user,state,start_time,end_time,wall_s,cores,nodes,gpus,events"
        records = [f"{head},energy_j"]
        samples = ["source,job_id,metric,time,value,scope,unit"]
        for number, (user, (cores, gpus, joules, series, share)) in enumerate(JOBS.items()):
            start = datetime(2026, 3, 10 + number, 22 if number % 4 else 3, 30, tzinfo=UTC)
            job = f"batch,emmy,{user},finished,{start:{ISO}},{start + HOUR:{ISO}},3600,{cores},1"
            # the second one has no series
            records += [f"c,{user},{job},{gpus},50,{joules}", f"c,{user}2,{job},0,50,"]
            times = [start + HOUR * second / 3600 for second in range(0, int(3600 * share), 60)]
            samples += [
                f"c,{user},{metric},{time:{ISO}},{watts},{scope},{unit}"
                for metric, scope, unit, watts in series
                for time in times
            ]
        session.ingest("jobs", written(tmp_path, "\n".join(records), "jobs.csv"))
        session.ingest("series", written(tmp_path, "\n".join(samples), "samples.csv"))
        session.issues.detect()
        yield session


def test_measured_power_replaces_the_estimate_of_its_jobs_alone(measured: Session) -> None:
    answer = measured.delivered.energy("user")
    found = {row["user"]: row for row in answer}
    for user, (cores, *_) in JOBS.items():
        second = cores * ASSUMED_W / 1000
        assert found[user]["energy_kwh"] == pytest.approx(KWH[user] + second, rel=1e-6), user
        assert (found[user]["n_jobs"], found[user]["core_h"]) == (2, pytest.approx(2 * cores))
        assert found[user]["wh_per_event"] == pytest.approx((KWH[user] + second) * 10, rel=1e-6)
    sampled = {
        user: round(row["sampled_frac"] * row["energy_kwh"], 6)
        for user, row in found.items()
        if row["sampled_frac"]
    }
    assert sampled == {"parts": 0.52, "meter": 0.7, "node": 0.5, "some": 0.2, "gpu": 0.3}
    assert any("power series" in note for note in answer.notes)
    assert "without the power of GPUs: 1 GPU-hours of jobs without joules" in answer.notes


def test_sums_are_the_same_however_jobs_are_grouped(measured: Session) -> None:
    total = sum(KWH.values()) + sum(cores * ASSUMED_W / 1000 for cores, *_ in JOBS.values())
    for by in ((), "month", "queue,user", "cpu_model"):
        rows = list(measured.delivered.energy(by, window="2026-03"))
        assert sum(row["energy_kwh"] for row in rows) == pytest.approx(total, rel=1e-6)
        assert sum(row["n_jobs"] for row in rows) == 2 * len(JOBS)
    (one,) = measured.delivered.energy((), where="user=parts")
    assert one["energy_kwh"] == pytest.approx(0.52 + CORES_KWH, rel=1e-6)


def test_the_page_of_a_job_says_the_same(measured: Session) -> None:
    pages = {user: dict(record_lines(measured.job(user).content)) for user in ("parts", "meter", "shared")}
    assert pages["parts"]["energy"] == "0.52 kWh (gpu_power_w + mem_power_w + power_w)"
    assert pages["meter"]["energy"] == "0.7 kWh (power_w)"
    assert "energy" not in pages["shared"]
