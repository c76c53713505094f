"""The loops over buckets that a fit makes, compiled; what is elementwise is done in `passes`, block by block.

All of them read one layout: the buckets of task t are `ptr[t] : ptr[t + 1]` of the other arrays, sorted by
unit inside the task; a slice of `ptr` is a range of tasks. Arrays called "of the block" start at `ptr[0]`.
Types are those of `compiled`: `ptr` int64, `unit` int32, everything else float64.

Notation: k = exp(theta) the speed factors, a the bucket values, w their weights, B = 1/A the task's inverse
level, x = a k B. The level of each task is eliminated exactly (variable projection: Golub & Pereyra, SIAM J.
Numer. Anal. 10 (1973) 413).
"""

import numpy as np
from numpy.typing import NDArray

from fitters.compiled import compiled

PAPER, GAUSS_NEWTON, GAMMA, EXPECTED, GAMMA_FAST, GAMMA_SLOPE = 0, 1, 2, 3, 4, 5
"""Curvature h of a bucket: 2 w x (2 x - 1) exact, 2 w x^2 always positive, 2 w x for gamma, 2 w expected.

GAMMA_FAST is GAMMA with one logarithm per task instead of one per bucket, for buckets of equal weight;
GAMMA_SLOPE has no cost at all.
"""


@compiled
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


@compiled
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


@compiled
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


@compiled
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
