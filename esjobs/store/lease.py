"""One process at a time: a named value that tells who may, and for how long it may be silent."""

import contextlib
import json
import logging
import math
import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Protocol

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.store.process import Process

_log = logging.getLogger(__name__)

_LASTS_S = 600.0

_RENEWED_S = 60.0

_TURN_S = 60.0

_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0

_SKEW = timedelta(hours=1)
"""So far clocks of two machines may be apart without one taking what the other holds."""

_HELD: set[str] = set()
"""What this process holds: a lease that names it and is not among these was left behind by a failed write."""


class NamedValues(Protocol):
    """What a lease needs of a store."""

    def value(self, key: str) -> str | None:
        """A named value; None when there is none."""

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it is still the old one (None: absent); whether it was."""


@dataclass(frozen=True)
class Holding:
    """What the named value says. ``token`` is new at each renewal, ``lasts_s`` after it the right is gone."""

    token: str
    process: str
    renewed: str
    lasts_s: float

    @property
    def holder(self) -> Process | None:
        """The process that wrote it; None when its name is not one of ours."""
        return Process.parse(self.process)

    @classmethod
    def read(cls, text: str) -> "Holding | None":
        """What a value says; None when it is not one of ours, or of another version."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def write(self) -> str:
        """The named value."""
        return json.dumps(asdict(self))


class Timer(Protocol):
    """Time as it passes for this process, which no change of a clock moves."""

    def __call__(self) -> float:
        """Seconds since some moment."""


class Lease:
    """The right to do something alone, kept as a named value of any store.

    Of a dead process of this machine it is taken at once. Of any other it is taken when its value has not
    changed for as long as it lasts, by this process' own count of time: clocks of two machines are not
    compared, unless they say that it ended more than an hour ago.

    ``what``: what the holder does, as in "writing jobs". ``request_s``: the most that one request takes; the
    lease lasts longer, so that nothing is written after it has run out. ``timer`` and ``pause`` are time as
    it passes and how to let it pass.
    """

    def __init__(
        self,
        values: NamedValues,
        location: str,
        clock: Clock = system_clock,
        *,
        what: str = "writing jobs",
        request_s: float = 0.0,
        timer: Timer = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._key = f"who is {what}"
        self._what = what
        self._values = values
        self._lasts_s = max(_LASTS_S, _RENEWED_S + 1.5 * request_s)
        self._location = location
        self._clock = clock
        self._timer = timer
        self._pause = pause
        self._held: str | None = None
        self._token = ""
        self._renewed = 0.0

    def take(self, wait_s: float = 0.0) -> None:
        """Take it, waiting up to ``wait_s`` for a process that lives.

        Of a process elsewhere nobody knows whether it lives: it is watched until it renews its lease or has
        let it run out, which takes minutes. Raises :class:`StoreBusyError` while another one holds it.
        """
        began = since = self._timer()
        watched: str | None = None
        told = False
        while True:
            value, now = self._values.value(self._key), self._timer()
            renewed = value != watched and None not in (value, watched)
            if value != watched:
                watched, since = value, now
            holding = None if value is None else Holding.read(value)
            process = None if holding is None else holding.holder
            who = "another process" if process is None else process.label
            is_near = process is not None and process.is_near
            if value is None or self._is_over(holding, process, silent_s=now - since):
                if self._set(value):
                    return
            elif (renewed or is_near) and now - began >= wait_s:
                raise StoreBusyError(f"{who} is {self._what} to {self._location}; wait until it is done")
            elif not told and not is_near:
                told = True
                _log.warning(
                    "%s is %s to %s, or died while it was; waiting to see, at most %d minutes",
                    who,
                    self._what,
                    self._location,
                    math.ceil(self._lasts_s / 60),
                )
            # longer the longer it takes; scattered, so that several that wait do not ask in step
            longest = min(max(_PAUSE_S, 0.05 * (now - began)), _LONGEST_PAUSE_S)
            self._pause(longest * random.uniform(0.5, 1.5))  # noqa: S311

    def keep(self) -> None:
        """Make it last; to be called between writes. Raises :class:`StoreBusyError` if another took it."""
        if self._timer() - self._renewed > _RENEWED_S and not self._set(self._held):
            raise StoreBusyError(
                f"another process began {self._what} to {self._location}; run it again later"
            )

    def give_back(self) -> None:
        """Let others write."""
        if self._held is not None:
            held, self._held = self._held, None
            _HELD.discard(self._token)
            self._values.compare_and_set(self._key, held, None)

    @contextlib.contextmanager
    def turn(self, wait_s: float = _TURN_S) -> Iterator[None]:
        """Wait until nobody else holds it, and hold it for a block.

        For what is done in a moment: raises :class:`StoreBusyError` when others hold it for longer than that.
        """
        self.take(wait_s)
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

    def _set(self, old: str | None) -> bool:
        token = uuid.uuid4().hex
        renewed = self._clock().isoformat()
        mine = Holding(token, str(Process.current()), renewed, self._lasts_s).write()
        # before it is written: another thread that reads it must not take it for one that was left behind
        _HELD.add(token)
        taken = self._values.compare_and_set(self._key, old, mine)
        _HELD.discard(self._token if taken else token)
        self._held = mine if taken else None
        if taken:
            self._token, self._renewed = token, self._timer()
        return taken

    def _is_over(self, holding: Holding | None, process: Process | None, silent_s: float) -> bool:
        if holding is None:
            return silent_s > self._lasts_s
        near = process is not None and process.is_near
        ended = self._clock() - datetime.fromisoformat(holding.renewed) - timedelta(seconds=holding.lasts_s)
        if silent_s > holding.lasts_s or ended > (timedelta(0) if near else _SKEW):
            return True
        left_behind = process == Process.current() and holding.token not in _HELD
        return process is not None and (process.is_gone or left_behind)
