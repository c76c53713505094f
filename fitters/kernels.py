"""The loops over buckets, compiled by Numba; nothing else in the package imports it.

Only what NumPy cannot do in one pass is here, since every line costs time to compile (about 2 s together,
once per machine); what is elementwise is done in `passes`, block by block.

All of them read one layout: the buckets of task t are `ptr[t] : ptr[t + 1]` of the other arrays, sorted by
unit inside the task; a slice of `ptr` is a range of tasks. Arrays called "of the block" start at `ptr[0]`.
One set of types throughout, so that each kernel is compiled once: `ptr` int64, `unit` int32, everything else
float64, contiguous and writeable; what is not there is an array of length 0. Output comes from outside,
zeroed where it is added to: allocating inside costs compile time.

Notation: k = exp(theta) the speed factors, a the bucket values, w their weights, B = 1/A the task's inverse
level, x = a k B. The level of each task is eliminated exactly (variable projection: Golub & Pereyra, SIAM J.
Numer. Anal. 10 (1973) 413).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

PAPER, GAUSS_NEWTON, GAMMA, EXPECTED, GAMMA_FAST, GAMMA_SLOPE = 0, 1, 2, 3, 4, 5
"""Curvature h of a bucket: 2 w x (2 x - 1) exact, 2 w x^2 always positive, 2 w x for gamma, 2 w expected.

GAMMA_FAST is GAMMA with one logarithm per task instead of one per bucket, for buckets of equal weight;
GAMMA_SLOPE has no cost at all.
"""


def _compiled(function: Kernel) -> Kernel:
    try:
        return numba.njit(cache=True, error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to keep compiled code in: compile in every process instead
        return numba.njit(error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]


@_compiled
def _count_sort(
    codes: NDArray[np.int32],
    order: NDArray[np.int32],
    start: NDArray[np.int64],
    place: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    for i in range(order.size):
        start[codes[order[i]] + 1] += 1
    for code in range(place.size):
        start[code + 1] += start[code]
        place[code] = start[code]
    for i in range(order.size):
        code = codes[order[i]]
        out[place[code]] = order[i]
        place[code] += 1


def stable_order(
    codes: NDArray[np.int32], order: NDArray[np.int32], n_codes: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Sort the rows `order` by code, equal codes as they were (counting sort); and where codes start."""
    start = np.zeros(n_codes + 1, np.int64)
    out = np.empty_like(order)
    _count_sort(codes, order, start, np.empty(n_codes, np.int64), out)
    return out, start


@_compiled
def _unite(ptr: NDArray[np.int64], unit: NDArray[np.int32], root: NDArray[np.int32]) -> None:
    for t in range(ptr.size - 1):
        first = unit[ptr[t]]
        while root[first] != first:
            root[first] = root[root[first]]
            first = root[first]
        for j in range(ptr[t] + 1, ptr[t + 1]):
            other = unit[j]
            while root[other] != other:
                root[other] = root[root[other]]
                other = root[other]
            if other < first:
                root[first] = other
                first = other
            else:
                root[other] = first
    for u in range(root.size):
        root[u] = root[root[u]]  # roots are smaller than what hangs on them, so theirs are final


def unit_roots(ptr: NDArray[np.int64], unit: NDArray[np.int32], n_units: int) -> NDArray[np.int32]:
    """Return for each unit the smallest unit of its connected component (union-find with path halving)."""
    root = np.arange(n_units, dtype=np.int32)
    _unite(ptr, unit, root)
    return root


@_compiled
def cost_and_gradient(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    gradient: NDArray[np.float64],
    ratio: NDArray[np.float64],
    inverse: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Return the profiled cost, sum w (x - 1)^2 and max |x - 1|; add to the gradient in theta = ln k.

    paper: sum w (x - 1)^2 with B = sum(w a k) / sum(w (a k)^2), gradient 2 w x (x - 1).
    gamma: 2 sum w (x - ln x - 1) with B = sum(w) / sum(w a k), gradient 2 w (x - 1).
    `ratio` (x of the block) and `inverse` (B per task) are filled unless they are of length 0. Tasks whose
    weights are all zero count for nothing.
    """
    weighted = w.size > 0
    wanted = ratio.size > 0
    gamma = mode in (GAMMA, GAMMA_FAST, GAMMA_SLOPE)
    one_log = mode == GAMMA_FAST and not weighted
    base = ptr[0]
    cost = 0.0
    squares = 0.0
    worst = 0.0
    for t in range(ptr.size - 1):
        low, high = ptr[t], ptr[t + 1]
        total = 0.0
        first = 0.0
        second = 0.0
        for j in range(low, high):
            y = a[j] * k[unit[j]]
            weight = w[j] if weighted else 1.0
            total += weight
            first += weight * y
            second += weight * y * y
        level = (total / first if gamma else first / second) if total > 0.0 else 1.0 / a[low]
        part = 0.0
        product = 1.0
        for j in range(low, high):
            u = unit[j]
            x = a[j] * k[u] * level
            r = x - 1.0
            weight = w[j] if weighted else 1.0
            squares += weight * r * r
            if weight > 0.0:
                worst = max(worst, abs(r))
            if wanted:
                ratio[j - base] = x
            if not gamma:
                r *= x
            elif one_log:
                product *= x
                part += r
                if product < 1e-200:
                    part -= np.log(product)
                    product = 1.0
            elif mode != GAMMA_SLOPE:
                part += weight * (r - np.log(x))
            gradient[u] += 2.0 * weight * r
        if one_log:
            part -= np.log(product)
        cost += 2.0 * part
        if wanted:
            inverse[t] = level
    return cost if gamma else squares, squares, worst


@_compiled
def add_outer(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    diagonal: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    target: NDArray[np.float64],
) -> None:
    """Add diag(d) + left right^T + right left^T of each task to the lower triangle of `target`.

    The vectors are of the block. Hessians, responses and products of scores are all of this form.
    """
    base = ptr[0]
    for t in range(ptr.size - 1):
        low = ptr[t]
        for i in range(low, ptr[t + 1]):
            row = target[unit[i]]
            here_left, here_right = left[i - base], right[i - base]
            row[unit[i]] += diagonal[i - base]
            for j in range(low, i + 1):
                row[unit[j]] += here_left * right[j - base] + here_right * left[j - base]


@_compiled
def times_vector(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    matrix: NDArray[np.float64],
    vector: NDArray[np.float64],
    product: NDArray[np.float64],
) -> None:
    """Add to `product` the task's rows and columns of a symmetric matrix times the task's vector.

    Both vectors are of the block; only the lower triangle of the matrix is read.
    """
    base = ptr[0]
    for t in range(ptr.size - 1):
        low = ptr[t]
        for i in range(low, ptr[t + 1]):
            row = matrix[unit[i]]
            here = vector[i - base]
            total = row[unit[i]] * here
            for j in range(low, i):
                element = row[unit[j]]
                total += element * vector[j - base]
                product[j - base] += element * here
            product[i - base] += total


@_compiled
def single_moves(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    factors: NDArray[np.float64],
    change: NDArray[np.float64],
) -> None:
    """Add to change[u, f] what the paper's cost gains if k of unit u alone is multiplied with factors[f].

    With P = sum w a k and Q = sum w (a k)^2 a task costs W - P^2 / Q, so that each move is a few operations.
    """
    weighted = w.size > 0
    for t in range(ptr.size - 1):
        first = 0.0
        second = 0.0
        for j in range(ptr[t], ptr[t + 1]):
            y = a[j] * k[unit[j]]
            weight = w[j] if weighted else 1.0
            first += weight * y
            second += weight * y * y
        if second <= 0.0:
            continue
        before = first * first / second
        for j in range(ptr[t], ptr[t + 1]):
            u = unit[j]
            y = a[j] * k[u]
            weight = w[j] if weighted else 1.0
            for f in range(factors.size):
                moved_first = first + weight * y * (factors[f] - 1.0)
                moved_second = second + weight * y * y * (factors[f] * factors[f] - 1.0)
                change[u, f] += before - moved_first * moved_first / moved_second
