"""The log-linear model of a fit, ln a = ln A - ln k with given weights, solved for any values."""

import numpy as np
from scipy import linalg

from fitters.fit.outer_sums import laplacian
from fitters.layout.arrays import Floats, Ints
from fitters.layout.kernels import unit_roots


class TwoWay:
    """Normal equations of ln a = ln A - ln k for the largest set of units that tasks link; others get NaN.

    Rows are sorted by task, each task has one. Linear in the rows, plus the cube of the units.
    """

    def __init__(self, unit: Ints, task: Ints, weight: Floats, n_units: int, n_tasks: int) -> None:
        self._unit, self._task, self._weight = unit, task, weight
        self._n_units, self._n_tasks = n_units, n_tasks
        starts = np.flatnonzero(np.diff(task, prepend=-1))
        ptr = np.append(starts, task.size)
        of_bucket = unit.astype(np.int32)
        label = unit_roots(ptr, of_bucket, n_units)
        self._inside = np.flatnonzero(label == np.bincount(label).argmax())
        self._total = np.bincount(task, weight, n_tasks)
        self._factor: tuple[Floats, bool] | None = None
        if self._inside.size < 2:
            return
        norm = self._total[task[starts]]
        matrix = laplacian(ptr, of_bucket, weight, np.where(norm > 0, norm, 1.0), n_units)
        if self._inside.size < n_units:
            matrix = matrix[np.ix_(self._inside, self._inside)]
        # the gauge: the constant vector, which the matrix takes to 0
        matrix += np.trace(matrix) / self._inside.size**2
        self._factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, value: Floats) -> Floats:
        """Return ln k of each unit for the values ln a."""
        fitted = np.full(self._n_units, np.nan)
        if self._factor is None:
            return fitted
        gradient = np.bincount(self._unit, self._weight * self._centred(value), self._n_units)
        fitted[self._inside] = linalg.cho_solve(self._factor, -gradient[self._inside], check_finite=False)
        return fitted

    def residuals(self, value: Floats) -> Floats:
        """Return what levels and factors leave of each value; 0 for units that nothing links."""
        return self._centred(value + np.nan_to_num(self.solve(value))[self._unit])

    def _centred(self, value: Floats) -> Floats:
        # without the weighted mean of each task, its best level
        level = np.bincount(self._task, self._weight * value, self._n_tasks)
        level = np.divide(level, self._total, out=level, where=self._total > 0)
        return np.asarray(value - level[self._task])

    def inverse(self) -> Floats:
        """Return the inverse of a system that links all units."""
        identity = np.eye(self._n_units)
        if self._factor is None:
            return identity
        return linalg.cho_solve(self._factor, identity, overwrite_b=True, check_finite=False)
