"""Inputs that only a program or an enemy writes: one line each, and no traceback."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.running import run
from tests.messages import compare_text

QUEUES = 'queue,corepower,valid_from\nCERN,12,"{}"\n'


def misnamed(path: Path) -> Path:
    """A Parquet file in which the name of a column that nobody asks for is not UTF-8."""
    table = pa.table(
        {"job_id": ["1"], "queue": ["A"], "end_time": ["2018-08-10"], "v": [1.0], "zzzz": pa.array(["x"])}
    )
    pyarrow.parquet.write_table(table, path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"z\xffzz"))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["ingest", "jobs", "FILE"],
        ["fit-file", "FILE", "--task-column", "job_id", "--unit-column", "queue", "--value-column", "v"],
        [
            "line-file",
            "FILE",
            "--name-column",
            "queue",
            "--k-column",
            "v",
            "--k-err-column",
            "v",
            "--corepower-column",
            "v",
        ],
    ],
)
def test_a_parquet_column_whose_name_is_not_utf8(tmp_path: Path, command: list[str]) -> None:
    path = misnamed(tmp_path / "a.parquet")
    done = run(*(str(path) if word == "FILE" else word for word in command), store=tmp_path / "jobs.duckdb")
    assert done.exit_code == 1
    compare_text(done.stderr)
    assert not (tmp_path / "jobs.duckdb").exists()


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (QUEUES.format("9999-12-31T23:59:59-12:00"), []),
        (QUEUES.format("0001-01-01T00:00:00+14:00"), []),
        (QUEUES.format(""), ["--valid-from", "9999-12-31T23:59:59-12:00"]),
        ("queue,corepower\nA," + "1" * 100_000 + "\n", []),
        ('{"A": {"name": "\\ud800", "corepower": 12}}', ["cric"]),
        ('{"A": {"name": "A", "rc_site": "\\uDfff"}}', ["cric"]),
        ('{"A": 1' + "0" * 5000 + "}", ["cric"]),
        ("[" * 100_000, ["cric"]),
    ],
)
def test_declared_values(tmp_path: Path, content: str, options: list[str]) -> None:
    path = tmp_path / "declared"
    path.write_text(content)
    arguments = ["corepower", "import", *options, str(path), "--benchmark", "HS06"]
    done = run(*arguments, store=tmp_path / "jobs.duckdb")
    assert done.exit_code == 1
    compare_text(done.stderr)
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content",
    [
        "a=" + "[" * 30_000,
        "fit = " + "{a=" * 3000 + "1" + "}" * 3000,
        "a = 1" + "0" * 10_000,
        "a" + ".a" * 100_000 + " = 1",
    ],
    ids=["lists", "tables", "digits", "keys"],
)
def test_settings(tmp_path: Path, content: str) -> None:
    path = tmp_path / "esjobs.toml"
    path.write_text(content)
    done = run("--config", str(path), "show", "runs")
    assert done.exit_code == 1
    compare_text(done.stderr)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("what", ["buckets", "day_books"])
def test_days_that_hold_nothing_cost_nothing(filled: Path, what: str) -> None:
    """Each of three million days once was a value of the question; this took minutes and gigabytes."""
    window = ("--window", "0001-01-01/9999-01-01", "--format", "csv")
    everything = run("show", what, "--format", "csv", store=filled).stdout
    assert run("show", what, *window, store=filled).stdout == everything
    assert run("fit", *window, store=filled).exit_code == 0


def test_lines_that_each_have_names_of_their_own(tmp_path: Path) -> None:
    """A column for each of them, as long as the block, would be 20 GB."""
    path = tmp_path / "names.jsonl"
    record = {"queue": "A", "end_time": "2018-08-10"}
    lines = (json.dumps({"job_id": str(n), **record, f"u{n}": 1}) for n in range(20_000))
    path.write_text("\n".join(lines) + '\n{"\\ud800": 1}\n')
    done = run("ingest", "jobs", str(path), store=tmp_path / "jobs.duckdb")
    assert "20,001 rows = 20,000 stored + 0 updated + 1 rejected" in done.stdout


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 4194304 failed"),
        RuntimeError("can't start new thread"),
        pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
        ImportError("libarrow.so: failed to map segment from shared object"),
    ],
    ids=repr,
)
def test_a_lack_of_memory_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    path = tmp_path / "jobs.csv"
    path.write_text("job_id,queue,end_time\n1,A,2018-08-10\n")
    # where a block is read: memory cannot be made scarce at a place of one's choice
    monkeypatch.setattr("esjobs.records.ingest.reading.lines.LineFeed._read", fails)
    done = run("ingest", "jobs", str(path), store=tmp_path / "jobs.duckdb")
    assert done.exit_code == 1
    assert done.stderr.startswith("esjobs: out of memory; published results are intact")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "jobs.duckdb").exists()
