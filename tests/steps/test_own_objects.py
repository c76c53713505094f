"""A session takes sources and stores that somebody else wrote, and gives large answers in pieces."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.arrow import JOB_SCHEMA, PUT_SCHEMA, given_schema
from esjobs.core.errors import NoResultError, UsageError
from esjobs.records.ingest.base import Parsed, Reject
from esjobs.records.ingest.bounds import sound
from esjobs.records.ingest.refusals import Refusals
from esjobs.schema.catalogue import TABLES
from esjobs.schema.declared import COREPOWER
from esjobs.store.duck.store import DuckStore
from tests.conftest import NOW
from tests.contract.made_up import READINGS
from tests.messages import raised

END = datetime(2018, 8, 10, 12, tzinfo=UTC)
NO_JOBS = pa.RecordBatch.from_pylist([], schema=PUT_SCHEMA)


class Lines:
    """Somebody's format: an id a line; ``#`` begins what is no job."""

    name = "lines"
    default_source = "lines"

    def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
        with file.open("rb") as stream:
            lines = stream.read().decode().split()
        good = [line for line in lines if line[0] != "#"]
        rejects = tuple(
            Reject("comment", file.name, number, "", "is no job", line)
            for number, line in enumerate(lines, 1)
            if line[0] == "#"
        )
        rows = [{"source": "lines", "job_id": line, "queue": "A", "end_time": END, **fill} for line in good]
        yield Parsed(pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA), rejects, len(lines))


class Forwarding:
    """Somebody's store: it is none of ours, and passes everything on."""

    def __init__(self) -> None:
        self._inner = DuckStore(None, tables=TABLES)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.txt"
    path.write_text("1 2 #3 4\n")
    return path


def test_a_source_of_ones_own(session: Session, lines: Path) -> None:
    report = session.ingest(source=Lines(), files=lines, fill={"processing_type": "simul"})
    assert (report.rows_in, report.counts, report.dropped) == (
        4,
        {"stored": 3, "updated": 0},
        {"comment": 1},
    )
    assert session.tables.loads().to_pandas()["format"].tolist() == ["lines"]
    assert set(session.jobs().to_pandas()["processing_type"]) == {"simul"}
    with raised(UsageError):
        session.ingest(source=Lines(), files=lines, fill={"degrees": "3"})


def test_what_is_no_source_is_refused_with_what_it_lacks(session: Session, lines: Path) -> None:
    for given in (
        object(),
        Lines,
        3,
    ):
        with raised(UsageError):
            session.ingest(source=given, files=lines)  # type: ignore[arg-type]
    with raised(UsageError):
        session.ingest("panda", lines, source=Lines())
    with raised(UsageError):
        session.ingest(files=lines)


def test_a_source_that_gives_other_things_than_pieces_is_told_so(session: Session, lines: Path) -> None:
    class Rows(Lines):
        def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
            del file, fill
            yield {"job_id": "1"}  # type: ignore[misc]

    class Short(Lines):
        def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
            del file, fill
            yield Parsed(pa.RecordBatch.from_pydict({"job_id": ["1"]}), (), 1)

    with raised(UsageError):
        session.ingest(source=Rows(), files=lines)
    with raised(UsageError):
        session.ingest(source=Short(), files=lines)


@pytest.mark.parametrize(
    "gives",
    [
        None,
        [None],
        [Parsed([{"job_id": "1"}], (), 1)],
        [Parsed(pa.table({}), (), 0)],
        [Parsed(NO_JOBS, ("bad",), 1)],  # type: ignore[arg-type]
        [Parsed(NO_JOBS, None, 0)],  # type: ignore[arg-type]
        [Parsed(NO_JOBS, (), "1")],  # type: ignore[arg-type]
        [Parsed(NO_JOBS, (), -1)],
        [Parsed(NO_JOBS, (), 0, "note")],  # type: ignore[arg-type]
        [Parsed(NO_JOBS, (), 0, repaired={"units": -1})],
        [Parsed(NO_JOBS, (), 0, table="jobs")],  # type: ignore[arg-type]
        [Parsed(NO_JOBS, (Reject("r", "f", "1", "", "", ""),), 1)],  # type: ignore[arg-type]
    ],
)
def test_what_is_no_piece_is_told_in_one_line(session: Session, lines: Path, gives: Any) -> None:
    class Odd(Lines):
        def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
            del file, fill
            return gives  # type: ignore[no-any-return]

    with raised(UsageError):
        session.ingest(source=Odd(), files=lines)
    assert session.tables.loads().to_pandas().empty


GOOD = {"source": "odd", "queue": "A", "end_time": END, "origin_line": 7}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"cpu_s": float("nan")}, "not a number"),
        ({"cpu_s": float("inf")}, "not a number"),
        ({"cpu_s": -5.0}, "negative"),
        ({"hs06_s": 1e300}, "out of range"),
        ({"events": 2**62}, "out of range"),
        ({"cores": -(2**63)}, "negative"),
        ({"queue": "A\0B"}, "NUL in text"),
        ({"processing_type": "all"}, "reserved value"),
        ({"end_time": datetime(1970, 1, 1, tzinfo=UTC)}, "bad time"),
        ({"start_time": datetime(2018, 8, 11, tzinfo=UTC)}, "end before start"),
    ],
)
def test_values_that_no_format_of_ours_accepts_are_refused(
    session: Session, lines: Path, values: dict[str, Any], reason: str
) -> None:
    rows = [{**GOOD, "job_id": "1"}, {**GOOD, "job_id": "2", **values}, {**GOOD, "job_id": "3", "cpu_s": 0.0}]

    class Odd(Lines):
        def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
            del file, fill
            yield Parsed(pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA), (), 3)

    report = session.ingest(source=Odd(), files=lines)
    assert (report.rows_in, report.counts["stored"], report.dropped) == (3, 2, {reason: 1})
    assert sorted(session.jobs().to_pandas()["job_id"]) == ["1", "3"]
    refused = session.tables.rejects().to_pandas().iloc[0]
    assert (refused["reason"], refused["file"], refused["line"]) == (reason, "jobs.txt", 7)
    assert refused["field"] == next(iter(values)) or reason == "end before start"
    assert session.ingest(source=Odd(), files=lines, dry_run=True).dropped == {reason: 1}


def test_nothing_is_filled_where_no_jobs_come(session: Session, lines: Path) -> None:
    class OnlyTables(Lines):
        def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
            del file, fill
            row = {"level": "queue", "name": "A", "corepower": 10.5, "benchmark": "HS06", "valid_from": END}
            batch = pa.RecordBatch.from_pylist([row], schema=given_schema(COREPOWER))
            yield Parsed(batch, (), 1, table=COREPOWER)

    for dry_run in (True, False):
        with raised(UsageError):
            session.ingest(source=OnlyTables(), files=lines, fill={"queue": "X"}, dry_run=dry_run)
    assert session.tables.corepower().to_pandas().empty
    assert session.ingest(source=OnlyTables(), files=lines).counts["stored"] == 1


def test_many_refused_values_are_counted_to_the_last(session: Session, lines: Path) -> None:
    rows = [{**GOOD, "job_id": str(number), "cpu_s": -1.0} for number in range(700)]

    class Odd(Lines):
        def parse(self, file: Any, fill: Mapping[str, object]) -> Iterator[Parsed]:
            del file, fill
            for _ in range(3):
                yield Parsed(pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA), (), 700)

    report = session.ingest(source=Odd(), files=lines)
    assert (report.rows_in, report.dropped) == (2100, {"negative": 2100})
    rejects = session.tables.rejects().to_pandas()
    assert (len(rejects), rejects["n_rows"].sum()) == (1001, 2100)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -2e31])
def test_lists_and_maps_hold_numbers_within_bounds(bad: float) -> None:
    schema = given_schema(READINGS)
    rows = [
        {"job_id": "1", "series": [1.0, None]},
        {"job_id": "2", "series": [1.0, bad]},
        {"job_id": "3", "series": []},
        {"job_id": "4", "counters": [("a", 1.0), ("b", bad)]},
        {"job_id": "5", "counters": []},
        {"job_id": "6"},
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    for start, kept in ((0, ["1", "3", "5", "6"]), (2, ["3", "5", "6"])):
        refusals = Refusals("a")
        good = sound(batch.slice(start), READINGS, refusals)
        assert good.column("job_id").to_pylist() == kept
        assert sorted(reject.excerpt for reject in refusals.take()) == ["2", "4"][start // 2 :]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.runs.prune(keep="x"),
        lambda s: s.runs.prune(daily=1.5),
        lambda s: s.query(by=3),
        lambda s: s.query(by=[3]),
        lambda s: s.query("site", where=3),
        lambda s: s.query("site", where=[3]),
        lambda s: s.ingest("jobs", None),
        lambda s: s.ingest("jobs", [None]),
    ],
)
def test_arguments_of_another_kind_are_told_in_one_line(session: Session, call: Any) -> None:
    with raised(UsageError):
        call(session)


def test_a_store_of_ones_own(lines: Path) -> None:
    store = Forwarding()
    with esjobs.open(store, clock=lambda: NOW) as session:
        session.ingest(source=Lines(), files=lines)
        assert repr(session).startswith("<esjobs.Session an object of Forwarding, 3 jobs")
        assert session.query("queue").to_pandas()["jobs"].tolist() == [3]
        assert session.store is store
    with raised(esjobs.EsjobsError):
        store.span()


def test_what_is_no_store_is_refused_with_what_it_lacks() -> None:
    with raised(UsageError):
        esjobs.open({})  # type: ignore[arg-type]
    with raised(UsageError):
        esjobs.open(DuckStore)  # type: ignore[arg-type]


def test_declared_values_are_a_source_like_others(session: Session, tmp_path: Path) -> None:
    table = tmp_path / "declared.csv"
    table.write_text("name,corepower\nA,10.5\nB,\n")
    imported = session.declared.import_values(table, benchmark="hs06", valid_from="2018-01-01")
    session.declared.remove(imported.run)
    report = session.ingest("corepower", table, fill=["benchmark=HS06", "valid_from=2018-01-01"])
    assert report.run == imported.run
    assert report.counts == {
        "stored": 2,
        "updated": 0,
        "corepower stored": 2,
        "corepower updated": 0,
        "rows without a value": 1,
    }
    assert (report.rows_in, report.rows_out) == (imported.rows_in, imported.rows_out) == (2, 1)
    assert report.counts == imported.counts
    assert "add --set level=cpu_model" in report.notes[0]
    assert "for CPU models add --level cpu_model" in imported.notes[0]
    assert report.notes[1:] == imported.notes[1:]
    assert any("valid from 2018-01-01" in note for note in report.notes)
    dry = session.ingest("corepower", table, fill=["benchmark=HS06"], dry_run=True)
    (note,) = (note for note in dry.notes if "not compared" in note)
    assert "superseded" not in note
    assert "job" not in note
    rows = session.tables.corepower().to_pandas().set_index("name")
    assert rows["corepower"].to_dict()["A"] == 10.5
    assert set(session.tables.loads().to_pandas()["format"]) == {"corepower"}
    with raised(UsageError):
        session.ingest("corepower", table, fill=["cores=8"])
    with raised(UsageError):
        session.ingest("corepower", [table, table], fill=["benchmark=HS06"])
    session.undo(report.run)
    assert session.tables.corepower().to_pandas().empty


def test_batches_are_what_the_frames_are(session: Session, lines: Path) -> None:
    session.ingest(source=Lines(), files=lines)
    reader = session.jobs().batches()
    assert reader.schema == JOB_SCHEMA
    assert sorted(reader.read_all().column("job_id").to_pylist()) == ["1", "2", "4"]
    chosen = session.jobs(
        where={"queue": "A"}, window="2018-08-10/2018-08-11", columns=["job_id", "day"]
    ).batches()
    assert chosen.schema.names == ["job_id", "day"]
    counted = duckdb.execute("SELECT count(*), min(day)::VARCHAR FROM chosen").fetchall()
    assert counted == [(3, "2018-08-10")]
    assert session.jobs(where={"queue": "B"}).batches().read_all().num_rows == 0
    resolved = session.jobs(columns=["site", "queue", "cpu_model"]).batches().read_all().to_pylist()
    assert resolved == [{"site": "A", "queue": "A", "cpu_model": None}] * 3
    (load,) = session.tables.batches("loads", columns=["format", "rows_in"]).read_all().to_pylist()
    assert load == {"format": "lines", "rows_in": 4}
    assert session.tables.batches("corepower").schema.names == list(COREPOWER.column_names)
    for name, options in (
        ("loads", {"run": "a"}),
        ("loads", {"window": "2018-08-10/2018-08-11"}),
        ("nothing", {}),
        ("loads", {"columns": ["k"]}),
    ):
        with raised(UsageError):
            session.tables.batches(name, **options)
    with raised(UsageError):
        session.jobs(columns=["nothing"])
    with pytest.raises(NoResultError):
        session.tables.batches("factors")


def test_batches_of_many_jobs_are_never_all_in_memory(session: Session) -> None:
    """400 000 jobs of about 40 bytes a column pass in pieces of at most 65 536 rows."""
    rows = 400_000
    columns: dict[str, Any] = {
        "source": pa.repeat("lines", rows),
        "job_id": pa.array(range(rows)).cast(pa.string()),
        "queue": pa.repeat("A" * 40, rows),
        "end_time": pa.repeat(pa.scalar(END, PUT_SCHEMA.field("end_time").type), rows),
    }
    filled = [columns.get(item.name, pa.nulls(rows, item.type)) for item in PUT_SCHEMA]
    session.store.put_jobs([pa.RecordBatch.from_arrays(filled, schema=PUT_SCHEMA)], "load")
    del filled, columns
    before = pa.total_allocated_bytes()
    most = counted = 0
    for batch in session.jobs(columns=["job_id", "queue"]).batches():
        counted += batch.num_rows
        assert batch.num_rows <= 65_536
        most = max(most, pa.total_allocated_bytes() - before)
    assert counted == rows
    assert most < rows * 40 / 2
