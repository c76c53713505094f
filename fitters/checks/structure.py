"""Test for structure in the residuals of a fit: the largest singular value of tasks x units.

Half of the tasks that need an instruction set which some CPUs lack, or memory that some sites are slow in,
leave a pattern of rank one: its size is found by parallel analysis (J. L. Horn, Psychometrika 30 (1965) 179)
with the signs of the residuals flipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, svds

from fitters.layout.arrays import Floats, Ints, group_sums
from fitters.threads import one_blas_thread

FLIPS = 49
_SWEEPS = 3
# Up to so many units the eigenvalues of a dense matrix cost less than iterations.
_DENSE_UNITS = 100
# Share of a sum of squares below which nothing but rounding is left.
_DUST = 1e-12
LEAST_UNITS, LEAST_TASKS = 3, 5
_MEAN, _DEVIATION = -1.2065, 1.2680  # Of the law of Tracy and Widom for real matrices
_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801


@dataclass(frozen=True, slots=True, eq=False)
class StructureCheck:
    """Result of the test."""

    p: float  # NaN with fewer than 3 units or 5 tasks, or where levels leave nothing
    sigma: float  # Root mean square of the pattern, in ln a
    # Loads of the tasks, mean 0 and mean square 1: tasks of one sign go together; shape (n_tasks,)
    of_task: Floats


@one_blas_thread()
def structure_check(
    unit: Ints,
    task: Ints,
    weight: Floats,
    residual: Floats,
    n_units: int,
    n_tasks: int,
    kinds: Sequence[Ints] = (),
    common: Floats | None = None,
) -> StructureCheck:
    """Test the residuals of ln a for a pattern of rank one; rows sorted by task, ``weight``: 1 / variance.

    What errors hold already is no pattern: for every unit a level in each value of ``kinds``, and a multiple
    of ``common``. A residual counts in its own standard deviation, a missing pair as 0. The null keeps sizes
    and holes: signs at random, levels taken out again, scaled to the same sum of squares, 49 times.
    """
    unknown = StructureCheck(float("nan"), float("nan"), np.zeros(n_tasks))
    if np.unique(unit).size < LEAST_UNITS or np.unique(task).size < LEAST_TASKS:
        return unknown
    clean, root = _Cleaning(unit, task, weight, n_units, n_tasks, kinds, common), np.sqrt(weight)
    found = clean(residual) * root
    total = float(found @ found)
    if total <= _DUST * float(weight @ residual**2):
        return unknown
    rng = np.random.default_rng(found.size)
    null = np.empty(FLIPS)
    try:
        size, of_unit = _largest(unit, task, found, n_units, n_tasks)
        for number in range(FLIPS):
            flipped = clean(rng.choice((-1.0, 1.0), found.size) * found / root) * root
            left = float(flipped @ flipped)
            if left <= _DUST * total:
                # few rows and many levels: they take whatever the signs are
                return unknown
            null[number], _ = _largest(unit, task, flipped * np.sqrt(total / left), n_units, n_tasks)
    except ArpackError:
        return unknown
    excess = max(size**2 - float(np.median(null)) ** 2, 0.0)
    # holes hide their part of a pattern from the singular value
    filled = found.size / (np.unique(unit).size * np.unique(task).size)
    of_task = group_sums(task, found * of_unit[unit], n_tasks)
    of_task -= of_task.mean()
    return StructureCheck(
        p=_tail(size, null),
        sigma=float(np.sqrt(excess / filled / weight.sum())),
        of_task=of_task / max(float(np.sqrt(np.mean(of_task**2))), 1e-300),
    )


class _Cleaning:
    # Takes out levels of tasks and units by a fixed number of sweeps, the same for data and null

    def __init__(
        self,
        unit: Ints,
        task: Ints,
        weight: Floats,
        n_units: int,
        n_tasks: int,
        kinds: Sequence[Ints],
        common: Floats | None,
    ) -> None:
        self._groupings = [(task, n_tasks), (unit, n_units)]
        for kind in kinds:
            of_unit = unit * (int(kind.max()) + 1) + kind
            self._groupings.append((of_unit, int(of_unit.max()) + 1))
        self._totals = [group_sums(code, weight, number) for code, number in self._groupings]
        self._unit, self._n_units, self._weight = unit, n_units, weight
        self._common = None if common is None else self._without_levels(common)

    def __call__(self, values: Floats) -> Floats:
        rest = self._without_levels(values)
        if self._common is None:
            return rest
        square = group_sums(self._unit, self._weight * self._common**2, self._n_units)
        slope = group_sums(self._unit, self._weight * self._common * rest, self._n_units)
        return rest - np.divide(slope, square, out=slope, where=square > 0)[self._unit] * self._common

    def _without_levels(self, values: Floats) -> Floats:
        rest = values
        for _ in range(_SWEEPS):
            for (code, number), total in zip(self._groupings, self._totals, strict=True):
                level = group_sums(code, self._weight * rest, number)
                rest = rest - np.divide(level, total, out=level, where=total > 0)[code]
        return rest


def _largest(unit: Ints, task: Ints, found: Floats, n_units: int, n_tasks: int) -> tuple[float, Floats]:
    # Largest singular value of the matrix tasks x units, and its vector over the units
    if n_units <= _DENSE_UNITS:
        dense = np.zeros((n_tasks, n_units))
        np.add.at(dense, (task, unit), found)
        squares, vectors = np.linalg.eigh(dense.T @ dense)
        return float(np.sqrt(max(squares[-1], 0.0))), vectors[:, -1]
    ptr = np.searchsorted(task, np.arange(n_tasks + 1))
    matrix = csr_array((found, unit, ptr), shape=(n_tasks, n_units))
    start = np.ones(min(n_units, n_tasks))
    _, value, vector = svds(matrix, k=1, v0=start, tol=1e-3)
    return float(value[0]), np.asarray(vector[0], np.float64)


def _tail(size: float, null: Floats) -> float:
    """Probability of a value this large by the law of largest eigenvalues with the moments of the null.

    Tracy-Widom (I. M. Johnstone, Ann. Stat. 29 (2001) 295) as a shifted gamma law (M. Chiani, J. Multivar.
    Anal. 129 (2014) 69): 49 values alone would not tell 0.001 from 0.02.
    """
    spread = float(np.std(null, ddof=1))
    if spread <= 0:
        return float("nan")
    reduced = (size - float(null.mean())) / spread * _DEVIATION + _MEAN
    return float(special.gammaincc(_SHAPE, max(reduced + _SHIFT, 0.0) / _SCALE))
