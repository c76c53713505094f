"""A load says what its rows lack and what they changed, and never takes away what is known."""

from pathlib import Path

import pyarrow as pa
import pytest

from esjobs.api.session import Session
from esjobs.core.query import Select
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.schema.jobs import LOADS

ROWS = 5
FULL = (
    "pandaid,jeditaskid,computingsite,endtime,actualcorecount,nevents,cpuconsumptiontime,cpuconsumptionunit"
)
ROW = "{n},1001,CERN,2018-08-10 12:00:00,8,100,{cpu},Intel Xeon E5-2650 v2 @ 2GHz"
BARE = "pandaid,computingsite,endtime,cpuconsumptiontime"


def full(path: Path, cpu: int = 3600) -> Path:
    path.write_text("\n".join([FULL, *(ROW.format(n=n, cpu=cpu) for n in range(ROWS))]) + "\n")
    return path


def bare(path: Path) -> Path:
    path.write_text("\n".join([BARE, *(f"{n},CERN,2018-08-10 12:00:00,3600" for n in range(ROWS))]) + "\n")
    return path


def jobs(session: Session) -> list[dict[str, object]]:
    table = pa.Table.from_batches(session.store.select(Select()))
    return sorted(table.to_pylist(), key=lambda row: str(row["job_id"]))


def load(session: Session, report: RunReport) -> dict[str, object]:
    rows: list[dict[str, object]] = read_table(session.store, LOADS).to_pylist()
    return next(row for row in rows if row["load_id"] == report.run)


LACKING = (
    "5 rows lack a task id: these jobs are dropped (no task) and enter no fit",
    "5 rows lack events: these jobs are dropped (no events) and enter no fit",
    "5 rows lack cores: these jobs are dropped (no cores) and enter no fit",
    "5 rows lack a CPU model: these jobs count for their queue, but for no CPU model",
)


def test_fewer_columns_take_nothing_away(session: Session, tmp_path: Path) -> None:
    first = session.ingest("panda", full(tmp_path / "full.csv"))
    assert not [note for note in first.notes if "lack" in note or "changed" in note]
    before = jobs(session)
    poorer = session.ingest("panda", bare(tmp_path / "bare.csv"))
    assert jobs(session) == before
    assert poorer.counts == {"stored": 0, "updated": ROWS, "unchanged": ROWS}
    assert [note for note in poorer.notes if note.startswith("5 rows")] == list(LACKING)
    assert "no field of the updated jobs changed" in poorer.notes
    kept = "absent from this file, values of earlier copies kept: task_id 5, cpu_raw 5, cores 5, events 5"
    assert kept in poorer.notes
    (note,) = session.undo(first.run).notes
    assert f"{poorer.run} {ROWS}" in note
    assert session.store.span().jobs == 0
    session.ingest("panda", bare(tmp_path / "bare.csv"))
    assert [(row["task_id"], row["events"], row["cpu_s"]) for row in jobs(session)] == [
        (None, None, 3600.0)
    ] * 5


def test_an_update_names_the_fields_that_it_changed(session: Session, tmp_path: Path) -> None:
    session.ingest("panda", bare(tmp_path / "bare.csv"))
    richer = session.ingest("panda", full(tmp_path / "full.csv", cpu=3601))
    changed = "fields changed in 5 of the updated jobs: task_id 5, cpu_raw 5, cores 5, events 5, cpu_s 5"
    assert changed in richer.notes
    assert not [note for note in richer.notes if "lack" in note or "kept" in note]


def test_the_account_of_a_load_keeps_the_counts(session: Session, tmp_path: Path) -> None:
    names = ("without_task_id", "without_events", "without_cores", "without_cpu_raw", "jobs_changed")
    poor = load(session, session.ingest("panda", bare(tmp_path / "bare.csv")))
    rich = load(session, session.ingest("panda", full(tmp_path / "full.csv")))
    assert [poor[name] for name in names] == [5, 5, 5, 5, 0]
    assert [rich[name] for name in names] == [0, 0, 0, 0, 5]


def test_what_set_fills_is_not_lacking(session: Session, tmp_path: Path) -> None:
    report = session.ingest("panda", bare(tmp_path / "bare.csv"), fill={"task_id": "1001", "cores": 1})
    assert [note for note in report.notes if note.startswith("5 rows")] == [LACKING[1], LACKING[3]]


def test_a_dry_run_says_what_rows_lack_and_what_it_did_not_look_at(session: Session, tmp_path: Path) -> None:
    session.ingest("panda", full(tmp_path / "full.csv"))
    report = session.ingest("panda", bare(tmp_path / "bare.csv"), dry_run=True)
    assert report.counts == {"acceptable": ROWS}
    assert report.notes[-5:-1] == LACKING
    assert report.notes[-1].startswith("not compared with the store")


@pytest.mark.parametrize(("field", "drop"), [("jeditaskid", "no task"), ("nevents", "no events")])
def test_what_a_gap_is_said_to_cost_it_costs(session: Session, tmp_path: Path, field: str, drop: str) -> None:
    path = tmp_path / "jobs.csv"
    names = [*FULL.split(","), "wall_time"]
    rows = [dict(zip(names, [*ROW.format(n=n, cpu=3600).split(","), "600"], strict=True)) for n in range(3)]
    rows[1][field] = ""
    path.write_text("\n".join([",".join(names), *(",".join(row.values()) for row in rows)]) + "\n")
    said = session.ingest("panda", path).notes
    assert f"dropped ({drop})" in next(note for note in said if note.startswith("1 row lacks"))
    report = session.speed.aggregate(Window.parse("2018-08-10/2018-08-11"))
    assert report.dropped == {drop: 1}


def test_rows_without_any_task_or_event_are_not_meant_for_fits(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,queue,end_time,task_id\n1,q,2026-03-01T06:00:00Z,\n2,q,2026-03-01T06:00:00Z,\n")
    report = session.ingest("jobs", path)
    assert [note for note in report.notes if "rows lack" in note] == [
        "2 rows lack cores: these jobs have no core-hours"
    ]
    path.write_text("job_id,queue,end_time,task_id\n3,q,2026-03-01T06:00:00Z,7\n")
    assert any("no events" in note for note in session.ingest("jobs", path).notes)
