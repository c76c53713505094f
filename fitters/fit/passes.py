"""Passes over the buckets of a component: cost, gradient, curvature, responses, levels, residuals."""

import numpy as np

from fitters.fit.kernels import GAMMA, PAPER, cost_and_gradient, hessian_and_scores, mirror, sweep
from fitters.fit.outer_sums import dense_sums, is_dense, laplacian, symmetric_sums
from fitters.layout.arrays import Floats
from fitters.layout.components import Part
from fitters.layout.kernels import count


def unit_sums(part: Part, k: Floats, mode: int) -> Floats:
    """Sum w x and sum w x^2 of every unit, shape (n_units, 2), at the best levels of the mode."""
    sums = np.zeros((part.n_units, 2))
    sweep(part.ptr, part.unit, part.value, part.weight, k, mode, np.empty(part.n_units), sums)
    return sums


def unit_weights(part: Part) -> Floats:
    """Sum w of every unit."""
    if part.weight.size:
        return np.bincount(part.unit, part.weight, part.n_units).astype(np.float64, copy=False)
    return count(part.unit, part.n_units).astype(np.float64)


def evaluate(part: Part, k: Floats, mode: int) -> tuple[float, float, float, Floats]:
    """Cost, sum w (x - 1)^2, max |x - 1| and the gradient in ln k; `mode` is `PAPER` or `GAMMA`."""
    gradient, room = np.zeros(part.n_units), np.empty(part.n_units)
    numbers = cost_and_gradient(part.ptr, part.unit, part.value, part.weight, k, mode, room, gradient)
    return (*numbers, gradient)


def curvature(part: Part, k: Floats, mode: int) -> tuple[Floats, Floats, Floats]:
    """The Hessian in ln k, the sum over tasks of s s^T, s being a task's gradient, and the gradient."""
    n = part.n_units
    if is_dense(part.ptr, n):
        return _dense_curvature(part, k, mode)
    gradient, room, pairs = np.zeros(n), np.empty((3, n)), np.zeros((n, n, 2))
    hessian_and_scores(part.ptr, part.unit, part.value, part.weight, k, mode, room, gradient, pairs)
    hessian, scores = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
    mirror(hessian)
    mirror(scores)
    return hessian, scores, gradient


def _dense_curvature(part: Part, k: Floats, mode: int) -> tuple[Floats, Floats, Floats]:
    # As `curvature`, for tasks with most of the units; formulas in `kernels.hessian_and_scores`.
    n = part.n_units
    x, twice, bend, norm = _bends(part, k, mode)
    slope = twice * (x - 1.0 if mode == GAMMA else x * (x - 1.0))
    hessian = -dense_sums(part.ptr, part.unit, bend * _spread(part, 1.0 / norm), bend, n)
    hessian[np.diag_indices(n)] += np.bincount(part.unit, bend, n)
    scores = dense_sums(part.ptr, part.unit, slope, slope, n)
    return hessian, scores, np.bincount(part.unit, slope, n).astype(np.float64, copy=False)


def curvature_diagonal(part: Part, k: Floats, mode: int) -> Floats:
    """The diagonal of the Hessian in ln k; linear in the buckets."""
    *_, bend, norm = _bends(part, k, mode)
    of_unit = bend - bend * bend * _spread(part, 1.0 / norm)
    return np.bincount(part.unit, of_unit, part.n_units).astype(np.float64, copy=False)


def _bends(part: Part, k: Floats, mode: int) -> tuple[Floats, Floats, Floats, Floats]:
    # x = a k / A, 2 w, the curvature h of each bucket, and the sum of h of each task.
    y = part.value * k[part.unit]
    weight = part.weight if part.weight.size else np.ones(part.n_buckets)
    first = _task_sums(part, weight * y)
    with np.errstate(divide="ignore", invalid="ignore"):
        if mode == GAMMA:
            level = _task_sums(part, weight) / first
        else:
            level = first / _task_sums(part, weight * y * y)
    x = y * _spread(part, np.nan_to_num(level))
    twice = 2.0 * weight
    bend = twice * (x if mode == GAMMA else x * (2.0 * x - 1.0) if mode == PAPER else x * x)
    norm = _task_sums(part, bend)
    norm[norm == 0.0] = 1.0
    return x, twice, bend, norm


def _task_sums(part: Part, values: Floats) -> Floats:
    return np.asarray(np.add.reduceat(values, part.ptr[:-1]), np.float64)


def _spread(part: Part, values: Floats) -> Floats:
    return np.repeat(values, np.diff(part.ptr))


def _expected(part: Part) -> tuple[Floats, Floats]:
    h = 2.0 * part.weight if part.weight.size else np.full(part.n_buckets, 2.0)
    h_sum = _task_sums(part, h)
    h_sum[h_sum == 0.0] = 1.0
    return h, h_sum


def expected_hessian(part: Part) -> Floats:
    """The Hessian where the model fits exactly: it depends on the weights alone."""
    return laplacian(part.ptr, part.unit, *_expected(part), part.n_units)


def response(part: Part, variance: Floats | None) -> Floats:
    """Return the response of the gradient to relative errors of variance v (None: 1).

    The sum over tasks of H_a diag(v) H_a with the expected curvature.
    """
    h, h_sum = _expected(part)
    # h^2 v - h m^T - m h^T with m = (h^2 v - h sum(h^2 v) / (2 sum h)) / sum h
    weighted = h * h
    if variance is not None:
        weighted *= variance
    middle = _task_sums(part, weighted) / h_sum
    left = (0.5 * h * _spread(part, middle) - weighted) * _spread(part, 1.0 / h_sum)
    return symmetric_sums(part.ptr, part.unit, weighted, left, h, part.n_units)


def task_levels(part: Part, k: Floats, mode: int) -> Floats:
    """Each task's level A at given k; NaN where all weights are zero."""
    y = part.value * k[part.unit]
    weight = part.weight if part.weight.size else np.ones(part.n_buckets)
    first = _task_sums(part, weight * y)
    with np.errstate(invalid="ignore"):
        if mode == GAMMA:
            return first / _task_sums(part, weight)
        return _task_sums(part, weight * y * y) / first


def scaled_residuals(
    part: Part, k: Floats, extra: float, *, matrix: bool
) -> tuple[float, float, Floats, Floats]:
    """Return residuals y = 3 (x^(1/3) - 1) about each task's mean, weighted with w = 1 / (rel_var + extra).

    Returns sum(w y^2), sum(w^2 y^2), the right side -sum(w y) per unit and, if asked for, the matrix of the
    normal equations for the change of ln k.
    """
    weight = 1.0 / (part.rel_var + extra)
    norm = _task_sums(part, weight)
    y = part.value * k[part.unit]
    y *= _spread(part, norm / _task_sums(part, weight * y))
    y = 3.0 * np.cbrt(y)
    y -= _spread(part, _task_sums(part, weight * y) / norm)
    pull = weight * y
    right: Floats = -np.bincount(part.unit, pull, part.n_units).astype(np.float64, copy=False)
    target = laplacian(part.ptr, part.unit, weight, norm, part.n_units) if matrix else np.empty((0, 0))
    return float(pull @ y), float(pull @ pull), right, target
