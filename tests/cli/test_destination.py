"""Files written by name: complete or as before, and nothing but regular files is ever replaced."""

import contextlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

import esjobs
from esjobs.core.errors import InputError
from esjobs.store.files.destination import UNFINISHED, writing, writing_text
from tests.cli.running import run, run_apart
from tests.cli.terminal import on_terminal
from tests.messages import compare_text, raised

WRITTEN = (
    ("show", "factors", "--format", "csv"),
    ("show", "factors", "--format", "json"),
    ("show", "factors", "--format", "parquet"),
    ("show", "factors", "--format", "table"),
    ("export", "jobs", "--format", "csv"),
    ("export", "jobs", "--format", "jsonl"),
    ("export", "jobs", "--format", "parquet"),
    ("export", "jobs", "--format", "json"),
    ("report",),
)
"""One command for every kind of file."""

SOME = (WRITTEN[0], WRITTEN[2], WRITTEN[5], WRITTEN[8])
"""One for every way to write: a text, a closed file of Arrow, a stream of lines, a page."""


def command(store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", *arguments]


@pytest.mark.parametrize(
    "arguments",
    [pytest.param(each, marks=() if each in SOME else pytest.mark.matrix) for each in WRITTEN],
)
def test_a_link_stays_and_what_it_leads_to_is_replaced(
    filled: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link, chain = tmp_path / "elsewhere/target", tmp_path / "link", tmp_path / "chain"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("elsewhere/target")
    chain.symlink_to(link)
    assert run(*arguments, "--out", str(chain), store=filled).exit_code == 0
    assert link.is_symlink()
    assert chain.is_symlink()
    assert target.stat().st_size > 100
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [each.name for each in target.parent.iterdir()] == ["target"]
    target.unlink()  # a link to nothing: what it leads to is made
    assert run(*arguments, "--out", str(link), store=filled).exit_code == 0
    assert link.is_symlink()
    assert target.stat().st_size > 100


def test_a_new_file_is_for_its_owner(filled: Path, tmp_path: Path) -> None:
    for arguments in WRITTEN:
        out = tmp_path / f"out-{'-'.join(arguments)}"
        assert run(*arguments, "--out", str(out), store=filled).exit_code == 0
        assert out.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_with_a_name_is_written_to(filled: Path, tmp_path: Path, linked: bool) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    for arguments in SOME:
        received: list[bytes] = []
        reader = threading.Thread(target=lambda received=received: received.append(fifo.read_bytes()))
        reader.start()
        result = run(*arguments, "--out", str(link if linked else fifo), store=filled)
        reader.join()
        assert (result.exit_code, result.stdout) == (0, "")
        assert len(received[0]) > 100
        assert fifo.is_fifo()
        assert sorted(each.name for each in tmp_path.iterdir()) == ["fifo", "link"]


def test_a_terminal_with_a_name_is_written_to_as_to_a_terminal(filled: Path, tmp_path: Path) -> None:
    import pty

    screen, inside = pty.openpty()
    link = tmp_path / "screen"
    link.symlink_to(os.ttyname(inside))
    with writing_text(link) as stream:
        assert stream.isatty()
        stream.write("seen")
    assert os.read(screen, 100) == b"seen"
    assert stat.S_ISCHR(link.stat().st_mode)
    assert run("show", "runs", "--out", str(link), store=filled).exit_code == 0
    assert b"aggregate" in os.read(screen, 100_000)
    os.close(inside)
    os.close(screen)


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "--by", "queue", "--format", "png"],
        ["query", "--by", "queue", "--format", "parquet"],
        ["export", "jobs", "--format", "parquet"],
        ["export", "runs", "--format", "parquet"],
        ["sql", "SELECT 1", "--format", "parquet"],
    ],
    ids=" ".join,
)
def test_what_is_no_text_is_not_thrown_at_a_terminal(filled: Path, arguments: list[str]) -> None:
    said = on_terminal(200, "--quiet", "--store", f"duckdb:{filled}", *arguments, exit_code=2)
    what = f"{arguments[-1]} is not text for a terminal"
    assert said == [f"esjobs: {what}; use --out FILE, or a pipe"]


def test_an_open_pipe_is_written_to(filled: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    for arguments in SOME:
        reading, end = os.pipe()
        link.unlink(missing_ok=True)
        link.symlink_to(f"/proc/self/fd/{end}")
        received: list[bytes] = []
        with os.fdopen(reading, "rb") as stream:
            reader = threading.Thread(
                target=lambda received=received, stream=stream: received.append(stream.read())
            )
            reader.start()
            assert run(*arguments, "--out", str(link), store=filled).exit_code == 0
            os.close(end)
            reader.join()
        assert len(received[0]) > 100
        assert link.is_symlink()


def test_a_file_behind_standard_output_is_continued(filled: Path, tmp_path: Path) -> None:
    """``(echo before; esjobs show runs --out LINK; echo after) > file``, with a link to standard output."""
    link, shown = tmp_path / "link", tmp_path / "shown"
    link.symlink_to("/proc/self/fd/1")
    with shown.open("wb", buffering=0) as stream:
        stream.write(b"before\n")
        subprocess.run(
            command(filled, "show", "runs", "--format", "csv", "--out", str(link)), stdout=stream, check=True
        )
        stream.write(b"after\n")
    lines = shown.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert len(lines) == 2 + 5


def test_what_the_program_opened_itself_is_not_written_to(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    with (
        mine.open("w") as own,
        raised(InputError),
        writing(f"/proc/self/fd/{own.fileno()}"),
    ):
        pytest.fail("opened")
    assert mine.read_bytes() == b""


@pytest.mark.parametrize(
    "made",
    [
        lambda path: path.mkdir(),
        lambda path: socket.socket(socket.AF_UNIX).bind(str(path)),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("none/out"),
    ],
    ids=["folder", "socket", "loop", "nowhere"],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_cannot_be_written_is_refused_in_one_line(
    filled: Path, tmp_path: Path, made: Callable[[Path], None]
) -> None:
    out = tmp_path / "out"
    made(out)
    before = out.lstat()
    for arguments in SOME:
        result = run(*arguments, "--out", str(out), store=filled)
        assert (result.exit_code, result.stdout) == (1, "")
        compare_text(result.stderr)
        assert result.stderr.count("\n") == 1
    assert (out.lstat().st_mode, out.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("out", ["", "nothing/", "x" * 300, "a\0b"])
def test_what_is_no_name_is_refused(tmp_path: Path, out: str) -> None:
    name = f"{tmp_path}/{out}" if out else out
    with raised(InputError), writing(name):
        pytest.fail("opened")
    assert not list(tmp_path.iterdir())


@contextlib.contextmanager
def full_disk(size: int = 1000) -> Iterator[None]:
    """No file may grow beyond the size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_the_old_file(filled: Path, tmp_path: Path, there: bool) -> None:
    out = tmp_path / "out"
    if there:
        out.write_text("old")
    for arguments in SOME if there else WRITTEN:
        with full_disk():
            result = run(*arguments, "--out", str(out), store=filled)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"esjobs: cannot write {out}: File too large")
        assert result.stderr.count("\n") == 1
        assert [each.name for each in tmp_path.iterdir()] == (["out"] if there else [])
        assert not there or out.read_text() == "old"


WAITS = """
import signal, sys, time
from esjobs.store.files.destination import writing
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests may ignore it
with writing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print("now", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(("how", "left"), [(signal.SIGINT, 0), (signal.SIGKILL, 1)])
def test_who_is_stopped_in_the_middle_leaves_no_half_file(
    tmp_path: Path, how: signal.Signals, left: int
) -> None:
    out = tmp_path / "jobs.csv"
    out.write_text("old")
    with subprocess.Popen(
        [sys.executable, "-c", WAITS, str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.send_signal(how)
    assert out.read_text() == "old"
    others = [each.name for each in tmp_path.iterdir() if each != out]
    assert len(others) == left
    assert all(name.startswith(f".jobs.csv{UNFINISHED}") for name in others)


@pytest.mark.parametrize(
    "command", ["query --by queue", "delivered --by queue", "errors", "fields", "nights", "jobs"]
)
def test_the_name_of_a_file_chooses_the_format(filled: Path, tmp_path: Path, command: str) -> None:
    wanted = run(*command.split(), "--format", "csv", store=filled).stdout
    out = tmp_path / "rows.csv"
    assert run(*command.split(), "--out", str(out), store=filled).exit_code == 0
    assert out.read_text(encoding="utf-8") == wanted
    assert run(*command.split(), "--format", "table", "--out", str(out), store=filled).exit_code == 0
    assert out.read_text(encoding="utf-8") != wanted


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("site ALDER-HEP", "page.csv"),
        ("user ann", "page.parquet"),
        ("project ann", "page.jsonl"),
        ("cpu ann", "page.svg"),
        ("errors", "rows.html"),
    ],
)
def test_a_format_that_a_command_lacks_is_refused(
    filled: Path, tmp_path: Path, command: str, name: str
) -> None:
    refused = run(*command.split(), "--out", str(tmp_path / name), store=filled)
    assert refused.exit_code == 2
    assert "does not write" in refused.stderr
    if name.endswith(".csv"):
        assert "esjobs show flags --site NAME" in refused.stderr
    assert not list(tmp_path.iterdir())


def test_a_failed_export_leaves_the_old_file(filled: Path, tmp_path: Path) -> None:
    out = tmp_path / "jobs.csv"
    out.write_text("old")
    assert run("export", "jobs", "--where", "nonsense", "--out", str(out), store=filled).exit_code == 2
    assert out.read_text() == "old"

    def fail() -> None:
        with writing_text(out) as stream:
            stream.write("half" * 100_000)
            raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        fail()
    assert out.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["jobs.csv"]


def test_who_reads_meanwhile_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    old, new = b"o" * 1_000_000, b"n" * 2_000_000
    out.write_bytes(old)
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(out.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for content in (new, old) * 20:
        with writing(out) as stream:
            for start in range(0, len(content), 100_000):
                stream.write(content[start : start + 100_000])
    done.set()
    reader.join()
    assert seen <= {old, new}


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    out.chmod(0o444)
    if os.getuid() == 0:  # whom the system lets write anything
        monkeypatch.setattr("os.access", lambda *_: False)
    with raised(InputError), writing(out):
        pytest.fail("opened")
    assert out.read_text() == "old"


def test_the_summary_of_a_fit_and_the_files_of_the_demo_follow_links(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    pd.DataFrame(
        [(f"t{task}", f"s{site}", 1.0 + task + site / 10) for task in range(4) for site in range(4)],
        columns=["task", "queue", "value"],
    ).to_csv(table, index=False)
    summary, link = tmp_path / "summary.json", tmp_path / "link"
    link.symlink_to(summary)
    columns = ("--task-column", "task", "--unit-column", "queue", "--value-column", "value")
    assert run("fit-file", str(table), *columns, "--summary", str(link)).exit_code == 0
    assert link.is_symlink()
    assert json.loads(summary.read_text())["rows_in"] == 16
    demo = tmp_path / "demo"
    demo.mkdir()
    for name in ("jobs.parquet", "corepower.csv", "report.html"):
        (tmp_path / f"kept-{name}").write_text("old")
        (demo / name).symlink_to(tmp_path / f"kept-{name}")
    assert run("demo", "--jobs", "3000", "--out", str(demo)).exit_code == 0
    for name in ("jobs.parquet", "corepower.csv", "report.html"):
        assert (demo / name).is_symlink()
        assert (tmp_path / f"kept-{name}").stat().st_size > 1000


def test_python_writes_by_the_same_rules(filled: Path, tmp_path: Path) -> None:
    out, link = tmp_path / "out", tmp_path / "link.csv"
    out.write_text("old")
    link.symlink_to(out)
    with esjobs.open(f"duckdb:{filled}") as session:
        assert session.export.jobs(link) == 2160
        assert out.read_text().startswith("source,job_id")
        assert session.report(link).save(link) == link
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert link.is_symlink()


def test_a_reader_of_a_pipe_that_goes_away_ends_the_program_without_a_word(
    filled: Path, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    arguments = command(filled, "export", "jobs", "--format", "csv", "--out", str(fifo))
    with subprocess.Popen(arguments, stderr=subprocess.PIPE) as process:
        with fifo.open("rb") as stream:
            time.sleep(0)  # opened, then gone
            stream.read(1)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_store_is_never_written_over(tmp_path: Path) -> None:
    """A slip in a line of the shell's history, ``-o jobs.duckdb``, would cost all that was ever loaded."""
    store = tmp_path / "jobs.duckdb"
    with esjobs.open(f"duckdb:{store}") as session:
        session.ingest("jobs", _jobs_file(tmp_path))
    before = store.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(store)
    for name in (store, link, tmp_path / "jobs.duckdb.wal"):
        with (
            raised(InputError),
            writing(name),
        ):
            pass
    assert store.read_bytes() == before
    assert link.is_symlink()


def test_what_is_read_is_never_written_over(tmp_path: Path) -> None:
    jobs = _jobs_file(tmp_path)
    before = jobs.read_bytes()
    (tmp_path / "link").symlink_to(jobs)
    for out in (jobs, tmp_path / "link"):
        store = f"duckdb:{tmp_path / 's.duckdb'}"
        done = run_apart("--store", store, "ingest", "jobs", str(jobs), "-o", str(out))
        assert done.returncode == 1
        compare_text(done.stderr)
    assert jobs.read_bytes() == before
    assert not (tmp_path / "s.duckdb").exists()


def _jobs_file(folder: Path) -> Path:
    path = folder / "jobs.csv"
    path.write_text("job_id,queue,end_time\n1,CERN,2026-01-01T00:00:00Z\n")
    return path
