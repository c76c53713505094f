"""Turns on a file: readers share it, a writer has it alone.

DuckDB's lock has no order, so a stream of readers could block a writer for ever. A waiting writer touches
``FILE.waiting``; readers let it go first. A mark of a dead process, or an old one, is ignored.
"""

import contextlib
import logging
import os
import random
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import duckdb

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreBusyError
from esjobs.store.duck.holders import Holder, holder, holders_of, listed
from esjobs.store.process import Process

_log = logging.getLogger(__name__)
_Opened = TypeVar("_Opened")

# seconds between two attempts
_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.25

_LOCKED = "Could not set lock"
# Message of DuckDB for a file that another process has, or that this one opened with other options
_OTHERWISE = "different configuration"

# Sessions of this process that read give a file back after a moment; those that write do not
_SHORT_S = 3.0

# Wait after which the process that has the file is reported
_SAID_AFTER_S = 1.0

# A mark that was not touched for so long is of nobody who waits
_STALE_S = 5.0


def take_turn(
    open_file: Callable[[], _Opened],
    file: Path,
    wait_s: float,
    *,
    read_only: bool,
    clock: Clock = system_clock,
) -> _Opened:
    """Open a file as soon as others permit; ``open_file`` raises DuckDB's error until then.

    Readers yield to a waiting writer. Raises :class:`StoreBusyError`, naming the holder, after ``wait_s``
    seconds.
    """
    began, said = time.monotonic(), False
    pause = _PAUSE_S
    mark = _Mark(file, clock)
    try:
        while True:
            waited = time.monotonic() - began
            # a reader that has waited long enough tries in spite of the mark, and reports who has the file
            queued = mark.waiting() if read_only and waited < wait_s else None
            if queued is None:
                try:
                    return open_file()
                except (duckdb.IOException, duckdb.ConnectionException) as error:
                    if not any(words in str(error) for words in (_OTHERWISE, _LOCKED)):
                        raise
                    reason, longest, advice = _refusal(file, str(error), wait_s, read_only=read_only)
                    if waited >= longest:
                        raise StoreBusyError(f"{reason}; gave up after {waited:.0f} s: {advice}") from error
            else:
                reason, longest = f"{listed([holder(queued)])} waits to write to store {file}", wait_s
            # only writers leave a mark: readers do not wait for each other
            if not read_only:
                mark.touch()
            if not said and waited >= _SAID_AFTER_S:
                said = True
                _log.warning("%s; waiting up to %g s", reason, longest)
            time.sleep(min(pause, max(began + wait_s - time.monotonic(), 0.001)))
            # scattered, so that several that wait do not ask in step
            pause = min(1.5 * pause, _LONGEST_PAUSE_S) * random.uniform(0.8, 1.2)  # noqa: S311
    finally:
        mark.remove()


def _refusal(file: Path, words: str, wait_s: float, *, read_only: bool) -> tuple[str, float, str]:
    """Return the reason why a file is not opened, how long to wait for it, and what to do after that."""
    if _OTHERWISE in words:
        # the other session is in this process, and may give the file back meanwhile
        longest = min(_SHORT_S, wait_s)
        return f"this process has store {file} open in another mode", longest, "close it there first"
    return _reason(file, words, read_only=read_only), wait_s, "retry later, or raise --wait SECONDS"


def _reason(file: Path, words: str, *, read_only: bool) -> str:
    others = holders_of(file)
    if not others:
        others = [Holder(int(pid), name) for name, pid in re.findall(r"held in (.+?) \(PID (\d+)\)", words)]
    who = listed(others) if others else "another process"
    verb = "writes to" if read_only else ("use" if len(others) > 1 else "uses")
    return f"{who} {verb} store {file}"


class _Mark:
    """File that marks a waiting writer; a hint only, so errors are ignored."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._path = Path(f"{file}.waiting")
        self._clock = clock
        self._made = False

    def touch(self) -> None:
        """Mark this process as waiting, unless another one is marked."""
        if self.waiting() is not None:
            return
        with contextlib.suppress(OSError):
            if self._is_mine():
                os.utime(self._path)
                return
            self._path.unlink(missing_ok=True)
            # nothing is written through a link that somebody has put there
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            descriptor = os.open(self._path, flags, 0o644)
            try:
                os.write(descriptor, str(Process.current()).encode())
            finally:
                os.close(descriptor)
            self._made = True

    def waiting(self) -> int | None:
        """Return the id of another waiting process; None without one."""
        with contextlib.suppress(OSError, ValueError):
            state = os.lstat(self._path)
            # a link would let others choose what is read
            if not stat.S_ISREG(state.st_mode) or abs(self._clock().timestamp() - state.st_mtime) > _STALE_S:
                return None
            waits = Process.parse(self._path.read_text(encoding="utf-8"))
            if waits is not None and not waits.is_gone and waits != Process.current():
                return waits.pid
        return None

    def remove(self) -> None:
        """Remove the mark if it is ours."""
        with contextlib.suppress(OSError):
            if self._is_mine():
                self._path.unlink()

    def _is_mine(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return self._made and self._path.read_text(encoding="utf-8") == str(Process.current())
        return False
