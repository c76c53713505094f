"""One process writes jobs at a time: a named value that tells who, and until when."""

import os
import socket
import time
import uuid
from pathlib import Path

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreBusyError
from esjobs.store.elastic.state import State

_KEY = "writer of jobs"
_LASTS_S = 600.0
"""Longer than any request with all its repetitions, so that nothing is written after it has run out."""

_RENEWED_S = 60.0


class Lease:
    """The right to write jobs; of a dead process of this machine it is taken at once, else when it ends."""

    def __init__(self, state: State, location: str, clock: Clock = system_clock) -> None:
        self._state = state
        self._location = location
        self._clock = clock
        self._held: str | None = None
        self._renewed = 0.0

    def take(self) -> None:
        """Raises :class:`StoreBusyError` while another process writes."""
        found = self._state.value(_KEY)
        if found is not None and not _is_over(found, self._clock):
            raise StoreBusyError(
                f"{_holder(found)} is writing jobs to {self._location}; wait until it is done"
            )
        self._set(found)

    def keep(self) -> None:
        """Make it last; to be called between writes. Raises :class:`StoreBusyError` if another took it."""
        if time.monotonic() - self._renewed > _RENEWED_S:
            self._set(self._held)

    def give_back(self) -> None:
        """Let others write."""
        if self._held is not None:
            self._state.compare_and_set(_KEY, self._held, None)
            self._held = None

    @property
    def held(self) -> bool:
        """Whether this object may write."""
        return self._held is not None

    def _set(self, old: str | None) -> None:
        ends, pid = f"{self._clock().timestamp() + _LASTS_S:.0f}", os.getpid()
        mine = f"{ends} {pid} {_began(pid)} {uuid.uuid4().hex} {socket.gethostname()}"
        self._held = mine if self._state.compare_and_set(_KEY, old, mine) else None
        if self._held is None:
            raise StoreBusyError(
                f"another process began to write jobs to {self._location}; run it again later"
            )
        self._renewed = time.monotonic()


def _is_over(held: str, clock: Clock) -> bool:
    ends, pid, began, _, host = held.split(" ", 4)
    if float(ends) < clock().timestamp():
        return True
    return host == socket.gethostname() and _began(int(pid)) != began


def _holder(held: str) -> str:
    _, pid, _, _, host = held.split(" ", 4)
    return f"process {pid} on {host}"


def _began(pid: int) -> str:
    """When a process of this machine began, in clock ticks; ``-`` if there is none or nobody can tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return "-"
    return stat.rpartition(")")[2].split()[19]
