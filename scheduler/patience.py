"""How time passes for who waits, and how long one asks again."""

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
class Patience:
    """How time passes for who waits: tests let it pass without waiting."""

    timer: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def deadline(self, settings: NightsSettings) -> float:
        """When what begins now has to end, by the timer."""
        return self.timer() + 3600 * settings.deadline_h

    def until_answered(
        self,
        ask: Callable[[], _Answer],
        may_pass: Callable[[Exception], bool],
        deadline: float,
        settings: NightsSettings,
        said: str = "",
    ) -> _Answer:
        """Ask until it is answered; each pause is twice as long as the last.

        ``may_pass``: whether trouble may be over in a while. ``said``: what the log calls it. Raises the
        :class:`StoreError` or :class:`BooksError` that may not pass, or that stands when the time is over.
        """
        pause = settings.backoff_s
        while True:
            try:
                return ask()
            except (StoreError, BooksError) as error:
                if self.timer() + pause > deadline or not may_pass(error):
                    raise
                _log.warning("%s%s; again in %.0f s", said, error, pause)
                self.pause(pause)
                pause = min(2 * pause, settings.longest_pause_s)


REAL_TIME = Patience()
