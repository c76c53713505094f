"""Jumps of the wall clock, seen against a count of seconds that nobody sets."""

import time
from collections.abc import Callable
from datetime import timedelta

from esjobs.core.clock import Clock

_SLACK = timedelta(seconds=60)
"""So much a clock may be slewed, or a tick be late."""


def elapsed_s() -> float:
    """Seconds since some moment, those in which the machine slept included where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class ClockWatch:
    """Compares, from one question to the next, how far the wall clock and the seconds have come."""

    def __init__(self, clock: Clock, timer: Callable[[], float] = elapsed_s) -> None:
        self._clock = clock
        self._timer = timer
        self._wall, self._counted = clock(), timer()

    def jump(self) -> timedelta | None:
        """How far the clock was moved since the last question; None: not by more than a minute."""
        wall, counted = self._clock(), self._timer()
        moved = (wall - self._wall) - timedelta(seconds=counted - self._counted)
        self._wall, self._counted = wall, counted
        return moved if abs(moved) > _SLACK else None
