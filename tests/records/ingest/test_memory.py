"""Streams: a file may be larger than memory, zipped or not, with lines or without."""

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

import esjobs
from esjobs.core.errors import InputError
from esjobs.records.ingest.formats.sources import source
from esjobs.records.ingest.reading.lines import LineFeed
from esjobs.records.ingest.refusals import LISTED
from tests.messages import raised

HEADER = b"pandaid,computingsite,endtime\n"
LINE = b"1,CERN,2018-08-15 12:00:00\n"
LIMIT = 180 << 20
"""A few blocks and their columns; the files here would take three to ten times as much."""


def peak(path: Path) -> tuple[int, int, int]:
    """Rows and rejects of a file, and the largest memory that Python and Arrow held on the way."""
    tracemalloc.start()
    arrow = pa.total_allocated_bytes()
    rows = rejects = most = 0
    for piece in source("panda").parse(path, {}):
        rows += piece.batch.num_rows
        rejects += len(piece.rejects)
        most = max(most, pa.total_allocated_bytes() - arrow)
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return rows, rejects, python + most


def test_many_rows(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wb", 1) as out:
        out.write(HEADER)
        for _ in range(100):
            out.write(LINE * 20_000)
    rows, rejects, memory = peak(tmp_path / "a.csv.gz")
    assert (rows, rejects) == (2_000_000, 0)
    assert memory < LIMIT


def test_a_gzip_bomb_of_one_line(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wb", 1) as out:
        out.write(HEADER + LINE)
        for _ in range(100):
            out.write(b"x" * 3_000_000)
        out.write(b"\n" + LINE)
    assert (tmp_path / "a.csv.gz").stat().st_size < 3_000_000
    rows, rejects, memory = peak(tmp_path / "a.csv.gz")
    assert (rows, rejects) == (2, 1)
    assert memory < LIMIT


def test_a_gzip_bomb_without_a_line_end_is_refused_by_its_header(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wb", 1) as out:
        for _ in range(100):
            out.write(b"x" * 3_000_000)
    tracemalloc.start()
    with raised(InputError):
        list(source("panda").parse(tmp_path / "a.csv.gz", {}))
    assert tracemalloc.get_traced_memory()[1] < LIMIT
    tracemalloc.stop()


MEASURED = """
import sys
from esjobs.cli.main import main
try:
    main()
finally:
    with open("/proc/self/status") as status:
        print(next(line for line in status if line.startswith("VmHWM")).split()[1], file=sys.stderr)
"""
"""The command, and the most memory it had, in kB. (What wait4 counts of a child begins with its parent's.)"""


@pytest.mark.parametrize(
    ("name", "head", "line", "reason"),
    [
        ("a.csv", HEADER, b"x\n", "wrong number of columns"),
        ("b.csv", HEADER, b",,\n", "missing job_id"),
        pytest.param("a.jsonl", b"{}\n", b"{}\n", "missing job_id", marks=pytest.mark.matrix),
        ("b.jsonl", b"{}\n", b"[]\n", "bad JSON"),
        ("c.csv", HEADER, b"\n", ""),
    ],
)
def test_a_gzip_bomb_of_refused_rows(
    tmp_path: Path, name: str, head: bytes, line: bytes, reason: str
) -> None:
    """A few kilobytes that hold a million rows, each of which used to take one more kilobyte."""
    lines = 1_000_000
    (tmp_path / name).write_bytes(gzip.compress(head + line * lines))
    assert (tmp_path / name).stat().st_size < 10_000
    store = f"duckdb:{tmp_path}/jobs.duckdb"
    arguments = [
        "--store",
        store,
        "ingest",
        "panda",
        str(tmp_path / name),
        "--format",
        "json",
        "--allow-rejects",
    ]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", sys.executable, "-c", MEASURED, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split()[-1]) < 700 * 1024, "kB"
    (report,) = json.loads(done.stdout)
    rejected = json.loads(report["dropped"])
    assert rejected.get(reason, 0) >= (lines if reason else 0)
    assert sum(rejected.values()) == report["rows_in"]
    with esjobs.open(store) as session:
        listed = session.tables.rejects().to_pandas()
        assert listed["n_rows"].sum() == report["rows_in"]
        assert session.tables.loads().to_pandas()["rejected"].tolist() == [report["rows_in"]]
    assert len(listed) <= 2 * (LISTED + 1)


def test_blocks_of_any_size_give_the_same_lines(tmp_path: Path) -> None:
    data = b"\n".join(os.urandom(n % 50).hex().encode() for n in range(500))
    (tmp_path / "a").write_bytes(data)
    for size in (1, 7, 1000, 1 << 20):
        with (tmp_path / "a").open("rb") as stream:
            blocks = list(LineFeed(stream, tmp_path / "a", size))
        assert b"".join(block.data for block in blocks) == data
        assert all(block.data.endswith(b"\n") for block in blocks[:-1])
        line = 1
        for block in blocks:
            assert block.first == line
            line += block.data.count(b"\n")
