"""Sums over tasks of products of two vectors, as matrices units x units: pair by pair, or densely.

A task of m units adds m^2 elements. Where tasks have most of the units, as CPU models in tasks that run
everywhere, products of dense matrices are made in a tenth of the time that single pairs take.
"""

from collections.abc import Iterator

import numpy as np

from fitters.fit.kernels import add_outer, mirror
from fitters.layout.arrays import Codes, Floats, Ints

DENSE_SHARE = 0.4  # Share of the units that the mean task needs for dense matrices to be quicker
LEAST_UNITS = 32
_BLOCK = 1 << 20


def is_dense(ptr: Ints, n_units: int) -> bool:
    """True if dense matrices are faster, because the tasks have most of the units."""
    return bool(n_units >= LEAST_UNITS and ptr[-1] - ptr[0] >= DENSE_SHARE * (ptr.size - 1) * n_units)


def dense_sums(ptr: Ints, unit: Codes, left: Floats, right: Floats, n_units: int) -> Floats:
    """The sum over tasks of left right^T, shape (n_units, n_units); a million elements at a time."""
    target = np.zeros((n_units, n_units))
    for rows, index, n_tasks in _blocks(ptr, unit, n_units):
        one = _spread_out(left[rows], index, n_tasks, n_units)
        other = one if left is right else _spread_out(right[rows], index, n_tasks, n_units)
        target += one.T @ other
    return target


def _blocks(ptr: Ints, unit: Codes, n_units: int) -> Iterator[tuple[slice, Ints, int]]:
    step = max(_BLOCK // n_units, 1)
    for first in range(0, ptr.size - 1, step):
        ends = ptr[first : first + step + 1]
        n_tasks = ends.size - 1
        rows = slice(int(ends[0]), int(ends[-1]))
        yield rows, np.repeat(np.arange(n_tasks) * n_units, np.diff(ends)) + unit[rows], n_tasks


def _spread_out(values: Floats, index: Ints, n_tasks: int, n_units: int) -> Floats:
    matrix = np.zeros(n_tasks * n_units)
    matrix[index] = values
    return matrix.reshape(n_tasks, n_units)


def laplacian(ptr: Ints, unit: Codes, weight: Floats, norm: Floats, n_units: int) -> Floats:
    """The sum over tasks of diag(w) - w w^T / norm, shape (n_units, n_units)."""
    if is_dense(ptr, n_units):
        root = weight * np.repeat(1.0 / np.sqrt(norm), np.diff(ptr))
        target = -dense_sums(ptr, unit, root, root, n_units)
        target[np.diag_indices(n_units)] += np.bincount(unit, weight, n_units)
        return target
    left = weight * np.repeat(-0.5 / norm, np.diff(ptr))
    return symmetric_sums(ptr, unit, weight, left, weight, n_units)


def symmetric_sums(
    ptr: Ints, unit: Codes, diagonal: Floats, left: Floats, right: Floats, n_units: int
) -> Floats:
    """The sum over tasks of diag(d) + left right^T + right left^T, shape (n_units, n_units)."""
    if is_dense(ptr, n_units):
        half = dense_sums(ptr, unit, left, right, n_units)
        half[np.diag_indices(n_units)] += 0.5 * np.bincount(unit, diagonal, n_units)
        return half + half.T
    target = np.zeros((n_units, n_units))
    add_outer(ptr, unit, diagonal, left, right, target)
    mirror(target)
    return target
