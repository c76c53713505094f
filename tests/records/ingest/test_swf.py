"""Logs of the Parallel Workloads Archive: a real one against a second reader, and a gallery of lines."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import InputError, UsageError
from esjobs.records.ingest.base import Parsed, Reject, parse_fill, settable
from esjobs.records.ingest.formats.swf import COLUMNS, SWF
from tests.messages import raised
from tests.records.ingest.monitored import jobs, read, refused

START = datetime(2005, 11, 20, 0, 0, 5, tzinfo=UTC)
HEADER = "; UnixStartTime: 1132444805\n; Partition: 1 grid.example.org   \n; Queue: 7 long\n"


def parsed(path: Path, *fill: str) -> tuple[list[dict[str, Any]], list[Reject], list[str]]:
    pieces: list[Parsed] = list(SWF.parse(path, parse_fill(fill, settable(SWF))))
    rejects = [reject for piece in pieces for reject in piece.rejects]
    rows = [row for piece in pieces for row in piece.batch.to_pylist()]
    assert sum(piece.rows_in for piece in pieces) == len(rows) + sum(reject.n_rows for reject in rejects)
    return rows, rejects, [note for piece in pieces for note in piece.notes]


def line(**cells: object) -> str:
    usual: dict[str, object] = dict.fromkeys(COLUMNS, -1)
    usual |= {"job_number": 1, "submit": 100, "wait": 50, "run": 1000, "processors": 4, "partition": 1}
    return " ".join(f"{value:>7}" for value in (usual | cells).values())


def one(tmp_path: Path, *fill: str, **cells: object) -> tuple[list[dict[str, Any]], list[Reject], list[str]]:
    path = tmp_path / "log.swf"
    path.write_text(HEADER + line(**cells) + "\n")
    return parsed(path, *fill)


def test_the_real_log_is_read_as_a_second_reader_reads_it(shared_data: Path) -> None:
    path = shared_data / "swf-lcg-2005" / "LCG.swf.gz"
    rows, rejects, notes = parsed(path)
    assert rejects == []
    sites: dict[str, str] = {}
    expected = []
    with gzip.open(path, "rt") as lines:
        for text in lines:
            if text.startswith("; Partition:"):
                _, _, number, name = text.split()
                sites[number] = name
            elif not text.startswith(";"):
                cells = text.split()
                end = START + timedelta(seconds=int(cells[1]) + int(cells[3]))
                expected.append(
                    (cells[0], sites[cells[15]], float(cells[3]), float(cells[8]), cells[12], end)
                )
    assert len(rows) == 188_041
    names = ("job_id", "queue", "wall_s", "requested_wall_s", "project", "end_time")
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert {row["cores"] for row in rows} == {1}
    assert {row["state"] for row in rows} == {row["cpu_s"] for row in rows} == {None}
    assert len({row["queue"] for row in rows}) == 170
    assert [note for note in notes if note.startswith("LCG.swf.gz: 187,520 jobs have no waiting time")]


def test_every_number_has_its_meaning(tmp_path: Path) -> None:
    (row,), _, notes = one(
        tmp_path,
        mean_cpu="900.5",
        mean_memory=2048,
        requested_processors=8,
        requested_time=7200,
        requested_memory=1024,
        status=1,
        user=12,
        group=3,
        program=9,
        queue=7,
    )
    assert row["submit_time"] == START + timedelta(seconds=100)
    assert row["start_time"] == START + timedelta(seconds=150)
    assert row["end_time"] == START + timedelta(seconds=1150)
    assert (row["queue_s"], row["wall_s"], row["cores"], row["requested_cores"]) == (50.0, 1000.0, 4, 8)
    assert row["cpu_s"] == 4 * 900.5
    assert row["avg_rss_b"] == 4 * 2048 * 1024
    assert row["requested_memory_b"] == 8 * 1024 * 1024
    assert (row["requested_wall_s"], row["state"], row["queue"]) == (7200.0, "finished", "grid.example.org")
    assert (row["user"], row["project"], row["application"]) == ("12", "3", "9")
    assert notes == []


def test_memory_for_each_processor_given_where_none_were_asked_for(tmp_path: Path) -> None:
    (row,), _, _ = one(tmp_path, requested_memory=1024)
    assert row["requested_memory_b"] == 4 * 1024 * 1024


def test_a_queue_stands_for_a_missing_partition(tmp_path: Path) -> None:
    (row,), _, _ = one(tmp_path, partition=-1, queue=7)
    assert row["queue"] == "long"
    (row,), _, _ = one(tmp_path, partition=88)
    assert row["queue"] == "88"
    rows, (reject,), _ = one(tmp_path, partition=-1)
    assert (rows, reject.reason) == ([], "missing queue")
    (row,), _, _ = one(tmp_path, "queue=CERN", "cluster=old", partition=-1)
    assert (row["queue"], row["cluster"]) == ("CERN", "old")


@pytest.mark.parametrize(("status", "state"), [(0, "failed"), (1, "finished"), (5, "cancelled"), (-1, None)])
def test_states(tmp_path: Path, status: int, state: str | None) -> None:
    (row,), _, _ = one(tmp_path, status=status)
    assert row["state"] == state


@pytest.mark.parametrize("status", [2, 3, 4])
def test_parts_of_jobs_are_refused(tmp_path: Path, status: int) -> None:
    rows, (reject,), _ = one(tmp_path, status=status)
    assert (rows, reject.reason, reject.line) == ([], "part of a job", 4)


def test_a_job_that_was_cancelled_before_it_ran(tmp_path: Path) -> None:
    (row,), _, _ = one(tmp_path, status=5, run=-1)
    assert (row["start_time"], row["wall_s"]) == (None, None)
    assert row["end_time"] == START + timedelta(seconds=150)


def test_without_a_waiting_time_there_is_no_start(tmp_path: Path) -> None:
    (row,), _, notes = one(tmp_path, wait=-1)
    assert (row["start_time"], row["queue_s"]) == (None, None)
    assert row["end_time"] == START + timedelta(seconds=1100)
    assert [note for note in notes if "1 jobs have no waiting time" in note]


@pytest.mark.parametrize(
    ("cells", "reason", "field"),
    [
        ({"run": -1}, "missing end_time", "end_time"),
        ({"submit": "noon"}, "missing end_time", "end_time"),
        ({"submit": -5}, "missing end_time", "end_time"),
        ({"submit": "1e30"}, "missing end_time", "end_time"),
        ({"run": -3}, "missing end_time", "end_time"),
        ({"processors": "1.5"}, "not a whole number", "cores"),
        ({"mean_cpu": "x"}, "not a number", "cpu_s"),
        ({"mean_memory": "1e19"}, "out of range", "avg_rss_b"),
    ],
)
def test_lines_that_are_refused(tmp_path: Path, cells: dict[str, object], reason: str, field: str) -> None:
    rows, (reject,), _ = one(tmp_path, **cells)
    assert (rows, reject.reason, reject.field, reject.line) == ([], reason, field, 4)


def test_lines_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(
        HEADER.encode() + b"1 2 3\n\n; a remark\n" + line().encode() + b"\r\n" + b"\xff " * 18 + b"\n"
    )
    rows, rejects, _ = parsed(path)
    assert len(rows) == 1
    assert [(reject.reason, reject.line) for reject in rejects] == [
        ("wrong number of columns", 4),
        ("wrong number of columns", 8),
    ]


def test_a_log_without_a_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(line() + "\n")
    with raised(InputError):
        parsed(path)
    (row,), _, _ = parsed(path, "log_start=1132444805")
    assert row["end_time"] == START + timedelta(seconds=1150)
    with raised(UsageError):
        parsed(path, "log_start=noon")


@pytest.mark.parametrize("begin", ["99999999999999", "-99999999999999", "1e18", "0"])
def test_a_beginning_that_no_calendar_has_costs_the_jobs(
    session: Session, tmp_path: Path, begin: str
) -> None:
    (tmp_path / "log.swf").write_text(line() + "\n")
    read(session, "swf", tmp_path / "log.swf", fill=(f"log_start={begin}",))
    assert (jobs(session), refused(session)) == ([], {"bad time": 1})


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"submit": "1e14"}, "bad time"),
        ({"submit": "1e18"}, "bad time"),
        ({"run": "1e17"}, "missing end_time"),
    ],
)
def test_times_that_no_calendar_has_cost_their_job(
    session: Session, tmp_path: Path, cells: dict[str, object], reason: str
) -> None:
    (tmp_path / "log.swf").write_text(f"{HEADER}{line(**cells)}\n{line()}\n")
    read(session, "swf", tmp_path / "log.swf")
    assert (len(jobs(session)), refused(session)) == (1, {reason: 1})


def test_a_header_alone_is_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(HEADER)
    assert parsed(path) == ([], [], ["log.swf: no rows"])
