"""What does not fit into memory: in a folder of the user, which keeps nothing of killed programs."""

import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import esjobs
from esjobs.store.duck.spill import spill_folder
from tests.contract.jobs import job, put

SPILLING = """
import sys
import esjobs
from esjobs import Settings
with esjobs.open(settings=Settings(store=sys.argv[1], memory="60MB")) as session:
    session.sql("SELECT i, hash(i)::VARCHAR AS h FROM range(200000000) AS t(i) ORDER BY h")
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test alone, for programs that it starts, too."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_it_is_one_folder_that_nobody_else_may_enter(temporary: Path) -> None:
    folder = Path(spill_folder())
    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert spill_folder() == str(folder)


@pytest.mark.parametrize("kind", ["link", "file", "open to others"])
def test_what_is_not_ours_alone_is_not_used(temporary: Path, kind: str) -> None:
    folder = Path(spill_folder())
    folder.rmdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        folder.symlink_to(elsewhere)
    elif kind == "file":
        folder.write_text("mine")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    assert spill_folder() != str(folder)
    assert not list(elsewhere.iterdir())


def test_without_any_folder_for_temporary_files_a_store_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    with esjobs.open(place, create=True) as session:
        put(session.store, "a", job(1))

    def none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    for store in (place, "duckdb::memory:"):
        with esjobs.open(store, read_only=True) as session:
            assert session.sql("SELECT 1 AS one").to_pandas().to_dict("list") == {"one": [1]}


@pytest.mark.parametrize("store", ["duckdb::memory:", "duckdb:jobs.duckdb"])
def test_what_a_killed_program_left_is_removed_by_the_next_one(
    temporary: Path, tmp_path: Path, store: str
) -> None:
    place = store.replace("jobs.duckdb", str(tmp_path / "jobs.duckdb"))
    program = subprocess.Popen([sys.executable, "-c", SPILLING, place])
    until = time.monotonic() + 60
    while not _left(temporary, tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert _left(temporary, tmp_path)
    with esjobs.open(place):
        pass
    assert not _left(temporary, tmp_path)


def _left(*folders: Path) -> list[Path]:
    """Files of DuckDB in these folders and those in them."""
    return [file for folder in folders for file in folder.glob("**/duckdb_temp_*")]
