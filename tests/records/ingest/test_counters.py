"""Truth values and counters in the format ``jobs``: every way to write them, and what is refused."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from esjobs.core.arrow import JOB_SCHEMA, PUT_SCHEMA
from esjobs.core.errors import InputError, UsageError
from esjobs.records.export.jobs import write_jobs
from esjobs.records.ingest.base import Parsed, Reject, parse_fill
from esjobs.records.ingest.bounds import sound
from esjobs.records.ingest.formats.sources import source
from esjobs.records.ingest.refusals import Refusals
from tests.messages import raised

JOB = {"job_id": "1", "queue": "A", "end_time": "2026-11-22T00:00:00Z"}


def parsed(path: Path, fill: tuple[str, ...] = ()) -> tuple[list[dict[str, object]], list[Reject]]:
    pieces: list[Parsed] = list(source("jobs").parse(path, parse_fill(fill)))
    assert sum(piece.rows_in for piece in pieces) == sum(
        piece.batch.num_rows + sum(reject.n_rows for reject in piece.rejects) for piece in pieces
    )
    rows = [row for piece in pieces for row in piece.batch.to_pylist()]
    return rows, [reject for piece in pieces for reject in piece.rejects]


def csv_of(tmp_path: Path, header: str, *cells: str) -> Path:
    path = tmp_path / "jobs.csv"
    rows = [f"{number},A,2026-11-22T00:00:00Z,{row}" for number, row in enumerate(cells)]
    path.write_text("\n".join([f"job_id,queue,end_time,{header}", *rows]) + "\n")
    return path


def json_of(tmp_path: Path, *values: object) -> Path:
    path = tmp_path / "jobs.jsonl"
    lines = [json.dumps({**JOB, "job_id": str(n), "counters": value}) for n, value in enumerate(values)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_of_csv_become_one_map(tmp_path: Path) -> None:
    path = csv_of(tmp_path, "Counter.B,counter.a.x , SMT", "2,1.5,TRUE", ",7,0", ",,", "0,,no")
    rows, rejects = parsed(path)
    assert rejects == []
    assert [row["counters"] for row in rows] == [
        [("B", 2.0), ("a.x", 1.5)],
        [("a.x", 7.0)],
        None,
        [("B", 0.0)],
    ]
    assert [row["smt"] for row in rows] == [True, False, None, False]


@pytest.mark.parametrize(
    ("cell", "reason", "detail"),
    [
        ("-1", "negative", "column counter.b contains '-1'"),
        ("many", "not a number", "column counter.b contains 'many'"),
        ("nan", "not a number", "column counter.b contains 'nan'"),
        ("1e31", "out of range", "column counter.b contains '1e31'; accepted: numbers from 0 to 1e+30"),
        ("1e400", "out of range", "column counter.b contains '1e400'"),
    ],
)
def test_a_cell_that_is_no_count_costs_its_row(tmp_path: Path, cell: str, reason: str, detail: str) -> None:
    rows, (reject,) = parsed(csv_of(tmp_path, "counter.a,counter.b", "1,2", f"1,{cell}"))
    assert len(rows) == 1
    assert (reject.reason, reject.field, reject.line) == (reason, "counters", 3)
    assert detail in reject.detail


def test_a_truth_value_that_is_none_costs_its_row(tmp_path: Path) -> None:
    rows, (reject,) = parsed(csv_of(tmp_path, "smt", "maybe", "yes", "0.5"[:0]))
    assert [row["smt"] for row in rows] == [True, None]
    assert (reject.reason, reject.detail) == (
        "neither true nor false",
        "smt contains 'maybe'; accepted: true or false",
    )


@pytest.mark.parametrize(
    "header",
    [
        "counter.a,counter.a",
        "counter.,x",
    ],
)
def test_columns_that_cannot_be_told_apart(tmp_path: Path, header: str) -> None:
    with raised(InputError):
        parsed(csv_of(tmp_path, header, "1,2"))


def test_objects_of_json(tmp_path: Path) -> None:
    path = json_of(tmp_path, {"b": 2, "a": 1.5}, {"a": 3}, {}, None, {"c": 1e25, "d": None})
    rows, rejects = parsed(path)
    assert rejects == []
    assert [row["counters"] for row in rows] == [
        [("a", 1.5), ("b", 2.0)],
        [("a", 3.0)],
        None,
        None,
        [("c", 1e25)],
    ]


def test_objects_of_json_with_names_of_their_own_are_read_line_by_line(tmp_path: Path) -> None:
    rows, rejects = parsed(json_of(tmp_path, *({f"event {n}": n} for n in range(400))))
    assert rejects == []
    assert [row["counters"] for row in rows] == [[(f"event {n}", float(n))] for n in range(400)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1, 2], "not an object of numbers"),
        ("text", "not an object of numbers"),
        (5, "not an object of numbers"),
        ({"a": "many"}, "not a number"),
        ({"a": {"b": 1}}, "not a number"),
        ({"a": True}, "not a number"),
        ({"a": -1}, "negative"),
        ({" ": 1}, "bad name"),
        ({"": 1}, "bad name"),
        ({"a": 1, " a": 2}, "name repeated"),
        ({"a": 10**400}, "out of range"),
    ],
)
def test_objects_that_are_refused(tmp_path: Path, value: object, reason: str) -> None:
    rows, (reject,) = parsed(json_of(tmp_path, {"a": 1}, value))
    assert [row["counters"] for row in rows] == [[("a", 1.0)]]
    assert (reject.reason, reject.field, reject.line) == (reason, "counters", 2)


def test_counters_of_parquet(tmp_path: Path) -> None:
    whole = pa.map_(pa.string(), pa.int64())
    columns = {name: [value] * 3 for name, value in JOB.items()}
    maps = pa.array([[("b", 2), ("a", 1)], None, [("a", None)]], whole)
    structs = pa.array([{"b": 2, "a": 1}, None, {"a": None}])
    single = pa.array([1, None, None])
    path = tmp_path / "jobs.parquet"
    for given in (
        {"counters": maps},
        {"counters": structs},
        {"counter.a": single, "counter.b": pa.array([2.0, None, None])},
    ):
        pa.parquet.write_table(pa.table({**columns, **given}), path)
        rows, rejects = parsed(path)
        assert rejects == []
        assert [row["counters"] for row in rows] == [[("a", 1.0), ("b", 2.0)], None, None]


def test_a_map_of_parquet_that_names_an_event_twice_costs_its_row(tmp_path: Path) -> None:
    maps = pa.array([[("a", 2.0), ("a", 1.0)]], pa.map_(pa.string(), pa.float64()))
    pa.parquet.write_table(
        pa.table({**{k: [v] for k, v in JOB.items()}, "counters": maps}), tmp_path / "j.parquet"
    )
    rows, (reject,) = parsed(tmp_path / "j.parquet")
    assert (rows, reject.reason) == ([], "name repeated")


def test_text_in_the_place_of_counters_is_refused_before_a_row_is_read(tmp_path: Path) -> None:
    pa.parquet.write_table(
        pa.table({**{k: [v] for k, v in JOB.items()}, "counters": [1.0]}), tmp_path / "j.parquet"
    )
    with raised(InputError):
        parsed(tmp_path / "j.parquet")


def test_what_set_takes() -> None:
    assert parse_fill(["smt=true", "nodes=2"]) == {"smt": True, "nodes": 2}
    assert parse_fill(["smt=No"]) == {"smt": False}
    with raised(UsageError):
        parse_fill(["smt=perhaps"])
    with raised(UsageError):
        parse_fill(["counters=1"])


def test_a_set_truth_value_fills_what_is_missing(tmp_path: Path) -> None:
    rows, _ = parsed(csv_of(tmp_path, "smt", "false", ""), ("smt=true",))
    assert [row["smt"] for row in rows] == [False, True]


def test_maps_of_any_source_are_checked() -> None:
    jobs = [
        {**JOB, "counters": counts}
        for counts in ([("a", 1.0)], [("a", 1.0), ("a", 2.0)], [("", 1.0)], [("a", -1.0)], None)
    ]
    for job in jobs:
        job["end_time"] = None
    refusals = Refusals("made up")
    left = sound(pa.RecordBatch.from_pylist(jobs, PUT_SCHEMA), None, refusals)
    assert left.column("counters").to_pylist() == [[("a", 1.0)], None]
    assert sorted(reject.reason for reject in refusals.take()) == ["bad name", "name repeated", "negative"]


def test_more_events_than_a_header_can_name() -> None:
    job = {"job_id": "1", "counters": [(f"{n:0200}", 1.0) for n in range(6000)]}
    rows = pa.RecordBatch.from_pylist([job], JOB_SCHEMA)
    with raised(UsageError):
        write_jobs([rows], io.BytesIO(), "csv")
    assert write_jobs([rows], io.BytesIO(), "jsonl") == 1


@pytest.mark.parametrize("lines", [1, 3000])
@pytest.mark.parametrize("twice", ['"X":1,"X":2', '"X":2,"Y":1,"X":2', '"X":1,"X":null', '"X":1,"\\u0058":2'])
def test_a_name_twice_in_an_object_is_refused(tmp_path: Path, lines: int, twice: str) -> None:
    """Alone, and in a file that is read in columns otherwise."""
    path = json_of(tmp_path, *({"X": 1, "Y": n} for n in range(lines)))
    line = json.dumps({**JOB, "job_id": "twice", "counters": {}}).replace("{}", "{" + twice + "}")
    path.write_text(path.read_text() + line + "\n")
    rows, (reject,) = parsed(path)
    assert len(rows) == lines
    assert (reject.reason, reject.line, reject.field) == ("name repeated", lines + 1, "counters")
    assert "with different names" in reject.detail
