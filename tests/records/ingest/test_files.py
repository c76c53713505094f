"""Files as a whole: what cannot be read says why and what to do; what can is recognised by its content."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from esjobs.core.errors import EsjobsError, InputError
from esjobs.records.ingest.base import Reject
from esjobs.records.ingest.formats.canonical import LAYOUT
from esjobs.records.ingest.formats.sources import source
from esjobs.records.ingest.reading.batches import parse_file
from esjobs.records.ingest.validate import Context
from tests.messages import raised

Read = Callable[..., tuple[list[dict[str, object]], list[Reject]]]

HEADER = b"pandaid,computingsite,endtime\n"
LINE = b"1,CERN,2018-08-15 12:00:00\n"
CSV = HEADER + LINE * 3
NOISE = bytes(range(1, 256)) * 40


def notes(path: Path, form: str = "panda", **fill: object) -> list[str]:
    return [note for piece in source(form).parse(path, fill) for note in piece.notes]


def many(rows: int) -> bytes:
    return HEADER + b"".join(
        b"%d,CERN-%d,2018-08-15 12:00:00\n" % (n, n * 7919 % 100_003) for n in range(rows)
    )


UNREADABLE = [
    ("empty.csv", b""),
    ("empty.csv.gz", gzip.compress(b"")),
    ("blank.csv", b"\n\r\n\n"),
    ("a.csv.gz", gzip.compress(CSV)[:-9]),
    ("a.csv.gz", gzip.compress(CSV)[:-6] + b"123456"),
    ("a.csv.gz", b"\x1f\x8b" + NOISE),
    ("a.csv", CSV.decode().encode("utf-16")),
    ("a.csv", CSV.decode().encode("utf-16-le")),
    ("a.csv", b"\x7fELF\x00\x00" + NOISE),
    ("a.csv", b"PK\x03\x04" + NOISE),
    ("a.csv", b"BZh9" + NOISE),
    ("a.csv", b"\xfd7zXZ\x00" + NOISE),
    ("a.csv", b"\x28\xb5\x2f\xfd" + NOISE),
    ("a.parquet", b"PAR1" + NOISE),
    ("a.parquet.gz", gzip.compress(b"PAR1" + NOISE)),
    ("a.json", b'[{"pandaid": 1}]'),
    ("a.csv", b"pandaid,computingsite\n1,CERN\n"),
    ("a.csv", b"queue,endtime\n"),
    ("a.csv", b"pandaid;computingsite;endtime\n"),
    ("a.csv", b"pandaid,endtime,PandaID,computingsite\n"),
    ("a.csv", b"pandaid,computingsite,Ort\xe9\n" + LINE),
    ("a.csv", b'pandaid,"computingsite,endtime\n' + LINE),
    ("a.csv", b"x" * 5_000_000),
    ("a.csv", CSV.replace(b"\n", b"\r")),
]


@pytest.mark.parametrize(("name", "data"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_cannot_be_read_is_one_line_with_a_way_out(read: Read, name: str, data: bytes) -> None:
    with raised(InputError):
        read(name, data)


def test_a_directory_a_missing_file_and_a_forbidden_one(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.csv"):
        with raised(InputError):
            list(source("panda").parse(path, {}))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_gzip_cut_in_the_middle_names_the_line_reached(tmp_path: Path, form: str) -> None:
    data = many(400_000 if form == "csv" else 150_000)
    if form == "jsonl":
        lines = (line.split(",") for line in data.decode().splitlines()[1:])
        keys = HEADER.decode().strip().split(",")
        data = "".join(json.dumps(dict(zip(keys, line, strict=True))) + "\n" for line in lines).encode()
    path = tmp_path / f"jobs.{form}.gz"
    path.write_bytes(gzip.compress(data, 1)[:-1000])
    pieces = source("panda").parse(path, {})
    assert next(pieces).rows_in > 0
    with raised(InputError):
        list(pieces)


def test_several_gzip_members_are_one_file(read: Read) -> None:
    rows, rejects = read("a.csv.gz", gzip.compress(HEADER + LINE) + gzip.compress(LINE))
    assert (len(rows), rejects) == (2, [])


def test_content_decides_and_not_the_name(read: Read) -> None:
    record = b'{"pandaid": 1, "computingsite": "CERN", "endtime": "2018-08-15"}\n'
    table = pa.table({"pandaid": [1], "computingsite": ["CERN"], "endtime": ["2018-08-15"]})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    for data in (CSV, gzip.compress(CSV), record, gzip.compress(record), sink.getvalue()):
        rows, rejects = read("jobs.txt", data)
        assert rows[0]["job_id"] == "1"
        assert rejects == []


def test_header_only_is_no_rows_and_a_note(tmp_path: Path) -> None:
    for data in (HEADER, HEADER.strip(), HEADER + b"\n\n"):
        (tmp_path / "a.csv").write_bytes(data)
        (piece,) = source("panda").parse(tmp_path / "a.csv", {})
        assert (piece.rows_in, piece.batch.num_rows, piece.rejects) == (0, 0, ())
        assert piece.notes == ("a.csv: no rows",)


def test_columns_that_are_not_read_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        HEADER.replace(b"\n", b",dbTime,day\n") + LINE.replace(b"\n", b",1,2\n") * 9
    )
    assert notes(tmp_path / "a.csv") == [
        "a.csv: ignored columns that esjobs computes: day",
        "a.csv: ignored 1 columns that esjobs does not use: dbTime",
    ]
    record = b'{"pandaid": 1, "computingsite": "CERN", "endtime": "2018-08-15", "dbTime": 1}\n'
    (tmp_path / "a.jsonl").write_bytes(record * 9)
    assert notes(tmp_path / "a.jsonl") == ["a.jsonl: ignored 1 columns that esjobs does not use: dbtime"]


def test_a_required_column_may_be_filled_instead(read: Read) -> None:
    moment = datetime(2018, 8, 15, tzinfo=UTC)
    rows, rejects = read("a.csv", b"pandaid\n1\n", queue="CERN", end_time=moment)
    assert (rows[0]["queue"], rows[0]["end_time"], rejects) == ("CERN", moment, [])


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    import os
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(CSV),))
    writer.start()
    (piece,) = source("panda").parse(path, {})
    writer.join()
    assert piece.rows_in == 3


class TestParquetTypes:
    """Types that other writers choose for the same facts."""

    def write(self, path: Path, **columns: object) -> Path:
        known = {"job_id": pa.array(["1"]), "queue": pa.array(["A"]), "end_time": pa.array(["2018-08-15"])}
        pyarrow.parquet.write_table(pa.table({**known, **columns}), path)
        return path

    @pytest.mark.parametrize(
        ("name", "array", "value"),
        [
            ("job_id", pa.array([4051899481]), "4051899481"),
            ("job_id", pa.array([4051899481.0]), "4051899481"),
            ("job_id", pa.array([2**63], pa.uint64()), str(2**63)),
            ("job_id", pa.array(["x"], pa.large_string()), "x"),
            ("job_id", pa.array([b"x"], pa.binary()), "x"),
            ("job_id", pa.array(["x"]).dictionary_encode(), "x"),
            ("user", pa.array([True]), "true"),
            ("user", pa.array([1.5]), "1.5"),
            ("user", pa.array([float("nan")]), None),
            ("user", pa.nulls(1), None),
            ("events", pa.array([7], pa.int8()), 7),
            ("events", pa.array([7.0], pa.float32()), 7),
            ("events", pa.array(["7.0"]), 7),
            ("events", pa.array([Decimal("7.00")]), 7),
            ("cpu_s", pa.array([7]), 7.0),
            ("cpu_s", pa.array([0.5], pa.float16()), 0.5),
            ("cpu_s", pa.nulls(1), None),
            ("end_time", pa.array([date(2018, 8, 15)]), datetime(2018, 8, 15, tzinfo=UTC)),
            ("end_time", pa.array([1534291200]), datetime(2018, 8, 15, tzinfo=UTC)),
            ("end_time", pa.array([1534291200000]), datetime(2018, 8, 15, tzinfo=UTC)),
            ("end_time", pa.array([1534291200.5]), datetime(2018, 8, 15, 0, 0, 0, 500000, tzinfo=UTC)),
            ("end_time", pa.array([1534291200], pa.timestamp("s")), datetime(2018, 8, 15, tzinfo=UTC)),
            (
                "end_time",
                pa.array([1534291200 * 10**9 + 1999], pa.timestamp("ns", "Europe/Zurich")),
                datetime(2018, 8, 15, 0, 0, 0, 1, tzinfo=UTC),
            ),
        ],
    )
    def test_accepted(self, tmp_path: Path, name: str, array: pa.Array, value: object) -> None:
        (piece,) = source("jobs").parse(self.write(tmp_path / "a.parquet", **{name: array}), {})
        assert piece.rejects == ()
        assert piece.batch.column(name)[0].as_py() == value

    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("job_id", pa.array([[1]])),
            ("events", pa.array([True])),
            ("cpu_s", pa.array([{"a": 1}])),
            ("cpu_s", pa.array([date(2018, 8, 15)])),
            ("end_time", pa.array([True])),
        ],
    )
    def test_refused_before_a_row_is_read(self, tmp_path: Path, name: str, array: pa.Array) -> None:
        path = self.write(tmp_path / "a.parquet", **{name: array})
        with raised(InputError):
            next(source("jobs").parse(path, {}))

    @pytest.mark.parametrize(
        ("name", "array", "reason"),
        [
            ("job_id", pa.array([""]), "missing job_id"),
            ("job_id", pa.array([1e300]), "out of range"),
            ("queue", pa.array([" \t"]), "missing queue"),
            ("queue", pa.array([b"\xff"]), "not UTF-8"),
            ("queue", pa.array([b"\xff"]).cast(pa.binary()).dictionary_encode(), "not UTF-8"),
            ("events", pa.array([1.5]), "not a whole number"),
            ("events", pa.array([2**53]), "out of range"),
            ("events", pa.array([-1]), "negative"),
            ("cpu_s", pa.array([float("nan")]), "not a number"),
            ("cpu_s", pa.array([float("inf")]), "not a number"),
            ("cpu_s", pa.array([1e19]), "out of range"),
            ("end_time", pa.array([2**62], pa.timestamp("ms")), "bad time"),
            ("end_time", pa.array([float("inf")]), "bad time"),
            ("start_time", pa.array([date(2018, 8, 16)]), "end before start"),
        ],
    )
    def test_a_bad_value_refuses_its_row(
        self, tmp_path: Path, name: str, array: pa.Array, reason: str
    ) -> None:
        (piece,) = source("jobs").parse(self.write(tmp_path / "a.parquet", **{name: array}), {})
        assert [(reject.reason, reject.line) for reject in piece.rejects] == [(reason, 1)]
        assert piece.batch.num_rows == 0

    def test_text_that_is_not_utf8_refuses_its_row_only(self, tmp_path: Path) -> None:
        table = pa.table(
            {
                "job_id": ["1", "2", "3"],
                "queue": pa.array([b"A", b"\xff", b"C"]),
                "end_time": ["2018-08-15"] * 3,
            }
        )
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        (piece,) = source("jobs").parse(tmp_path / "a.parquet", {})
        assert piece.batch.column("origin_line").to_pylist() == [1, 3]
        assert [(reject.reason, reject.line) for reject in piece.rejects] == [("not UTF-8", 2)]

    def test_a_file_damaged_in_the_middle_names_the_row(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        rows = 300_000
        table = pa.table(
            {
                "job_id": [str(n * 7919) for n in range(rows)],
                "queue": ["A"] * rows,
                "end_time": pa.array([1534291200] * rows),
            }
        )
        pyarrow.parquet.write_table(
            table, path, row_group_size=50_000, compression="zstd", write_page_checksum=True
        )
        data = bytearray(path.read_bytes())
        middle = len(data) * 3 // 4
        data[middle : middle + 4000] = b"\xff" * 4000
        path.write_bytes(data)
        pieces = parse_file(path, LAYOUT, Context(path.name, "jobs", {}))
        with raised(EsjobsError):
            list(pieces)
