"""Jumps of the wall clock, compared with a monotonic clock."""

import time
from collections.abc import Callable
from datetime import timedelta

from esjobs.core.clock import Clock

_SLACK = timedelta(seconds=60)  # A clock may be slewed, or a tick be late, by this much


def elapsed_s() -> float:
    """Return monotonic seconds, including sleep of the machine if the system counts it."""
    # Linux only; CLOCK_MONOTONIC stops while the machine sleeps, so waking up would look like a jump
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class ClockWatch:
    """Comparison of the wall clock with monotonic seconds between calls."""

    def __init__(self, clock: Clock, timer: Callable[[], float] = elapsed_s) -> None:
        self._clock = clock
        self._timer = timer
        self._wall, self._counted = clock(), timer()

    def jump(self) -> timedelta | None:
        """Return the jump of the wall clock since the last call; None up to a minute."""
        wall, counted = self._clock(), self._timer()
        updated = (wall - self._wall) - timedelta(seconds=counted - self._counted)
        self._wall, self._counted = wall, counted
        return updated if abs(updated) > _SLACK else None
