"""Jobs written and read again are the same jobs, to the last bit, in every format."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.core.arrow import JOB_SCHEMA, PUT_SCHEMA
from esjobs.core.errors import UsageError
from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.records.export.jobs import ExportFormat, write_jobs
from esjobs.records.ingest.base import LARGEST, MAX_INTEGER, RESERVED, parse_fill
from esjobs.records.ingest.formats.sources import source
from tests.messages import raised

FORMS: tuple[ExportFormat, ...] = ("csv", "jsonl", "parquet")
ORIGIN = ["origin_file", "origin_line"]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).filter(
    lambda text: bool(text.strip(" \t\r\n\x0b\x0c"))
)
EVENT = TEXT.map(str.strip).filter(bool)
TIME = st.datetimes(datetime(1990, 1, 1), datetime(2100, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


def value_of(known: Field) -> st.SearchStrategy[object]:
    match known.type:
        case "integer":
            most = int(LARGEST.get(known.name, MAX_INTEGER))
            values: st.SearchStrategy[object] = st.integers(0, most)
        case "number":
            values = st.floats(0, LARGEST.get(known.name, 1e18))
        case "time":
            values = TIME
        case "boolean":
            values = st.booleans()
        case "map":
            values = st.dictionaries(EVENT, st.floats(0, 1e30), min_size=1, max_size=4).map(
                lambda counts: sorted(counts.items())
            )
        case _:
            values = TEXT.filter(lambda text: text not in RESERVED.get(known.name, ()))
    return values if known.required or known.name == "source" else st.none() | values


def ends_after_start(job: dict[str, object]) -> bool:
    start, end = job["start_time"], job["end_time"]
    return not isinstance(start, datetime) or (isinstance(end, datetime) and start <= end)


JOB: st.SearchStrategy[dict[str, object]]
JOB = st.fixed_dictionaries({known.name: value_of(known) for known in JOB_FIELDS}).filter(ends_after_start)


def read_back(path: Path) -> pa.Table:
    pieces = list(source("jobs").parse(path, {}))
    assert [reject for piece in pieces for reject in piece.rejects] == []
    return pa.Table.from_batches([piece.batch for piece in pieces], PUT_SCHEMA).drop(ORIGIN)


@given(st.lists(JOB, max_size=6))
@settings(max_examples=80, deadline=None)
def test_any_jobs(jobs: list[dict[str, object]]) -> None:
    batch = pa.RecordBatch.from_pylist(jobs, JOB_SCHEMA)
    for form in FORMS:
        path = FOLDER / f"jobs.{form}"
        with path.open("wb") as stream:
            assert write_jobs([batch, batch], stream, form) == 2 * len(jobs)
        if form == "jsonl" and not jobs:
            continue
        assert read_back(path).equals(pa.Table.from_batches([batch, batch]), check_metadata=False)


def test_the_name_of_a_counter_may_hold_a_carriage_return(tmp_path: Path) -> None:
    batch = one_job(counters=[("cycles\rinstructions", 1.0)])
    path = tmp_path / "jobs.csv"
    with path.open("wb") as stream:
        write_jobs([batch], stream, "csv")
    assert read_back(path).equals(pa.Table.from_batches([batch]), check_metadata=False)


@pytest.mark.parametrize("form", FORMS)
def test_real_jobs(panda_files: list[Path], tmp_path: Path, form: ExportFormat) -> None:
    fill = parse_fill(["processing_type=simul", "end_time=2018-08-15T12:00:00Z"])
    batches = [piece.batch for path in panda_files for piece in source("panda").parse(path, fill)]
    path = tmp_path / f"jobs.{form}"
    with path.open("wb") as stream:
        assert write_jobs(batches, stream, form) == 13_012
    assert read_back(path).equals(pa.Table.from_batches(batches).drop(ORIGIN))


def one_job(**values: object) -> pa.RecordBatch:
    job = {"source": "s", "job_id": "1", "queue": "A, B", "end_time": datetime(2018, 8, 15, 12, 0, 0, 5, UTC)}
    return pa.RecordBatch.from_pylist([{**job, **values}], JOB_SCHEMA)


def test_what_csv_looks_like() -> None:
    sink = io.BytesIO()
    job = one_job(cpu_s=0.1 + 0.2, events=3, start_time=datetime(2018, 8, 15, tzinfo=UTC))
    write_jobs([job], sink, "csv")
    header, row = sink.getvalue().decode().splitlines()
    assert header.split(",") == [name for name in JOB_SCHEMA.names if name != "counters"]
    assert '"A, B"' in row
    assert '"2018-08-15T00:00:00Z","2018-08-15T12:00:00.000005Z",,3,0.30000000000000004,' in row


def test_a_csv_without_rows_has_its_header(tmp_path: Path) -> None:
    with (tmp_path / "none.csv").open("wb") as stream:
        assert write_jobs([], stream, "csv") == 0
    (piece,) = source("jobs").parse(tmp_path / "none.csv", {})
    assert (piece.rows_in, piece.notes) == (0, ("none.csv: no rows",))


def test_json_lines_leave_missing_fields_out() -> None:
    sink = io.BytesIO()
    write_jobs([one_job()], sink, "jsonl")
    assert list(json.loads(sink.getvalue())) == ["source", "job_id", "queue", "end_time"]
    assert not sink.closed


def test_some_columns_only() -> None:
    schema = pa.schema([JOB_SCHEMA.field(name) for name in ("job_id", "queue")])
    sink = io.BytesIO()
    write_jobs([one_job().select(["job_id", "queue"])], sink, "csv", schema)
    assert sink.getvalue() == b'job_id,queue\n"1","A, B"\n'


def test_an_unknown_form_lists_the_known_ones() -> None:
    with raised(UsageError):
        write_jobs([], io.BytesIO(), "xls")  # type: ignore[arg-type]


FOLDER: Path


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    global FOLDER  # noqa: PLW0603  hypothesis refuses fixtures made anew for each example
    FOLDER = tmp_path_factory.mktemp("round-trip")
