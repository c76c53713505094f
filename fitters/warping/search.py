"""Exact nearest series: bounds first, paths only for those that bounds cannot exclude."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fitters.errors import InputError
from fitters.layout.arrays import Ints
from fitters.warping.costs import Search, in_threads, parts_of
from fitters.warping.kernels import LANES, Floats, Floats32, path_costs, segment_bounds
from fitters.warping.rough import TINY, room

# Segments of which means are kept: an eightieth of the values of 500 samples, in twice the bytes
_SEGMENTS = 50
_BATCH = 1024  # Series of which costs are looked for before the limit is set anew


@dataclass(frozen=True)
class Nearest:
    """Nearest series, nearest first; ties in the order of their positions.

    ``places``: where they stand; ``distances``: root of the mean squared difference per sample and metric
    along the path; ``n_warped``: of how many a path was looked for, the others were excluded by bounds.
    """

    places: Ints
    distances: Floats
    n_warped: int


class WarpedSeries:
    """Series of equal length, searched for the nearest ones.

    ``series``: (series, samples, metrics), finite; kept as float32, and means over segments beside it.
    ``band``: how many samples a path may be off the diagonal.
    """

    def __init__(self, series: npt.NDArray[np.floating], band: int) -> None:
        self.series = np.ascontiguousarray(series, np.float32)
        if self.series.ndim != 3 or not self.series.shape[1] or not self.series.shape[2]:
            raise InputError(
                "expected series of shape (series, samples, metrics), with at least one sample and metric"
            )
        if band < 0:
            raise InputError(f"band must be 0 samples or more; got {band}")
        n_samples = self.series.shape[1]
        self.band = min(int(band), n_samples - 1)
        self.largest = 0.0
        edges = np.linspace(0, n_samples, min(_SEGMENTS, n_samples) + 1).astype(np.int64)
        self._starts = edges[:-1]
        self._widths = np.diff(edges).astype(np.float64)
        self._means = np.empty((len(self.series), len(self._starts), self.series.shape[2]))
        for begin in range(0, len(self.series), 1024):
            some = self.series[begin : begin + 1024]
            if not np.isfinite(some).all():
                raise InputError("series with missing or infinite values cannot be warped")
            self.largest = max(self.largest, float(np.abs(some).max(initial=0.0)))
            self._means[begin : begin + 1024] = self._over_segments(some)

    def nearest(
        self, query: npt.NDArray[np.floating], top: int, among: npt.ArrayLike | None = None
    ) -> Nearest:
        """Return the ``top`` series nearest to a query (samples, metrics).

        ``among``: the places of those that are looked at; None: all.
        """
        query = self._checked(query)
        candidates = self._candidates(among)
        if top < 1:
            raise InputError(f"top must be 1 or more; got {top}")
        envelope = _envelope(query, self.band)
        search = Search(self.series, self.band, self.largest, query, envelope)
        if 2 * top >= len(candidates):
            # float32 would exclude little
            return self._nearest(query, candidates, search.exact(candidates), len(candidates), top)
        bounds = self._bounds(query, envelope)
        order = candidates[np.argsort(bounds[candidates], kind="stable")]
        rough = np.full(len(order), np.inf)
        limit, begin, size = np.inf, 0, LANES
        while begin < len(order) and bounds[order[begin]] <= limit:
            end = begin + int(np.searchsorted(bounds[order[begin : begin + size]], limit, "right"))
            rough[begin:end] = search.rough(order[begin:end], limit)
            # what is nearly the last may be it in float64
            limit = (
                self._with_room(float(np.partition(rough[:end], top - 1)[top - 1])) if end >= top else limit
            )
            begin, size = end, min(2 * size, _BATCH)
        chosen = order[rough <= limit]
        return self._nearest(query, chosen, search.exact(chosen), search.n_warped, top)

    def within(
        self, query: npt.NDArray[np.floating], distance: float, among: npt.ArrayLike | None = None
    ) -> Nearest:
        """Return the series within a distance of a query."""
        query = self._checked(query)
        if not distance >= 0:
            raise InputError(f"distance must be 0 or more; got {distance}")
        envelope = _envelope(query, self.band)
        bounds = self._bounds(query, envelope)
        limit = self._with_room(distance * distance * query.size)
        candidates = self._candidates(among)
        candidates = candidates[bounds[candidates] <= limit]
        search = Search(self.series, self.band, self.largest, query, envelope)
        chosen = candidates[search.rough(candidates, limit) <= limit]
        costs = search.exact(chosen)
        inside = np.sqrt(costs / query.size) <= distance
        return self._nearest(query, chosen[inside], costs[inside], search.n_warped, len(self.series))

    def _nearest(self, query: Floats32, places: Ints, costs: Floats, n_warped: int, top: int) -> Nearest:
        best = np.lexsort((places, costs))[:top]
        return Nearest(places[best].astype(np.int64), np.sqrt(costs[best] / query.size), n_warped)

    def _bounds(self, query: Floats32, envelope: tuple[Floats32, Floats32]) -> Floats:
        lower, upper = envelope
        bounds = np.empty(len(self.series))
        below, above = self._over_segments(lower[None])[0], self._over_segments(upper[None])[0]

        def fill(part: slice) -> None:
            segment_bounds(self._means[part], below, above, self._widths, bounds[part])

        in_threads(fill, parts_of(len(bounds)))
        np.maximum(bounds, self._ends_apart(query), out=bounds)
        return bounds

    def _candidates(self, among: npt.ArrayLike | None) -> Ints:
        if among is None:
            return np.arange(len(self.series))
        found = np.unique(np.asarray(among, np.int64))
        if len(found) and not 0 <= found[0] <= found[-1] < len(self.series):
            raise InputError(f"positions must be 0 to {len(self.series) - 1}")
        return found

    def _with_room(self, cost: float) -> float:
        # The two kinds of sums differ: a float32 limit that excludes nothing within the float64 one.
        return cost * (1 + 4 * room(*self.series.shape[1:])) + TINY

    def shares(self, query: npt.NDArray[np.floating], index: int) -> Floats:
        """Return the part of each metric in the squared distance to a series; zeros if it is 0."""
        query = self._checked(query)
        size = len(query) + 1
        parts: Floats = np.zeros(query.shape[1])
        path_costs(query, self.series[index], self.band, np.full((size, size), np.inf), parts)
        if parts.any():
            parts /= parts.sum()
        return parts

    def _checked(self, query: npt.NDArray[np.floating]) -> Floats32:
        supplied = np.ascontiguousarray(query, np.float32)
        if supplied.shape != self.series.shape[1:] or not np.isfinite(supplied).all():
            raise InputError(f"a query must have finite values of the shape {self.series.shape[1:]}")
        return supplied

    def _over_segments(self, series: Floats32) -> Floats:
        sums = np.add.reduceat(series, self._starts, axis=1, dtype=np.float64)
        return sums / self._widths[None, :, None]

    def _ends_apart(self, query: Floats32) -> Floats:
        # LB_Kim: every path joins the first samples, and the last ones.
        apart: Floats = np.square(self.series[:, 0] - query[0], dtype=np.float64).sum(axis=1)
        if len(query) > 1:
            apart += np.square(self.series[:, -1] - query[-1], dtype=np.float64).sum(axis=1)
        return apart


def _envelope(query: Floats32, band: int) -> tuple[Floats32, Floats32]:
    padded = np.pad(query, ((band, band), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * band + 1, axis=0)
    return np.ascontiguousarray(windows.min(axis=-1)), np.ascontiguousarray(windows.max(axis=-1))
