"""What ends a statement that heeds neither an interrupt nor a setting, in processes of its own."""

import threading
from pathlib import Path

import pytest

from esjobs.cli.rlimits import bounded
from tests.cli.running import run_apart

SLOW = "select levenshtein(repeat('x', 300000), repeat('y', 300000)) as n"
LARGE = "select length(repeat('x', 3000000000)) as n"


def test_a_statement_that_heeds_no_interrupt_is_ended(filled: Path) -> None:
    done = run_apart("--store", f"duckdb:{filled}", "sql", "--timeout", "0.5", SLOW)
    assert done.returncode == 1
    assert done.stderr == "esjobs: SQL: not finished after 0.5 s; simplify the query, or raise --timeout\n"
    assert done.stdout == ""


def test_a_statement_that_wants_more_than_the_memory_setting_is_refused(filled: Path) -> None:
    done = run_apart("--store", f"duckdb:{filled}", "sql", LARGE, ESJOBS_MEMORY="64MB")
    assert done.returncode == 1
    assert done.stderr.startswith("esjobs: SQL: Out of Memory Error: ")
    assert len(done.stderr.splitlines()) == 1


def test_what_is_within_the_bounds_is_answered_and_the_file_is_as_before(filled: Path) -> None:
    before = filled.read_bytes()
    done = run_apart(
        "--store", f"duckdb:{filled}", "sql", "--format", "csv", "select 42 as n", ESJOBS_MEMORY="64MB"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n42\n", "")
    assert filled.read_bytes() == before


def test_bounds_are_lifted_afterwards() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    threads = threading.active_count()
    with bounded(60, 10**9, "late"):
        assert threading.active_count() == threads + 1
    assert resource.getrlimit(resource.RLIMIT_AS) == before
