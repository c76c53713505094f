"""Processes that are killed in the middle of something, at a named moment or after a time."""

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime
from multiprocessing.process import BaseProcess
from pathlib import Path

import esjobs
from esjobs.api.session import Session
from esjobs.core.clock import system_clock
from tests.forked import FORKED

Action = tuple[str, ...]
"""A method of the session and its arguments."""

ACTIONS: dict[str, Callable[[Session, tuple[str, ...]], object]] = {
    "ingest": lambda session, files: session.ingest("jobs", list(files)),
    "undo": lambda session, loads: session.undo(*loads),
    "aggregate": lambda session, _: session.speed.aggregate(rebuild=True),
    "run": lambda session, _: session.run(rebuild=True),
    "prune": lambda session, keep: session.runs.prune(int(keep[0])),
    "report": lambda session, out: session.report(*out),
}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _live(store: Path, action: Action, moment: str | None, started: Path) -> None:
    """Do the action; ``moment``: what progress says, or ``clock``, the last thing before results switch."""

    def progress(what: str, done: int, total: int) -> None:
        del done, total
        if what == moment:
            _die()

    calls = 0

    def clock() -> datetime:
        nonlocal calls
        calls += 1
        if moment == f"clock {calls}":
            _die()
        return system_clock()

    with esjobs.open(f"duckdb:{store}", progress=progress, clock=clock) as session:
        started.touch()
        ACTIONS[action[0]](session, action[1:])


def start(store: Path, action: Action, moment: str | None = None) -> BaseProcess:
    """A process at work on an open store."""
    started = store.with_suffix(".started")
    started.unlink(missing_ok=True)
    process = FORKED.Process(target=_live, args=(store, action, moment, started))
    process.start()
    deadline = time.monotonic() + 60
    while not started.exists():
        assert time.monotonic() < deadline, "the victim never opened its store"
        time.sleep(0.002)
    return process


def finish(process: BaseProcess) -> int:
    """Wait for the end; the exit code, negative for a signal."""
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def kill_after(process: BaseProcess, seconds: float) -> int:
    """``kill -9`` after a time; the exit code, 0 when it was done before."""
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
    return finish(process)
