"""The same loops in float32, to find out which series need a cost in float64.

All that is added up is positive, so that a sum of n terms in float32 is off by less than n x 2^-24 of itself
in whichever order, and the least of such sums by no more. The squares are of differences that float32 rounds
in both kernels alike. :func:`room` is what follows: what is beyond a limit by more of it is beyond the limit.
"""

import numpy as np
import numpy.typing as npt

from fitters.compiled import compiled
from fitters.warping.kernels import LANES, Floats32

LARGEST = 1e15
"""Of larger values float32 cannot add up squares."""

TINY = 1e-30
"""Room for squares that are too small for float32; any cost that matters is far above."""

_LOOKED_AT = 8
"""After so many samples it is asked whether a group of candidates can be given up."""

Places = npt.NDArray[np.int64]


def room(n_samples: int, n_metrics: int) -> float:
    """How far a cost or bound in float32 may be from the one in float64, relative to it.

    A path has fewer than twice the samples as steps, a step as many squares as metrics, rounded once each.
    """
    terms = 2 * n_samples + n_metrics + 8
    return 1.25 * terms * 2.0**-24


@compiled
def _four(query: Floats32, lanes: Floats32, metric: int, first: int, step: Floats32) -> None:
    """Add what it costs to join one sample of the query with those from ``first`` on, in four metrics."""
    end = first + step.size
    a, b = lanes[metric][first:end], lanes[metric + 1][first:end]
    c, d = lanes[metric + 2][first:end], lanes[metric + 3][first:end]
    in_a, in_b, in_c, in_d = query[metric], query[metric + 1], query[metric + 2], query[metric + 3]
    for k in range(step.size):
        by_a, by_b, by_c, by_d = in_a - a[k], in_b - b[k], in_c - c[k], in_d - d[k]
        step[k] += (by_a * by_a + by_b * by_b) + (by_c * by_c + by_d * by_d)


@compiled
def _row32(step: Floats32, above: Floats32, here: Floats32, best: Floats32) -> None:
    """:func:`fitters.warping.kernels._row` in float32."""
    diagonal, straight = above[: step.size], above[LANES:]
    for k in range(step.size):
        best[k] = diagonal[k] if diagonal[k] < straight[k] else straight[k]
    here[:LANES] = np.inf
    for place in range(0, step.size, LANES):
        for k in range(place, place + LANES):
            least = here[k] if here[k] < best[k] else best[k]
            here[k + LANES] = least + step[k]


@compiled
def _hopeless(here: Floats32, rest: Floats32, limit: float, least: Floats32) -> bool:
    """Whether no path of any candidate can stay within the limit: what it cost, and what is to come."""
    least[:] = np.inf
    for place in range(0, here.size, LANES):
        for k in range(LANES):
            cost = here[place + k] + rest[place + k]
            least[k] = cost if cost < least[k] else least[k]
    return bool(least.min() > limit)


@compiled
def _rough_costs(
    query: Floats32,
    lanes: Floats32,
    band: int,
    limit: float,
    rest: Floats32,
    rows: Floats32,
    least: Floats32,
    out: Floats32,
) -> None:
    """:func:`fitters.warping.kernels.warped_costs` in float32; ``rest``: see :func:`_boxes_apart`."""
    n_samples = query.shape[0]
    rows[:2] = np.inf
    rows[0, :LANES] = 0.0
    for i in range(n_samples):
        first, end = max(0, i - band) * LANES, min(n_samples, i + band + 1) * LANES
        step = rows[2][: end - first]
        step[:] = 0.0
        for metric in range(0, lanes.shape[0], 4):
            _four(query[i], lanes, metric, first, step)
        here = rows[(i + 1) % 2][first : end + LANES]
        _row32(step, rows[i % 2][first : end + LANES], here, rows[3])
        if i % _LOOKED_AT == 0 and _hopeless(here[LANES:], rest[first + LANES : end + LANES], limit, least):
            out[:] = np.inf
            return
    out[:] = rows[n_samples % 2, n_samples * LANES :]


@compiled
def _boxes_apart(
    lanes: Floats32,
    lower: Floats32,
    upper: Floats32,
    width: int,
    band: int,
    limit: float,
    apart: Floats32,
    rest: Floats32,
) -> None:
    """What the samples of candidates cost at least, from each on to the end: ``rest``, (samples + 1) x LANES.

    ``lower``, ``upper``: (boxes, metrics), the least and largest values of ``width`` samples of the query.
    A sample is joined with one within the band, thus in one of its boxes: it costs at least the squared
    distance to the nearest. Unlike an envelope a box holds the metrics together. Given up once all are
    beyond the limit. ``apart``: scratch, (2, LANES).
    """
    n_samples = rest.size // LANES - 1
    distance, nearest = apart[0], apart[1]
    rest[n_samples * LANES :] = 0.0
    for j in range(n_samples - 1, -1, -1):
        nearest[:] = np.inf
        begin = j * LANES
        for box in range(max(0, j - band) // width, min(n_samples - 1, j + band) // width + 1):
            distance[:] = 0.0
            for metric in range(lower.shape[1]):
                low, high = lower[box, metric], upper[box, metric]
                values = lanes[metric][begin : begin + LANES]
                for k in range(LANES):
                    over, under = values[k] - high, low - values[k]
                    outside = over if over > under else under
                    outside = outside if outside > np.float32(0.0) else np.float32(0.0)
                    distance[k] += outside * outside
            for k in range(LANES):
                nearest[k] = distance[k] if distance[k] < nearest[k] else nearest[k]
        for k in range(LANES):
            rest[begin + k] = rest[begin + LANES + k] + nearest[k]
        if j % _LOOKED_AT == 0 and rest[begin : begin + LANES].min() > limit:
            rest[:LANES] = np.inf
            return


@compiled
def _side_by_side(series: Floats32, places: Places, lanes: Floats32) -> None:
    """Put candidates into the lanes, (metrics, samples x LANES)."""
    for j in range(series.shape[1]):
        for metric in range(series.shape[2]):
            for lane in range(places.size):
                lanes[metric, j * LANES + lane] = series[places[lane], j, metric]


@compiled
def rough_search(
    query: Floats32,
    series: Floats32,
    places: Places,
    lower: Floats32,
    upper: Floats32,
    width: int,
    band: int,
    limit: float,
    lanes: Floats32,
    rests: Floats32,
    rows: Floats32,
    few: Floats32,
    out: Floats32,
) -> int:
    """Costs of candidates in float32, infinite of those beyond ``limit``: ``out``; how many were warped.

    ``query``: (samples, metrics, with zeros to the next multiple of 4); ``places``: of the candidates in
    ``series`` (series, samples, metrics); boxes: see :func:`_boxes_apart`. Scratch: ``lanes``,
    (2, metrics as in ``query``, samples x LANES), with zeros in the metrics that are none; ``rests``,
    (2, (samples + 1) x LANES); ``rows``, (4, (samples + 1) x LANES); ``few``, (3, LANES).
    """
    n_samples, n_warped, waiting = query.shape[0], 0, 0
    whose = np.zeros(LANES, np.int64)
    apart, costs = few[:2], few[2]
    out[:] = np.inf
    rests[1][:] = np.inf
    for begin in range(0, places.size, LANES):
        group = places[begin : begin + LANES]
        _side_by_side(series, group, lanes[0])
        _boxes_apart(lanes[0], lower, upper, width, band, limit, apart, rests[0])
        for lane in range(group.size):
            if rests[0][lane] <= limit:
                for metric in range(series.shape[2]):
                    for j in range(n_samples):
                        lanes[1, metric, j * LANES + waiting] = lanes[0, metric, j * LANES + lane]
                for j in range(n_samples + 1):
                    rests[1][j * LANES + waiting] = rests[0][j * LANES + lane]
                whose[waiting] = begin + lane
                waiting += 1
            last = begin + lane == places.size - 1
            if waiting == LANES or (last and waiting > 0):
                _rough_costs(query, lanes[1], band, limit, rests[1], rows, apart[0], costs)
                for k in range(waiting):
                    out[whose[k]] = costs[k]
                n_warped += waiting
                waiting = 0
                # places that stay free are hopeless from the beginning
                rests[1][:] = np.inf
    return n_warped
