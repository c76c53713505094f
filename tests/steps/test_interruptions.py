"""Killed or interrupted in the middle: what was visible stays, nothing is half visible, again completes."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.messages import compare_text
from tests.steps.scenes import Scene, assert_again_completes, assert_whole, opened
from tests.steps.victims import finish, kill_after, start
from tests.steps.visible import RESULTS, contents, same


@pytest.mark.parametrize(
    ("what", "moment"),
    [
        pytest.param("ingest", "new.parquet", marks=pytest.mark.matrix),
        ("ingest", "storing"),
        ("aggregate", "aggregating"),
        ("aggregate", "clock 1"),
        ("run", "fitting"),
        pytest.param("run", "judging", marks=pytest.mark.matrix),
        ("run", "clock 2"),
        ("run", "clock 4"),
        ("run", "done"),
    ],
)
def test_killed_at_a_moment(scenes: Mapping[str, Scene], tmp_path: Path, what: str, moment: str) -> None:
    """Between rows and commit, between fit and publication, just before the switch, just after it."""
    scene = scenes[what]
    store = scene.copy(tmp_path)
    assert finish(start(store, scene.action, moment)) == -signal.SIGKILL
    with opened(store) as session:
        found = contents(session)
    assert_whole(scene, found)
    if moment == "done":
        assert same(found["flags"], scene.after["flags"])
    elif what == "run":
        assert same(found["flags"], scene.before["flags"])
        assert same(found["buckets"], scene.after["buckets"])
    else:
        for name in ("jobs", "buckets", *RESULTS):
            assert same(found[name], scene.before[name])
    assert_again_completes(scene, store)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.matrix)])
@pytest.mark.parametrize("what", ["ingest", "aggregate", "run", "undo", "prune"])
def test_killed_at_any_moment(scenes: Mapping[str, Scene], tmp_path: Path, what: str, seed: int) -> None:
    """Several kills in a row on one store, each at another moment of the action, then once to the end."""
    scene = scenes[what]
    store = scene.copy(tmp_path)
    moments = random.Random(f"{what}{seed}")  # a number per test, the same every time
    for _ in range(2):
        kill_after(start(store, scene.action), moments.uniform(0, 1.1) * scene.seconds)
        with opened(store) as session:
            assert_whole(scene, contents(session))
    assert_again_completes(scene, store)


def test_what_is_killed_differs(scenes: Mapping[str, Scene]) -> None:
    """The scenes would prove nothing if before and after were alike."""
    changed = {
        name: {table for table in one.after if not same(one.before[table], one.after[table])}
        for name, one in scenes.items()
    }
    assert changed["ingest"] == {"jobs", "loads", "rejects"}
    assert changed["aggregate"] >= {"buckets", "day_books", "runs"}
    assert changed["run"] >= {
        "buckets",
        "day_books",
        "factors",
        "fits",
        "lines",
        "flags",
        "fit_summaries",
        "steps",
    }
    assert changed["undo"] >= {"jobs", "loads", "rejects", "buckets"}
    assert changed["prune"] == {"runs", "steps"}


def test_a_report_killed_leaves_the_old_one(scenes: Mapping[str, Scene], tmp_path: Path) -> None:
    store = scenes["run"].copy(tmp_path)
    out = tmp_path / "report.html"
    process = start(store, ("report", str(out)))
    began = time.perf_counter()
    assert finish(process) == 0
    seconds = time.perf_counter() - began
    whole = out.read_text("utf-8")
    assert whole.rstrip().endswith("</html>")
    out.write_text("the old report")
    for part in (0.5, 0.9):
        code = kill_after(start(store, ("report", str(out))), part * seconds)
        assert code in (0, -signal.SIGKILL)
        # A kill may also come between the switch of the file and the end of the process.
        assert out.read_text("utf-8") in (("the old report", whole) if code else (whole,))
        out.write_text("the old report")


# -- the command line, real processes --------------------------------------------------------------------


def command(store: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "esjobs", "--store", f"duckdb:{store}", *arguments]


def run_to_end(store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(store, *arguments), capture_output=True, text=True, timeout=60, check=False)


def wait_for_store(process: subprocess.Popen[str], store: Path) -> None:
    """Until the process has the store's file open."""
    folder = Path(f"/proc/{process.pid}/fd")
    while process.poll() is None:
        for entry in folder.iterdir():
            try:
                if entry.readlink() == store:
                    return
            except OSError:
                continue
        time.sleep(0.005)
    raise AssertionError(f"it ended before it opened the store: {process.communicate()}")


@pytest.fixture
def popen() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


linux_only = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks into /proc, as on Linux")


@linux_only
@pytest.mark.parametrize(("what", "part"), [("ingest", 0.3), ("run", 0.1), ("run", 0.6)])
def test_interrupted_by_the_user(
    scenes: Mapping[str, Scene],
    tmp_path: Path,
    popen: list[subprocess.Popen[str]],
    what: str,
    part: float,
) -> None:
    """Ctrl-C: one line, exit code 130, and the store as before or as after."""
    scene = scenes[what]
    store = scene.copy(tmp_path)
    arguments = ("ingest", "jobs", scene.action[1]) if what == "ingest" else ("run", "--rebuild")
    process = subprocess.Popen(
        command(store, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    popen.append(process)
    wait_for_store(process, store)
    time.sleep(part * scene.seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    with opened(store) as session:
        found = contents(session)
    assert_whole(scene, found)
    # Python ends by the signal when it met Ctrl-C inside exec or at shutdown: a shell says 130 then too.
    assert "Traceback" not in err
    if "interrupted" in err:
        assert process.returncode in (130, -signal.SIGINT)
        assert out == "" or same(found["flags"], scene.after["flags"])
        assert re.fullmatch(r"esjobs: interrupted; .*run again", err.splitlines()[-1])
        assert len(err.splitlines()) == 1 or same(found["flags"], scene.after["flags"])
    else:
        assert process.returncode in (0, -signal.SIGINT), err
        for name in ("jobs", *RESULTS):
            assert same(found[name], scene.after[name])
    assert_again_completes(scene, store)


@linux_only
def test_a_second_process_is_told_who_holds_the_store(
    scenes: Mapping[str, Scene], tmp_path: Path, popen: list[subprocess.Popen[str]]
) -> None:
    """A reader and a writer beside a long ingest: one line, exit code 1; afterwards both work."""
    store = scenes["run"].copy(tmp_path)
    os.mkfifo(pipe := tmp_path / "slow.csv")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(store), str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    popen.append(holder)
    wait_for_store(holder, store)
    for arguments in (("show", "flags"), ("ingest", "jobs", scenes["ingest"].action[1])):
        refused = run_to_end(store, "--wait", "0", *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.count("\n") == 1
        compare_text(refused.stderr)
        assert str(store) in refused.stderr
    pipe.write_text("go on")
    assert holder.wait(60) == 0
    assert run_to_end(store, "show", "flags").returncode == 0


_HOLD = """
import sys
from pathlib import Path
import pyarrow as pa
from esjobs.core.arrow import PUT_SCHEMA
from esjobs import open as open_session

def rows():
    yield pa.RecordBatch.from_pylist([], schema=PUT_SCHEMA)
    Path(sys.argv[2]).read_text()

with open_session("duckdb:" + sys.argv[1]) as session:
    session.store.put_jobs(rows(), "slow")
"""
