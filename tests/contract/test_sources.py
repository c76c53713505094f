"""A source may give jobs and rows of any table in one load: books, reading again, failing, taking back."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from esjobs.core.arrow import PUT_SCHEMA, given_schema
from esjobs.core.errors import InputError, NoResultError, UsageError
from esjobs.core.tables import Table
from esjobs.records.ingest.base import Parsed, Reject
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.jobs.ingest import ingest
from esjobs.records.jobs.undo import undo
from esjobs.schema.jobs import LOAD_COUNTS, LOADS, REJECTS
from esjobs.store.base import JobStore
from tests.contract.engines import HELD
from tests.contract.jobs import job, selected, visible
from tests.contract.made_up import MADE_UP, NOTES, READINGS, WEATHER
from tests.messages import raised

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = {table.name: table for table in (READINGS, WEATHER, NOTES, MADE_UP, LOADS)}


class MadeUpSource:
    """Lines ``{"table": NAME, "rows": [...]}``; a row that is no object is refused, ``"stop"`` breaks off."""

    name = "made-up"
    default_source = "made-up"

    def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
        """A piece a line."""
        table: Table | None = None
        with file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                piece = json.loads(line)
                if piece == "stop":
                    raise InputError(f"{file.name}, line {number}: broken off")
                table = TABLES.get(piece["table"])
                schema = PUT_SCHEMA if table is None else given_schema(table)
                good = [row for row in piece["rows"] if isinstance(row, dict)]
                rejects = tuple(
                    Reject("no object", file.name, number, "", f"{row} is no object", str(row))
                    for row in piece["rows"]
                    if not isinstance(row, dict)
                )
                rows = [_row(row, file.name, number, fill) if table is None else _typed(row) for row in good]
                batch = pa.RecordBatch.from_pylist(rows, schema=schema)
                yield Parsed(batch, rejects, piece.get("rows_in", len(piece["rows"])), table=table)


def _row(row: Mapping[str, Any], file: str, line: int, fill: Mapping[str, object]) -> dict[str, Any]:
    end = {"end_time": datetime(2018, 8, 1, tzinfo=UTC) + timedelta(hours=row.get("end_time", 1))}
    return {"origin_file": file, "origin_line": line, **fill, **job(row["job_id"]), **row, **end}


def _typed(row: Mapping[str, Any]) -> dict[str, Any]:
    typed = dict(row)
    if "day" in typed:
        typed["day"] = date.fromisoformat(typed["day"])
    if "counters" in typed:
        typed["counters"] = list(typed["counters"].items())
    return typed


JOBS = {"table": "jobs", "rows": [{"job_id": "1"}, "x", {"job_id": "2"}]}
SERIES = {
    "table": "readings",
    "rows": [
        {"job_id": "1", "counters": {"a.b": 1.0}, "series": [1.0, None]},
        7,
        {"job_id": "2", "series": []},
    ],
}
MORE_SERIES = {"table": "readings", "rows": [{"job_id": "2", "series": [2.0]}]}
DAYS = {"table": "weather", "rows": [{"day": "2018-08-01", "degrees": 1.0}, {"day": "2018-08-02"}]}


def read(store: JobStore, folder: Path, *pieces: object, name: str = "a", **options: Any) -> Any:
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(piece) + "\n" for piece in pieces))
    return ingest(lambda: store, MadeUpSource(), [file], {}, now=NOW, **options)


def books(store: JobStore, load_id: str) -> dict[str, tuple[int, ...]]:
    names = ("rows_in", "stored", "updated", "rejected")
    return {
        row["table_name"]: tuple(row[name] for name in names)
        for row in visible(store, LOAD_COUNTS)
        if row["load_id"] == load_id
    }


def test_one_load_fills_jobs_and_tables_and_its_books_balance(store: JobStore, tmp_path: Path) -> None:
    report = read(store, tmp_path, SERIES, JOBS, DAYS, MORE_SERIES)
    assert (report.rows_in, report.n_dropped) == (9, 2)
    assert report.counts["stored"] == 7
    assert report.counts["readings stored"] == 3
    assert books(store, report.run) == {
        "jobs": (3, 2, 0, 1),
        "readings": (4, 3, 0, 1),
        "weather": (2, 2, 0, 0),
    }
    (load,) = visible(store, LOADS)
    assert [load[name] for name in ("rows_in", "stored", "updated", "rejected")] == [9, 7, 0, 2]
    assert selected(store, "job_id") == ["1", "2"]
    readings = visible(store, READINGS)
    assert {row["load_id"] for row in readings} == {report.run}
    assert {row["loaded_at"] for row in readings} == {NOW}
    assert sorted(((row["job_id"], row["series"]) for row in readings), key=repr) == [
        ("1", [1.0, None]),
        ("2", [2.0]),
        ("2", []),
    ]
    assert {row["table_name"]: row["excerpt"] for row in visible(store, REJECTS)} == {
        "jobs": "x",
        "readings": "7",
    }


def test_reading_again_updates_and_taking_back_leaves_nothing(store: JobStore, tmp_path: Path) -> None:
    first = read(store, tmp_path, JOBS, SERIES, DAYS)
    before = books(store, first.run)
    again = read(store, tmp_path, JOBS, SERIES, DAYS)
    assert again.run == first.run
    assert (again.counts["stored"], again.counts["updated"]) == (0, 6)
    assert books(store, first.run) == before
    assert len(visible(store, READINGS)) == 2
    taken = undo(store, first.run, HELD)
    assert taken.rows_in == 6
    for table in (READINGS, WEATHER, LOADS, LOAD_COUNTS, REJECTS):
        assert visible(store, table) == []
    assert selected(store, "job_id") == []
    with raised(NoResultError):
        undo(store, first.run, HELD)


def test_loads_stand_beside_each_other_but_a_day_is_replaced(store: JobStore, tmp_path: Path) -> None:
    first = read(store, tmp_path, JOBS, SERIES, DAYS)
    warmer = {"table": "weather", "rows": [{"day": "2018-08-02", "degrees": 5.0}]}
    second = read(store, tmp_path, MORE_SERIES, warmer, name="b")
    assert books(store, second.run) == {"readings": (1, 1, 0, 0), "weather": (1, 0, 1, 0)}
    assert any("1 of 1 partitions by day replaced" in note for note in second.notes)
    assert len(visible(store, READINGS)) == 3
    assert sorted((str(row["day"]), row["degrees"]) for row in visible(store, WEATHER)) == [
        ("2018-08-01", 1.0),
        ("2018-08-02", 5.0),
    ]
    undo(store, first.run, HELD)
    assert [row["load_id"] for row in visible(store, WEATHER)] == [second.run]
    assert [row["load_id"] for row in visible(store, READINGS)] == [second.run]


def test_a_file_that_breaks_off_leaves_nothing(store: JobStore, tmp_path: Path) -> None:
    for pieces in ((JOBS, SERIES, "stop"), (SERIES, "stop")):
        with raised(InputError):
            read(store, tmp_path, *pieces)
        assert selected(store, "job_id") == []
        for table in (READINGS, LOADS, LOAD_COUNTS):
            assert visible(store, table) == []


def test_what_cannot_be_stored_takes_the_jobs_of_its_load_with_it(store: JobStore, tmp_path: Path) -> None:
    stranger = {"table": "loads", "rows": [{"state": "complete"}]}
    with raised(UsageError):
        read(store, tmp_path, JOBS, stranger)
    with raised(UsageError):
        read(store, tmp_path, JOBS, {"table": "made_up", "rows": [{"name": "a"}]})
    with raised(UsageError):
        read(store, tmp_path, {**JOBS, "rows_in": 4})
    with raised(UsageError):
        read(store, tmp_path, JOBS, {"table": "weather", "rows": [{"degrees": 1.0}]})
    assert selected(store, "job_id") == []
    assert visible(store, LOADS) == []


def test_jobs_of_unknown_origin_that_lose_are_in_the_books(store: JobStore, tmp_path: Path) -> None:
    nowhere = {"origin_file": None, "origin_line": None}
    newer = {"table": "jobs", "rows": [{"job_id": "1", "end_time": 5, **nowhere}]}
    older = {"table": "jobs", "rows": [{"job_id": "1", "end_time": 2, **nowhere}]}
    read(store, tmp_path, newer)
    lost = read(store, tmp_path, older, SERIES, name="b")
    assert lost.dropped == {"superseded": 1, "no object": 1}
    assert books(store, lost.run) == {"jobs": (1, 0, 0, 1), "readings": (3, 2, 0, 1)}
    unknown = [row for row in visible(store, REJECTS) if row["reason"] == "superseded"]
    assert [(row["file"], row["line"], row["table_name"]) for row in unknown] == [("unknown", 0, "jobs")]


@pytest.mark.parametrize("missing", ["source", "job_id", "queue", "end_time"])
def test_a_source_that_gives_what_is_no_job_is_told_so(store: JobStore, tmp_path: Path, missing: str) -> None:
    class Careless(MadeUpSource):
        def parse(self, file: Input, fill: Mapping[str, object]) -> Iterator[Parsed]:
            for parsed in super().parse(file, fill):
                gone = pa.nulls(parsed.batch.num_rows, PUT_SCHEMA.field(missing).type)
                place = PUT_SCHEMA.get_field_index(missing)
                batch = parsed.batch.set_column(place, missing, gone)
                yield Parsed(batch, parsed.rejects, parsed.rows_in)

    (file := tmp_path / "a.jsonl").write_text(json.dumps(JOBS))
    with raised(UsageError):
        ingest(lambda: store, Careless(), [file], {}, now=NOW)
    assert selected(store, "job_id") == []


def test_entered_rows_are_their_own_account(store: JobStore, tmp_path: Path) -> None:
    entered = {"table": "notes", "rows": [{"words": "a"}, {"words": "b"}]}
    report = read(store, tmp_path, entered)
    assert {row["import_id"] for row in visible(store, NOTES)} == {report.run}
    assert visible(store, LOADS) == []
    assert undo(store, report.run, HELD).rows_in == 2
    assert visible(store, NOTES) == []


def test_a_dry_run_writes_nothing(store: JobStore, tmp_path: Path) -> None:
    report = read(store, tmp_path, JOBS, SERIES, DAYS, dry_run=True)
    assert (report.rows_in, report.counts) == (8, {"acceptable": 6})
    assert visible(store, READINGS) == []


def test_a_table_that_the_store_lacks_takes_the_load_back(store: JobStore, tmp_path: Path) -> None:
    unknown = Table("unknown", "in no store", "load_id", READINGS.columns)
    TABLES["unknown"] = unknown
    with raised(UsageError):
        read(store, tmp_path, JOBS, {"table": "unknown", "rows": [{"job_id": "1"}]})
    assert selected(store, "job_id") == []
    assert visible(store, LOADS) == []
