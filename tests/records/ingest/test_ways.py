"""Every way through a file gives the same rows and the same refusals, whatever is in it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.records.ingest.base import Reject
from esjobs.records.ingest.formats.panda import LAYOUT
from esjobs.records.ingest.reading import delimited, json_lines, lines
from esjobs.records.ingest.reading.batches import parse_file
from esjobs.records.ingest.reading.delimited import Way
from esjobs.records.ingest.reading.lines import BLOCK
from esjobs.records.ingest.validate import Context

COLUMNS = ("PandaID", "computingsite", "endtime", "starttime", "nevents", "cpuconsumptiontime", "dbTime")
GOOD = ("1", "CERN", "2018-08-15 12:00:00", "2018-08-15 11:00:00", "10", "3600.5", "x")
EXAMPLES = 120
LONGEST, PIECE = 300, 200
"""Limits small enough that examples run into them."""
RUNS: tuple[tuple[Way, int], ...] = (("typed", BLOCK), ("careful", BLOCK), ("typed", 400), ("careful", 130))
"""The ways to compare, with the bytes read at a time."""


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "PIECE", PIECE)
        for module in (lines, delimited, json_lines):
            patch.setattr(module, "MAX_LINE", LONGEST)
        yield


def parse(path: Path, way: Way, block: int) -> tuple[list[dict[str, object]], list[Reject]]:
    rows: list[dict[str, object]] = []
    rejects: list[Reject] = []
    for piece in parse_file(path, LAYOUT, Context(path.name, "panda", {}), way, block):
        assert piece.rows_in == piece.batch.num_rows + len(piece.rejects)
        piece.batch.validate(full=True)
        rows += piece.batch.to_pylist()
        rejects += piece.rejects
    return rows, rejects


def agree(path: Path, runs: tuple[tuple[Way, int], ...]) -> tuple[list[dict[str, object]], list[Reject]]:
    """What the first run finds; every other must find the same."""
    first = parse(path, *runs[0])
    for way, block in runs[1:]:
        rows, rejects = parse(path, way, block)
        assert rows == first[0], (way, block)
        assert rejects == first[1], (way, block)
    return first


NUMBERS = [
    "0",
    "1.0",
    " 2 ",
    "1e3",
    "-1",
    "-0",
    "-0.0",
    "x",
    "NaN",
    "inf",
    "1e400",
    "1e308",
    "9007199254740993",
    "+5",
    ".",
]
TIMES = [
    "2018-08-15",
    "2018-08-15T12:00:00Z",
    "2018-08-15T12:00:00+02:00",
    "1534334400",
    "1534334400123",
    "1534334400.5",
]
TIMES += ["2018-08-15 12:00:00.1234567", "2018-13-01", "1970-01-01", "noon", "2018-08-15T10:00"]
TEXTS = ["", " ", "NULL", "nan", "None", "  a ", "Zoë", "all", "a\rb", "\x00", "\ufeff", "日本"]
CELL = st.one_of(
    st.sampled_from(NUMBERS + TIMES + TEXTS),
    st.text(st.characters(codec="utf-8", exclude_characters='\n\r",'), max_size=6),
)
QUOTED = st.sampled_from(
    ['"a,b"', '"a""b"', '"a\nb"', '"a\r\nb"', '""', '"a"b', 'a"b', '"', '"open', 'a""', '"NULL"', '" 7 "']
)


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    out = [",".join(COLUMNS).encode()]
    for _ in range(draw(st.integers(0, 12))):
        cells = list(GOOD)
        for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
            cells[draw(st.integers(0, 6))] = draw(st.one_of(CELL, CELL, QUOTED))
        line = ",".join(cells).encode()
        match draw(st.integers(0, 30)):
            case 0:
                line = b""
            case 1:
                line = line.replace(b",", b"", 1)
            case 2:
                line += b",more"
            case 3:
                line = line[:-1] + b"\xff"
            case 4:
                line += b"y" * draw(st.sampled_from([200, LONGEST, 900]))
            case 5:
                line = b'"' + line
            case _:
                pass
        out.append(line)
    return end.encode().join(out) + draw(st.sampled_from([b"", end.encode(), end.encode() * 2]))


@given(csv_files())
@settings(max_examples=EXAMPLES, deadline=None)
def test_csv(data: bytes) -> None:
    path = FOLDER / "jobs.csv"
    path.write_bytes(data)
    agree(path, (*RUNS, ("text", BLOCK)))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 5000),
    st.floats(),
    st.sampled_from(NUMBERS + TIMES + TEXTS),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=1),
)


@st.composite
def json_files(draw: st.DrawFn) -> bytes:
    names = draw(st.sampled_from([COLUMNS, tuple(name.lower() for name in COLUMNS)]))
    hit = draw(st.booleans())
    typed = draw(st.booleans())
    out = []
    for _ in range(draw(st.integers(1, 10))):
        record: dict[str, object] = dict(zip(names, GOOD, strict=True))
        if typed:
            record |= {names[0]: 1, names[4]: 10, names[5]: 3600.5}
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
            name = draw(st.sampled_from([*names, "other", "PANDAID"]))
            if draw(st.booleans()):
                record.pop(name, None)
            else:
                record[name] = draw(VALUES)
        wrapped = {"_index": "jobs", "_id": "77", "_source": record} if hit else record
        line = json.dumps(wrapped, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
        long = b"y" * draw(st.sampled_from([100, LONGEST, 900]))
        damaged = [
            b"",
            line[:-1],
            line * 2,
            line.replace(b"CERN", b"\xff"),
            line.replace(b"CERN", long),
            b" " + line,
        ]
        out.append(draw(st.sampled_from(damaged + [line] * 25)))
    if not out[0].lstrip().startswith(b"{"):
        out[0] = b"{}"
    return b"\n".join(out) + draw(st.sampled_from([b"", b"\n"]))


@given(json_files())
@settings(max_examples=EXAMPLES, deadline=None)
def test_json_lines(data: bytes) -> None:
    path = FOLDER / "jobs.jsonl"
    path.write_bytes(data)
    agree(path, RUNS)


@given(st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_dirty_rows_do_not_touch_the_others(data: st.DataObject) -> None:
    """Good rows arrive as they are and in order, bad ones are refused, none is lost."""
    bad = data.draw(st.lists(st.booleans(), min_size=1, max_size=15))
    out = [",".join(COLUMNS)]
    for number, is_bad in enumerate(bad):
        cells = [str(number), *GOOD[1:]]
        if is_bad:
            column, cell = data.draw(
                st.sampled_from(
                    [(0, ""), (1, ""), (2, ""), (2, "noon"), (4, "x"), (4, "-1"), (5, "NaN"), (5, "1e308")]
                )
            )
            cells[column] = cell
        out.append(",".join(cells))
    path = FOLDER / "dirty.csv"
    path.write_text("\n".join(out))
    rows, rejects = agree(path, RUNS)
    assert [row["job_id"] for row in rows] == [str(number) for number, is_bad in enumerate(bad) if not is_bad]
    assert [reject.line for reject in rejects] == [number + 2 for number, is_bad in enumerate(bad) if is_bad]
    for row in rows:
        assert (row["queue"], row["events"], row["cpu_s"]) == ("CERN", 10, 3600.5)


FOLDER: Path


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    global FOLDER  # noqa: PLW0603  hypothesis refuses fixtures made anew for each example
    FOLDER = tmp_path_factory.mktemp("ways")
