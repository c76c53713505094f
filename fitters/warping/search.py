"""The series nearest to one, exactly: bounds first, paths only for those that bounds cannot exclude."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fitters.errors import InputError
from fitters.warping.kernels import (
    LANES,
    Floats,
    Floats32,
    envelope_bound,
    path_costs,
    segment_bounds,
    warped_costs,
)

_SEGMENTS = 50
"""Segments of which means are kept: an eightieth of the values of 500 samples, in twice the bytes."""

_ROUNDING = 1e-6
"""Relative room for the rounding of bounds: one a little too high would lose a series of the same cost."""


@dataclass(frozen=True)
class Nearest:
    """The nearest series, the nearest first; of equal ones that which stands first.

    ``places``: where they stand; ``distances``: root of the mean squared difference per sample and metric
    along the path; ``n_warped``: of how many a path was looked for, the others were excluded by bounds.
    """

    places: npt.NDArray[np.int64]
    distances: Floats
    n_warped: int


class WarpedSeries:
    """Series of equal length, among which the nearest to others are looked for.

    ``series``: (series, samples, metrics), finite; kept as float32, and means over segments beside it.
    ``band``: how many samples a path may be off the diagonal.
    """

    def __init__(self, series: npt.NDArray[np.floating], band: int) -> None:
        self.series = np.ascontiguousarray(series, np.float32)
        if self.series.ndim != 3 or not self.series.shape[1] or not self.series.shape[2]:
            raise InputError("series are given as (series, samples, metrics), with samples and metrics")
        if band < 0:
            raise InputError(f"a band of {band} samples; it is 0 or more")
        n_samples = self.series.shape[1]
        self.band = min(int(band), n_samples - 1)
        edges = np.linspace(0, n_samples, min(_SEGMENTS, n_samples) + 1).astype(np.int64)
        self._starts = edges[:-1]
        self._widths = np.diff(edges).astype(np.float64)
        self._means = np.empty((len(self.series), len(self._starts), self.series.shape[2]))
        for begin in range(0, len(self.series), 1024):
            some = self.series[begin : begin + 1024]
            if not np.isfinite(some).all():
                raise InputError("series with values that are missing or infinite cannot be warped")
            self._means[begin : begin + 1024] = self._over_segments(some)

    def nearest(self, query: npt.NDArray[np.floating], top: int) -> Nearest:
        """The ``top`` series nearest to a query (samples, metrics), or all if there are fewer."""
        query = self._checked(query)
        if top < 1:
            raise InputError(f"the nearest {top} series; ask for 1 or more")
        lower, upper = _envelope(query, self.band)
        bounds = np.empty(len(self.series))
        below, above = self._over_segments(lower[None])[0], self._over_segments(upper[None])[0]
        segment_bounds(self._means, below, above, self._widths, bounds)
        np.maximum(bounds, self._ends_apart(query), out=bounds)
        order = np.argsort(bounds, kind="stable")
        places, costs = np.empty(0, np.int64), np.empty(0)
        rows = np.empty((4, (len(query) + 1) * LANES))
        waiting: list[int] = []
        n_warped = 0
        for at, place in enumerate(order.tolist()):
            limit = float(costs[-1]) * (1 + _ROUNDING) if len(costs) == top else np.inf
            hopeless = bounds[place] > limit
            if not hopeless and envelope_bound(self.series[place], lower, upper, limit) <= limit:
                waiting.append(place)
            last = hopeless or at == len(order) - 1
            if len(waiting) == LANES or (last and waiting):
                n_warped += len(waiting)
                found = self._costs(query, waiting, limit, rows)
                places, costs = np.r_[places, waiting], np.r_[costs, found]
                best = np.lexsort((places, costs))[:top]
                places, costs = places[best], costs[best]
                waiting = []
            if hopeless:
                break
        return Nearest(places.astype(np.int64), np.sqrt(costs / query.size), n_warped)

    def shares(self, query: npt.NDArray[np.floating], place: int) -> Floats:
        """What part of the squared distance to one of the series each metric makes; zeros where it is 0."""
        query = self._checked(query)
        size = len(query) + 1
        parts: Floats = np.zeros(query.shape[1])
        path_costs(query, self.series[place], self.band, np.full((size, size), np.inf), parts)
        if parts.any():
            parts /= parts.sum()
        return parts

    def _checked(self, query: npt.NDArray[np.floating]) -> Floats32:
        given = np.ascontiguousarray(query, np.float32)
        if given.shape != self.series.shape[1:] or not np.isfinite(given).all():
            raise InputError(f"a query has finite values of the shape {self.series.shape[1:]}")
        return given

    def _costs(self, query: Floats32, places: list[int], limit: float, rows: Floats) -> Floats:
        """The costs of at most ``LANES`` series; infinite for those of a group that is beyond the limit."""
        # a group that is not full has its first series in the places that are free
        group = self.series[(places + places[:1] * LANES)[:LANES]]
        out = np.empty(LANES)
        lanes = np.ascontiguousarray(group.transpose(2, 1, 0)).reshape(query.shape[1], -1)
        warped_costs(query, lanes, self.band, limit, rows, out)
        return out[: len(places)]

    def _over_segments(self, series: Floats32) -> Floats:
        sums = np.add.reduceat(series, self._starts, axis=1, dtype=np.float64)
        means: Floats = sums / self._widths[None, :, None]
        return means

    def _ends_apart(self, query: Floats32) -> Floats:
        """What the first and the last samples cost (LB_Kim): every path joins them."""
        apart: Floats = np.square(self.series[:, 0] - query[0], dtype=np.float64).sum(axis=1)
        if len(query) > 1:
            apart += np.square(self.series[:, -1] - query[-1], dtype=np.float64).sum(axis=1)
        return apart


def _envelope(query: Floats32, band: int) -> tuple[Floats32, Floats32]:
    """The least and the largest value of each metric within the band of each sample."""
    padded = np.pad(query, ((band, band), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * band + 1, axis=0)
    return np.ascontiguousarray(windows.min(axis=-1)), np.ascontiguousarray(windows.max(axis=-1))
