"""Retry policy of both products.

The clients' own retries are off: they are immediate and ignore ``Retry-After``. Every request of this store
is idempotent.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from esjobs.core.errors import StoreError

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""No pause is longer, whatever the cluster asks for."""

Answer = TypeVar("Answer")


class PassingError(StoreError):
    """Error that may pass; ``wait_s``: pause requested by the cluster, if any."""

    passing: bool = True
    wait_s: float | None = None


def patiently(ask: Callable[[], Answer], repetitions: int) -> Answer:
    """Return the result of a function, repeated after a pause while its error may pass."""
    # the last attempt is outside: its error is the one to report
    for attempt in range(1, repetitions + 1):
        try:
            return ask()
        except PassingError as error:
            if not error.passing:
                raise
            wait_s = pause_s(attempt, error.wait_s)
        time.sleep(wait_s)
    return ask()


def pause_s(attempt: int, asked_for: float | None = None) -> float:
    """Return the pause after an attempt (from 1): doubled, scattered, at least the requested one.

    >>> 0.25 <= pause_s(1) <= 0.5 and 1.0 <= pause_s(3) <= 2.0
    True
    >>> pause_s(1, asked_for=4.0), pause_s(1, asked_for=86400.0)
    (4.0, 30.0)
    """
    # scattered, so that many clients of one cluster do not come back together
    scattered = FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 10) * random.uniform(0.5, 1.0)  # noqa: S311
    return min(max(scattered, asked_for or 0.0), LONGEST_PAUSE_S)


def longest_s(repetitions: int, timeout_s: float) -> float:
    """Return the maximum duration of a request with its repetitions."""
    return (repetitions + 1) * (timeout_s + LONGEST_PAUSE_S)


def seconds_of(header: str | None) -> float | None:
    """Return the seconds of ``Retry-After``; None if absent or a date.

    >>> seconds_of("3"), seconds_of("Wed, 21 Oct 2026 07:28:00 GMT"), seconds_of(None)
    (3.0, None, None)
    """
    return float(header) if header is not None and header.strip().isdecimal() else None
