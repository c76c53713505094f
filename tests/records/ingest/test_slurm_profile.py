"""Profiles of Slurm jobs: a real one of 31 hours, tasks of several nodes, and files that are broken."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from esjobs.api.session import Session
from tests.records.ingest.monitored import jobs, read, refused, rows, series

HEADER = (
    "Step,Node,Series,ElapsedTime,EpochTime,CPUFrequency,CPUTime,CPUUtilization,RSS,VMSize,Pages,"
    "ReadMB,WriteMB\n"
)
BEGIN = 1_700_000_000


def line(
    step: str = "0", node: str = "n1", task: int = 0, at: float = 0, load: object = 50, rss: object = 8
) -> str:
    return f"{step},{node},{task},{at},{BEGIN + at},2000,5,{load},{rss},16,0,1,0\n"


def write(folder: Path, *lines: str, name: str = "profile_4711.csv", header: str = HEADER) -> Path:
    (folder / name).write_text(header + "".join(lines))
    return folder / name


def test_a_real_profile_gives_its_node_without_the_step_extern(session: Session, shared_data: Path) -> None:
    file = shared_data / "supercloud-timeseries" / "timeseries.csv.gz"
    report = read(session, "slurm-profile", file, fill=("job_id=31",))
    assert (report.rows_in, report.n_dropped) == (7, 0)
    (note,) = report.notes
    assert "1 of 1 jobs with series have no record yet" in note
    found = rows(session)
    assert {(row["source"], row["job_id"], row["scope"], row["unit"]) for row in found} == {
        ("slurm", "31", "node", "r4858666-n911952")
    }
    assert {(row["n_samples"], row["n_gaps"], row["step_s"]) for row in found} == {(11_172, 0, 10.0)}
    samples = {name: one for (name, _, _), one in series(session).items()}
    load, memory = samples["cpu_load"], samples["mem_used_b"]
    # 35 minutes on up to 32 cores, then one core, while memory climbs to 62.7 GB of 1024 B
    assert load.max() == np.float32(31.984)
    assert np.median(load) == np.float32(1.002)
    assert memory[-1] == np.float32(62_711_556 * 1024)
    assert samples["read_b_s"].max() == np.float32(46.823552 * 2**20 / 10)
    assert samples["clock_hz"][0] == np.float32(2.989e9)
    end = datetime.fromtimestamp(1_611_729_889, UTC)
    assert {row["end_time"] for row in found} == {end}
    assert jobs(session) == []


def test_tasks_and_steps_of_a_node_are_added_up(session: Session, tmp_path: Path) -> None:
    lines = [
        line(step, node, task, at + 0.2 * task, 50)
        for at in (0, 10, 20)
        for node in ("n1", "n2")
        for step, task in (("0", 0), ("0", 1), ("1", 0), ("extern", 0))
        if (step, at) != ("1", 20)
    ]
    read(session, "slurm-profile", write(tmp_path, *lines))
    found = series(session, "4711")
    assert found["cpu_load", "node", "n1"].tolist() == [1.5, 1.5, 1.0]
    assert found["mem_used_b", "node", "n2"].tolist() == [3 * 8192, 3 * 8192, 2 * 8192]
    # a clock is no sum
    assert found["clock_hz", "node", "n1"].tolist() == [2e9, 2e9, 2e9]
    np.testing.assert_allclose(found["read_b_s", "node", "n1"][:2], 3 * 2**20 / 10)


def test_jobs_of_a_column_and_an_end_that_is_given(session: Session, tmp_path: Path) -> None:
    lines = [f"{job}," + line(at=at) for job in ("7", "8") for at in (0, 10)]
    file = write(tmp_path, *lines, header="JobID," + HEADER)
    read(session, "slurm-profile", file, fill=("end_time=2023-11-15T00:00:00Z", "source=alex"))
    found = rows(session)
    assert {(row["source"], row["job_id"]) for row in found} == {("alex", "7"), ("alex", "8")}
    assert {row["end_time"] for row in found} == {datetime(2023, 11, 15, tzinfo=UTC)}


def test_what_is_no_number_is_a_gap_and_counted(session: Session, tmp_path: Path) -> None:
    lines = [
        line(at=0),
        line(at=10, load="x", rss=-5),
        line(at=20, load="1e999"),
        "short,line\n",
        line(at=-1e12),
        line(at=30, load=""),
        line(at=50),
        line(at=40),
        line(at=40, load=70),
    ]
    report = read(session, "slurm-profile", write(tmp_path, *lines))
    found = series(session)
    np.testing.assert_array_equal(
        found["cpu_load", "node", "n1"], np.array([0.5, np.nan, np.nan, np.nan, 0.7, 0.5], np.float32)
    )
    told = " ".join(report.notes)
    assert "another number of cells, ignored: 1" in told
    assert "without a time, ignored: 1" in told
    assert "cells of cpuutilization that are not numbers from 0, stored as gaps: 3" in told
    assert {row["remark"] for row in rows(session)} == {"1 samples with the time of another sample"}


def test_samples_without_a_job_or_a_node_are_counted(session: Session, tmp_path: Path) -> None:
    lines = [
        f"{job}," + line(at=at, node=node) for job in ("7", "") for node in ("n1", " ") for at in (0, 10)
    ]
    report = read(session, "slurm-profile", write(tmp_path, *lines, header="JobID," + HEADER))
    assert {(job, node) for job, node in ((row["job_id"], row["unit"]) for row in rows(session))} == {
        ("7", "n1")
    }
    assert refused(session) == {"no job id": 4}
    assert "samples without a node, ignored: 2" in " ".join(report.notes)


def test_a_quote_that_does_not_end_costs_its_line(session: Session, tmp_path: Path) -> None:
    lines = [line(at=at) for at in range(0, 60, 10)]
    lines[2] = '"' + lines[2]
    lines[4] = '"' + lines[4].strip().replace(",", '","') + '"\n'
    report = read(session, "slurm-profile", write(tmp_path, *lines))
    samples = series(session)["cpu_load", "node", "n1"]
    np.testing.assert_array_equal(samples, np.array([0.5, 0.5, np.nan, 0.5, 0.5, 0.5], np.float32))
    assert "lines with an unclosed quote, ignored: 1" in " ".join(report.notes)


@pytest.mark.parametrize("more", ["RSS", "rss", "Node"])
def test_a_column_that_stands_there_twice_is_refused(session: Session, tmp_path: Path, more: str) -> None:
    header = HEADER.strip() + f",{more}\n"
    read(session, "slurm-profile", write(tmp_path, line().strip() + ",1\n", header=header))
    (row,) = rows(session, "rejects")
    assert f"column {more.lower()} appears 2 times; keep one" in row["detail"]


def test_one_sample_gives_levels_but_no_rates(session: Session, tmp_path: Path) -> None:
    read(session, "slurm-profile", write(tmp_path, line()))
    assert {name for name, _, _ in series(session)} == {"cpu_load", "clock_hz", "mem_used_b", "mem_virtual_b"}
    assert refused(session) == {"no samples": 3}


def test_damaged_files_lose_only_themselves(session: Session, tmp_path: Path) -> None:
    good = write(tmp_path, line(at=0), line(at=10))
    broken = {
        "1_000.csv": b"",
        "1_001.csv": b"a,b\n1,2\n",
        "1_002.csv": HEADER.encode(),
        "1_003.csv": (HEADER + line("-1")).encode(),
        "1_004.csv": HEADER.encode() + b"\xff\xfe\x00\n",
        "1_005.csv.gz": gzip.compress((HEADER + line()).encode())[:40],
        "none.csv": (HEADER + line()).encode(),
        "1_006.csv": (HEADER + line(at=0) + line(at=10) + line(at=20) + line(at=1e8)).encode(),
    }
    for name, data in broken.items():
        (tmp_path / name).write_bytes(data)
    report = read(session, "slurm-profile", good, *(tmp_path / name for name in broken))
    assert report.dropped == {"damaged file": len(broken) - 1, "no job id": 1}
    assert {row["job_id"] for row in rows(session)} == {"4711"}
    assert rows(session)[0]["end_time"] == datetime.fromtimestamp(BEGIN, UTC) + timedelta(seconds=10)
