"""Reading from standard input, pipes and devices: once, by content, no store before there are rows."""

import gzip
import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli.running import job_file, run
from tests.messages import compare_text

CSV = b"job_id,queue,end_time\n1,CERN,2018-08-10T12:00:00Z\n2,CERN,2018-08-11T12:00:00Z\nbad\n"
JSON = b'{"job_id": "1", "queue": "CERN", "end_time": "2018-08-10"}\n[]\n'


def parquet() -> bytes:
    stream = io.BytesIO()
    times = pa.array(["2018-08-10"] * 2)
    pyarrow.parquet.write_table(
        pa.table({"job_id": ["1", "2"], "queue": ["A", "B"], "end_time": times}), stream
    )
    return stream.getvalue()


KINDS = {
    "csv": (CSV, "3 rows = 2 stored + 0 updated + 1 rejected"),
    "csv.gz": (gzip.compress(CSV), "3 rows = 2 stored + 0 updated + 1 rejected"),
    "csv of two gzip members": (gzip.compress(CSV[:30]) + gzip.compress(CSV[30:]), "3 rows = 2 stored"),
    "jsonl": (JSON, "2 rows = 1 stored + 0 updated + 1 rejected"),
    "jsonl.gz": (gzip.compress(JSON), "2 rows = 1 stored + 0 updated + 1 rejected"),
    "parquet": (parquet(), "2 rows = 2 stored + 0 updated + 0 rejected"),
}
"""What comes through a pipe, and what the report says."""


def command(store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "esjobs", "--store", f"duckdb:{store}", *arguments]


def piped(data: bytes, store: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command(store, *arguments), input=data, capture_output=True, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "parquet"])
def test_standard_input_is_read_by_content(tmp_path: Path, kind: str) -> None:
    data, words = KINDS[kind]
    done = run("ingest", "jobs", "-", store=tmp_path / "jobs.duckdb", data=data)
    assert (done.exit_code, done.stderr) == (0, "")
    assert words in done.stdout


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_pipe_is_read(tmp_path: Path, kind: str, name: str) -> None:
    data, words = KINDS[kind]
    done = piped(data, tmp_path / "jobs.duckdb", "ingest", "jobs", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


def test_the_same_contents_are_the_same_load_whatever_the_descriptor(tmp_path: Path) -> None:
    """What ``<(zcat ...)`` makes: a pipe under a number that differs from call to call."""
    store = tmp_path / "jobs.duckdb"
    reports = []
    for spare in (0, 5):
        held = [os.open(os.devnull, os.O_RDONLY) for _ in range(spare)]
        ends = [os.pipe(), os.pipe()]
        for _, into in ends:
            os.write(into, CSV)
            os.close(into)
        outs = [out for out, _ in ends]
        paths = [f"/dev/fd/{out}" for out in outs]
        done = subprocess.run(
            command(store, "ingest", "jobs", *paths),
            pass_fds=outs,
            capture_output=True,
            text=True,
            check=False,
        )
        for number in (*held, *outs):
            os.close(number)
        assert (done.returncode, done.stderr) == (0, "")
        reports.append(done.stdout)
    assert "6 rows = 2 stored + 2 updated + 2 rejected" in reports[0]
    assert "were already loaded" in reports[1]
    shown = run("show", "rejects", "--format", "csv", store=store).stdout
    assert [line.split(",")[2] for line in shown.splitlines()[1:]] == ["pipe1", "pipe2"]


def test_a_named_pipe_keeps_its_name(tmp_path: Path) -> None:
    store, path = tmp_path / "jobs.duckdb", tmp_path / "job_records_15350577.csv"
    os.mkfifo(path)
    reader = subprocess.Popen(command(store, "ingest", "panda", str(path)), stdout=subprocess.PIPE, text=True)
    path.write_bytes(b"pandaid,computingsite,endtime\n1,CERN,2018-08-15 12:00:00\n")
    assert "1 rows = 1 stored" in reader.communicate()[0]
    assert '"task_id": "15350577"' in run("export", "jobs", "--format", "jsonl", store=store).stdout


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start a program that has read a part of standard input and waits for the rest."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, store: Path) -> "subprocess.Popen[str]":
        spool = tmp_path / "spool"
        spool.mkdir(exist_ok=True)
        process = subprocess.Popen(
            command(store, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(spool)},
        )
        started.append(process)
        assert process.stdin is not None
        process.stdin.write(CSV.decode() * 5_000)  # more than a pipe holds: it was read when this returns
        process.stdin.flush()
        return process

    # tests that run in the background ignore it, and what they start would
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield start
    signal.signal(signal.SIGINT, before)
    for process in started:
        process.kill()
        process.communicate()


def test_waiting_for_a_pipe_holds_no_store(
    tmp_path: Path, waiting: Callable[..., "subprocess.Popen[str]"]
) -> None:
    store = tmp_path / "jobs.duckdb"
    process = waiting("ingest", "jobs", "-", store=store)
    assert not store.exists()
    assert run("ingest", "jobs", str(job_file(tmp_path / "jobs.csv", n_jobs=1)), store=store).exit_code == 0
    output, errors = process.communicate()
    assert "10,000 rows" not in errors
    assert process.returncode == 0
    assert "2 stored" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_program_nothing_is_left(
    tmp_path: Path, waiting: Callable[..., "subprocess.Popen[str]"], number: signal.Signals
) -> None:
    process = waiting("ingest", "jobs", "-", store=tmp_path / "jobs.duckdb")
    process.send_signal(number)
    process.communicate()
    assert process.returncode != 0
    assert {path.name for path in tmp_path.rglob("*")} == {"spool"}


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    done = subprocess.run(
        command(tmp_path / "jobs.duckdb", "ingest", "jobs", "-"),
        input=CSV * 40_000,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        preexec_fn=small_disk,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"esjobs: cannot buffer stdin in {tmp_path} (File too large")
    assert "set TMPDIR" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "arguments", "code"),
    [
        (b"", ("jobs", "-"), 1),
        (b"", ("jobs", "/dev/stdin"), 1),
        (bytes(5 << 20), ("jobs", "-"), 1),
        (b"PK\3\4" + bytes(100), ("jobs", "-"), 1),
        (b"queue,end_time\n", ("jobs", "-"), 1),
        (gzip.compress(CSV)[:-9], ("jobs", "-"), 1),
        (CSV, ("jobs", "-", "-"), 2),
        (CSV, ("jobs", "none.csv"), 1),
        (CSV, ("jbos", "-"), 2),
        (CSV, ("jobs", "-", "--set", "queue"), 2),
        (CSV, ("jobs", "-", "--dry-run"), 0),
    ],
    ids=lambda value: "input" if isinstance(value, bytes) else str(value),
)
def test_without_rows_there_is_no_store(
    tmp_path: Path, data: bytes, arguments: tuple[str, ...], code: int
) -> None:
    done = run("ingest", *arguments, store=tmp_path / "jobs.duckdb", data=data)
    assert done.exit_code == code
    assert done.stderr.count("\n") == (1 if code else 0)
    compare_text(done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_file_is_found_while_another_process_holds_the_store(filled: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("nonsense\n")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, esjobs\n"
            "with esjobs.open(sys.argv[1]):\n    print('held', flush=True)\n    sys.stdin.read()",
            f"duckdb:{filled}",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    for arguments in (
        ("ingest", "jobs", str(bad)),
        ("corepower", "import", str(bad)),
        ("--wait", "0", "ingest", "jobs", "-"),
    ):
        refused = run(*arguments, store=filled, data=CSV)
        assert refused.exit_code == 1
        compare_text(refused.stderr)
    holder.communicate(b"")


def test_declared_values_come_through_a_pipe(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    done = piped(b"queue,corepower,benchmark\nCERN,12,HS06\n", store, "corepower", "import", "-")
    assert "1 rows, 1 declared values" in done.stdout
    assert (
        "CERN,12.0,HS06,1970-01-01T00:00:00Z,,,,stdin,"
        in run("show", "corepower", "--format", "csv", store=store).stdout
    )
    for name in ("-", "/dev/zero"):
        refused = run("corepower", "import", name, store=store, data=CSV)
        assert refused.exit_code == 1
        compare_text(refused.stderr)
