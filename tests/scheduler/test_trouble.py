"""What a night does when its store cannot be written, read, opened; as the process that cron starts."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, History, settings_of, staged

LAST = FIRST + timedelta(days=3)
MOMENT = f"{LAST + timedelta(days=2)}T03:30:00+00:00"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, history: History) -> Path:
    """A store with four nights, and the jobs of the fifth."""
    folder = tmp_path_factory.mktemp("ready")
    with staged(folder, after=history(4)) as stage:
        stage.arrive(LAST + timedelta(days=1))
    return folder / "jobs.duckdb"


def environment() -> dict[str, str]:
    return os.environ | {
        "XDG_STATE_HOME": str(Path(tempfile.gettempdir()) / f"esjobs-state-{os.getpid()}"),
        "ESJOBS_NIGHTS__WINDOWS": "[3, 7]",
        "ESJOBS_NIGHTS__HEADLINE": "7",
        "ESJOBS_NIGHTS__LATE_DAYS": "3",
        "ESJOBS_NIGHTS__DEADLINE_H": "0",
        "ESJOBS_FIT__METHODS": '["gamma"]',
    }


def once(store: Path, *before: str) -> "subprocess.CompletedProcess[str]":
    command = [*before, sys.executable, "-m", "tests.scheduler.once", f"duckdb:{store}", MOMENT]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def may(*command: str) -> bool:
    return (
        shutil.which(command[0]) is not None
        and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    )


def assert_one_line(ended: "subprocess.CompletedProcess[str]", words: str) -> None:
    assert ended.returncode == 1, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("esjobs: ")
    assert words in line
    assert ended.stdout == ""


def results(store: Path) -> dict[str, list[str]]:
    """What readers see but accounts of nights, as far as an older night has it."""
    from esjobs import open as open_session

    with open_session(settings=settings_of(f"duckdb:{store}")) as session:
        return visible_rows(session.store, ("nights", "night_steps"))


@pytest.mark.skipif(not may("unshare", "-rm"), reason="needs user namespaces, for a small disk")
def test_a_disk_that_is_full_fails_the_night_and_keeps_what_was_there(ready: Path, tmp_path: Path) -> None:
    small, after = tmp_path / "small", tmp_path / "after"
    small.mkdir()
    after.mkdir()
    size = ready.stat().st_size + 100_000
    script = (
        f"mount -t tmpfs -o size={size} tmpfs {small} && cp {ready} {small}/ && "
        f"{sys.executable} -m tests.scheduler.once duckdb:{small}/jobs.duckdb {MOMENT}; code=$?; "
        f"cp {small}/* {after}/; exit $code"
    )
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "No space left on device; free disk space and run it again" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    kept, before = results(after / "jobs.duckdb"), results(ready)
    # the buckets of the new day may be there, results are those of before
    assert {name: kept[name] for name in ("factors", "flags", "lines", "latest_runs")} == {
        name: before[name] for name in ("factors", "flags", "lines", "latest_runs")
    }
    # with room again the same night is done
    ended = once(after / "jobs.duckdb")
    assert ended.returncode == 0, ended.stderr
    assert "2025-06-05  done" in ended.stdout


@pytest.mark.skipif(not may("unshare", "-rm"), reason="needs user namespaces, for a folder that is read-only")
def test_a_folder_that_is_read_only_is_told(ready: Path, tmp_path: Path) -> None:
    shutil.copy(ready, tmp_path)
    script = (
        f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path} && "
        f"exec {sys.executable} -m tests.scheduler.once duckdb:{tmp_path}/jobs.duckdb {MOMENT}"
    )
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert_one_line(ended, "Read-only file system; make the file and its folder writable")
    assert results(tmp_path / "jobs.duckdb") == results(ready)


def test_a_file_without_the_right_to_write_is_told(ready: Path, tmp_path: Path) -> None:
    store = Path(shutil.copy(ready, tmp_path))
    store.chmod(0o444)
    tmp_path.chmod(0o555)
    # root may write to everything unless it lets go of that right
    plain = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    try:
        if plain and not may(*plain):
            pytest.skip("root cannot give up its right to write to everything here")
        assert_one_line(once(store, *plain), "Permission denied; make the file and its folder writable")
    finally:
        tmp_path.chmod(0o755)
        store.chmod(0o644)
    assert results(store) == results(ready)


def test_a_damaged_file_is_told(ready: Path, tmp_path: Path) -> None:
    store = Path(shutil.copy(ready, tmp_path))
    content = np.frombuffer(store.read_bytes(), np.uint8).copy()
    content[20_000:] ^= np.random.default_rng(1).integers(1, 256, len(content) - 20_000, np.uint8)
    store.write_bytes(content.tobytes())
    assert_one_line(
        once(store), "the file is damaged; restore the backup, or load the records into a new file"
    )
    assert store.read_bytes() == content.tobytes()


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    store = tmp_path / "jobs.duckdb"
    store.write_bytes(random.Random(1).randbytes(50_000))
    assert_one_line(once(store), "not a valid DuckDB database file")
    assert_one_line(once(store), "restore the backup; otherwise use a different file")


def test_a_store_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert_one_line(once(tmp_path / "none.duckdb"), "no store at")
    assert list(tmp_path.iterdir()) == []


def test_of_two_that_start_at_once_one_works(ready: Path, tmp_path: Path) -> None:
    store = Path(shutil.copy(ready, tmp_path))
    command = [sys.executable, "-m", "tests.scheduler.once", f"duckdb:{store}", MOMENT]
    running = [
        subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in running]
    codes = [process.returncode for process in running]
    assert sorted(codes) in ([0, 0], [0, 1]), said
    for code, (_, errors) in zip(codes, said, strict=True):
        if code:
            assert "gave up after" in errors
    with staged(tmp_path) as stage:
        steps = stage.nights._ledger.steps(LAST + timedelta(days=1))
        # whoever came second found it done
        assert {row["attempt"] for row in steps if row["step"].startswith(("fit", "aggregate"))} == {1}


@pytest.mark.skipif(not may("unshare", "-rm"), reason="needs user namespaces, to mount")
def test_a_state_folder_is_all_that_is_written_to(ready: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    store = Path(shutil.copy(ready, state))
    script = (
        f"mount --bind {state} {state} && mount -o remount,bind,ro / && "
        f"! touch {tmp_path}/there 2>/dev/null && "
        f"exec {sys.executable} -m tests.scheduler.once duckdb:{store} {MOMENT}"
    )
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        env=environment()
        | {"HOME": str(state), "TMPDIR": str(state), "NUMBA_CACHE_DIR": str(state / "compiled")}
        | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "2025-06-05  done" in ended.stdout
