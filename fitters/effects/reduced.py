"""Weighted least squares of effects with the levels of tasks taken out: value = level of task + X b."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from fitters.layout.arrays import Codes, Floats

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
    rows, columns = np.tile(np.arange(n), 2), np.concatenate([unit, n_units + of_class])
    return sparse.csr_matrix((-np.ones(2 * n), (rows, columns)), shape=(n, n_units + n_classes))


def solve_reduced(task: Codes, design: sparse.csr_matrix, value: Floats, weight: Floats) -> Reduced:
    """Solve it; rows of weight 0 count for nothing. Cost: cube of the number of effects."""
    tasks = sparse.csr_matrix((weight, (task, np.arange(len(value)))))
    total = np.asarray(tasks.sum(axis=1)).ravel()
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    means = (sparse.diags(inverse) @ (tasks @ design)).tocsr()
    normal = (design.T @ sparse.diags(weight) @ design - means.T @ sparse.diags(total) @ means).toarray()
    level = inverse * (tasks @ value)
    right = design.T @ (weight * value) - means.T @ (total * level)
    eigen, vectors = linalg.eigh(normal)
    good = eigen > _RANK * max(eigen[-1], 1.0)
    covariance = (vectors[:, good] / eigen[good]) @ vectors[:, good].T
    effects = covariance @ right
    fitted = design @ effects
    residual = value - fitted - (level - inverse * (tasks @ fitted))[task]
    rank = int(good.sum())
    return Reduced(effects, covariance, vectors[:, ~good], rank, design, means, total, residual, weight)
