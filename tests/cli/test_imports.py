"""Libraries that commands import: none for help and completion, no fits where results are only read.

Commands of one promise run one after the other in one process: what any of them imports is seen at its end.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import esjobs

_HEAVY = {"numpy", "pyarrow", "pydantic", "rich", "pandas", "scipy", "duckdb"}
_FITS = {"scipy", "iminuit", "numba", "altair", "elasticsearch", "apscheduler"}
_SCRIPT = """
import atexit, json, sys
atexit.register(lambda: print(*sorted(name for name in sys.modules if sys.modules[name]), file=sys.stderr))
from esjobs.cli.start import program
for command in json.loads(sys.argv[1]):
    sys.argv = ["esjobs", *command]
    try:
        program()
    except SystemExit as end:
        if end.code:
            raise
"""


def imported(*commands: Sequence[str], **variables: str) -> set[str]:
    """Modules in a process that has run the commands."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_help_imports_no_library() -> None:
    assert imported(["--help"], ["show", "--help"], ["demo", "--help"]) & _HEAVY == set()


def test_completion_imports_no_library_and_no_command() -> None:
    variables = {"_ESJOBS_COMPLETE": "bash_complete", "COMP_WORDS": "esjobs s", "COMP_CWORD": "1"}
    found = imported([], **variables)
    assert found & {*_HEAVY, "esjobs.cli.results"} == set()


def test_who_reads_results_imports_no_fits_and_no_pandas(filled: Path, tmp_path: Path) -> None:
    store = ("--quiet", "--store", f"duckdb:{filled}")
    report = ("report", "--out", str(tmp_path / "report.html"))
    found = imported(*((*store, *each) for each in (("show", "flags"), ("query", "--by", "queue"), report)))
    assert "pyarrow.lib" in found
    assert found & {*_FITS, "pandas.core"} == set()


def test_pages_as_text_import_no_fits_no_pandas_and_no_templates(filled: Path) -> None:
    store = ("--quiet", "--store", f"duckdb:{filled}")
    with esjobs.open(f"duckdb:{filled}", read_only=True) as session:
        (job,) = session.sql("SELECT job_id, queue FROM jobs LIMIT 1").rows.to_pylist()
    found = imported(
        *((*store, *each) for each in (("job", job["job_id"]), ("site", job["queue"]), ("today",)))
    )
    assert "pyarrow.lib" in found
    assert found & {*_FITS, "pandas.core", "jinja2"} == set()


def test_a_command_that_makes_no_frame_imports_no_pandas(filled: Path) -> None:
    store = ("--store", f"duckdb:{filled}")
    assert "pandas.core" not in imported(*((*store, each) for each in ("run", "doctor", "fields")))
