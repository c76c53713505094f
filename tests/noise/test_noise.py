"""Recorded runs and the real programs: files that are wrong, gates, sentences, one short run of Open MPI."""

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from esjobs.core.errors import EsjobsError, InputError, UsageError
from esjobs.noise.analysis import analyse, compare
from esjobs.noise.programs import Plan, build, run
from esjobs.noise.recorded import read_runs
from tests.cli.running import run as run_program
from tests.messages import compare_text, raised
from tests.noise.runs import recorded

PAGE = Path(__file__).parents[2] / "docs" / "noise.md"
LAUNCHER = "mpirun --oversubscribe" + (" --allow-run-as-root" if os.geteuid() == 0 else "")


def test_levels_are_detected_missed_and_unconfirmed(tmp_path: Path) -> None:
    path = recorded(tmp_path / "runs.csv", {0: 1, 0.1: 1.01, 0.3: 1.0, 0.5: 1.01, 1: 1.02})
    told = analyse([path])
    verdicts = {row["level"]: row["verdict"] for row in told.rows.to_pylist()}
    assert verdicts == {0: "clean", 0.1: "unconfirmed", 0.3: "missed", 0.5: "detected", 1: "detected"}
    assert told.notes[0].startswith("all levels from 0.5 % on are detected")
    assert told.notes[1] == "unconfirmed, because a higher level was not detected: 0.1 %"


def test_the_gate_is_one_for_all_levels(tmp_path: Path) -> None:
    quiet = recorded(tmp_path / "a.csv", {0: 1, 1: 1.02})
    busy = recorded(tmp_path / "b.csv", {0: 1.5, 1: 1.5}, delay=0.05, n=3)
    rows = analyse([quiet, busy]).rows.to_pylist()
    assert [(row["n"], row["n_runs_skipped"]) for row in rows] == [(12, 3), (12, 3)]
    assert [row["n"] for row in analyse([quiet, busy], gate=0.06).rows.to_pylist()] == [15, 15]
    with raised(InputError):
        analyse([busy])


def test_a_collector_costs_something_or_is_below_what_can_be_seen(tmp_path: Path) -> None:
    off = recorded(tmp_path / "off.csv", {0: 1})
    seen = compare(off, recorded(tmp_path / "on.csv", {0: 1.01}, seed=2))
    (row,) = seen.rows.to_pylist()
    assert row["low_frac"] < 0.01 < row["high_frac"]
    assert seen.notes[0].startswith("the collector costs ")
    unseen = compare(off, recorded(tmp_path / "same.csv", {0: 1}, seed=3))
    assert "below the detection limit of this test (0." in unseen.notes[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("hangs", [1, 3])
def test_what_is_ended_by_a_scheduler_leaves_the_runs_before_and_no_process(
    tmp_path: Path, number: signal.Signals, hangs: int
) -> None:
    """A launcher that hangs the first time, for calibration, or the third, when one run is done."""
    programs, calls, out = tmp_path / "programs", tmp_path / "calls", tmp_path / "runs.csv"
    programs.mkdir()
    for name in ("detector", "source"):
        (programs / name).touch()
    told = '{"seconds": 1.0, "run_delay_s": -1.0, "involuntary_switches": 0, "count": 7, "ranks": 2}'
    launcher = tmp_path / "launcher"
    launcher.write_text(
        f"#!/bin/sh\necho $$ >> {calls}\n[ $(wc -l < {calls}) -lt {hangs} ] || exec sleep 60\n"
        f"echo '{told}'\n",
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    command = [sys.executable, "-m", "esjobs", "noise", "run", str(programs), str(out), "--levels", "0"]
    command += ["--repeat", "5", "--launcher", str(launcher)]

    def heard() -> None:
        signal.signal(number, signal.SIG_DFL)  # who runs the tests may ignore it

    with subprocess.Popen(command, preexec_fn=heard) as running:  # noqa: PLW1509
        for _ in range(600):
            started = calls.read_text().split() if calls.exists() else []
            if len(started) == hangs or running.poll() is not None:
                break
            time.sleep(0.1)
        assert len(started) == hangs
        running.send_signal(number)
        assert running.wait(timeout=30) == 130
    assert out.exists() == (hangs == 3)
    if hangs == 3:
        assert len(read_runs([out])) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(started[-1]), 0)


def test_runs_with_noise_are_no_part_of_what_a_collector_costs(tmp_path: Path) -> None:
    off, on = recorded(tmp_path / "off.csv", {0: 1}), recorded(tmp_path / "on.csv", {0: 1.01}, seed=2)
    noisy = recorded(tmp_path / "noisy.csv", {0: 1, 50: 3})
    plain, told = compare(off, on).rows.to_pylist(), compare(noisy, on)
    assert told.rows.column("n_off").to_pylist() == [row["n_off"] for row in plain]
    assert told.rows.column("cost_frac").to_pylist() == pytest.approx(
        [row["cost_frac"] for row in plain], abs=0.01
    )
    assert told.notes[1].startswith("runs with injected noise, ignored: ")
    only = recorded(tmp_path / "only.csv", {50: 3})
    with raised(InputError):
        compare(off, only)


def test_times_that_no_cost_joins(tmp_path: Path) -> None:
    for name, times in (("off", "1e-300 1e9 1"), ("on", "1 1 1")):
        rows = "".join(f"0,{each}\n" for each in times.split())
        (tmp_path / name).write_text(f"level,seconds\n{rows}", encoding="utf-8")
    with raised(InputError):
        compare(tmp_path / "off", tmp_path / "on")


def test_files_without_a_size_are_read_once_and_not_for_ever(tmp_path: Path) -> None:
    with raised(InputError):
        read_runs([Path("/dev/zero")])
    pipes = []
    for name in ("off", "on"):
        os.mkfifo(tmp_path / name)
        pipes.append(
            subprocess.Popen(["/bin/sh", "-c", f"printf 'level,seconds\n0,1\n0,2\n' > {tmp_path}/{name}"])
        )
    assert compare(tmp_path / "off", tmp_path / "on").rows.num_rows == 1
    assert [pipe.wait(10) for pipe in pipes] == [0, 0]


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize("option", ["--gate", "--precision"])
def test_limits_that_are_no_numbers(tmp_path: Path, option: str, value: str) -> None:
    path = recorded(tmp_path / "runs.csv", {0: 1})
    told = run_program("noise", "analyse", str(path), option, value)
    assert told.exit_code == 2
    compare_text(told.stderr)
    if value != "inf":
        with raised(UsageError):
            analyse([path], gate=float(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "level,seconds\n",
        "level,seconds\n0,abc\n",
        "level,seconds\n0,nan\n",
        "level,seconds\n0,0\n",
        "level,seconds\n-1,5\n",
        "level,seconds\n0\n",
        "level,seconds,collective\n0,5,barrier\n0,5,alltoall\n",
        "level,seconds\n0,1e400\n",
    ],
)
def test_wrong_files_are_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    with raised(InputError):
        read_runs([path])


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(b"level,seconds\n\xff\xfe,1\n")
    with raised(InputError):
        read_runs([tmp_path / "runs.csv"])
    with raised(InputError):
        read_runs([tmp_path / "none.csv"])


def test_plans_that_make_no_sense(tmp_path: Path) -> None:
    with raised(UsageError):
        build(tmp_path, "no-such-mpicc")
    with raised(UsageError):
        run(Plan("barrier", 0, (1.0,), 1, 0.1, 2), tmp_path, tmp_path / "out.csv")
    with raised(UsageError):
        run(Plan("barrier", 0, (0.0,), 1, 0.1, 2), tmp_path, tmp_path / "out.csv")
    for seconds in (0.0, -1.0, math.nan, math.inf, 1e9):
        with raised(UsageError):
            run(Plan("barrier", 0, (0.0,), 1, seconds, 2), tmp_path, tmp_path / "out.csv")
    for name in ("detector", "source"):
        (tmp_path / name).touch()
    with raised(UsageError):
        run(Plan("barrier", 0, (0.0,), 1, 0.1, 2, "mpirun 'x"), tmp_path, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "complaints",
    [
        "----\nORTE was unable to start\n\nadvice, and\nmore advice).\n----\n",
        "In file x.c:1:\nx.c:3:1: error: no such type\ncompilation terminated.\n",
        "usage: launcher\n",
        "===\n",
    ],
)
def test_of_many_complaints_the_telling_one_is_said(complaints: str, tmp_path: Path) -> None:
    compiler = tmp_path / "mpicc"
    compiler.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{complaints}END\nexit 1\n", encoding="utf-8")
    compiler.chmod(0o755)
    with raised(EsjobsError):
        build(tmp_path / "programs", str(compiler))


@pytest.mark.skipif(
    shutil.which("mpicc") is None and os.environ.get("CI") != "true", reason="there is no Open MPI here"
)
def test_both_programs_run_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """They start, tell times, end; whether noise is seen is never asked of a shared machine."""
    build(tmp_path / "programs")
    out = tmp_path / "runs.csv"
    plan = Plan("alltoall", 64, (0.0, 50.0), 2, 0.2, 2, LAUNCHER, core=-1)
    assert run(plan, tmp_path / "programs", out) == 4
    runs = read_runs([out])
    assert sorted(each.level for each in runs) == [0.0, 0.0, 50.0, 50.0]
    assert len({each.configuration for each in runs}) == 1
    assert all(each.seconds > 0 for each in runs)
    assert len(analyse([out], gate=1e9).rows) == 2
    with raised(InputError):
        run(plan, tmp_path / "programs", out)
    with raised(EsjobsError):
        run(
            Plan("barrier", 0, (0.0,), 1, 0.1, 2, f"{LAUNCHER} --no-such-option"),
            tmp_path / "programs",
            tmp_path / "other.csv",
        )


def test_the_example_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (table,) = re.findall(r"```csv\n((?:.*\n)*?)```", page)
    examples = re.findall(r"```text\n\$ esjobs (.*)\n((?:.*\n)*?)```", page)
    assert examples
    (tmp_path / "runs.csv").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for command, printed in examples:
        told = run_program(*command.split())
        assert told.exit_code == 0, told.stderr
        assert told.output == printed


def test_what_fails_leaves_the_runs_before(tmp_path: Path) -> None:
    """A launcher that fails the third time: calibration and one run are done by then."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("detector", "source"):
        (programs / name).write_text("", encoding="utf-8")
    launcher = tmp_path / "launcher"
    told = '{"seconds": 1.0, "run_delay_s": -1.0, "involuntary_switches": 0, "count": 7, "ranks": 2}'
    launcher.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/calls\n[ $(wc -l < {tmp_path}/calls) -lt 3 ] || "
        f"{{ echo no more >&2; exit 3; }}\necho '{told}'\n",
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    out = tmp_path / "runs.csv"
    with raised(EsjobsError):
        run(Plan("barrier", 0, (0.0,), 3, 1.0, 2, str(launcher)), programs, out)
    (left,) = read_runs([out])
    assert (left.seconds, left.delay) == (1.0, None)
