"""Weighted least squares of effects with the levels of tasks taken out: value = level of task + X b."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from fitters.layout.arrays import Codes, Floats, Mask

_RANK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """Solution with p effects; ``means``: weighted mean of the design in each task, shape (n_tasks, p).

    ``covariance``: generalised inverse of the normal matrix, the covariance of the effects if the weights are
    inverse variances; ``null``: directions that nothing determines, shape (p, n). ``residual``: of each row.
    """

    effects: Floats
    covariance: Floats
    null: Floats
    rank: int
    design: sparse.csr_matrix
    means: sparse.csr_matrix
    total: Floats
    residual: Floats
    weight: Floats


def two_way(unit: Codes, of_class: Codes, n_units: int, n_classes: int) -> sparse.csr_matrix:
    """Return the design of effects that make a time shorter: -1 for the unit and for the class of a row."""
    n = len(unit)
    columns = np.empty((n, 2), np.int32)
    columns[:, 0], columns[:, 1] = unit, n_units + of_class
    # two entries a row, in their order: nothing has to be sorted
    rows = np.arange(0, 2 * n + 1, 2, dtype=np.int32)
    return sparse.csr_matrix((np.full(2 * n, -1.0), columns.ravel(), rows), shape=(n, n_units + n_classes))


def normal_matrix(design: sparse.csr_matrix, weight: Floats) -> Floats:
    """Return X' W X of a two-way design."""
    # sums over rows in their order, as a product of sparse matrices makes them, without its copies
    size = design.shape[1]
    unit, other = design.indices.reshape(-1, 2).T
    both = np.bincount(unit.astype(np.int64) * size + other, weight, size**2).reshape(size, size)
    own = np.bincount(unit, weight, size) + np.bincount(other, weight, size)
    return np.asarray(both + both.T + np.diag(own), np.float64)


def project(
    task: Codes, design: sparse.csr_matrix, weight: Floats
) -> tuple[sparse.csr_matrix, Floats, Floats, sparse.csr_matrix]:
    """Return weighted sums over tasks as a matrix, the weights and 1 / these, and means of the design."""
    tasks = sparse.csr_matrix((weight, (task, np.arange(len(weight), dtype=np.int32))))
    total = np.asarray(tasks.sum(axis=1)).ravel()
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return tasks, total, inverse, (sparse.diags(inverse) @ (tasks @ design)).tocsr()


def solve_reduced(task: Codes, design: sparse.csr_matrix, value: Floats, weight: Floats) -> Reduced:
    """Solve it; rows of weight 0 count for nothing. Cost: cube of the number of effects."""
    tasks, total, inverse, means = project(task, design, weight)
    normal = normal_matrix(design, weight) - (means.T @ sparse.diags(total) @ means).toarray()
    level = inverse * (tasks @ value)
    right = design.T @ (weight * value) - means.T @ (total * level)
    eigen, vectors = linalg.eigh(normal)
    # the pseudo-inverse: what has no weight, or is in the levels already, has an eigenvalue of 0
    good = eigen > _RANK * max(eigen[-1], 1.0)
    covariance = (vectors[:, good] / eigen[good]) @ vectors[:, good].T
    effects = covariance @ right
    fitted = design @ effects
    residual = value - fitted - (level - inverse * (tasks @ fitted))[task]
    rank = int(good.sum())
    return Reduced(effects, covariance, vectors[:, ~good], rank, design, means, total, residual, weight)


def determined(null: Floats) -> Mask:
    """Return the mask of the largest set of effects whose differences no undetermined direction changes."""
    # rows of eigenvectors are equal but for round-off
    _, number, size = np.unique(null.round(6), axis=0, return_inverse=True, return_counts=True)
    return np.asarray(np.ravel(number) == int(np.argmax(size)), np.bool_)


Summed = tuple[sparse.csr_matrix, Floats]
"""Sums of weighted rows of a design by cluster, a row each, and the sums of their weights."""


def cross_products(left: Summed, right: Summed, task: Codes, means: sparse.csr_matrix) -> Floats:
    """Return A' B; a row of A (and of B) is that of a cluster without its weight times the mean of its task.

    ``task``: of each cluster; ``means``: by task, see :class:`Reduced`. The means of a task have an entry for
    every unit that ran it, so that the products are taken apart: A and B are never made.
    """
    (rows_left, weight_left), (rows_right, weight_right) = left, right
    shape = means.shape[0], len(task)
    tasks = sparse.csr_matrix((np.ones(len(task)), (task, np.arange(len(task)))), shape)
    cross = (tasks @ sparse.diags(weight_right) @ rows_left).T @ means
    cross = cross + means.T @ (tasks @ sparse.diags(weight_left) @ rows_right)
    of_task = np.bincount(task, weight_left * weight_right, means.shape[0])
    products: Floats = (rows_left.T @ rows_right - cross + means.T @ sparse.diags(of_task) @ means).toarray()
    return products
