"""Passes over the buckets of a component: cost, gradient, curvature, responses, residuals.

Each splits the tasks into lanes, which threads may work on side by side, and each lane into blocks that fit
into a core's cache. Lanes and blocks depend on the data alone, so that sums are the same to the bit however
many threads there are. A pass allocates a few arrays of a block per thread and one target per lane.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fitters.fit.kernels import (
    EXPECTED,
    GAMMA,
    GAUSS_NEWTON,
    PAPER,
    add_outer,
    cost_and_gradient,
    times_vector,
)
from fitters.layout.arrays import EMPTY, Floats
from fitters.layout.components import Part

Result = TypeVar("Result")

BLOCK_BUCKETS = 1 << 15
LANE_BUCKETS = 1 << 18
MOST_LANES = 4
MOST_LANE_BYTES = 1 << 28
NO_MATRIX = np.empty((0, 0))


def bounds(part: Part, first: int, last: int, buckets: int) -> list[int]:
    """Cut the tasks first .. last - 1 into ranges of about so many buckets; return the cuts."""
    low, high = int(part.ptr[first]), int(part.ptr[last])
    inner = np.searchsorted(part.ptr, np.arange(low + buckets, high - buckets // 2, buckets))
    return [first, *np.unique(inner[(inner > first) & (inner < last)]).tolist(), last]


def _lanes(part: Part, target_bytes: int) -> list[tuple[int, int]]:
    wanted = min(MOST_LANES, part.n_buckets // LANE_BUCKETS, MOST_LANE_BYTES // max(target_bytes, 1))
    if wanted < 2:
        return [(0, part.n_tasks)]
    return list(pairwise(bounds(part, 0, part.n_tasks, -(-part.n_buckets // wanted))))


def over_lanes(part: Part, target_bytes: int, work: Callable[[int, int], Result]) -> list[Result]:
    """Call work(first task, last task) for each lane, in threads if the part has more than one."""
    lanes = _lanes(part, target_bytes)
    if part.threads < 2 or len(lanes) < 2:
        return [work(first, last) for first, last in lanes]
    with ThreadPoolExecutor(min(part.threads, len(lanes))) as pool:
        return list(pool.map(lambda lane: work(*lane), lanes))


def total(arrays: list[Floats]) -> Floats:
    """Add the targets of the lanes into the first."""
    for other in arrays[1:]:
        arrays[0] += other
    return arrays[0]


def evaluate(part: Part, k: Floats, mode: int) -> tuple[float, float, float, Floats]:
    """Cost, sum w (x - 1)^2, max |x - 1| and the gradient in ln k; `mode` as in the kernels."""

    def work(first: int, last: int) -> tuple[tuple[float, float, float], Floats]:
        gradient = np.zeros(part.n_units)
        columns = (part.ptr[first : last + 1], part.unit, part.value, part.weight)
        return cost_and_gradient(*columns, k, mode, gradient, EMPTY, EMPTY), gradient

    of_lanes = over_lanes(part, 8 * part.n_units, work)
    sums = np.array([numbers for numbers, _ in of_lanes])
    gradient = total([gradient for _, gradient in of_lanes])
    return float(sums[:, 0].sum()), float(sums[:, 1].sum()), float(sums[:, 2].max()), gradient


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some tasks at given k, as arrays over their buckets (`h`, `g`, `x`) and tasks (`h_sum`, `inverse`).

    `starts` are the first buckets of the tasks, `sizes` their numbers of buckets, `rows` the buckets' place
    in the part. h is the curvature of the mode, g the gradient; tasks without weight have h_sum 1.
    """

    first: int
    last: int
    ptr: NDArray[np.int64]
    unit: NDArray[np.int32]
    rows: slice
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    h: Floats
    g: Floats
    x: Floats
    h_sum: Floats
    inverse: Floats

    def sums(self, values: Floats) -> Floats:
        """Sum over each task."""
        return np.asarray(np.add.reduceat(values, self.starts), np.float64)

    def spread(self, values: Floats) -> Floats:
        """One value per task as one per bucket."""
        return np.repeat(values, self.sizes)


def blocks(part: Part, first: int, last: int, k: Floats, mode: int) -> Iterator[Block]:
    """Work out the blocks of a range of tasks one after the other."""
    level_mode = GAMMA if mode in (GAMMA, EXPECTED) else PAPER
    unused = np.zeros(part.n_units)
    for low, high in pairwise(bounds(part, first, last, BLOCK_BUCKETS)):
        ptr = part.ptr[low : high + 1]
        rows = slice(int(ptr[0]), int(ptr[-1]))
        x, inverse = np.empty(rows.stop - rows.start), np.empty(high - low)
        cost_and_gradient(ptr, part.unit, part.value, part.weight, k, level_mode, unused, x, inverse)
        weight = 2.0 * part.weight[rows] if part.weight.size else np.full(x.size, 2.0)
        g = weight * (x - 1.0)
        if mode in (PAPER, GAUSS_NEWTON):
            g *= x
            h = weight * x * (x if mode == GAUSS_NEWTON else 2.0 * x - 1.0)
        else:
            h = weight if mode == EXPECTED else weight * x
        starts, sizes = ptr[:-1] - ptr[0], np.diff(ptr)
        h_sum = np.add.reduceat(h, starts)
        if part.weight.size:
            h_sum[h_sum == 0.0] = 1.0
        yield Block(low, high, ptr, part.unit[rows], rows, starts, sizes, h, g, x, h_sum, inverse)


def _matrix(part: Part, k: Floats, mode: int, add: Callable[[Block, Floats], None]) -> Floats:
    n = part.n_units

    def work(first: int, last: int) -> Floats:
        target = np.zeros((n, n))
        for block in blocks(part, first, last, k, mode):
            add(block, target)
        return target

    return total(over_lanes(part, 8 * n * n, work))


def hessian_of(part: Part, k: Floats, mode: int) -> Floats:
    """Lower triangle of the Hessian in ln k: per task diag(h) - h h^T / sum(h)."""

    def add(block: Block, target: Floats) -> None:
        scaled = block.h * block.spread(-0.5 / block.h_sum)
        add_outer(block.ptr, part.unit, block.h, scaled, block.h, target)

    return _matrix(part, k, mode, add)


def score_products(part: Part, k: Floats, mode: int) -> Floats:
    """Lower triangle of the sum over tasks of s s^T, s being the task's gradient."""

    def add(block: Block, target: Floats) -> None:
        add_outer(block.ptr, part.unit, np.zeros(block.g.size), 0.5 * block.g, block.g, target)

    return _matrix(part, k, mode, add)


def response(part: Part, k: Floats, variance: Floats | None) -> Floats:
    """Lower triangle of the sum over tasks of H_a diag(v) H_a with the expected curvature; v None: 1.

    What independent relative errors of variance v do to the gradient.
    """

    def add(block: Block, target: Floats) -> None:
        # h^2 v - h m^T - m h^T with m = (h^2 v - h sum(h^2 v) / (2 sum h)) / sum h
        weighted = block.h * block.h
        if variance is not None:
            weighted *= variance[block.rows]
        middle = block.sums(weighted) / block.h_sum
        left = (0.5 * block.h * block.spread(middle) - weighted) * block.spread(1.0 / block.h_sum)
        add_outer(block.ptr, part.unit, weighted, left, block.h, target)

    return _matrix(part, k, EXPECTED, add)


def level_variances(
    part: Part, k: Floats, mode: int, inverse: Floats, share: Floats
) -> tuple[Floats, Floats]:
    """Return each task's level A, and the variance of ln A per 2 S^2: 1 / sum(h) + (q - p)^T C (q - p).

    p = k / sum(k) is the scale, q = h / sum(h), `share` C p.
    """
    level, variance = np.empty(part.n_tasks), np.empty(part.n_tasks)
    norm = float(share @ k) / float(k.sum())

    def work(first: int, last: int) -> None:
        for block in blocks(part, first, last, k, mode):
            q = block.h * block.spread(1.0 / block.h_sum)
            line = np.zeros(q.size)
            times_vector(block.ptr, part.unit, inverse, q, line)
            inside = slice(block.first, block.last)
            level[inside] = 1.0 / block.inverse
            quadratic = block.sums(q * (line - 2.0 * share[block.unit]))
            variance[inside] = 1.0 / block.h_sum + quadratic + norm

    over_lanes(part, 8, work)
    return level, variance


def level_propagated(
    part: Part, k: Floats, variance: Floats, inverse: Floats, covariance: Floats, p: Floats
) -> Floats:
    """Variance of ln A from independent relative errors of variance V, K being the covariance of ln k.

    q^T V q + (q - p)^T K (q - p) - 2 q^T V H_a C (q - p), all with the expected curvature.
    """
    variances = np.empty(part.n_tasks)
    share, k_share = inverse @ p, covariance @ p
    norm = float(k_share @ p)

    def work(first: int, last: int) -> None:
        for block in blocks(part, first, last, k, EXPECTED):
            q = block.h * block.spread(1.0 / block.h_sum)
            v = variance[block.rows]
            line, k_line = np.zeros(q.size), np.zeros(q.size)
            times_vector(block.ptr, part.unit, inverse, q, line)
            times_vector(block.ptr, part.unit, covariance, q, k_line)
            middle = block.sums(q * q * v)
            pull = q * (block.h * v - block.spread(middle * block.h_sum))
            cross = block.sums(pull * (line - share[block.unit]))
            quadratic = block.sums(q * (k_line - 2.0 * k_share[block.unit]))
            variances[block.first : block.last] = middle + quadratic + norm - 2.0 * cross

    over_lanes(part, 8, work)
    return variances


def scaled_residuals(
    part: Part, k: Floats, extra: float, *, matrix: bool
) -> tuple[float, float, Floats, Floats]:
    """Residuals y = 3 (x^(1/3) - 1) around each task's mean, weighted with w = 1 / (rel_var + extra).

    Returns sum(w y^2), sum(w^2 y^2), the right side -sum(w y) per unit and, if asked for, the lower triangle
    of the matrix of the normal equations for the change of ln k.
    """
    n = part.n_units

    def work(first: int, last: int) -> tuple[float, float, Floats, Floats]:
        chi2, slope = 0.0, 0.0
        right, target = np.zeros(n), np.zeros((n, n)) if matrix else NO_MATRIX
        for low, high in pairwise(bounds(part, first, last, BLOCK_BUCKETS)):
            ptr = part.ptr[low : high + 1]
            rows = slice(int(ptr[0]), int(ptr[-1]))
            starts, sizes, unit = ptr[:-1] - ptr[0], np.diff(ptr), part.unit[rows]
            weight = 1.0 / (part.rel_var[rows] + extra)
            norm = np.add.reduceat(weight, starts)
            y = part.value[rows] * k[unit]
            y *= np.repeat(norm / np.add.reduceat(weight * y, starts), sizes)
            y = 3.0 * np.cbrt(y)
            y -= np.repeat(np.add.reduceat(weight * y, starts) / norm, sizes)
            pull = weight * y
            chi2 += float(pull @ y)
            slope += float(pull @ pull)
            right -= np.bincount(unit, pull, n)
            if matrix:
                add_outer(ptr, part.unit, weight, weight * np.repeat(-0.5 / norm, sizes), weight, target)
        return chi2, slope, right, target

    of_lanes = over_lanes(part, 8 * n * n if matrix else 8 * n, work)
    chi2, slope = (float(sum(item[column] for item in of_lanes)) for column in (0, 1))
    return chi2, slope, total([item[2] for item in of_lanes]), total([item[3] for item in of_lanes])
