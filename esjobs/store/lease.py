"""Lease: exclusive right of one process, kept as a named value."""

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

# seconds: a holder that did not renew for so long lost its machine or its network
_LASTS_S = 600.0

# seconds between renewals; nine may fail before others take it
_RENEWED_S = 60.0

# seconds that a short step, such as a publication, waits for another one
_TURN_S = 60.0

# seconds between two looks: first, and after many
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0

# Allowed difference of the clocks of two machines; more, and one takes a lease that the other holds
_SKEW = timedelta(hours=1)

# Tokens of this process: a lease that names it with another token is left over from a failed write
_OWN_TOKENS: set[str] = set()


class NamedValues(Protocol):
    """Named values of a store."""

    def value(self, key: str) -> str | None:
        """Return a named value; None if absent."""

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it still equals ``old``; return True if set."""


@dataclass(frozen=True)
class Holding:
    """Content of the lease; ``token`` changes at each renewal, ``lasts_s`` counts from there."""

    token: str
    process: str
    renewed: str
    lasts_s: float

    @property
    def holder(self) -> Process | None:
        """Process that wrote it; None if unknown."""
        return Process.parse(self.process)

    @classmethod
    def read(cls, text: str) -> "Holding | None":
        """Parse a value; None if it is not a lease of this version."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def write(self) -> str:
        """Return the named value."""
        return json.dumps(asdict(self))


def lease_age_s(values: NamedValues, what: str, now: datetime) -> float | None:
    """Return the seconds since the holder of a lease renewed it, by its clock; None if nobody holds it."""
    value = values.value(_key(what))
    holding = None if value is None else Holding.read(value)
    return None if holding is None else (now - datetime.fromisoformat(holding.renewed)).total_seconds()


def _key(what: str) -> str:
    return f"who is {what}"


class Lease:
    """Lease kept as a named value of any store.

    A dead process of this machine loses it at once, others after a full term without renewal by this process'
    own timer; clocks are compared only beyond an hour. ``request_s``: maximum duration of a request, which
    the term exceeds.
    """

    def __init__(
        self,
        values: NamedValues,
        location: str,
        clock: Clock = system_clock,
        *,
        what: str = "writing jobs",
        request_s: float = 0.0,
        timer: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._key = _key(what)
        self._what = what
        self._values = values
        # a renewal may be held up by a request that is repeated to its end
        self._lasts_s = max(_LASTS_S, _RENEWED_S + 1.5 * request_s)
        self._location = location
        self._clock = clock
        self._timer = timer
        self._pause = pause
        self._value: str | None = None
        self._token = ""
        self._renewed = 0.0

    def take(self, wait_s: float = 0.0) -> None:
        """Acquire it, waiting up to ``wait_s`` for a live process.

        A remote holder is watched until it renews or expires, which takes minutes. Raises
        :class:`StoreBusyError`.
        """
        began = since = self._timer()
        # a renewal is a change of the value, seen by our own timer: clocks of other machines may be wrong
        watched: str | None = None
        warned = False
        while True:
            value, now = self._values.value(self._key), self._timer()
            renewed = value != watched and None not in (value, watched)
            if value != watched:
                watched, since = value, now
            # another version may write it differently: who it is stays unknown, and its term is waited
            # for
            holding = None if value is None else Holding.read(value)
            process = None if holding is None else holding.holder
            who = "another process" if process is None else process.label
            is_near = process is not None and process.is_near
            if value is None or self._is_over(holding, process, silent_s=now - since):
                if self._set(value):
                    return
            elif (renewed or is_near) and now - began >= wait_s:
                raise StoreBusyError(f"{who} is {self._what} to {self._location}; wait until it ends")
            elif not warned and not is_near:
                warned = True
                _log.warning(
                    "%s is %s to %s, or has died; waiting up to %d minutes",
                    who,
                    self._what,
                    self._location,
                    math.ceil(self._lasts_s / 60),
                )
            # longer the longer it takes; scattered, so that several that wait do not ask in step
            longest = min(max(_PAUSE_S, 0.05 * (now - began)), _LONGEST_PAUSE_S)
            self._pause(longest * random.uniform(0.5, 1.5))  # noqa: S311

    def keep(self) -> None:
        """Renew it between writes. Raises :class:`StoreBusyError` if it was taken."""
        if self._timer() - self._renewed > _RENEWED_S and not self._set(self._value):
            raise StoreBusyError(
                f"another process started {self._what} to {self._location}; run it again later"
            )

    def give_back(self) -> None:
        """Release it."""
        if self._value is not None:
            is_held, self._value = self._value, None
            _OWN_TOKENS.discard(self._token)
            self._values.compare_and_set(self._key, is_held, None)

    @contextlib.contextmanager
    def turn(self, wait_s: float = _TURN_S) -> Iterator[None]:
        """Hold it for a block, waiting for others. Raises :class:`StoreBusyError` after ``wait_s``."""
        self.take(wait_s)
        try:
            yield
        finally:
            # one that cannot be given back ends with this process
            with contextlib.suppress(StoreError):
                self.give_back()

    @property
    def is_held(self) -> bool:
        """True if this object holds it."""
        return self._value is not None

    def _set(self, old: str | None) -> bool:
        token = uuid.uuid4().hex
        renewed = self._clock().isoformat()
        mine = Holding(token, str(Process.current()), renewed, self._lasts_s).write()
        # before it is written: another thread that reads it must not take it for one that was left behind
        _OWN_TOKENS.add(token)
        # of several that see it free, one wins
        taken = self._values.compare_and_set(self._key, old, mine)
        _OWN_TOKENS.discard(self._token if taken else token)
        self._value = mine if taken else None
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
        # a write of this process that failed after it had arrived
        left_behind = process == Process.current() and holding.token not in _OWN_TOKENS
        return process is not None and (process.is_gone or left_behind)
