"""Slurm's accounting: a real file against a second reader, steps joined, and a gallery of odd records."""

import csv
import gzip
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError, UsageError
from esjobs.records.ingest.base import Parsed, Reject, parse_fill, settable
from esjobs.records.ingest.formats.slurm import SLURM
from esjobs.records.ingest.formats.slurm_lines import BARE_COLUMNS
from tests.messages import raised


@pytest.fixture
def real(shared_data: Path) -> Path:
    """A site's accounting of three days."""
    return shared_data / "slurm-accounting" / "phillips.log.gz"


def parsed(path: Path, *fill: str) -> tuple[list[dict[str, Any]], list[Reject], list[str]]:
    pieces: list[Parsed] = list(SLURM.parse(path, parse_fill(fill, settable(SLURM))))
    rejects = [reject for piece in pieces for reject in piece.rejects]
    rows = [row for piece in pieces for row in piece.batch.to_pylist()]
    assert sum(piece.rows_in for piece in pieces) == len(rows) + sum(reject.n_rows for reject in rejects)
    return rows, rejects, [note for piece in pieces for note in piece.notes]


def written(tmp_path: Path, text: str, name: str = "sacct.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


# -- the real file ---------------------------------------------------------------------------------------


def second_reader(path: Path) -> list[dict[str, Any]]:
    """The real file by the csv module and plain arithmetic, a row at a time."""

    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("America/New_York")).astimezone(UTC)

    def long(text: str) -> float:
        days, _, clock = text.rpartition("-")
        hours, minutes, seconds = map(int, clock.split(":"))
        return timedelta(days=int(days or 0), hours=hours, minutes=minutes, seconds=seconds).total_seconds()

    jobs = []
    with gzip.open(path, "rt", newline="") as lines:
        for cells in csv.DictReader(lines, BARE_COLUMNS, delimiter="|", quoting=csv.QUOTE_NONE):
            asked = dict(item.split("=") for item in cells["reqtres"].split(","))
            given = dict(item.split("=") for item in cells["alloctres"].split(","))
            memory: float | None = None
            if "mem" in asked:
                memory = float(asked["mem"][:-1]) * {"M": 2**20, "G": 2**30}[asked["mem"][-1]]
            elif cells["reqmem"] != "2147486648Mn":
                memory = float(cells["reqmem"].removesuffix("Mn")) * 2**20 * int(cells["nnodes"])
            gpus = int(given.get("gres/gpu", 0))
            never = cells["state"].startswith("CANCELLED") and long(cells["elapsed"]) == 0
            jobs.append(
                {
                    "job_id": cells["jobid"],
                    "queue": cells["partition"],
                    "user": cells["user"],
                    "project": cells["account"],
                    "submit_time": moment(cells["submit"]),
                    "start_time": moment(cells["start"]),
                    "end_time": moment(cells["end"]),
                    "wall_s": None if never else long(cells["elapsed"]),
                    "requested_wall_s": long(cells["timelimit"]),
                    "cores": int(cells["ncpus"]),
                    "requested_cores": int(cells["reqcpus"]),
                    "nodes": None if cells["nodelist"] == "None assigned" else int(cells["nnodes"]),
                    "gpus": gpus,
                    "requested_gpus": None if gpus else 0,
                    "requested_memory_b": memory,
                    "exit_code": cells["exitcode"],
                }
            )
    return jobs


def test_the_real_file_is_read_as_a_second_reader_reads_it(real: Path) -> None:
    rows, rejects, notes = parsed(real, "timezone=America/New_York")
    assert rejects == []
    expected = second_reader(real)
    assert [{name: row[name] for name in expected[0]} for row in rows] == expected
    states = Counter(row["state"] for row in rows)
    assert states == {"finished": 2324, "failed": 1717, "cancelled": 243, "timeout": 1}
    assert {row["source"] for row in rows} == {row["cluster"] for row in rows} == {"phillips"}
    assert sum(row["gpus"] > 0 for row in rows) == 2
    assert {row["cpu_s"] for row in rows} == {None}
    assert [
        note for note in notes if "impossible ReqMem values ignored (such as 2147486648Mn): 4,238" in note
    ]
    assert not [note for note in notes if "taken for UTC" in note]


def test_without_a_zone_utc_is_assumed_and_said(real: Path) -> None:
    rows, _, notes = parsed(real)
    assert rows[0]["end_time"] == datetime(2017, 1, 1, 20, 42, 19, tzinfo=UTC)
    assert [note for note in notes if "times have no zone; assumed UTC" in note]


@pytest.mark.parametrize("block", [20_000])
def test_blocks_cut_anywhere_give_the_same_rows(
    real: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    whole = parsed(real)
    monkeypatch.setattr("esjobs.records.ingest.reading.lines.BLOCK", block)
    assert parsed(real) == whole


# -- steps -----------------------------------------------------------------------------------------------

HEADER = (
    "JobID|JobIDRaw|Cluster|Partition|Account|User|Submit|Start|End|Elapsed|State|ExitCode|NNodes|AllocCPUS|"
    "TotalCPU|CPUTime|MaxRSS|ReqMem|Timelimit|AllocTRES|TRESUsageInTot"
)
JOB = (
    "{id}|{raw}|fritz|multinode|hpc|ann|2026-03-01T00:00:00|2026-03-01T00:10:00|2026-03-02T00:10:00|1-00:00:00|"
    "COMPLETED|0:0|2|144|{cpu}|144-00:00:00||4000Mc|2-00:00:00|cpu=144,gres/gpu:a100=2,gres/gpu:a40=1|"
)
STEP = "{id}||||||||||COMPLETED|0:0|1|144|{cpu}||{rss}||||{tres}"


def table(*rows: str) -> str:
    return "\n".join([HEADER, *rows]) + "\n"


def attempts(*rows: tuple[str, str, str, str]) -> str:
    """Rows of jobs and steps: id, start hour, end (hour, or a word), state; CPU time is the start hour."""
    lines = ["JobID|JobIDRaw|Partition|Start|End|State|ElapsedRaw|TotalCPU|NCPUS"]
    for name, start, end, state in rows:
        ended = f"2026-11-10T{end}:00:00" if end.isdigit() else end
        cpu = f"{int(start):02}:00:00" if "." in name else "00:00:00"
        lines.append(f"{name}|{name}|batch|2026-11-10T{start}:00:00|{ended}|{state}|3600|{cpu}|4")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("first", "state"), [("NODE_FAIL", "node_fail"), ("REQUEUED", "preempted")])
def test_every_attempt_of_a_job_that_ran_again_is_a_job(tmp_path: Path, first: str, state: str) -> None:
    text = attempts(
        *(("7", "01", "02", first), ("7.batch", "01", "02", "CANCELLED")),
        *(("7", "05", "06", "COMPLETED"), ("7.batch", "05", "06", "COMPLETED")),
        *(("8", "03", "04", "COMPLETED"), ("8.0", "03", "04", "COMPLETED")),
    )
    rows, rejects, notes = parsed(written(tmp_path, text))
    assert rejects == []
    found = {row["job_id"]: (row["state"], row["cpu_s"]) for row in rows}
    assert found == {
        "7@2026-11-10T01:00:00": (state, 3600.0),
        "7": ("finished", 5 * 3600.0),
        "8": ("finished", 3 * 3600.0),
    }
    assert any("attempts" in note for note in notes)


@pytest.mark.parametrize("first", ["NODE_FAIL", "PREEMPTED", "REQUEUED"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_attempts_in_several_loads_are_jobs_in_any_order(
    tmp_path: Path, session: Session, first: str, order: tuple[int, ...]
) -> None:
    rows = [("7", "01", "02", first), ("7", "05", "06", first), ("7", "08", "09", "COMPLETED")]
    for number in order:
        session.ingest("slurm", written(tmp_path, attempts(rows[number]), f"{number}.txt"))
    stored = {row["job_id"] for row in session.jobs()}
    assert stored == {"7@2026-11-10T01:00:00", "7@2026-11-10T05:00:00", "7"}


def test_a_job_that_only_has_attempts_is_not_found_with_their_names(tmp_path: Path, session: Session) -> None:
    path = written(tmp_path, attempts(("7", "01", "02", "NODE_FAIL"), ("71", "01", "02", "NODE_FAIL")))
    session.ingest("slurm", path)
    with pytest.raises(NoResultError, match=r"use one of its attempts: 7@2026-11-10T01:00:00$"):
        session.job("7")


def test_a_job_of_an_array_that_is_stored_by_its_own_id_says_how_to_find_it(
    tmp_path: Path, session: Session
) -> None:
    text = (
        "JobIDRaw|JobID|Partition|State|Start|End\n"
        "1183|1180_3|batch|COMPLETED|2026-11-10T01:00:00|2026-11-10T02:00:00\n"
        "1184|1180_4|batch|COMPLETED|2026-11-10T01:00:00|2026-11-10T02:00:00\n"
    )
    session.ingest("slurm", written(tmp_path, text))
    with pytest.raises(NoResultError, match=r"2 jobs of array 1180 are .*sacct -nXj 1180_3.*task_id=1180$"):
        session.job("1180_3")
    with pytest.raises(NoResultError, match=r"list jobs: esjobs jobs$"):
        session.job("1181_3")


def test_a_job_that_waits_to_run_again_has_not_ended(tmp_path: Path) -> None:
    rows, rejects, _ = parsed(written(tmp_path, attempts(("7", "01", "Unknown", "REQUEUED"))))
    assert rows == []
    assert [reject.reason for reject in rejects] == ["has not ended"]


def test_a_row_twice_is_one_job(tmp_path: Path) -> None:
    rows, _, _ = parsed(written(tmp_path, attempts(*[("7", "01", "02", "COMPLETED")] * 2)))
    assert {row["job_id"] for row in rows} == {"7"}


def test_what_only_steps_know_is_joined_into_their_job(tmp_path: Path) -> None:
    text = table(
        JOB.format(id=100, raw=100, cpu="00:00:00"),
        STEP.format(id="100.batch", cpu="00:10.500", rss="2000K", tres="cpu=00:00:10,fs/disk=1000,mem=2000K"),
        STEP.format(id="100.extern", cpu="00:00:00", rss="0", tres=""),
        STEP.format(id="100.0", cpu="120-01:00:00", rss="1.5G", tres="fs/disk=24"),
        JOB.format(id="101_7", raw=107, cpu="12:00.250"),
        STEP.format(id="101_7.0", cpu="11:00", rss="5M", tres=""),
        JOB.format(id="102+1", raw=103, cpu="INVALID"),
    )
    (first, second, third), rejects, notes = parsed(written(tmp_path, text))
    assert rejects == []
    assert (first["job_id"], first["source"], first["task_id"]) == ("100", "fritz", None)
    assert first["cpu_s"] == 10.5 + 120 * 86400 + 3600
    assert (first["max_rss_b"], first["read_b"], first["written_b"]) == (1.5 * 2**30, 1024.0, None)
    assert (first["cores"], first["nodes"], first["gpus"]) == (144, 2, 3)
    assert first["requested_memory_b"] == 4000 * 2**20 * 144
    assert (first["wall_s"], first["queue_s"], first["requested_wall_s"]) == (86400.0, 600.0, 172800.0)
    assert (second["job_id"], second["task_id"], second["cpu_s"]) == ("107", "101", 720.25)
    assert second["max_rss_b"] == 5 * 2**20
    assert (third["job_id"], third["cpu_s"]) == ("103", None)
    assert "sacct.txt: steps joined into their jobs: 4" in notes


@pytest.mark.parametrize(
    ("own", "of_steps", "megabytes"),
    [
        ("5000M", ("7000M",), 7000),
        ("5000M", ("", "1G", "4000M"), 5000),
        ("0", ("3M",), 3),
        ("6G", (), 6144),
        ("", ("900K", "1M"), 1),
    ],
)
def test_the_memory_of_a_job_is_the_largest_of_its_own_row_and_its_steps(
    tmp_path: Path, own: str, of_steps: tuple[str, ...], megabytes: int
) -> None:
    job = JOB.format(id=3, raw=3, cpu="1:00").replace("|4000Mc", f"{own}|4000Mc")
    steps = [
        STEP.format(id=f"3.{number}", cpu="1:00", rss=rss, tres="") for number, rss in enumerate(of_steps)
    ]
    (row,), rejects, _ = parsed(written(tmp_path, table(job, *steps)))
    assert rejects == []
    assert row["max_rss_b"] == megabytes * 2**20


def test_steps_that_a_block_cuts_off_find_their_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for number in range(50):
        rows.append(JOB.format(id=number, raw=number, cpu="00:00"))
        rows += [
            STEP.format(id=f"{number}.{step}", cpu="00:01", rss=f"{step}K", tres="") for step in range(9)
        ]
    path = written(tmp_path, table(*rows))
    monkeypatch.setattr("esjobs.records.ingest.reading.lines.BLOCK", 700)
    jobs, rejects, notes = parsed(path)
    assert rejects == []
    assert [(job["cpu_s"], job["max_rss_b"]) for job in jobs] == [(9.0, 8 * 1024.0)] * 50
    assert "sacct.txt: steps joined into their jobs: 450" in notes


def test_a_step_without_its_job_is_refused(tmp_path: Path) -> None:
    text = table(
        STEP.format(id="99.0", cpu="1:00", rss="1K", tres=""), JOB.format(id=100, raw=100, cpu="1:00")
    )
    rows, (reject,), _ = parsed(written(tmp_path, text))
    assert len(rows) == 1
    assert (reject.reason, reject.line) == ("step without its job", 2)


# -- the gallery -----------------------------------------------------------------------------------------

SHORT = "JobID|Partition|Start|End|State|Elapsed|ReqMem|Timelimit|AllocTRES|NNodes|NCPUS|NodeList"


def one(tmp_path: Path, *fill: str, **cells: str) -> tuple[list[dict[str, Any]], list[Reject], list[str]]:
    usual = {
        "JobID": "1",
        "Partition": "p",
        "Start": "2026-03-01T00:00:00",
        "End": "2026-03-01T01:00:00",
        "State": "COMPLETED",
        "Elapsed": "01:00:00",
        "NNodes": "2",
        "NCPUS": "8",
    } | cells
    row = "|".join(usual.get(name, "") for name in SHORT.split("|"))
    return parsed(written(tmp_path, f"{SHORT}\n{row}\n"), *fill)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("COMPLETED", "finished"),
        ("CANCELLED by 330719", "cancelled"),
        ("CANCELLED+", "cancelled"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("NODE_FAIL", "node_fail"),
        ("", None),
    ],
)
def test_states(tmp_path: Path, state: str, expected: str | None) -> None:
    (row,), _, _ = one(tmp_path, State=state)
    assert row["state"] == expected


@pytest.mark.parametrize(
    "cells", [{"State": "RUNNING", "End": "Unknown"}, {"State": "PENDING"}, {"End": "Unknown", "State": ""}]
)
def test_jobs_that_have_not_ended_are_refused(tmp_path: Path, cells: dict[str, str]) -> None:
    rows, (reject,), _ = one(tmp_path, **cells)
    assert (rows, reject.reason, reject.field) == ([], "has not ended", "state")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("4000Mn", 2 * 4000 * 2**20),
        ("4000Mc", 8 * 4000 * 2**20),
        ("62.50G", 62.5 * 2**30),
        ("500", 500 * 2**20),
        ("1T", 2**40),
        ("2147486648Mn", None),
        ("", None),
    ],
)
def test_requested_memory_is_that_of_the_job(tmp_path: Path, cell: str, expected: float | None) -> None:
    (row,), _, notes = one(tmp_path, ReqMem=cell)
    assert row["requested_memory_b"] == expected
    assert bool([note for note in notes if "impossible" in note]) == cell.startswith("21")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
        ("30:00", 1800.0),
        ("1-06:00:00", 108_000.0),
    ],
)
def test_time_limits(tmp_path: Path, cell: str, expected: float | None) -> None:
    (row,), _, _ = one(tmp_path, Timelimit=cell)
    assert row["requested_wall_s"] == expected


@pytest.mark.parametrize(
    ("name", "cell", "field"),
    [
        ("Elapsed", "an hour", "wall_s"),
        ("ReqMem", "lots", "requested_memory_b"),
        ("Timelimit", "1 day", "requested_wall_s"),
        ("NCPUS", "8.5", "cores"),
        ("NCPUS", "-8", "cores"),
        ("AllocTRES", "gres/gpu=two", "gpus"),
        # numbers of more digits than Python reads at once
        ("NNodes", "9" * 5000, "nodes"),
        ("Timelimit", f"{'9' * 5000}:00", "requested_wall_s"),
        ("AllocTRES", f"gres/gpu:a100={'9' * 5000},gres/gpu:v100=1", "gpus"),
        ("AllocTRES", "gres/gpu:a100=1,gres/gpu:v100=\u00b2", "gpus"),
        ("End", "yesterday", "end_time"),
        ("End", "2026-02-30T00:00:00", "end_time"),
    ],
)
def test_a_cell_that_cannot_be_read_costs_its_row(tmp_path: Path, name: str, cell: str, field: str) -> None:
    rows, (reject,), _ = one(tmp_path, **{name: cell})
    assert rows == []
    assert (reject.field, reject.line) == (field, 2)


@pytest.mark.parametrize("name", ["ReqCPUS", "TimelimitRaw", "ElapsedRaw"])
def test_a_count_of_thousands_of_digits_costs_its_row(tmp_path: Path, name: str) -> None:
    text = f"JobID|Partition|End|ReqMem|{name}\n1|p|2026-03-01T00:00:00|4000Mc|{'9' * 5000}\n"
    rows, (reject,), _ = parsed(written(tmp_path, text))
    assert (rows, reject.reason) == ([], "out of range")


@pytest.mark.parametrize(
    ("name", "cell", "field"),
    [
        ("TotalCPU", f"{'9' * 5000}:00", "cpu_s"),
        ("MaxRSS", f"{'9' * 500}G", "max_rss_b"),
        ("TRESUsageInTot", f"fs/disk={'9' * 5000}", "read_b"),
        ("TRESUsageInTot", "fs/disk=lots", "read_b"),
    ],
)
def test_a_cell_of_a_step_that_cannot_be_read_costs_the_job(
    tmp_path: Path, name: str, cell: str, field: str
) -> None:
    cells = {"JobID": "1", "Partition": "p", "State": "COMPLETED", "End": "2026-03-01T00:00:00"}
    lines = ["|".join([*cells, name]), "|".join([*cells.values(), ""])]
    lines += ["|".join([*(cells | {"JobID": f"1.{step}"}).values(), cell]) for step in (0, 1)]
    rows, (reject,), _ = parsed(written(tmp_path, "\n".join(lines) + "\n"))
    assert rows == []
    assert (reject.field, reject.line) == (field, 2)


def test_who_never_ran_had_no_nodes(tmp_path: Path) -> None:
    (row,), _, _ = one(tmp_path, State="CANCELLED by 1", NodeList="None assigned", Elapsed="00:00:00")
    assert (row["nodes"], row["wall_s"]) == (None, None)
    (row,), _, _ = one(tmp_path, State="FAILED", Elapsed="00:00:00")
    assert (row["nodes"], row["wall_s"]) == (2, 0.0)


def test_times_in_a_zone(tmp_path: Path) -> None:
    zone = "timezone=Europe/Berlin"
    (row,), _, notes = one(
        tmp_path, zone, Start="2026-10-25T02:30:00", End="2026-10-25T03:30:00", Elapsed="00:10:00"
    )
    assert row["start_time"] == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert row["end_time"] == datetime(2026, 10, 25, 2, 30, tzinfo=UTC)
    assert [note for note in notes if "ambiguous times" in note]
    (row,), _, _ = one(
        tmp_path, "timezone=Europe/Berlin", Start="1772323200", End="2026-03-01T01:00:00+00:00"
    )
    assert row["start_time"] == datetime(2026, 3, 1, tzinfo=UTC)
    assert row["end_time"] == datetime(2026, 3, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "hours", "n_unsettled"),
    [
        # summer time ends at 03:00, which is 01:00 UTC: the clock shows 02:00 to 03:00 twice
        ("02:50:00", "02:10:00", "00:20:00", (0, 50, 1, 10), 0),
        ("01:30:00", "02:30:00", "01:00:00", (-1, 30, 0, 30), 0),
        ("01:30:00", "02:30:00", "02:00:00", (-1, 30, 1, 30), 0),
        ("02:30:00", "04:00:00", "01:30:00", (1, 30, 3, 0), 0),
        ("02:30:00", "04:00:00", "02:30:00", (0, 30, 3, 0), 0),
        ("02:10:00", "02:40:00", "00:30:00", (0, 10, 0, 40), 2),
    ],
)
def test_the_elapsed_time_settles_what_the_clock_showed_twice(
    tmp_path: Path, start: str, end: str, elapsed: str, hours: tuple[int, ...], n_unsettled: int
) -> None:
    (row,), rejects, notes = one(
        tmp_path,
        "timezone=Europe/Berlin",
        Start=f"2026-10-25T{start}",
        End=f"2026-10-25T{end}",
        Elapsed=elapsed,
    )
    midnight = datetime(2026, 10, 25, tzinfo=UTC)
    assert rejects == []
    assert row["start_time"] == midnight + timedelta(hours=hours[0], minutes=hours[1])
    assert row["end_time"] == midnight + timedelta(hours=hours[2], minutes=hours[3])
    assert row["wall_s"] == (row["end_time"] - row["start_time"]).total_seconds()
    assert bool(n_unsettled) == any("ambiguous times" in note for note in notes)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        # 64 tasks of 3.9 GB: what all of them used, not one
        ({"NTasks": "64", "AveRSS": "3900M", "MaxRSS": "4G", "TRESUsageInTot": "cpu=1,mem=249600M"}, 249_600),
        ({"NTasks": "64", "AveRSS": "3900M", "MaxRSS": "4G", "TRESUsageInTot": ""}, 249_600),
        ({"NTasks": "1", "AveRSS": "", "MaxRSS": "4G", "TRESUsageInTot": ""}, 4096),
        ({"NTasks": "64", "AveRSS": "", "MaxRSS": "4G", "TRESUsageInTot": ""}, None),
        # on two nodes there are two tasks at least
        ({"NTasks": "", "AveRSS": "", "MaxRSS": "4G", "TRESUsageInTot": ""}, None),
    ],
)
def test_the_memory_of_a_job_is_that_of_all_its_tasks(
    tmp_path: Path, cells: dict[str, str], expected: int | None
) -> None:
    names = ("JobID", "Partition", "Start", "End", "State", "NNodes", *cells)
    job = {"JobID": "1", "Partition": "p", "Start": "2026-03-01T00:00:00", "End": "2026-03-01T01:00:00"}
    job |= {"State": "COMPLETED", "NNodes": "2"}
    batch = {"JobID": "1.batch", "NNodes": "1", "NTasks": "1", "MaxRSS": "10M", "AveRSS": "10M"}
    rows = [job, batch, {"JobID": "1.0", "NNodes": "2", **cells}]
    lines = ["|".join(names), *("|".join(row.get(name, "") for name in names) for row in rows)]
    (row,), _, notes = parsed(written(tmp_path, "\n".join(lines) + "\n"))
    assert row["max_rss_b"] == (None if expected is None else expected * 2**20)
    assert (expected is None) == any("MaxRSS is that of one" in note for note in notes)


def test_no_request_of_memory_is_none_of_0_bytes(tmp_path: Path) -> None:
    (row,), _, _ = one(tmp_path, ReqMem="0")
    assert row["requested_memory_b"] is None


def test_what_is_set_fills_what_is_missing(tmp_path: Path) -> None:
    (row,), _, _ = one(tmp_path, "smt=true", "cpu_raw=AMD EPYC 7742", "queue=other")
    assert (row["smt"], row["cpu_raw"], row["queue"]) == (True, "AMD EPYC 7742", "p")


def test_the_ways_of_a_header(tmp_path: Path) -> None:
    row = "5|2026-03-01T01:00:00|q|a name|with a bar"
    (job,), _, _ = parsed(written(tmp_path, f"JOBID|End|partition|JobName\n{row}\n"))
    assert (job["job_id"], job["queue"]) == ("5", "q")
    (job,), _, _ = parsed(written(tmp_path, "JobID|End|Partition|\n5|2026-03-01T01:00:00|q|\n"))
    assert job["job_id"] == "5"
    (job,), _, _ = parsed(written(tmp_path, f"{row}\n"), "columns=jobid,end,partition,jobname")
    assert job["job_id"] == "5"


@pytest.mark.parametrize(
    ("text", "fill"),
    [
        ("1|2|3\n", ()),
        ("JobID|End|jobid\n1|2|3\n", ()),
        ("a,b,c\n1,2,3\n", ()),
        ("JobID|Partition\n1|p\n", ()),
        ('{"JobID": 1}\n', ()),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, fill: tuple[str, ...]) -> None:
    with raised(InputError):
        parsed(written(tmp_path, text), *fill)


@pytest.mark.parametrize(
    "fill",
    [
        "timezone=Mars/Olympus",
        "timezone=../../etc/passwd",
        "columns=jobid,end",
        "color=red",
    ],
)
def test_what_cannot_be_set(tmp_path: Path, fill: str) -> None:
    with raised(UsageError):
        one(tmp_path, fill)


def test_lines_of_another_shape_are_refused_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    good = b"1|p|2026-03-01T00:00:00|2026-03-01T01:00:00|COMPLETED|01:00:00||||2|8|n1"
    path.write_bytes(
        b"\n".join([SHORT.encode(), good, b"2|p", b"", good.replace(b"n1", b"\xff"), b"3" + good[1:]])
    )
    rows, rejects, _ = parsed(path)
    assert [row["job_id"] for row in rows] == ["1", "3"]
    assert [(reject.reason, reject.line) for reject in rejects] == [
        ("wrong number of columns", 3),
        ("not UTF-8", 5),
    ]


def test_a_header_alone_is_no_rows(tmp_path: Path) -> None:
    rows, rejects, notes = parsed(written(tmp_path, SHORT + "\n"))
    assert (rows, rejects, notes) == ([], [], ["sacct.txt: no rows"])


# -- bars in free text -----------------------------------------------------------------------------------

ALL = "JobID|JobName|NNodes|Partition|Start|End|State|SubmitLine|TimelimitRaw|WorkDir"
FREE = ("jobname", "submitline", "workdir")


@pytest.mark.parametrize("close", ["", "|"])
@pytest.mark.parametrize("name", FREE)
def test_a_bar_in_one_text_between_other_columns_is_found_by_the_shape_of_these(
    tmp_path: Path, name: str, close: str
) -> None:
    texts = dict.fromkeys(FREE, "plain") | {name: "sbatch --wrap a | b || c"}
    row = "7|{jobname}|3|batch|2026-03-01T00:00:00|2026-03-01T01:00:00|COMPLETED|{submitline}|60|{workdir}"
    text = (
        f"{ALL}{close}\n{row.format(**texts)}{close}\n{row.format(**texts).replace('7', '7.0', 1)}{close}\n"
    )
    (job,), rejects, notes = parsed(written(tmp_path, text))
    assert rejects == []
    assert (job["nodes"], job["queue"], job["wall_s"]) == (3, "batch", 3600.0)
    assert "sacct.txt: steps joined into their jobs: 1" in notes


def test_bars_in_two_texts_are_refused_for_nobody_can_tell_where_they_belong(tmp_path: Path) -> None:
    row = "7|a|b|3|batch|2026-03-01T00:00:00|2026-03-01T01:00:00|COMPLETED|c|d|60|w"
    jobs, (reject,), _ = parsed(written(tmp_path, f"{ALL}\n{row}\n"))
    assert (jobs, reject.reason) == ([], "wrong number of columns")


SEVERAL = "JobID|End|Partition|JobName|SubmitLine"
LINES = (
    "1|2026-03-01T01:00:00|p|wrap|sbatch --wrap echo a",
    "srun -n 1 echo b | cat",
    "echo c",
    "1.0|2026-03-01T01:00:00|p|echo|srun -n 1 echo b",
    "2|2026-03-01T01:00:00|p",  # cut off
    "echo d",
    "3|2026-03-01T01:00:00|p|x|sbatch x",
)


@pytest.mark.parametrize("block", [1 << 20, 40, 60, 100])
def test_lines_of_a_command_belong_to_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr("esjobs.records.ingest.reading.lines.BLOCK", block)
    jobs, rejects, notes = parsed(written(tmp_path, "\n".join([SEVERAL, *LINES]) + "\n"))
    assert [(job["job_id"], job["executable"]) for job in jobs] == [("1", "echo"), ("3", None)]
    # what follows a row that was refused is refused with it
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (6, "wrong number of columns"),
        (7, "wrong number of columns"),
    ]
    assert "sacct.txt: continuation lines of names or commands: 2" in notes


def test_lines_before_any_row_or_behind_other_columns_are_refused(tmp_path: Path) -> None:
    text = "\n".join([SEVERAL, "echo", LINES[0]])
    assert [reject.line for reject in parsed(written(tmp_path, text))[1]] == [2]
    text = "JobID|SubmitLine|Partition|End\n1|a|p|2026-03-01T01:00:00\nrest\n"
    assert [reject.line for reject in parsed(written(tmp_path, text))[1]] == [3]


# -- programs --------------------------------------------------------------------------------------------

# as sacct 22.05 printed them: job, its batch script, a daemon of mpirun, programs by their paths
PROGRAMS = "JobID|Partition|End|ElapsedRaw|JobName|SubmitLine"


def program(tmp_path: Path, *steps: str, columns: str = PROGRAMS) -> str | None:
    job = "9|batch|2026-11-23T08:30:27|40|job.sh|sbatch -n 4 job.sh"
    rows = [job, *(step.format("batch|2026-11-23T08:30:27") for step in steps)]
    width = len(columns.split("|"))
    text = "\n".join([columns, *("|".join(row.split("|")[:width]) for row in rows)])
    (read,), rejects, _ = parsed(written(tmp_path, text + "\n"))
    assert rejects == []
    name = read["executable"]
    assert name is None or isinstance(name, str)
    return name


BATCH = "9.batch|{}|40|batch|"
SOLVER = "9.{step}|{{}}|{s}|solver|/usr/bin/srun --export=ALL,X=1 -n 2 {path} 0.5 a b *"
ORTED = '9.2|{}|30|orted|srun --ntasks-per-node=1 --mpi=none --ntasks=1 orted -mca ess "slurm"'


def solver(step: int = 0, s: int = 20, path: str = "/home/ada/bin/solver") -> str:
    return SOLVER.format(step=step, s=s, path=path)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((BATCH, solver()), "/home/ada/bin/solver"),
        ((BATCH, solver(path="./solver")), "solver"),
        ((solver(0, 5), solver(1, 9)), "/home/ada/bin/solver"),
        # a small step before does not hide what took most of the time, a large one does
        (("9.0|{}|1|hostname|srun hostname", solver(1, 30)), "/home/ada/bin/solver"),
        (("9.0|{}|20|other|srun other", solver(1, 20)), None),
        ((solver(0, 20), ORTED), None),
        ((BATCH,), None),
        ((), None),
        (("9.0|{}|9|bash|srun -n1 --pty bash",), None),
        (("9.0|{}|9|mp.conf|srun -n 2 --multi-prog mp.conf",), None),
        (("9.0|{}|9|night|srun -J night ./solver",), None),
        (("9.0|{}|9|night|srun --job-name=night ./solver",), None),
        (("9.0|{}|9|solver|srun -J solver /opt/solver in.dat",), "/opt/solver"),
        (("9.0+0|{}|9|md|srun -n 1 ./md a : -n 1 ./md b",), "md"),
    ],
)
def test_the_program_of_a_job_is_that_of_its_steps(
    tmp_path: Path, steps: tuple[str, ...], expected: str | None
) -> None:
    assert program(tmp_path, *steps) == expected


def test_without_the_command_a_step_has_its_name(tmp_path: Path) -> None:
    columns = PROGRAMS.removesuffix("|SubmitLine")
    assert program(tmp_path, BATCH, solver(), columns=columns) == "solver"
    assert program(tmp_path, BATCH, ORTED, columns=columns) is None


def test_the_name_of_a_job_is_never_its_program(tmp_path: Path) -> None:
    assert program(tmp_path, columns=PROGRAMS.removesuffix("|SubmitLine")) is None


# -- names and energy ------------------------------------------------------------------------------------


def test_names_applications_and_energy_of_jobs(tmp_path: Path) -> None:
    head = "JobID|Partition|Account|User|Submit|Start|End|State|NCPUS|ConsumedEnergyRaw|JobName\n"
    times = "2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T11:00:00"
    rows = [
        f"1|p|a|u|{times}|COMPLETED|4|3600000|relax my|vasp",
        f"2|p|a|u|{times}|COMPLETED|4|0|run",
        f"2.0||||{times}|COMPLETED|4||gmx_mpi",
        f"3|p|a|u|{times}|COMPLETED|4|18446744073709551614|wrap",
        f"4|p|a|u|{times}|COMPLETED|4||",
    ]
    found, rejects, _ = parsed(written(tmp_path, head + "\n".join(rows) + "\n"), "timezone=UTC")
    assert rejects == []
    names = ("job_name", "application", "energy_j")
    assert [tuple(row[name] for name in names) for row in found] == [
        ("relax my|vasp", "vasp", 3.6e6),
        ("run", "gromacs", None),
        ("wrap", None, None),
        (None, None, None),
    ]
