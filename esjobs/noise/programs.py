"""Compilation and execution of the test: noise levels in random order."""

import contextlib
import csv
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from esjobs.core.errors import EsjobsError, InputError, UsageError
from esjobs.core.text import visible
from esjobs.noise.recorded import COLUMNS
from esjobs.store.files.destination import writing_text

COLLECTIVES = ("barrier", "allreduce", "alltoall")
PROGRAMS = ("detector", "source")
_GRACE_S = 60.0  # To start ranks and to end them
_LONGEST_S = 86_400  # A day: beyond it is a slip of units


def build(folder: Path, compiler: str = "mpicc") -> list[Path]:
    """Compile detector and noise generator into a folder; return their paths.

    Raises :class:`UsageError` for a missing compiler, :class:`EsjobsError` if it fails.
    """
    found = shutil.which(compiler)
    if found is None:
        raise UsageError(f"{compiler} not found; load an MPI (module load ..., apt install libopenmpi-dev)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error
    made = []
    for name in PROGRAMS:
        with as_file(files("esjobs.noise").joinpath(f"{name}.c")) as text:
            target = folder / name
            done = subprocess.run(  # noqa: S603  a compiler that the user names
                [found, "-O2", "-std=gnu11", "-o", str(target), str(text)],
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            raise EsjobsError(f"{compiler} failed on {name}.c: {_complaint(done.stderr)}")
        made.append(target)
    return made


@dataclass(frozen=True)
class Plan:
    """Test plan: ``levels`` in per cent, ``repeat`` runs each, in an order drawn from ``seed``.

    ``seconds``: length of a run; the number of operations is determined once. ``core``: core of the noise on
    the first node, -1: any. ``nodes``: names for the launcher's ``--host``.
    """

    collective: str
    bytes: int
    levels: tuple[float, ...]
    repeat: int
    seconds: float
    ranks: int
    launcher: str = "mpirun --bind-to core"
    nodes: tuple[str, ...] = ()
    core: int = 0
    seed: int = 1


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Treat SIGTERM, with which schedulers end jobs, as an interruption; main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@_ended_in_order()
def run(
    plan: Plan, programs: Path, out: Path, progress: Callable[[str, int, int], None] | None = None
) -> int:
    """Run the plan, write one row per run, and return their number.

    Existing files are not overwritten. A failure ends the plan; earlier runs are kept. Raises
    :class:`UsageError` for an invalid plan, :class:`EsjobsError` if a program fails.
    """
    _require(plan, programs)
    if out.exists():
        raise InputError(f"{out} already exists; use a different file")
    # once, without noise: all runs time the same number of operations
    count = int(_detected(plan, programs, 0)["count"])
    order = [level for level in plan.levels for _ in range(plan.repeat)]
    # at random, so that a slow drift of the machine does not look like a level
    random.Random(plan.seed).shuffle(order)  # noqa: S311  an order, no secret
    failed: BaseException | None = None
    with writing_text(out) as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for number, level in enumerate(order):
            if progress:
                progress("running", number, len(order))
            try:
                with _noise(plan, programs, level):
                    row = _detected(plan, programs, count)
            except (EsjobsError, KeyboardInterrupt) as error:
                # hours of runs are worth keeping: the file is completed first
                failed = error
                break
            # -1 from kernels without schedstat: unknown, not 0
            delay = row["run_delay_s"] if row["run_delay_s"] >= 0 else ""
            output = (level, row["seconds"], delay, row["involuntary_switches"])
            writer.writerow((*output, plan.collective, plan.bytes, count, row["ranks"]))
    if failed is not None:
        raise failed
    return len(order)


def _require(plan: Plan, programs: Path) -> None:
    if plan.collective not in COLLECTIVES:
        raise UsageError(f"unknown collective '{plan.collective}'; use one of: {', '.join(COLLECTIVES)}")
    if min(plan.repeat, plan.ranks) < 1 or not 0 <= plan.bytes <= 1 << 30:
        raise UsageError("runs and ranks must be above 0, bytes from 0 to 1 GiB")
    if not 0 < plan.seconds <= _LONGEST_S:
        raise UsageError(
            f"a run must take more than 0 and at most {_LONGEST_S:,} seconds; got {plan.seconds:g}"
        )
    if 0 not in plan.levels or not all(0 <= level <= 100 for level in plan.levels):
        raise UsageError("levels must be per cent from 0 to 100 and include 0 (without noise)")
    for name in PROGRAMS:
        if not (programs / name).is_file():
            raise UsageError(f"{programs} has no program {name}; run: esjobs noise build {programs}")
    _require_launcher(plan.launcher)


def _require_launcher(launcher: str) -> None:
    try:
        words = shlex.split(launcher)
    except ValueError:
        raise UsageError(f"launcher {launcher} has an unclosed quote") from None
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"launcher '{launcher}' not found; load an MPI, or use a different launcher")


def _launched(plan: Plan, ranks: int, hosts: Sequence[str]) -> list[str]:
    where = ["--host", ",".join(hosts)] if hosts else []
    return [*shlex.split(plan.launcher), *where, "-np", str(ranks)]


def _detected(plan: Plan, programs: Path, count: int) -> dict[str, Any]:
    # slots of a node, rounded up
    each = -(-plan.ranks // max(len(plan.nodes), 1))
    hosts = [f"{node}:{each}" for node in plan.nodes]
    arguments = [plan.collective, str(plan.bytes), str(count), str(plan.seconds)]
    command = [*_launched(plan, plan.ranks, hosts), str(programs / "detector"), *arguments]
    process = subprocess.Popen(  # noqa: S603  a launcher that the user names
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, complaints = process.communicate(timeout=20 * plan.seconds + _GRACE_S)
    except BaseException as error:
        _end(process)  # the launcher and its ranks, whatever ended the wait
        if isinstance(error, subprocess.TimeoutExpired):
            raise EsjobsError(
                f"the detector did not end within {error.timeout:.0f} s; reduce runs, ranks or seconds"
            ) from None
        raise
    if process.returncode:
        raise EsjobsError(f"{plan.launcher} failed with {process.returncode}: {_complaint(complaints)}")
    try:
        # the last line: launchers print their warnings before it
        row: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise EsjobsError(f"the detector printed no result: {_complaint(output + complaints)}") from None
    return row


@contextlib.contextmanager
def _noise(plan: Plan, programs: Path, level: float) -> Iterator[None]:
    """Run the noise generator on the first node in the background."""
    if level == 0:
        yield
        return
    launcher = _launched(plan, 1, plan.nodes[:1]) if plan.nodes else []
    arguments = [str(level), str(20 * plan.seconds + _GRACE_S), str(plan.core)]
    process = subprocess.Popen(  # noqa: S603  our own program
        [*launcher, str(programs / "source"), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
        if process.poll() is not None:
            raise EsjobsError(f"the noise generator ended before the run, with {process.returncode}")
    finally:
        _end(process)


def _end(process: "subprocess.Popen[Any]") -> None:
    # the whole group, which start_new_session made: a launcher has children
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _complaint(text: str) -> str:
    """Return the line of an error output that names an error, else the first.

    Open MPI frames its messages and appends advice.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=*\t")]
    telling = (
        line for line in lines if re.search(r"error|fail|unable|not found|cannot", line, re.IGNORECASE)
    )
    return visible(next(telling, lines[0])[:300]) if lines else "no output"
