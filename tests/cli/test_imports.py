"""Libraries that commands import: none for help and completion, no fits where results are only read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_HEAVY = {"numpy", "pyarrow", "pydantic", "rich", "pandas", "scipy", "duckdb"}
_FITS = {"scipy", "iminuit", "numba", "altair", "elasticsearch", "apscheduler"}
_SCRIPT = """
import atexit, sys
atexit.register(lambda: print(*sorted(name for name in sys.modules if sys.modules[name]), file=sys.stderr))
sys.argv[0] = "esjobs"
from esjobs.cli.start import program
program()
"""


def imported(*arguments: str, **variables: str) -> set[str]:
    """Modules in a process that has run a command."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [("--help",), ("show", "--help"), ("demo", "--help")])
def test_help_imports_no_library(arguments: tuple[str, ...]) -> None:
    assert imported(*arguments) & _HEAVY == set()


def test_completion_imports_no_library_and_no_command() -> None:
    variables = {"_ESJOBS_COMPLETE": "bash_complete", "COMP_WORDS": "esjobs s", "COMP_CWORD": "1"}
    found = imported(**variables)
    assert found & {*_HEAVY, "esjobs.cli.results"} == set()


@pytest.mark.parametrize(
    "arguments", [("show", "flags"), ("query", "--by", "queue"), ("report", "--out", "report.html")]
)
def test_who_reads_results_imports_no_fits_and_no_pandas(
    demo_folder: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    command = [str(tmp_path / each) if each.endswith(".html") else each for each in arguments]
    found = imported("--quiet", "--store", f"duckdb:{demo_folder / 'demo.duckdb'}", *command)
    assert "pyarrow.lib" in found
    assert found & {*_FITS, "pandas.core"} == set()


@pytest.mark.parametrize("command", ["run", "doctor", "fields"])
def test_a_command_that_makes_no_frame_imports_no_pandas(filled: Path, command: str) -> None:
    assert "pandas.core" not in imported("--store", f"duckdb:{filled}", command)
