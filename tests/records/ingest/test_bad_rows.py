"""A gallery of rows that must be refused: the reason, the line, the field and what the message says."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from esjobs.records.ingest.base import EXCERPT, MAX_LINE, Reject
from esjobs.records.ingest.refusals import LISTED

Read = Callable[..., tuple[list[dict[str, object]], list[Reject]]]

HEADER = (
    b"pandaid,computingsite,endtime,starttime,nevents,cpuconsumptiontime,maxrss,processingtype,produsername\n"
)
GOOD = b"1,CERN,2018-08-15 12:00:00,2018-08-15 11:00:00,10,3600,1000,simul,ann\n"


def row(**cells: str) -> bytes:
    """A good row with some cells replaced."""
    values = dict(
        zip(HEADER.decode().strip().split(","), GOOD.decode().strip().split(","), strict=True), pandaid="2"
    )
    return ",".join((values | cells).values()).encode() + b"\n"


CELLS = [
    ({"pandaid": ""}, "missing job_id", "job_id", "a value in pandaid"),
    ({"pandaid": "NULL"}, "missing job_id", "job_id", "a value in pandaid"),
    ({"pandaid": "12x"}, "not a whole number", "job_id", "'12x'"),
    ({"pandaid": "-7"}, "negative", "job_id", "'-7'"),
    ({"pandaid": "-7.0"}, "negative", "job_id", "'-7.0'"),
    *(
        ({"pandaid": text}, "signed id", "job_id", f"'{text}'; accepted: a whole number without a sign")
        for text in ("-0", "-0.0", "-00.", "+7", "+7.0", "+0")
    ),
    ({"pandaid": "--7"}, "not a whole number", "job_id", "'--7'"),
    ({"pandaid": "+"}, "not a whole number", "job_id", "'+'"),
    ({"computingsite": ""}, "missing queue", "queue", "--set queue=VALUE"),
    ({"computingsite": "   "}, "missing queue", "queue", "computingsite"),
    ({"endtime": ""}, "missing end_time", "end_time", "a value in endtime, or --set end_time=VALUE"),
    (
        {"endtime": "yesterday"},
        "bad time",
        "end_time",
        "column endtime contains 'yesterday'; accepted: ISO 8601",
    ),
    ({"endtime": "2018-02-30 12:00:00"}, "bad time", "end_time", "1990 to 2100"),
    ({"endtime": "1989-12-31 23:59:59"}, "bad time", "end_time", "1990 to 2100"),
    ({"endtime": "2101-01-01"}, "bad time", "end_time", "1990 to 2100"),
    ({"endtime": "12345"}, "bad time", "end_time", "'12345'"),
    (
        {"endtime": "2018-08-15 10:59:59"},
        "end before start",
        "end_time",
        "before start_time 2018-08-15T11:00:00",
    ),
    ({"nevents": "abc"}, "not a number", "events", "column nevents contains 'abc'; accepted: a whole number"),
    ({"nevents": "1.5"}, "not a whole number", "events", "'1.5'"),
    ({"nevents": "-1"}, "negative", "events", "'-1'"),
    ({"nevents": "9007199254740992"}, "out of range", "events", "2^53"),
    ({"nevents": "1e400"}, "out of range", "events", "'1e400'"),
    ({"nevents": "NaN"}, "not a number", "events", "'NaN'"),
    ({"cpuconsumptiontime": "nan"}, "not a number", "cpu_s", "accepted: a finite number from 0 to 1e+18 (s)"),
    ({"cpuconsumptiontime": "inf"}, "not a number", "cpu_s", "'inf'"),
    ({"cpuconsumptiontime": "-Infinity"}, "not a number", "cpu_s", "'-Infinity'"),
    ({"cpuconsumptiontime": "1e308"}, "out of range", "cpu_s", "'1e308'"),
    ({"cpuconsumptiontime": "-1e308"}, "negative", "cpu_s", "'-1e308'"),
    ({"cpuconsumptiontime": "-0.5"}, "negative", "cpu_s", "'-0.5'"),
    ({"cpuconsumptiontime": "1_000"}, "not a number", "cpu_s", "'1_000'"),
    ({"cpuconsumptiontime": "0x10"}, "not a number", "cpu_s", "'0x10'"),
    ({"cpuconsumptiontime": "12 s"}, "not a number", "cpu_s", "'12 s'"),
    ({"maxrss": "-2"}, "negative", "max_rss_b", "'-2'"),
    ({"processingtype": "all"}, "reserved value", "processing_type", "'all'"),
    ({"computingsite": "SITE\0"}, "NUL in text", "queue", "without the character NUL"),
    ({"nevents": "x", "computingsite": ""}, "missing queue", "queue", "computingsite"),
    ({"nevents": "x", "cpuconsumptiontime": "y"}, "not a number", "events", "'x'"),
    ({"endtime": "2018-08-15 10:00:00", "maxrss": "-2"}, "negative", "max_rss_b", "'-2'"),
]


@pytest.mark.parametrize(("cells", "reason", "name", "message"), CELLS, ids=[str(case[0]) for case in CELLS])
def test_a_bad_cell_refuses_its_row_and_no_other(
    read: Read, cells: dict[str, str], reason: str, name: str, message: str
) -> None:
    bad = row(**cells)
    rows, rejects = read("jobs.csv", HEADER + GOOD + bad + GOOD)
    assert [row["origin_line"] for row in rows] == [2, 4]
    (reject,) = rejects
    assert (reject.reason, reject.field, reject.line, reject.file) == (reason, name, 3, "jobs.csv")
    assert message in reject.detail
    assert reject.excerpt == bad.decode().strip()


@pytest.mark.parametrize(
    ("cells", "name", "value"),
    [
        ({"nevents": "10.0"}, "events", 10),
        ({"nevents": "1e3"}, "events", 1000),
        ({"nevents": " 7 "}, "events", 7),
        ({"nevents": ""}, "events", None),
        ({"nevents": "NULL"}, "events", None),
        ({"nevents": " "}, "events", None),
        ({"nevents": "0"}, "events", 0),
        ({"nevents": "9007199254740991"}, "events", 9007199254740991),
        ({"cpuconsumptiontime": "+.5"}, "cpu_s", 0.5),
        ({"cpuconsumptiontime": "1e-400"}, "cpu_s", 0.0),
        ({"cpuconsumptiontime": "0.1"}, "cpu_s", 0.1),
        ({"maxrss": "-1"}, "max_rss_b", None),
        ({"maxrss": "2"}, "max_rss_b", 2048.0),
        ({"pandaid": "4051899481.0"}, "job_id", "4051899481"),
        ({"pandaid": "007"}, "job_id", "007"),
        ({"produsername": "nan"}, "user", None),
        ({"produsername": " None "}, "user", None),
        ({"produsername": "  Ann B  "}, "user", "Ann B"),
        ({"produsername": '"Ann ""the"" B, C"'}, "user", 'Ann "the" B, C'),
        ({"produsername": '"Ann\r\nB"'}, "user", "Ann\r\nB"),
        ({"produsername": "Ann\rB"}, "user", "Ann\rB"),
        ({"produsername": 'An"n'}, "user", 'An"n'),
        ({"produsername": "Zoë"}, "user", "Zoë"),
        ({"processingtype": "ALL"}, "processing_type", "ALL"),
    ],
)
def test_what_is_accepted(read: Read, cells: dict[str, str], name: str, value: object) -> None:
    rows, rejects = read("jobs.csv", HEADER + row(**cells) + GOOD)
    assert rejects == []
    assert rows[0][name] == value
    assert rows[1]["job_id"] == "1"


LINES = [
    (b"2,CERN\n", "wrong number of columns", "2 cells; accepted: 9"),
    (GOOD.strip() + b",extra\n", "wrong number of columns", "10 cells"),
    (b"\xff\xfe,CERN\n", "not UTF-8", "byte 0xff at position 1"),
    (GOOD.replace(b"ann", b"Zo\xeb"), "not UTF-8", "byte 0xeb"),
    (GOOD.replace(b"ann", b"x" * MAX_LINE), "line too long", "1048576 bytes"),
    (GOOD.replace(b"ann", b"x" * 10_000_000), "line too long", "1048576 bytes"),
    (b'"' + b"x" * 10_000_000 + b"\n", "line too long", "1048576 bytes"),
    (GOOD.replace(b"ann", b'"ann'), "unclosed quote", "not closed"),
    (b'3,"CERN\n', "unclosed quote", "not closed"),
]


@pytest.mark.parametrize(("line", "reason", "message"), LINES, ids=range(len(LINES)))
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_a_malformed_line_refuses_itself_and_no_other(
    read: Read, line: bytes, reason: str, message: str, end: bytes
) -> None:
    data = (HEADER + GOOD + b"\n" + line + GOOD + GOOD).replace(b"\n", end)
    rows, rejects = read("jobs.csv", data)
    assert [row["origin_line"] for row in rows] == [2, 5, 6]
    (reject,) = rejects
    assert (reject.reason, reject.line, reject.field) == (reason, 4, "")
    assert message in reject.detail
    assert len(reject.excerpt) <= EXCERPT
    assert rows[-1]["user"] == "ann"


def test_a_byte_order_mark_inside_a_file_is_data(read: Read) -> None:
    rows, rejects = read("jobs.csv", HEADER + b"\xef\xbb\xbf" + GOOD + GOOD)
    assert [row["origin_line"] for row in rows] == [3]
    assert [(reject.line, reject.reason) for reject in rejects] == [(2, "not a whole number")]


def test_lines_are_counted_through_quoted_line_ends_and_blank_lines(read: Read) -> None:
    spanning = GOOD.replace(b"ann", b'"a\n\nn"')
    data = b"\r\n" + HEADER + spanning + b"\n\n" + row(nevents="x") + b"\r\n" + GOOD.strip()
    rows, rejects = read("jobs.csv", data)
    assert [row["origin_line"] for row in rows] == [3, 10]
    assert rows[0]["user"] == "a\n\nn"
    assert [reject.line for reject in rejects] == [8]


def test_a_malformed_record_over_lines_costs_only_its_first_line(read: Read) -> None:
    data = HEADER + GOOD + b'9,"CERN\n' + GOOD + GOOD + b'8,"x"\n' + GOOD
    rows, rejects = read("jobs.csv", data)
    assert [row["origin_line"] for row in rows] == [2, 4, 5, 7]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (3, "wrong number of columns"),
        (6, "wrong number of columns"),
    ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("last", [b"\n", b""], ids=["ended", "unended"])
def test_byte_order_mark_and_missing_last_line_end(read: Read, mark: bytes, last: bytes) -> None:
    rows, rejects = read("jobs.csv", mark + HEADER + GOOD + GOOD.strip() + last)
    assert (len(rows), rejects) == (2, [])


JSON = [
    (b'{"pandaid": 1', "bad JSON", "one JSON object per line"),
    (b"[1, 2]", "bad JSON", "a list"),
    (b'{"pandaid": 1} {"pandaid": 2}', "bad JSON", "Extra data"),
    (b'{"pandaid": "\\ud800", "computingsite": "CERN"}', "bad JSON", "surrogate"),
    (b'{"\\ud800": "x", "computingsite": "CERN"}', "bad JSON", "surrogate"),
    (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "bad JSON", "nested too deeply"),
    (b'{"a": ' + b'{"b":' * 50_000 + b"1" + b"}" * 50_000 + b"}", "bad JSON", "nested too deeply"),
    (b'{"pandaid": "\xff"}', "not UTF-8", "0xff"),
    (b'{"pandaid": "' + b"1" * 10_000_000 + b'"}', "line too long", "1048576"),
    (b'{"pandaid": 2, "computingsite": "A", "endtime": NaN}', "bad time", "'NaN'"),
    (b'{"pandaid": 2, "computingsite": "A", "endtime": true}', "bad time", "'true'"),
    (b'{"pandaid": 2, "endtime": "2018-08-15"}', "missing queue", "computingsite"),
    (b'{"computingsite": "A", "endtime": "2018-08-15"}', "missing job_id", "pandaid"),
    *(
        (b'{"pandaid": ' + text + b', "computingsite": "A", "endtime": "2018-08-15"}', "signed id", message)
        for text, message in ((b"-0", "'-0.0'"), (b"-0.0", "'-0.0'"), (b'"-0"', "'-0'"), (b'"+7"', "'+7'"))
    ),
    (
        b'{"pandaid": +7, "computingsite": "A", "endtime": "2018-08-15"}',
        "bad JSON",
        "one JSON object per line",
    ),
    (b'{"pandaid": 2.5, "computingsite": "A", "endtime": "2018-08-15"}', "not a whole number", "'2.5'"),
    (
        b'{"pandaid": 2, "computingsite": ["A"], "endtime": "2018-08-15"}',
        "not a plain value",
        "computingsite",
    ),
    (b'{"pandaid": 2, "computingsite": "A", "endtime": "2018-08-15", "nevents": "x"}', "not a number", "'x'"),
    (
        b'{"pandaid": 2, "computingsite": "A", "endtime": "2018-08-15", "nevents": true}',
        "not a number",
        "true",
    ),
    (b'{"pandaid": 2, "computingsite": "A", "endtime": "2018-08-15", "nevents": -3}', "negative", "'-3'"),
    (
        b'{"pandaid": 2, "computingsite": "A", "endtime": "2018-08-15", "nevents": 1e400}',
        "out of range",
        "1e999",
    ),
    (
        b'{"pandaid": 2, "computingsite": "A", "endtime": "2018-08-15", "nevents": 1e300}',
        "out of range",
        "1e+300",
    ),
]


@pytest.mark.parametrize(("line", "reason", "message"), JSON, ids=range(len(JSON)))
def test_a_bad_json_line_refuses_itself_and_no_other(
    read: Read, line: bytes, reason: str, message: str
) -> None:
    good = b'{"PandaID": 1, "computingsite": "CERN", "endtime": "2018-08-15T12:00:00", "nevents": 10}\n'
    rows, rejects = read("jobs.jsonl", good + b"\r\n" + line + b"\n" + good + good.strip())
    assert [row["origin_line"] for row in rows] == [1, 4, 5]
    assert {row["events"] for row in rows} == {10}
    (reject,) = rejects
    assert (reject.reason, reject.line) == (reason, 3)
    assert message in reject.detail
    assert len(reject.excerpt) <= EXCERPT


def test_a_whole_block_of_bad_rows_is_refused_row_by_row(read: Read) -> None:
    rows, rejects = read("jobs.csv", HEADER + row(nevents="x") * LISTED)
    assert rows == []
    assert [reject.line for reject in rejects] == list(range(2, LISTED + 2))
    assert {reject.n_rows for reject in rejects} == {1}


@pytest.mark.parametrize("form", ["csv", "short.csv", "quotes.csv", "jsonl", "parquet"])
def test_beyond_a_thousand_of_a_kind_rows_are_counted(read: Read, form: str, tmp_path: Path) -> None:
    """Rows of two kinds, in turn, and good ones between them; 60 000 rows are several pieces."""
    turns = 20_000
    if form == "csv":
        data = HEADER + (row(nevents="x") + row() + row(endtime="")) * turns
    elif form == "short.csv":
        data = HEADER + (b"a\n" + row() + b"\xff\n") * turns
    elif form == "quotes.csv":
        data = HEADER + (b'"a"\n' + row() + b'"\xff"\n') * turns
    elif form == "jsonl":
        good = b'{"pandaid": 1, "computingsite": "A", "endtime": "2018-08-15"}\n'
        data = (good + b"[]\n" + b'{"pandaid": 1, "computingsite": "A"}\n') * turns
    else:
        columns = {
            "pandaid": pa.array([b"1", b"\xff", b"1"] * turns, pa.binary()),
            "computingsite": ["A", "A", None] * turns,
            "endtime": ["2018-08-15"] * 3 * turns,
        }
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "rows")
        data = (tmp_path / "rows").read_bytes()
    rows, rejects = read(f"jobs.{form}", data)
    assert len(rows) == turns
    kinds = {(reject.reason, reject.field) for reject in rejects}
    assert len(kinds) == 2
    assert len(rejects) == 2 * (LISTED + 1)
    for kind in kinds:
        mine = [reject for reject in rejects if (reject.reason, reject.field) == kind]
        lines = [reject.line for reject in mine]
        assert [reject.n_rows for reject in mine] == [1] * LISTED + [turns - LISTED]
        assert lines == list(range(lines[0], lines[0] + 3 * LISTED + 1, 3)), "the first ones are listed"
        assert f"19,000 more rows like the 1,000 listed ones, lines {lines[-1]} to " in mine[-1].detail
