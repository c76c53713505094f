"""Compiled loops of the fit over buckets.

All of them read one layout: the buckets of task t are `ptr[t] : ptr[t + 1]` of the other arrays, sorted by
unit inside the task. Types are those of `compiled`: `ptr` int64, `unit` int32, everything else float64;
weights of length 0 are all 1. Arrays called "room" have a place per unit, which is enough for any task.

Notation: k = exp(theta) the speed factors, a the bucket values, w their weights, B = 1/A the task's inverse
level, x = a k B. The level of each task is eliminated exactly (variable projection: Golub & Pereyra, SIAM J.
Numer. Anal. 10 (1973) 413): B = sum(w a k) / sum(w (a k)^2) for paper, sum(w) / sum(w a k) for gamma. Tasks
whose weights are all zero count for nothing.
"""

import numpy as np
from numpy.typing import NDArray

from fitters.compiled import compiled

# Curvature h of a bucket: 2 w x (2 x - 1) exact, 2 w x^2 always positive, 2 w x for gamma
PAPER, GAUSS_NEWTON, GAMMA = 0, 1, 2


@compiled
def sweep(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    room: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Add sum(w x) and sum(w x^2) of every unit to the columns of `sums`."""
    weighted = w.size > 0
    for t in range(ptr.size - 1):
        low, high = ptr[t], ptr[t + 1]
        total = 0.0
        first = 0.0
        second = 0.0
        for j in range(low, high):
            y = a[j] * k[unit[j]]
            weight = w[j] if weighted else 1.0
            room[j - low] = y
            total += weight
            first += weight * y
            second += weight * y * y
        if total <= 0.0:
            continue
        level = total / first if mode == GAMMA else first / second
        for j in range(low, high):
            x = room[j - low] * level
            of_unit = sums[unit[j]]
            share = w[j] * x if weighted else x
            of_unit[0] += share
            of_unit[1] += share * x


@compiled
def cost_and_gradient(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    room: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Return the profiled cost, sum w (x - 1)^2 and max |x - 1|; add to the gradient in theta = ln k.

    paper: sum w (x - 1)^2, gradient 2 w x (x - 1). gamma: 2 sum w (x - ln x - 1), gradient 2 w (x - 1).
    """
    weighted = w.size > 0
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
            room[j - low] = y
            total += weight
            first += weight * y
            second += weight * y * y
        if total <= 0.0:
            continue
        level = total / first if mode == GAMMA else first / second
        part = 0.0
        for j in range(low, high):
            x = room[j - low] * level
            r = x - 1.0
            weight = w[j] if weighted else 1.0
            squares += weight * r * r
            if weight > 0.0:
                worst = max(worst, abs(r))
            if mode == GAMMA:
                part += weight * (r - np.log(x))
            else:
                r *= x
            gradient[unit[j]] += 2.0 * weight * r
        cost += 2.0 * part
    return cost if mode == GAMMA else squares, squares, worst


@compiled
def hessian_and_scores(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    room: NDArray[np.float64],
    gradient: NDArray[np.float64],
    pairs: NDArray[np.float64],
) -> None:
    """Add to `pairs` the Hessian and the products of scores, lower triangles side by side, shape (n, n, 2).

    Per task diag(h) - h h^T / sum(h), and s s^T s being the task's gradient, which is added to `gradient`.
    `room` has three rows.
    """
    weighted = w.size > 0
    ratio, bend, slope = room[0], room[1], room[2]
    for t in range(ptr.size - 1):
        low, size = ptr[t], ptr[t + 1] - ptr[t]
        total = 0.0
        first = 0.0
        second = 0.0
        for j in range(size):
            y = a[low + j] * k[unit[low + j]]
            weight = w[low + j] if weighted else 1.0
            ratio[j] = y
            total += weight
            first += weight * y
            second += weight * y * y
        if total <= 0.0:
            continue
        level = total / first if mode == GAMMA else first / second
        norm = 0.0
        for j in range(size):
            x = ratio[j] * level
            twice = 2.0 * w[low + j] if weighted else 2.0
            if mode == GAMMA:
                h, g = twice * x, twice * (x - 1.0)
            elif mode == PAPER:
                h, g = twice * x * (2.0 * x - 1.0), twice * x * (x - 1.0)
            else:
                h, g = twice * x * x, twice * x * (x - 1.0)
            bend[j] = h
            slope[j] = g
            norm += h
        for i in range(size):
            here = unit[low + i]
            row = pairs[here]
            left, score = -bend[i] / norm, slope[i]
            gradient[here] += score
            row[here, 0] += bend[i]
            for j in range(i + 1):
                both = row[unit[low + j]]
                both[0] += left * bend[j]
                both[1] += score * slope[j]


@compiled
def mirror(matrix: NDArray[np.float64]) -> None:
    """Copy the lower triangle to the upper one."""
    n = matrix.shape[0]
    for top in range(0, n, 16):  # squares small enough that both sides of the diagonal stay in the cache
        for left in range(0, top + 1, 16):
            for i in range(top, min(top + 16, n)):
                for j in range(left, min(left + 16, i)):
                    matrix[j, i] = matrix[i, j]


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

    The vectors are of the buckets. Responses and normal equations are of this form.
    """
    for t in range(ptr.size - 1):
        low = ptr[t]
        for i in range(low, ptr[t + 1]):
            row = target[unit[i]]
            here_left, here_right = left[i], right[i]
            row[unit[i]] += diagonal[i]
            for j in range(low, i + 1):
                row[unit[j]] += here_left * right[j] + here_right * left[j]


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
    """Add to change[u, f] the gain of the paper's cost if k of unit u alone is multiplied by factors[f].

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
