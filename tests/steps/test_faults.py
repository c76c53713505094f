"""Calls to the system that fail while the program works: one line, and what was visible stays whole."""

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import built_once
from tests.steps.scenes import Scene, assert_again_completes, assert_whole, opened
from tests.steps.visible import contents

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="preloads a library, as on Linux"
)

SOURCE = Path(__file__).with_name("faults.c")
# what fails, and how; `sticky`: from then on, as on a full disk
FAULTS = {
    "open: too many files": ("open", errno.EMFILE, False),
    "open: read-only": ("open", errno.EROFS, True),
    "write: disk full": ("write", errno.ENOSPC, True),
    "write: no space once": ("write", errno.ENOSPC, False),
    "write: input or output": ("write", errno.EIO, False),
    "write: half of it": ("short", 0, False),
    "fsync: input or output": ("fsync", errno.EIO, False),
    "truncate: input or output": ("truncate", errno.EIO, False),
    "rename: no space": ("rename", errno.ENOSPC, False),
}
ACTIONS = ("ingest", "aggregate", "run", "undo", "prune")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes calls fail, compiled once a run."""

    def build(folder: Path) -> None:
        output = folder / "faults.so"
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            "-o",
            str(output),
            str(SOURCE),
            "-ldl",
        ]
        subprocess.run(command, check=True)

    return built_once(tmp_path_factory, "faults", build) / "faults.so"


def command(scene: Scene, store: Path) -> list[str]:
    """The command line of an action of a scene."""
    action, *arguments = scene.action
    spelled = {
        "ingest": ["ingest", "jobs", *arguments],
        "aggregate": ["aggregate", "--rebuild"],
        "run": ["run", "--rebuild"],
        "undo": ["ingest", "--undo", *arguments],
        "prune": ["prune", "--keep", *arguments],
    }
    return [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", *spelled[action]]


def run_with(
    library: Path,
    folder: Path,
    arguments: list[str],
    call: str,
    nth: int,
    error: int,
    *,
    sticky: bool = False,
) -> tuple["subprocess.CompletedProcess[str]", int]:
    """Run a command whose ``nth`` call fails (0: none); how it ended, and how many such calls it made."""
    log = folder.with_suffix(".calls")
    log.unlink(missing_ok=True)
    faults = {
        "FAULT_PATH": f"{folder}/",
        "FAULT_CALL": call,
        "FAULT_NTH": str(nth),
        "FAULT_ERRNO": str(error),
    }
    if sticky:
        faults["FAULT_STICKY"] = "1"
    environment = {**os.environ, **faults, "FAULT_LOG": str(log), "LD_PRELOAD": str(library)}
    ended = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return ended, int(log.read_text()) if log.exists() else 0


def assert_survives(library: Path, scene: Scene, folder: Path, fault: str, nth: int) -> bool:
    """One fault: exit code, one line, whole contents, and the next time completes. True if it was met."""
    call, error, sticky = FAULTS[fault]
    folder.mkdir()
    store = scene.copy(folder)
    ended, calls = run_with(library, folder, command(scene, store), call, nth, error, sticky=sticky)
    assert ended.returncode in (0, 1), (ended.returncode, ended.stderr)
    assert "Traceback" not in ended.stderr
    if ended.returncode:
        assert len(ended.stderr.splitlines()) == 1, ended.stderr
        assert ended.stderr.startswith("esjobs: ")
    with opened(store) as session:
        found = contents(session)
    where = assert_whole(scene, found)
    if not ended.returncode and scene.action[0] in ("ingest", "undo"):
        assert where == "after"
    assert_again_completes(scene, store)
    shutil.rmtree(folder)
    return calls >= nth


@pytest.fixture(scope="session")
def numbers(
    library: Path, scenes: Mapping[str, Scene], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], int]:
    """Numbers of calls that an undisturbed action makes."""

    @cache
    def number(action: str, call: str) -> int:
        folder = tmp_path_factory.mktemp("counted")
        arguments = command(scenes[action], scenes[action].copy(folder))
        ended, calls = run_with(library, folder, arguments, call, 0, 0)
        assert ended.returncode == 0, ended.stderr
        return calls

    return number


def alternately() -> list[Any]:
    """Every fault once, of loads and of runs in turn; the other half repeats them on the other one."""
    return [
        pytest.param(action, fault, marks=() if (number + turn) % 2 == 0 else pytest.mark.matrix)
        for number, fault in enumerate(FAULTS)
        for turn, action in enumerate(("ingest", "run"))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("action", "fault"), alternately())
def test_one_call_fails(
    library: Path,
    scenes: Mapping[str, Scene],
    numbers: Callable[[str, str], int],
    tmp_path: Path,
    action: str,
    fault: str,
) -> None:
    """A call drawn by the name of the test, among those that the action makes."""
    calls = numbers(action, FAULTS[fault][0])
    if not calls:
        assert FAULTS[fault][0] in ("truncate", "rename")
        return
    nth = random.Random(f"{action} {fault}").randint(1, calls)
    assert assert_survives(library, scenes[action], tmp_path / "work", fault, nth)


@pytest.mark.matrix
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("action", ACTIONS)
def test_calls_from_the_first_to_the_last_fail(
    library: Path,
    scenes: Mapping[str, Scene],
    numbers: Callable[[str, str], int],
    tmp_path: Path,
    action: str,
    fault: str,
) -> None:
    """At most a dozen of each, evenly spread."""
    calls = numbers(action, FAULTS[fault][0])
    for nth in range(1, calls + 1, 1 + calls // 12):
        assert assert_survives(library, scenes[action], tmp_path / f"work{nth}", fault, nth)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["write: disk full", "rename: no space", "fsync: input or output"])
def test_a_report_that_cannot_be_written_leaves_the_old_one(
    library: Path, scenes: Mapping[str, Scene], tmp_path: Path, fault: str
) -> None:
    store = scenes["run"].copy(tmp_path)
    call, error, sticky = FAULTS[fault]
    folder = tmp_path / "out"
    folder.mkdir()
    out = folder / "report.html"
    out.write_text("the old report")
    arguments = [sys.executable, "-m", "esjobs", "--quiet", "--store", f"duckdb:{store}", "report"]
    ended, calls = run_with(library, folder, [*arguments, "--out", str(out)], call, 1, error, sticky=sticky)
    if not calls:
        assert ended.returncode == 0
        return
    assert ended.returncode == 1, ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert out.read_text() == "the old report"
    assert [path.name for path in folder.iterdir()] == ["report.html"]
