"""Answers by state, address and format: each computed once for all readers."""

import asyncio
import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from esjobs.core.errors import EsjobsError

THREADS = 2  # Computations at a time: no more than processors, since each costs memory
_MOST_B = 64 << 20
_MOST_WAITING = 256
# Seconds for which a reader waits; the computation goes on and is cached
_LONGEST_S = 30.0
_GZIP_FROM = 1024

Key = tuple[str, str, str]  # State, address and format


class OverloadedError(EsjobsError):
    """More questions than can be answered in time; nothing is wrong with this one."""


@dataclass(frozen=True)
class Reply:
    """A body with its type; ``lasting``: it never changes under its address. ``location``: where to go on."""

    body: bytes
    media: str = "text/html; charset=utf-8"
    status: int = 200
    lasting: bool = False
    next: str = ""
    location: str = ""

    @cached_property
    def packed(self) -> bytes | None:
        """The body compressed, None where that is of no use."""
        return gzip.compress(self.body, 5, mtime=0) if len(self.body) >= _GZIP_FROM else None


class Answers:
    """Cache with one computation per key; the least recently used replies go first."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="esjobs-web")
        self._replies: OrderedDict[Key, Reply] = OrderedDict()
        self._flights: dict[Key, asyncio.Future[Reply]] = {}
        self._guard = threading.Lock()
        self._bytes = 0

    async def get(self, key: Key, compute: Callable[[], Reply]) -> Reply:
        """Return a reply, computed in the pool if it is not cached.

        Raises :class:`OverloadedError` if too many wait, or the computation takes too long; it goes on.
        """
        if (reply := self.cached(key)) is not None:
            return reply
        flight = self._flights.get(key)
        if flight is None:
            if len(self._flights) >= _MOST_WAITING:
                raise OverloadedError("too many questions at a time; ask again in a moment")
            flight = asyncio.ensure_future(self._computed(key, compute))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        try:
            # shielded: others may wait for the same computation
            return await asyncio.wait_for(asyncio.shield(flight), _LONGEST_S)
        except TimeoutError:
            raise OverloadedError(
                f"no answer within {_LONGEST_S:g} s; ask again in a moment, or for less: a shorter "
                "window, fewer groups"
            ) from None

    async def once(self, compute: Callable[[], Reply]) -> Reply:
        """Return a reply for one reader, computed in the pool and not kept."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, compute)

    def cached(self, key: Key) -> Reply | None:
        """Return a cached reply or None."""
        with self._guard:
            if key in self._replies:
                self._replies.move_to_end(key)
            return self._replies.get(key)

    def keep(self, key: Key, reply: Reply) -> None:
        """Cache a reply; the least recently used go where there is no room."""
        size = _size(reply)
        # one large reply would drive out many
        if size > _MOST_B // 4:
            return
        with self._guard:
            if key in self._replies:
                return
            self._replies[key] = reply
            self._bytes += size
            while self._bytes > _MOST_B:
                _, oldest = self._replies.popitem(last=False)
                self._bytes -= _size(oldest)

    def last_used(self, most: int) -> list[Key]:
        """Return the keys used last, newest first."""
        with self._guard:
            return list(reversed(self._replies))[:most]

    def close(self) -> None:
        """End the pool without waiting for computations."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _computed(self, key: Key, compute: Callable[[], Reply]) -> Reply:
        def work() -> Reply:
            reply = compute()
            # compressed in a thread of the pool, not in the loop that serves everybody
            _ = reply.packed
            return reply

        reply = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        self.keep(key, reply)
        return reply

    def _landed(self, key: Key, done: "asyncio.Future[Reply]") -> None:
        self._flights.pop(key, None)
        # nobody may be waiting any more; an error that is never looked at would be logged
        if not done.cancelled():
            done.exception()


def _size(reply: Reply) -> int:
    # 1024: about what the objects around a body take
    return len(reply.body) + len(reply.packed or b"") + 1024
