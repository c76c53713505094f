"""Requests of several writers in an order that a seed decides."""

import random
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

_OTHERS_ARRIVE_S = 0.001
_LONGEST_BURST = 12


class Gate:
    """Lets one request at a time pass, chosen by a seed among those that wait.

    One side goes first for a number of requests, then another, so that sides change places after one request
    or after many.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._changed = threading.Condition()
        self._waiting: list[tuple[Hashable, object]] = []
        self._passing: object | None = None
        self._first: Hashable = None
        self._left = 0

    @contextmanager
    def one(self, side: Hashable = None) -> Iterator[None]:
        """Hold the gate for a request of a side; without sides each is chosen anew."""
        mine = (side, object())
        with self._changed:
            self._waiting.append(mine)
        threading.Event().wait(_OTHERS_ARRIVE_S)
        with self._changed:
            while self._passing is not mine:
                if self._passing is None:
                    self._passing = self._chosen()
                    self._changed.notify_all()
                else:
                    self._changed.wait(5)
        try:
            yield
        finally:
            with self._changed:
                self._passing = None
                self._changed.notify_all()

    def _chosen(self) -> object:
        if self._left <= 0:
            self._first = self._random.choice(self._waiting)[0]
            self._left = 1 if self._first is None else self._random.randint(1, _LONGEST_BURST)
        self._left -= 1
        of_first = [place for place, (side, _) in enumerate(self._waiting) if side == self._first]
        return self._waiting.pop(self._random.choice(of_first or range(len(self._waiting))))
