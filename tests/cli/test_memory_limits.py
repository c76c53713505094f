"""Commands under a limit of addresses: they end with the right answer, or with one line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from esjobs import open as open_session
from esjobs.core.errors import StoreError

pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit is not installed")

MORE = [pytest.param(limit, marks=pytest.mark.matrix) for limit in (100, 200, 350, 600, 800, 1_000, 1_200)]
JOBS = "job_id,queue,end_time,task_id,cpu_s\n" + "".join(
    f"{number},Q{number % 7},2018-08-{1 + number % 28:02} 12:00:00,{number % 11},100\n"
    for number in range(2_000)
)


def limited(megabytes: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["prlimit", f"--as={megabytes * 10**6}", sys.executable, "-m", "esjobs", "--quiet"]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def assert_orderly(ended: "subprocess.CompletedProcess[str]") -> None:
    assert ended.returncode in (0, 1)
    if ended.returncode:
        assert ended.stderr.startswith("esjobs: "), ended.stderr
        assert len(ended.stderr.splitlines()) == 1, ended.stderr


@pytest.mark.parametrize("limit", [60, 300, 450, 1_400, *MORE])
def test_a_run_ends_well_or_with_one_line(demo_folder: Path, tmp_path: Path, limit: int) -> None:
    store = tmp_path / "demo.duckdb"
    shutil.copy(demo_folder / "demo.duckdb", store)

    def flags() -> str:
        with open_session(f"duckdb:{store}", read_only=True) as session:
            return str(session.tables.flags().rows.to_pylist())

    before = flags()
    ended = limited(
        limit, "--store", f"duckdb:{store}", "run", "--rebuild", "--window", "2025-06-01/2025-07-01"
    )
    assert_orderly(ended)
    assert flags() == before


def test_a_load_that_died_leaves_nothing_in_the_way_of_the_next(tmp_path: Path) -> None:
    jobs, store = tmp_path / "jobs.csv", tmp_path / "jobs.duckdb"
    jobs.write_text(JOBS)
    codes = []
    for limit in (300, 380, 420, 460, 500):
        ended = limited(limit, "--store", f"duckdb:{store}", "ingest", "jobs", str(jobs))
        assert_orderly(ended)
        codes.append(ended.returncode)
    assert 1 in codes
    with open_session(f"duckdb:{store}") as session:
        session.ingest("jobs", [jobs])
        assert session.store.span().jobs == 2_000


@pytest.mark.parametrize("content", [b"\0" * 4096, b"\0" * 8 + b"DUCK" + b"\0" * 4084])
def test_the_beginning_of_a_database_is_taken_over(tmp_path: Path, content: bytes) -> None:
    store = tmp_path / "jobs.duckdb"
    store.write_bytes(content)
    with open_session(f"duckdb:{store}", create=True) as session:
        assert session.store.span().jobs == 0


def test_a_small_file_of_somebody_else_is_not(tmp_path: Path) -> None:
    store = tmp_path / "notes.txt"
    store.write_text("my notes")
    with pytest.raises(StoreError):
        open_session(f"duckdb:{store}")
    assert store.read_text() == "my notes"


def test_under_a_limit_output_codes_and_interrupts_are_as_ever(tmp_path: Path) -> None:
    plain = limited(4_000, "query", "--nonsense")
    assert plain.returncode == 2
    assert plain.stderr.startswith("Usage: esjobs query")
    fields = limited(4_000, "fields", "--format", "json")
    assert fields.returncode == 0
    assert json.loads(fields.stdout)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_process_that_asks_for_memory_for_ever_is_given_up(tmp_path: Path) -> None:
    """As OpenBLAS does where it finds no room for its buffers."""
    source, spinning = tmp_path / "spin.c", tmp_path / "spin"
    source.write_text("#include <stdlib.h>\nint main() { for (;;) if (malloc(1UL << 60)) abort(); }\n")
    subprocess.run(["gcc", "-O0", "-Wno-all", "-o", spinning, source], check=True)
    start = (
        "import sys, subprocess; from esjobs.cli import start; start._GIVEN_UP_AFTER_S = 3; "
        "sys.exit(-start._wait(subprocess.Popen([sys.argv[1]])))"
    )
    ended = subprocess.run([sys.executable, "-c", start, spinning], check=False, timeout=60)
    assert ended.returncode == 9
