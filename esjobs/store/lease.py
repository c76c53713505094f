"""One process at a time: a named value that tells who may, and until when."""

import contextlib
import os
import random
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreBusyError, StoreError

_LASTS_S = 600.0

_RENEWED_S = 60.0

_TURN_S, _PAUSE_S = 60.0, 0.2

_HELD: set[str] = set()
"""What this process holds: a lease that names it and is not among these was left behind by a failed write."""


class NamedValues(Protocol):
    """What a lease needs of a store."""

    def value(self, key: str) -> str | None:
        """A named value; None when there is none."""

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it is still the old one (None: absent); whether it was."""


class Lease:
    """The right to do something alone, kept as a named value of any store.

    Of a dead process of this machine it is taken at once, else when it ends. ``what``: what the holder does,
    as in "writing jobs". ``request_s``: the most that one request takes; the lease lasts longer, so that
    nothing is written after it has run out.
    """

    def __init__(
        self,
        values: NamedValues,
        location: str,
        clock: Clock = system_clock,
        *,
        what: str = "writing jobs",
        request_s: float = 0.0,
    ) -> None:
        self._key = f"who is {what}"
        self._what = what
        self._values = values
        self._lasts_s = max(_LASTS_S, _RENEWED_S + 1.5 * request_s)
        self._location = location
        self._clock = clock
        self._held: str | None = None
        self._renewed = 0.0

    def take(self) -> None:
        """Raises :class:`StoreBusyError` while another process writes."""
        found = self._values.value(self._key)
        if found is not None and not _is_over(found, self._clock):
            raise StoreBusyError(
                f"{_holder(found)} is {self._what} to {self._location}; wait until it is done"
            )
        self._set(found)

    def keep(self) -> None:
        """Make it last; to be called between writes. Raises :class:`StoreBusyError` if another took it."""
        if time.monotonic() - self._renewed > _RENEWED_S:
            self._set(self._held)

    def give_back(self) -> None:
        """Let others write."""
        if self._held is not None:
            held, self._held = self._held, None
            _HELD.discard(held)
            self._values.compare_and_set(self._key, held, None)

    @contextlib.contextmanager
    def turn(self, wait_s: float = _TURN_S) -> Iterator[None]:
        """Wait until nobody else holds it, and hold it for a block.

        For what is done in a moment: raises :class:`StoreBusyError` when others hold it for longer than that.
        """
        began = time.monotonic()
        while True:
            try:
                self.take()
                break
            except StoreBusyError:
                if time.monotonic() - began > wait_s:
                    raise
            # scattered, so that several that wait do not ask in step
            time.sleep(_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311
        try:
            yield
        finally:
            # one that cannot be given back ends with this process
            with contextlib.suppress(StoreError):
                self.give_back()

    @property
    def held(self) -> bool:
        """Whether this object may write."""
        return self._held is not None

    def _set(self, old: str | None) -> None:
        ends, pid = f"{self._clock().timestamp() + self._lasts_s:.0f}", os.getpid()
        mine = f"{ends} {pid} {_began(pid)} {uuid.uuid4().hex} {socket.gethostname()}"
        # before it is written: another thread that reads it must not take it for one that was left behind
        _HELD.add(mine)
        taken = self._values.compare_and_set(self._key, old, mine)
        _HELD.discard(self._held or "")
        self._held = mine if taken else None
        if self._held is None:
            _HELD.discard(mine)
            raise StoreBusyError(
                f"another process began {self._what} to {self._location}; run it again later"
            )
        self._renewed = time.monotonic()


def _is_over(held: str, clock: Clock) -> bool:
    ends, pid, began, _, host = held.split(" ", 4)
    if float(ends) < clock().timestamp():
        return True
    if host != socket.gethostname():
        return False
    return _began(int(pid)) != began or (int(pid) == os.getpid() and held not in _HELD)


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
