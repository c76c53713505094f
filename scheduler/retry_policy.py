"""Retry policy of nights, with an injectable clock."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from esjobs.core.errors import BooksError, StoreError
from scheduler.settings import NightsSettings

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class RetryPolicy:
    """Timer, pause, and processor time of this process; tests replace them."""

    timer: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    processor: Callable[[], float] = time.process_time

    def deadline(self, settings: NightsSettings) -> float:
        """Return the end of work that begins now, by the timer."""
        return self.timer() + 3600 * settings.deadline_h

    def until_answered(
        self,
        ask: Callable[[], _Answer],
        may_pass: Callable[[Exception], bool],
        deadline: float,
        settings: NightsSettings,
        said: str = "",
    ) -> _Answer:
        """Repeat a call until it succeeds; pauses double.

        ``may_pass``: True if an error may end by itself. ``said``: prefix in the log. Raises the
        :class:`StoreError` or :class:`BooksError` that may not pass, or that remains at the deadline.
        """
        pause = settings.backoff_s
        while True:
            try:
                return ask()
            except (StoreError, BooksError) as error:
                # a pause that ends after the deadline would be in vain
                if self.timer() + pause > deadline or not may_pass(error):
                    raise
                _log.warning("%s%s; retrying in %.0f s", said, error, pause)
                self.pause(pause)
                pause = min(2 * pause, settings.longest_pause_s)


REAL_TIME = RetryPolicy()
