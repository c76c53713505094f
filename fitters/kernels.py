"""The loops over buckets, compiled by Numba; nothing else in the package imports it.

All of them read one layout: the buckets of task t are `ptr[t] : ptr[t + 1]` of the other arrays, sorted by
unit inside the task. One set of types throughout, so that each kernel is compiled once: `ptr` int64, `unit`
int32, everything else float64, contiguous and writeable; weights or variances that are not there are arrays
of length 0. Scratch and output come from outside, zeroed where they are added to: allocating inside costs
compile time.

Notation: k = exp(theta) the speed factors, a the bucket values, w their weights, B = 1/A the task's inverse
level, x = a k B, and q = h / sum(h) inside a task, h being the curvature of a bucket. The level of each
task is eliminated exactly (variable projection: Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973) 413).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

PAPER, GAUSS_NEWTON, GAMMA, EXPECTED = 0, 1, 2, 3
"""Curvature h of a bucket: 2 w x (2 x - 1) exact, 2 w x^2 always positive, 2 w x for gamma, 2 w expected."""


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
def _inverse_level(
    low: int,
    high: int,
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
) -> float:
    """B = sum(w) / sum(w a k) of the gamma cost, sum(w a k) / sum(w (a k)^2) of the paper's."""
    weighted = w.size > 0
    total = 0.0
    first = 0.0
    second = 0.0
    for j in range(low, high):
        y = a[j] * k[unit[j]]
        weight = w[j] if weighted else 1.0
        total += weight
        first += weight * y
        second += weight * y * y
    return total / first if mode == GAMMA else first / second


@_compiled
def cost_and_gradient(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    gradient: NDArray[np.float64],
) -> tuple[float, float, float]:
    """Return the profiled cost, sum w (x - 1)^2 and max |x - 1|; fill the gradient in theta = ln k.

    paper: sum w (x - 1)^2 with B = sum(w a k) / sum(w (a k)^2), gradient 2 w x (x - 1).
    gamma: 2 sum w (x - ln x - 1) with B = sum(w) / sum(w a k), gradient 2 w (x - 1).
    """
    weighted = w.size > 0
    for u in range(gradient.size):
        gradient[u] = 0.0
    cost = 0.0
    squares = 0.0
    worst = 0.0
    for t in range(ptr.size - 1):
        low, high = ptr[t], ptr[t + 1]
        inverse = _inverse_level(low, high, unit, a, w, k, mode)
        part = 0.0
        square = 0.0
        for j in range(low, high):
            u = unit[j]
            x = a[j] * k[u] * inverse
            r = x - 1.0
            weight = w[j] if weighted else 1.0
            square += weight * r * r
            worst = max(worst, abs(r))
            if mode == GAMMA:
                part += 2.0 * weight * (r - np.log(x))
                gradient[u] += 2.0 * weight * r
            else:
                gradient[u] += 2.0 * weight * x * r
        cost += part if mode == GAMMA else square
        squares += square
    return cost, squares, worst


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
        before = first * first / second
        for j in range(ptr[t], ptr[t + 1]):
            u = unit[j]
            y = a[j] * k[u]
            weight = w[j] if weighted else 1.0
            for f in range(factors.size):
                moved_first = first + weight * y * (factors[f] - 1.0)
                moved_second = second + weight * y * y * (factors[f] * factors[f] - 1.0)
                change[u, f] += before - moved_first * moved_first / moved_second


@_compiled
def _bend(
    low: int,
    n: int,
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    scratch: NDArray[np.float64],
) -> tuple[float, float]:
    """Fill a task's curvatures scratch[0] and gradient scratch[1]; return B and the sum of the curvatures."""
    weighted = w.size > 0
    inverse = _inverse_level(low, low + n, unit, a, w, k, mode)
    h_sum = 0.0
    for i in range(n):
        x = a[low + i] * k[unit[low + i]] * inverse
        weight = 2.0 * (w[low + i] if weighted else 1.0)
        scratch[1, i] = weight * (x - 1.0)
        if mode == EXPECTED:
            scratch[0, i] = weight
        elif mode == GAMMA:
            scratch[0, i] = weight * x
        else:
            scratch[0, i] = weight * x * (x if mode == GAUSS_NEWTON else 2.0 * x - 1.0)
            scratch[1, i] *= x
        h_sum += scratch[0, i]
    return inverse, h_sum


@_compiled
def _add_response(
    low: int,
    n: int,
    unit: NDArray[np.int32],
    h_sum: float,
    target: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> None:
    """Add H_a V H_a of one task, h^2 V in scratch[2] coming in; a diagonal and a product of two vectors."""
    h, p = scratch[0], scratch[2]
    middle = 0.0
    for i in range(n):
        middle += p[i]
    for i in range(n):
        row = unit[low + i]
        target[row, row] += p[i]
        p[i] = (p[i] - 0.5 * middle * h[i] / h_sum) / h_sum
        for j in range(i + 1):
            target[row, unit[low + j]] -= p[i] * h[j] + h[i] * p[j]


@_compiled
def curvature(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    v: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    hessian: NDArray[np.float64],
    stat: NDArray[np.float64],
    interaction: NDArray[np.float64],
    score: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> None:
    """Add to the lower triangles what each task contributes; a matrix of shape (0, 0) is left out.

    hessian      diag(h) - h h^T / sum(h), the exact Hessian H_a of the profiled cost
    stat         H_a diag(v) H_a, what independent relative errors of variance v do to the gradient
    interaction  H_a H_a, the same for relative errors of variance 1
    score        s s^T with the task's gradient s
    """
    h, g, p = scratch[0], scratch[1], scratch[2]
    for t in range(ptr.size - 1):
        low = ptr[t]
        n = ptr[t + 1] - low
        _, h_sum = _bend(low, n, unit, a, w, k, mode, scratch)
        if hessian.size > 0:
            for i in range(n):
                row = unit[low + i]
                scaled = h[i] / h_sum
                for j in range(i + 1):
                    hessian[row, unit[low + j]] -= scaled * h[j]
                hessian[row, row] += h[i]
        if stat.size > 0:
            for i in range(n):
                p[i] = h[i] * h[i] * v[low + i]
            _add_response(low, n, unit, h_sum, stat, scratch)
        if interaction.size > 0:
            for i in range(n):
                p[i] = h[i] * h[i]
            _add_response(low, n, unit, h_sum, interaction, scratch)
        if score.size > 0:
            for i in range(n):
                row = unit[low + i]
                for j in range(i + 1):
                    score[row, unit[low + j]] += g[i] * g[j]


@_compiled
def task_variances(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    w: NDArray[np.float64],
    v: NDArray[np.float64],
    k: NDArray[np.float64],
    mode: int,
    inverse_hessian: NDArray[np.float64],
    covariance: NDArray[np.float64],
    inverse_share: NDArray[np.float64],
    covariance_share: NDArray[np.float64],
    inverse_norm: float,
    covariance_norm: float,
    level: NDArray[np.float64],
    model: NDArray[np.float64],
    propagated: NDArray[np.float64],
    leverage: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> None:
    """Fill each task's level A, the two variances of ln A, and the leverage of each bucket.

    With p = k / sum(k) the gauge sum(k) = n, C the inverse Hessian, K the covariance of theta, V = diag(v):
    model       1 / sum(h) + (q - p)^T C (q - p), to be multiplied by 2 S^2
    propagated  q^T V q + (q - p)^T K (q - p) - 2 q^T V H_a C (q - p); left out if `covariance` is (0, 0)
    leverage    h (1 / sum(h) + (e_i - q)^T C (e_i - q)); left out if of length 0
    `inverse_share` is C p and `inverse_norm` p^T C p; `covariance_share` and `covariance_norm` the same of K.
    """
    h, c_row = scratch[0], scratch[2]
    for t in range(ptr.size - 1):
        low = ptr[t]
        n = ptr[t + 1] - low
        inverse, h_sum = _bend(low, n, unit, a, w, k, mode, scratch)
        level[t] = 1.0 / inverse
        c_qq = 0.0
        c_qp = 0.0
        k_qq = 0.0
        k_qp = 0.0
        middle = 0.0
        for i in range(n):
            row = unit[low + i]
            q = h[i] / h_sum
            c_sum = 0.0
            k_line = 0.0
            for j in range(n):
                c_sum += inverse_hessian[row, unit[low + j]] * h[j]
            if covariance.size > 0:
                for j in range(n):
                    k_line += covariance[row, unit[low + j]] * h[j]
                k_qq += q * k_line / h_sum
                k_qp += q * covariance_share[row]
                middle += q * q * v[low + i]
            c_row[i] = c_sum / h_sum
            c_qq += q * c_row[i]
            c_qp += q * inverse_share[row]
        model[t] = 1.0 / h_sum + c_qq - 2.0 * c_qp + inverse_norm
        if covariance.size > 0:
            cross = 0.0
            for i in range(n):
                q = h[i] / h_sum
                pull = q * (h[i] * v[low + i] - middle * h_sum)
                cross += pull * (c_row[i] - inverse_share[unit[low + i]])
            propagated[t] = middle + k_qq - 2.0 * k_qp + covariance_norm - 2.0 * cross
        if leverage.size > 0:
            for i in range(n):
                row = unit[low + i]
                spread = 1.0 / h_sum + inverse_hessian[row, row] - 2.0 * c_row[i] + c_qq
                leverage[low + i] = h[i] * spread


@_compiled
def scaled_residuals(
    ptr: NDArray[np.int64],
    unit: NDArray[np.int32],
    a: NDArray[np.float64],
    v: NDArray[np.float64],
    k: NDArray[np.float64],
    extra: float,
    laplacian: NDArray[np.float64],
    right: NDArray[np.float64],
    chi2: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> float:
    """Residuals y = 3 (x^(1/3) - 1) around each task's mean, weighted with w = 1 / (v + extra).

    Returns sum(w^2 y^2); fills chi2 = sum(w y^2) per task, the right side -sum(w y) per unit and, unless it
    is (0, 0), the lower triangle of the matrix of the normal equations for the change of ln k.
    """
    weight, y = scratch[0], scratch[1]
    slope = 0.0
    for u in range(right.size):
        right[u] = 0.0
    for t in range(ptr.size - 1):
        low = ptr[t]
        n = ptr[t + 1] - low
        total = 0.0
        level = 0.0
        for i in range(n):
            y[i] = a[low + i] * k[unit[low + i]]
            weight[i] = 1.0 / (v[low + i] + extra)
            total += weight[i]
            level += weight[i] * y[i]
        level /= total
        mean = 0.0
        for i in range(n):
            y[i] = 3.0 * np.cbrt(y[i] / level)
            mean += weight[i] * y[i]
        mean /= total
        chi2[t] = 0.0
        for i in range(n):
            pull = weight[i] * (y[i] - mean)
            chi2[t] += pull * (y[i] - mean)
            slope += pull * pull
            right[unit[low + i]] -= pull
        if laplacian.size > 0:
            for i in range(n):
                row = unit[low + i]
                scaled = weight[i] / total
                for j in range(i + 1):
                    laplacian[row, unit[low + j]] -= scaled * weight[j]
                laplacian[row, row] += weight[i]
    return slope
