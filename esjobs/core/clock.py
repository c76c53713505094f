"""The clock as an argument: only entry points read the system time."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""A function without arguments that returns an aware time in UTC."""


def system_clock() -> datetime:
    """Return the present time in UTC, to the microsecond. Called by entry points only."""
    return datetime.now(UTC)
