"""CPU models of queues between windows, jobs against other jobs: planted changes, SQL by hand."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import UsageError

HEADER = ("job_id", "queue", "task_id", "end_time", "wall_s", "cores", "cpu_s", "cpu_raw", "release", "state")
OLD, NEW = "Intel(R) Xeon(R) CPU E5-2650 v4 @ 2.20GHz 30720 KB", "AMD EPYC 7302 16-Core Processor 512 KB"
WINDOWS: dict[str, Any] = {"window": "2025-06-10/2025-06-20", "compare": "previous"}


@pytest.fixture
def grid(session: Session, tmp_path: Path) -> Session:
    """Queue A replaces half of its machines, B none; release 2 needs a tenth more wall time."""
    rng = np.random.default_rng(1)
    with (tmp_path / "jobs.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER)
        for number in range(6000):
            after, queue = int(rng.integers(2)), "AB"[int(rng.integers(2))]
            task = int(rng.integers(30)) + 30 * after
            new = rng.random() < (0.8 if after and queue == "A" else 0.3)
            release = 1 + task % 2
            cpu = 3600 * float(np.exp(rng.normal(0, 0.5)))
            wall = cpu * (1.25 + 0.1 * (release == 2)) * float(np.exp(abs(rng.normal(0, 0.02))))
            day = f"2025-06-{1 + 10 * after + int(rng.integers(9)):02}T12:00:00Z"
            names = [number, queue, task, day, wall, 1, cpu, NEW if new else OLD]
            writer.writerow([*names, f"24.0.{release}", "finished"])
    session.ingest("jobs", tmp_path / "jobs.csv")
    return session


def test_only_the_queue_that_changed_its_cpu_models_is_told(grid: Session) -> None:
    rows = grid.query("queue,cpu_model", "core_h", share_of="queue", changed=True, **WINDOWS).rows.to_pylist()
    assert {(row["queue"], row["cpu_model"]) for row in rows} == {
        ("A", "AMD EPYC 7302"),
        ("A", "Intel Xeon E5-2650 v4"),
    }
    assert rows[0]["core_h_share_diff"] == pytest.approx(0.5, abs=0.05)
    every = grid.query("queue,cpu_model", "core_h", share_of="queue", **WINDOWS).rows.to_pylist()
    by_hand = {
        row["queue"]: row["change"]
        for row in grid.sql(
            "with of as (select queue, cpu_raw, end_time >= '2025-06-10' as after, sum(wall_s * cores) as h "
            "from jobs group by all) select queue, any_value(h) filter (after and cpu_raw like '%EPYC%') / "
            "sum(h) filter (after) - any_value(h) filter (not after and cpu_raw like '%EPYC%') / sum(h) "
            "filter (not after) as change from of group by queue"
        ).rows.to_pylist()
    }
    found = {row["queue"]: row["core_h_share_diff"] for row in every if "EPYC" in row["cpu_model"]}
    assert found == pytest.approx(by_hand)
    for queue in "AB":
        mine = [row for row in every if row["queue"] == queue]
        assert sum(row["core_h_share"] for row in mine) == pytest.approx(1)
        assert sum(row["core_h_share_before"] for row in mine) == pytest.approx(1)
    with pytest.raises(UsageError):
        grid.query("cpu_model", "core_h", share_of="queue")
    with pytest.raises(UsageError):
        grid.query("queue", "core_h", strata="core_class")


def test_jobs_of_a_release_are_compared_with_those_of_another(grid: Session) -> None:
    asked: dict[str, Any] = {
        "where": "release=24.0.2",
        "versus": "release=24.0.1",
        "strata": "queue,core_class",
    }
    (row,) = grid.query((), "efficiency", **asked).rows.to_pylist()
    by_hand = grid.sql(
        "select release, sum(cpu_s) / sum(wall_s * cores) as e from jobs group by all order by release"
    ).rows.to_pylist()
    assert [row["efficiency_before"], row["efficiency"]] == pytest.approx([one["e"] for one in by_hand])
    assert row["efficiency_diff"] == pytest.approx(1 / 1.37 - 1 / 1.27, abs=0.01)
    assert row["efficiency_within"] + row["efficiency_mix"] == pytest.approx(row["efficiency_diff"])
    assert row["efficiency_changed"]
    assert row["efficiency_within_z"] < -3
    nothing = grid.query("queue", "efficiency", changed=True, **{**asked, "where": "release=24.0.1"})
    assert len(nothing) == 0


def test_cores_and_memory_that_block_slots_are_sums_over_jobs(session: Session, tmp_path: Path) -> None:
    """Of 8 cores 1.05 are busy: one would save 7 of 8; 8 GB on one core block 3 slots of 2 GB beside it."""
    rows = ["job_id,queue,user,end_time,cores,wall_s,cpu_s,max_rss_b,state"]
    for number in range(40):
        cores, busy = (8, 1.05) if number % 2 else (8, 7.5)
        memory = 8e9 if number % 4 == 0 else 1e9
        if number % 4 == 0:
            cores = 1
        wall = 3600 + number
        rows.append(f"{number},A,u{number % 3},2025-06-10,{cores},{wall},{busy * wall},{memory},finished")
    (tmp_path / "jobs.csv").write_text("\n".join(rows), encoding="utf-8")
    session.ingest("jobs", tmp_path / "jobs.csv")
    few = ["cores>1", "busy_cores<=1.1", "state=finished"]
    found = session.query("user", ["jobs", "spare_core_h"], where=few, errors=True).rows.to_pylist()
    by_hand = session.sql(
        "with few as (select *, wall_s * (cores - 1) / 3600 as h from jobs where cores > 1 and "
        "cpu_s <= 1.1 * wall_s and state = 'finished') "
        'select "user", count(*) as n, sum(h) as h, sqrt(sum(h * h)) as err from few group by all'
    ).rows.to_pylist()
    expected = {row["user"]: pytest.approx((row["n"], row["h"], row["err"]), rel=1e-12) for row in by_hand}
    assert {
        row["user"]: (row["jobs"], row["spare_core_h"], row["spare_core_h_err"]) for row in found
    } == expected
    (blocked,) = session.query((), "blocked_core_h", where="mem_per_core_b>2GB", errors=True).rows.to_pylist()
    (hand,) = session.sql(
        "with few as (select wall_s * (max_rss_b / 2e9 - cores) / 3600 as h from jobs "
        "where max_rss_b / cores > 2e9) select sum(h) as h, sqrt(sum(h * h)) as err from few"
    ).rows.to_pylist()
    assert blocked["blocked_core_h"] == pytest.approx(hand["h"], rel=1e-12)
    assert blocked["blocked_core_h_err"] == pytest.approx(hand["err"], rel=1e-9)
