"""Warping in float32, to find the series that need a cost in float64.

All that is added up is positive, so that a sum of n terms in float32 is off by less than n x 2^-24 of itself
in whichever order, and the least of such sums by no more. The squares are of differences that float32 rounds
in both kernels. :func:`room` is what follows: what is beyond a limit by more of it is beyond the limit.
"""

import numpy as np
import numpy.typing as npt

from fitters.compiled import compiled
from fitters.warping.kernels import LANES, Floats32, row_costs

LARGEST = 1e15  # Of larger values float32 cannot add up squares
TINY = 1e-30  # Room for squares that are too small for float32; any cost that matters is far above
_LOOKED_AT = 8  # After so many samples it is asked whether a group of candidates can be given up
Places = npt.NDArray[np.int64]


def room(n_samples: int, n_metrics: int) -> float:
    """Return the relative distance of a float32 cost or bound from the float64 one, at most.

    A path has fewer than twice the samples as steps, a step as many squares as metrics, rounded once each.
    """
    terms = 2 * n_samples + n_metrics + 8
    return 1.25 * terms * 2.0**-24


@compiled
def _four(query: Floats32, lanes: Floats32, metric: int, first: int, step: Floats32) -> None:
    end = first + step.size
    a, b = lanes[metric][first:end], lanes[metric + 1][first:end]
    c, d = lanes[metric + 2][first:end], lanes[metric + 3][first:end]
    in_a, in_b, in_c, in_d = query[metric], query[metric + 1], query[metric + 2], query[metric + 3]
    for k in range(step.size):
        by_a, by_b, by_c, by_d = in_a - a[k], in_b - b[k], in_c - c[k], in_d - d[k]
        step[k] += (by_a * by_a + by_b * by_b) + (by_c * by_c + by_d * by_d)


@compiled
def _hopeless(here: Floats32, rest: Floats32, limit: float, least: Floats32) -> bool:
    # Cost so far and the bound of the rest: no path of any candidate stays within the limit.
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
    # `kernels.warped_costs` in float32; ``rest``: see `_boxes_apart`.
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
        row_costs(step, rows[i % 2][first : end + LANES], here, rows[3])
        if i % _LOOKED_AT == 0 and _hopeless(here[LANES:], rest[first + LANES : end + LANES], limit, least):
            out[:] = np.inf
            return
    out[:] = rows[n_samples % 2, n_samples * LANES :]


@compiled
def _envelope_apart(
    values: Floats32, lower: Floats32, upper: Floats32, limit: float, sums: Floats32
) -> float:
    # LB_Keogh: cost outside the envelope of the query; all arguments flat, samples x metrics.
    sums[:] = 0.0
    full = values.size // LANES * LANES
    for begin in range(0, full, LANES):
        for k in range(LANES):
            over, under = values[begin + k] - upper[begin + k], lower[begin + k] - values[begin + k]
            outside = over if over > under else under
            outside = outside if outside > np.float32(0.0) else np.float32(0.0)
            sums[k] += outside * outside
        if begin % 512 == 0 and sums.sum() > limit:
            return float(sums.sum())
    for place in range(full, values.size):
        outside = max(values[place] - upper[place], lower[place] - values[place], np.float32(0.0))
        sums[0] += outside * outside
    return float(sums.sum())


@compiled
def _outside(values: Floats32, low: np.float32, high: np.float32, distance: Floats32) -> None:
    for k in range(values.size):
        over, under = values[k] - high, low - values[k]
        outside = over if over > under else under
        outside = outside if outside > np.float32(0.0) else np.float32(0.0)
        distance[k] += outside * outside


@compiled
def _lesser(distance: Floats32, nearest: Floats32) -> None:
    for k in range(distance.size):
        nearest[k] = distance[k] if distance[k] < nearest[k] else nearest[k]


@compiled
def _boxes_apart(
    lanes: Floats32,
    lower: Floats32,
    upper: Floats32,
    width: int,
    band: int,
    distances: Floats32,
    rest: Floats32,
) -> None:
    """Write a lower bound of the cost from each sample to the end to ``rest``, (samples + 1) x LANES.

    ``lower``, ``upper``: (boxes, metrics), the least and largest values of ``width`` samples of the query.
    A sample is joined with one within the band, thus in one of its boxes: it costs at least the squared
    distance to the nearest. Unlike an envelope a box holds the metrics together. ``distances``: scratch,
    (samples + 1) x LANES.
    """
    n_samples = rest.size // LANES - 1
    rest[:] = np.inf
    for box in range(lower.shape[0]):
        first = max(0, box * width - band) * LANES
        end = min(n_samples, (box + 1) * width + band) * LANES
        distance = distances[: end - first]
        distance[:] = 0.0
        for metric in range(lower.shape[1]):
            _outside(lanes[metric][first:end], lower[box, metric], upper[box, metric], distance)
        _lesser(distance, rest[first:end])
    rest[n_samples * LANES :] = 0.0
    for k in range(n_samples * LANES - 1, -1, -1):
        rest[k] += rest[k + LANES]


@compiled
def _side_by_side(series: Floats32, places: Places, lanes: Floats32) -> None:
    for j in range(series.shape[1]):
        for metric in range(series.shape[2]):
            for lane in range(places.size):
                lanes[metric, j * LANES + lane] = series[places[lane], j, metric]


@compiled
def _queue_candidate(lanes: Floats32, rests: Floats32, lane: int, waiting: int) -> None:
    # Put a candidate among the waiting ones, until they fill the lanes.
    for metric in range(lanes.shape[1]):
        for j in range(0, lanes.shape[2], LANES):
            lanes[1, metric, j + waiting] = lanes[0, metric, j + lane]
    for j in range(0, rests.shape[1], LANES):
        rests[1, j + waiting] = rests[0, j + lane]


@compiled
def rough_search(
    query: Floats32,
    series: Floats32,
    places: Places,
    envelope: Floats32,
    boxes: Floats32,
    width: int,
    band: int,
    limit: float,
    lanes: Floats32,
    rests: Floats32,
    rows: Floats32,
    few: Floats32,
    out: Floats32,
) -> int:
    """Write costs in float32 to ``out``, infinite beyond ``limit``; return the number of paths searched.

    ``query``: (samples, metrics, with zeros to the next multiple of 4); ``places``: of the candidates in
    ``series`` (series, samples, metrics); ``envelope``: (2, samples x metrics), the least and largest values
    of the query within the band; ``boxes``: (2, boxes, metrics), see :func:`_boxes_apart`. Scratch:
    ``lanes``, (2, metrics as in ``query``, samples x LANES), with zeros in the metrics that are none;
    ``rests``, (2, (samples + 1) x LANES); ``rows``, (4, (samples + 1) x LANES); ``few``, (3, LANES).
    """
    n_samples, n_metrics, n_warped = query.shape[0], series.shape[2], 0
    group, whose = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    looked_at, waiting, bounded = 0, 0, limit < np.inf
    out[:] = np.inf
    rests[1][:] = np.inf
    for number in range(places.size):
        flat = series[places[number]].reshape(n_samples * n_metrics)
        if not bounded or _envelope_apart(flat, envelope[0], envelope[1], limit, few[0]) <= limit:
            group[looked_at] = number
            looked_at += 1
        last = number == places.size - 1
        if looked_at == LANES or (last and looked_at > 0):
            _side_by_side(series, places[group[:looked_at]], lanes[0])
            rests[0][:] = 0.0
            if bounded:
                _boxes_apart(lanes[0], boxes[0], boxes[1], width, band, rows[0], rests[0])
            if waiting == 0 and looked_at == LANES and rests[0][:LANES].max() <= limit:
                _rough_costs(query, lanes[0], band, limit, rests[0], rows, few[1], few[2])
                out[group] = few[2]
                n_warped += LANES
                looked_at = 0
            for lane in range(looked_at):
                if rests[0][lane] <= limit:
                    _queue_candidate(lanes, rests, lane, waiting)
                    whose[waiting] = group[lane]
                    waiting += 1
                if waiting == LANES:
                    _rough_costs(query, lanes[1], band, limit, rests[1], rows, few[1], few[2])
                    out[whose] = few[2]
                    n_warped += LANES
                    waiting = 0
                    rests[1][:] = np.inf
            looked_at = 0
    if waiting:
        # places that stay free are hopeless from the beginning
        _rough_costs(query, lanes[1], band, limit, rests[1], rows, few[1], few[2])
        for lane in range(waiting):
            out[whose[lane]] = few[2][lane]
        n_warped += waiting
    return n_warped
