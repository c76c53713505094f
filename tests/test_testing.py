"""The suites of ``esjobs.testing`` as another package uses them: ten lines, and mistakes are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_entry_points import PAIRS

STORE = """
import pytest
from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.store import DuckStore
from esjobs.testing import Engine
from esjobs.testing.stores import *


class Store(DuckStore):
    {method}


@pytest.fixture
def engine():
    return Engine("mine", lambda folder: Store(folder / "jobs.duckdb", tables=TABLES))
"""

SOURCE = """
import pytest
from esjobs.testing.sources import *
from pairs import PAIRS


@pytest.fixture
def source():
    return PAIRS


@pytest.fixture
def sample(tmp_path):
    (tmp_path / "jobs.txt").write_text("a 10\\nb 20\\n")
    return tmp_path / "jobs.txt"
"""

FORGETFUL = "def undo_load(self, load_id): return type(super().undo_load('none'))()"
READS = "for number, line in enumerate(stream, 1):"
REFUSES = """
                if not line.isascii() or len(line.split()) != 2:
                    raise InputError(f"{file.name}, line {number}: not a pair")"""
CAREFUL = (
    PAIRS.replace(READS, READS + REFUSES)
    .replace('rows.append({"source"', 'rows.append({**fill, "source"')
    .replace("import Parsed", "import Parsed\nfrom esjobs.core.errors import InputError")
)


def run(folder: Path, *options: str, **files: str) -> dict[str, int]:
    """Outcomes of the tests in files of a package that is not ours."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", "-W", "error", *options]
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": f"{folder}:{Path(__file__).parents[1]}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    parts = done.stdout.splitlines()[-1].split(" in ")[0].split(", ")
    assert all(part.split()[0].isdigit() for part in parts), done.stdout + done.stderr
    return {part.split()[1]: int(part.split()[0]) for part in parts}


@pytest.mark.parametrize("method", ["pass", FORGETFUL], ids=["good", "forgetful"])
def test_a_store_of_another_package(tmp_path: Path, method: str) -> None:
    """A part of the suite, for each test opens stores of its own: the whole one runs on engines of ours."""
    found = run(tmp_path, "-k", "undo or partition or closed or lasts", test_mine=STORE.format(method=method))
    assert found["passed"] > 15
    assert (found.get("failed", 0) > 0) == (method == FORGETFUL)


def test_a_source_of_another_package(tmp_path: Path) -> None:
    assert run(tmp_path, pairs=CAREFUL, test_mine=SOURCE) == {"passed": 10}


def test_a_careless_source_of_another_package(tmp_path: Path) -> None:
    """A line that it cannot read ends it by an exception that is not ours; it fills nothing."""
    assert run(tmp_path, pairs=PAIRS, test_mine=SOURCE)["failed"] >= 2


def test_the_package_is_imported_without_pytest() -> None:
    code = "import sys, esjobs.testing; assert 'pytest' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
