"""Response of the factors of a component to changed values and omitted tasks, without a new fit.

The logarithms of the buckets are a linear model, ln a = ln A - ln k, with the weights of the fit. Its
solution follows from one linear system, exactly for any change; what the objective of the fit adds to it
cancels in the difference of two solutions. Changes are given in the gauge in which the median unit does not
change: only relative speeds mean anything, and the sum k = n would pass on to all units what one of them
does.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import linalg

from fitters.fit.results import FitResult
from fitters.fit.two_way import TwoWay
from fitters.layout.arrays import Floats, Ints, Mask
from fitters.threads import one_blas_thread

# Reciprocal condition below which a task left out takes the last link between parts of the component
LOST_LINK = 1e-10
# Share of a task in what determines its units below which a few terms of a series are what it changes
SMALL_SHARE = 0.25
LAST_TERM = 1e-15  # Size, relative to the sum, of the first term of that series that is left out


@dataclass(frozen=True, slots=True, eq=False)
class TasksLeftOut:
    """The two tasks of each unit whose absence changes its factor most, one downwards and one upwards."""

    units: Ints  # Positions in `FitResult.units`; shape (n,)
    # low, high: The lowest and the highest change of ln k without one of the unit's tasks; NaN where none can
    # be had
    low: Floats
    high: Floats
    # low_task, high_task: The tasks that do it, positions in `FitResult.tasks`; -1 where none
    low_task: Ints
    high_task: Ints
    lost_task: Ints  # A task without which the unit has no link with most others; -1 where there is none
    n_tasks: Ints  # Tasks that were left out in turn: those that the unit shares with another one


class LinearResponse:
    """Linear model of one fitted component, solved again under changes.

    ``units``, ``tasks``, ``rows``: of the component, positions in the tables and `FitResult.buckets`; rows by
    task. ``unit``, ``task``, ``weight``: of each row, positions in ``units`` and ``tasks``, and its weight in
    the fit. Linear in the buckets, plus the cube of the units once and once more for each subset.
    """

    @one_blas_thread()
    def __init__(self, result: FitResult, component: int = 0) -> None:
        buckets = result.buckets
        size = np.diff(buckets.ptr)
        task = np.repeat(np.arange(buckets.n_tasks), size)
        weight = result.weighting.weight
        if weight.size and result.weighting.kept is not None:
            weight = weight[result.weighting.kept]
        inside = (size[task] > 1) & (result.units.component[buckets.unit] == component)
        self.rows = np.flatnonzero(inside)
        self.units, self.unit = np.unique(buckets.unit[inside], return_inverse=True)
        self.tasks, self.task = np.unique(task[inside], return_inverse=True)
        self.weight = weight[inside] if weight.size else np.ones(self.rows.size)
        self._value = np.log(buckets.value[inside]) + np.log(result.units.k[buckets.unit[inside]])
        self._everything = TwoWay(self.unit, self.task, self.weight, self.units.size, self.tasks.size)
        self._base = self._everything.solve(self._value)

    @property
    def residual(self) -> Floats:
        """Rest of ln a in each of these buckets, without levels and factors."""
        return self._everything.residuals(self._value)

    def with_values(self, ln_change: Floats) -> Floats:
        """Change of ln k of each unit when ln a changes by `ln_change`, shape (n_rows,)."""
        return _gauged(self._everything.solve(self._value + ln_change) - self._base)

    @one_blas_thread()
    def of_part(self, chosen: Mask) -> Floats:
        """Return the change of ln k with the chosen rows only; NaN for units outside their largest part."""
        codes = self.unit[chosen], self.task[chosen]
        system = TwoWay(*codes, self.weight[chosen], self.units.size, self.tasks.size)
        return _gauged(system.solve(self._value[chosen]) - self._base)

    @one_blas_thread()
    def without_tasks(self) -> TasksLeftOut:
        """Leave out each task in turn, with units that have no other. O(sum of cubed task sizes)."""
        n = self.units.size
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        low_task, high_task, lost_task = np.full((3, n), -1, np.int64)
        inverse = self._everything.inverse()
        count = np.bincount(self.unit, minlength=n)
        value = self._value + self._base[self.unit]
        ends = np.append(np.flatnonzero(np.diff(self.task, prepend=-1)), self.task.size)
        for number, (start, end) in enumerate(pairwise(ends.tolist())):
            here = self.unit[start:end]
            single = count[here] == 1
            lost_task[here[single]] = self.tasks[number]
            here, weight = here[~single], self.weight[start:end][~single]
            if not here.size:
                continue
            change = _without(inverse, here, weight, value[start:end][~single])
            if change is None:
                # the last link: solved anew, for the part that stays connected
                change = self.of_part(self.task != number)
            else:
                change[self.unit[start:end][single]] = np.nan
                change = _gauged(change)
            updated = change[here]
            lost_task[here[np.isnan(updated)]] = self.tasks[number]
            lower, higher = here[updated < low[here]], here[updated > high[here]]
            low[lower], low_task[lower] = change[lower], self.tasks[number]
            high[higher], high_task[higher] = change[higher], self.tasks[number]
        low[low_task < 0], high[high_task < 0] = np.nan, np.nan
        return TasksLeftOut(self.units, low, high, low_task, high_task, lost_task, count)


def _without(inverse: Floats, here: Ints, weight: Floats, value: Floats) -> Floats | None:
    """Change of all ln k without one task; None if it is the last link between parts.

    (L - B)^-1 g from L^-1 by a system of the task's size (Cook, Technometrics 19 (1977) 15): B is what the
    task adds to the matrix L, g its gradient at the solution.
    """
    if here.size < 2:
        return np.zeros(inverse.shape[0])  # what is left of the task fits exactly
    total = weight.sum()
    gradient = weight * (value - weight @ value / total)
    # B C, with B = diag(w) - w w^T / W
    response = inverse[here]
    share = response[:, here]
    share -= (weight / total) @ share
    share *= weight[:, None]
    norm = np.abs(share).sum(axis=1).max()
    step = _of_series(share, gradient) if norm < SMALL_SHARE else _of_system(share, gradient)
    if step is None:
        return None
    return step @ response


def _of_series(share: Floats, gradient: Floats) -> Floats:
    # (I - B C)^-1 g by the Neumann series: each term is at most `SMALL_SHARE` times the previous one.
    step = gradient.copy()
    term = gradient
    while np.abs(term).max() > LAST_TERM * np.abs(step).max():
        term = share @ term
        step += term
    return step


def _of_system(share: Floats, gradient: Floats) -> Floats | None:
    # (I - B C)^-1 g by elimination; None if the system is nearly singular.
    system = -share
    system.flat[:: gradient.size + 1] += 1.0
    norm = np.abs(system).sum(axis=0).max()
    factor, pivots, _ = linalg.lapack.dgetrf(system)
    condition, _ = linalg.lapack.dgecon(factor, norm)
    if condition < LOST_LINK:
        return None
    step, _ = linalg.lapack.dgetrs(factor, pivots, gradient)
    return np.asarray(step, np.float64)


def _gauged(change: Floats) -> Floats:
    # The gauge in which the median change is 0.
    valid = change[np.isfinite(change)]
    if not valid.size:
        return change
    # NumPy's median does the same in five times the time for a few hundred values
    low, high = (valid.size - 1) // 2, valid.size // 2
    ordered = np.partition(valid, (low, high))
    centred: Floats = change - 0.5 * (ordered[low] + ordered[high])
    return centred
