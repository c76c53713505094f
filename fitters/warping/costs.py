"""Costs of some of many series to one query: float32 first, float64 for the rest; in two threads."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from fitters.layout.arrays import Ints
from fitters.warping.kernels import LANES, Floats, Floats32, warped_costs
from fitters.warping.rough import LARGEST, rough_search

_THREADS = 2  # Threads at most; where the machine has fewer cores, so many
_WORTH = 4 * LANES  # Series that a thread is worth
_BOXES = 5  # Boxes that each half of the band is cut into: smaller ones exclude more and take longer
Places = Ints
Part = TypeVar("Part")
Answer = TypeVar("Answer")


class Search:
    """Costs of series to a query with its envelope (values within the band); ``n_warped``: paths searched."""

    def __init__(
        self,
        series: Floats32,
        band: int,
        largest: float,
        query: Floats32,
        envelope: tuple[Floats32, Floats32],
    ) -> None:
        self._series, self._band = series, band
        self._query = query
        self._sums32 = max(largest, float(np.abs(query).max())) <= LARGEST
        n_samples, n_metrics = query.shape
        self._wide = np.zeros((n_samples, -(-n_metrics // 4) * 4), np.float32)
        self._wide[:, :n_metrics] = query
        self._width = max(1, band // _BOXES)
        starts = np.arange(0, n_samples, self._width)
        self._boxes = np.stack([np.minimum.reduceat(query, starts), np.maximum.reduceat(query, starts)])
        self._envelope = np.stack(envelope).reshape(2, -1)
        self.n_warped = 0

    def rough(self, places: Places, limit: float) -> Floats:
        """Return costs in float32 with :func:`~fitters.warping.rough.room`; infinite beyond the limit."""
        if not self._sums32:
            self.n_warped += len(places)
            return self.exact(places)
        out = np.empty(len(places), np.float32)

        def look(part: slice) -> int:
            size = (len(self._query) + 1) * LANES
            return rough_search(
                self._wide,
                self._series,
                places[part],
                self._envelope,
                self._boxes,
                self._width,
                self._band,
                limit,
                np.zeros((2, self._wide.shape[1], size - LANES), np.float32),
                np.zeros((2, size), np.float32),
                np.empty((4, size), np.float32),
                np.empty((3, LANES), np.float32),
                out[part],
            )

        self.n_warped += sum(in_threads(look, parts_of(len(places))))
        return out.astype(np.float64)

    def exact(self, places: Places) -> Floats:
        """Return costs summed in float64."""
        out = np.empty(len(places))

        def look(part: slice) -> None:
            rows = np.empty((4, (len(self._query) + 1) * LANES))
            costs = np.empty(LANES)
            for begin in range(part.start, part.stop, LANES):
                some = places[begin : min(begin + LANES, part.stop)]
                # a group that is not full has its first series in the places that are free
                group = self._series[np.r_[some, np.repeat(some[:1], LANES - len(some))]]
                lanes = np.ascontiguousarray(group.transpose(2, 1, 0)).reshape(self._query.shape[1], -1)
                warped_costs(self._query, lanes, self._band, np.inf, rows, costs)
                out[begin : begin + len(some)] = costs[: len(some)]

        in_threads(look, parts_of(len(places)))
        return out


def parts_of(count: int) -> list[slice]:
    """Split the candidates into whole groups, one part per useful thread.

    >>> parts_of(0), parts_of(20)
    ([], [slice(0, 20, None)])
    """
    threads = max(1, min(_THREADS, os.cpu_count() or 1, count // _WORTH))
    each = max(1, -(-count // (threads * LANES))) * LANES
    return [slice(begin, min(begin + each, count)) for begin in range(0, count, each)]


def in_threads(work: Callable[[Part], Answer], parts: Iterable[Part]) -> list[Answer]:
    """Return the results of the parts, each in a thread of its own."""
    listed = list(parts)
    if len(listed) < 2:
        return [work(part) for part in listed]
    with ThreadPoolExecutor(len(listed)) as pool:
        return list(pool.map(work, listed))
