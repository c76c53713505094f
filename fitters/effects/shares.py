"""Shares of the variance of speeds between units: by their classes, by the units themselves, by sorting.

The speed of a unit is ln k = s + psi, its own effect and the mean of its classes'. Variances of estimated
effects are too large, because errors scatter too: with few tasks a unit most of what looks like the unit is
error. The correction is that of P. Kline, R. Saggio, M. Solvsten, Econometrica 88 (2020) 1859: for a variance
b' A b of estimates b the expected part of the errors is

    sum over clusters c of tr(B_cc Omega_c),    Omega_c = y_c [(1 - P_cc)^-1 e_c]'

which needs no model of them: what the other clusters predict of one is independent of its error. A cluster is
a unit at a task, because its classes share what the unit does to the task. Clusters that alone tell something
are left out first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fitters.effects.effects import comparable
from fitters.effects.reduced import Reduced, cross_products, determined, solve_reduced, two_way
from fitters.layout.arrays import Codes, Floats, Ints, Mask
from fitters.threads import one_blas_thread

GROUPS = 20
"""Groups of tasks that the jackknife leaves out in turn."""
LEAST_UNITS = 3
_ONLY_LINK = 1e-6  # Smallest eigenvalue of 1 - P_cc from which the others tell what a cluster is
_ROUNDS = 10
_SQUARES = 200_000  # Numbers of blocks of clusters that are made at once, which bounds memory


@dataclass(frozen=True, slots=True)
class Variance:
    """Variance of ln k, or a covariance, and its ``share`` of all; NaN where nothing scatters.

    Errors: jackknife over groups of tasks, NaN without enough. ``plug_in``: the variance of the estimated
    effects, errors and all.
    """

    value: float
    error: float
    plug_in: float
    share: float
    share_err: float


@dataclass(frozen=True, slots=True, eq=False)
class VarianceShares:
    """Variance of ln k between units by what it comes from; ``sorting``: twice the covariance of the others.

    The three add up to ``total``. ``inside``: the units in it, by code. ``n_clusters``: units at tasks behind
    it; ``n_left_out``: clusters that alone tell something.
    """

    classes: Variance
    units: Variance
    sorting: Variance
    total: Variance
    inside: Mask
    n_clusters: int
    n_left_out: int


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Rows in the order of their clusters (a unit at a task); codes are dense."""

    task: Codes
    unit: Codes
    of_class: Codes
    value: Floats
    weight: Floats
    mix: Floats  # Shares of the classes in each unit, shape (n_units, n_classes)
    group: Codes  # Group of the task
    units: Ints  # Original codes
    classes: Ints

    def keep(self, rows: Mask) -> "_Sample":
        """Return the chosen rows; units and classes without rows go, mixes add up to 1 again."""
        # a slice copies nothing
        chosen = slice(None) if rows.all() else rows
        unit, units = _dense(self.unit[chosen])
        of_class, classes = _dense(self.of_class[chosen])
        task, _ = _dense(self.task[chosen])
        mix = self.mix[np.ix_(units, classes)]
        total = mix.sum(axis=1, keepdims=True)
        mix = np.divide(mix, total, out=np.full_like(mix, 1.0 / max(len(classes), 1)), where=total > 0)
        kept = (self.value[chosen], self.weight[chosen], mix, self.group[chosen])
        return _Sample(task, unit, of_class, *kept, self.units[units], self.classes[classes])

    @property
    def starts(self) -> Ints:
        """First row of each cluster."""
        new = (np.diff(self.task) != 0) | (np.diff(self.unit) != 0)
        return np.concatenate([[0], 1 + np.flatnonzero(new)]).astype(np.int64)


def _dense(codes: Codes) -> tuple[Codes, Ints]:
    listed, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int32), listed.astype(np.int64)


@one_blas_thread()
def variance_shares(
    task: Codes,
    unit: Codes,
    of_class: Codes,
    value: Floats,
    weight: Floats,
    mix: Floats,
    groups: int = GROUPS,
) -> VarianceShares | None:
    """Return the shares of the variance between units; None below three units that can be compared.

    ``value``: ln of the time per event of each row, ``weight``: 1 / its variance, 0 for rows to be ignored.
    ``mix``: shares of the classes in the speed of each unit, shape (n_units, n_classes). ``groups``: of the
    jackknife; below 2 there is no error. Cost: one factorisation of units + classes for each group.
    """
    found = _estimated(_sample(task, unit, of_class, value, weight, mix, groups))
    if found is None:
        return None
    corrected, plug_in = found.variances(found.sample.mix)
    each = (_change(found, group) for group in range(groups if groups > 1 else 0))
    changes = [change for change in each if change is not None]
    # where most groups cannot be left out there is no error
    again = corrected + np.array(changes) if len(changes) > groups // 2 > 0 else np.full((2, 4), np.nan)
    inside = np.zeros(len(mix), np.bool_)
    inside[found.sample.units] = True
    columns = (corrected, _jackknife(again), plug_in, _shares(corrected), _jackknife(_shares(again)))
    classes, units, sorting, total = (Variance(*map(float, row)) for row in zip(*columns, strict=True))
    number = len(found.sample.starts)
    return VarianceShares(classes, units, sorting, total, inside, number, found.left_out)


def _sample(
    task: Codes, unit: Codes, of_class: Codes, value: Floats, weight: Floats, mix: Floats, groups: int
) -> _Sample:
    order = np.lexsort((of_class, unit, task))
    order = order[weight[order] > 0]
    return _Sample(
        task[order],
        unit[order],
        of_class[order],
        value[order],
        weight[order],
        mix,
        task[order] % np.int32(max(groups, 1)),
        np.arange(mix.shape[0], dtype=np.int64),
        np.arange(mix.shape[1], dtype=np.int64),
    )


def _change(found: "_Estimate", group: int) -> Floats | None:
    """Return the change of the variances without a group of tasks; None where nothing determines them."""
    part = _estimated(found.sample.keep(found.sample.group != group))
    if part is None:
        return None
    # of the same units and classes, or those that are lost would be taken for errors
    common, _ = found.variances(part.mix_in(found.sample))
    change: Floats = part.variances(part.sample.mix)[0] - common
    return change


def _shares(variances: Floats) -> Floats:
    total = variances[..., -1:]
    return np.divide(variances, total, out=np.full_like(variances, np.nan), where=total > 0)


def _jackknife(again: Floats) -> Floats:
    n = len(again)
    error: Floats = np.sqrt((n - 1) / n * np.sum((again - again.mean(axis=0)) ** 2, axis=0))
    return error


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A sample that can be compared, with its solution; ``left_out``: clusters that were left out for it.

    ``errors``: of all ``b' A b``, see `_LeaveOut`. What they were made of, a multiple of the sample, is gone.
    """

    sample: _Sample
    effects: Floats
    covariance: Floats
    errors: Floats
    left_out: int

    def variances(self, mix: Floats) -> tuple[Floats, Floats]:
        """Return the variances, corrected and plain, of the units with a mix (rows of zeros: not counted)."""
        matrices = _matrices(mix)
        effects = self.effects
        plain = np.array([effects @ matrix @ effects for matrix in matrices])
        corrected = plain - np.array([self._expected(matrix) for matrix in matrices])
        return _with_total(corrected), _with_total(plain)

    def _expected(self, matrix: Floats) -> float:
        """Return the expected part of the errors in ``b' A b``."""
        inverse = self.covariance
        return float(np.sum((inverse @ matrix @ inverse) * self.errors))

    def mix_in(self, other: _Sample) -> Floats:
        """Return the mix in the codes of a larger sample."""
        mix = np.zeros_like(other.mix)
        units = np.searchsorted(other.units, self.sample.units)
        mix[np.ix_(units, np.searchsorted(other.classes, self.sample.classes))] = self.sample.mix
        return mix


def _estimated(sample: _Sample) -> _Estimate | None:
    left_out = 0
    for _ in range(_ROUNDS):
        comparing = _comparable(sample)
        if comparing is None:
            return None
        sample, solution = comparing
        leave_out = _LeaveOut(sample, solution)
        alone = leave_out.alone()
        if not alone.any():
            errors = leave_out.errors()
            return _Estimate(sample, solution.effects, solution.covariance, errors, left_out)
        left_out += int(alone.sum())
        number = np.cumsum(np.isin(np.arange(len(sample.task)), sample.starts)) - 1
        # without these others may be alone: until none is
        sample = sample.keep(~alone[number])
        # several times as large as the sample
        del comparing, solution, leave_out
    return None


def _with_total(parts: Floats) -> Floats:
    return np.append(parts, parts.sum())


def _matrices(mix: Floats) -> tuple[Floats, Floats, Floats]:
    # A with b' A b the variance by classes, by units, and twice their covariance.
    n_units, n_classes = mix.shape
    counts = mix.any(axis=1)
    n = int(counts.sum())
    # b' A b with A = C' C: deviations from the mean over the units that count, divided by n - 1
    centring = (np.diag(counts.astype(np.float64)) - np.outer(counts, counts) / n) / np.sqrt(n - 1)
    classes = np.hstack([np.zeros((n_units, n_units)), centring @ mix])
    units = np.hstack([centring, np.zeros((n_units, n_classes))])
    both = classes.T @ units
    return classes.T @ classes, units.T @ units, both + both.T


def _comparable(sample: _Sample) -> tuple[_Sample, Reduced] | None:
    for _ in range(_ROUNDS):
        several = np.bincount(sample.task)[sample.task] > 1 if len(sample.task) else np.zeros(0, np.bool_)
        kept = several.copy()
        kept[several] = comparable(*(codes[several] for codes in (sample.task, sample.unit, sample.of_class)))
        sample = sample.keep(kept)
        n_units, n_classes = sample.mix.shape
        if n_units < LEAST_UNITS or not n_classes:
            return None
        design = two_way(sample.unit, sample.of_class, n_units, n_classes)
        solution = solve_reduced(sample.task, design, sample.value, sample.weight)
        apart = ~determined(solution.null[:n_units])[sample.unit]
        apart |= ~determined(solution.null[n_units:])[sample.of_class]
        if kept.all() and not apart.any():
            return sample, solution
        sample = sample.keep(~apart)
    return None


class _LeaveOut:
    """Predictions of each cluster by the others, for all clusters at once."""

    def __init__(self, sample: _Sample, solution: Reduced) -> None:
        self._sample, self._solution = sample, solution
        self._starts = sample.starts
        self._sizes = np.diff(np.append(self._starts, len(sample.task)))
        self._root = np.sqrt(sample.weight)
        # levels of tasks are no part of the effects, and would make the products of values large
        level = np.bincount(sample.task, sample.weight * sample.value) / solution.total
        self._value = self._root * (sample.value - level[sample.task])
        self._residual = self._root * solution.residual
        self._hats = list(self._blocks(solution.covariance))

    def alone(self) -> Mask:
        """Return the clusters without which something cannot be told."""
        alone = np.zeros(len(self._starts), np.bool_)
        for clusters, hat in self._hats:
            rest = np.linalg.eigvalsh(np.eye(hat.shape[-1]) - hat)
            alone[clusters] = rest[:, 0] < _ONLY_LINK
        return alone

    def errors(self) -> Floats:
        """Return the sum over clusters of X_c' l_c (X_c' y_c)', with l_c = (1 - P_cc)^-1 e_c: the errors of
        all b' A b.
        """
        left = np.empty(len(self._residual))
        for clusters, hat in self._hats:
            rows = self._starts[clusters][:, None] + np.arange(hat.shape[-1])
            rest = np.eye(hat.shape[-1]) - hat
            left[rows] = np.linalg.solve(rest, self._residual[rows][:, :, None])[:, :, 0]
        task = self._sample.task[self._starts]
        return cross_products(
            self._of_clusters(left), self._of_clusters(self._value), task, self._solution.means
        )

    def _of_clusters(self, values: Floats) -> tuple[sparse.csr_matrix, Floats]:
        """Return the design times values of the weighted rows, a row per cluster, and the sums of these."""
        numbers = np.repeat(np.arange(len(self._starts)), self._sizes)
        weighted = self._root * values
        sums = sparse.csr_matrix((weighted, (numbers, np.arange(len(values)))))
        rows: sparse.csr_matrix = (sums @ self._solution.design).tocsr()
        return rows, np.bincount(numbers, weighted).astype(np.float64)

    def _blocks(self, matrix: Floats) -> "list[tuple[Ints, Floats]]":
        # By size of the clusters, their numbers and X_c M X_c' of the weighted rows, with the levels of the
        # tasks, which are fitted along.
        sample, means = self._sample, self._solution.means
        n_units = sample.mix.shape[0]
        at_task = np.asarray(means @ matrix)  # with the sign of the design
        square = np.asarray(means.multiply(at_task).sum(axis=1)).ravel()
        own = sample.unit
        other = n_units + sample.of_class
        # of each row with the mean of its task
        with_mean = -at_task[sample.task, own] - at_task[sample.task, other]
        found = []
        for clusters, size in _portions(self._sizes):
            rows = self._starts[clusters][:, None] + np.arange(size)
            unit, of_class = own[rows[:, 0]][:, None, None], other[rows]
            first, second = of_class[:, :, None], of_class[:, None, :]
            block = matrix[unit, unit] + matrix[unit, second] + matrix[first, unit] + matrix[first, second]
            task = sample.task[rows[:, 0]]
            block = block - with_mean[rows][:, :, None] - with_mean[rows][:, None, :]
            block = block + (square + 1.0 / self._solution.total)[task][:, None, None]
            root = self._root[rows]
            found.append((clusters, block * root[:, :, None] * root[:, None, :]))
        return found


def _portions(sizes: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield the positions of equal sizes, in portions whose squares take a few megabytes."""
    for size in np.unique(sizes).tolist():
        most = max(_SQUARES // size**2, 1)
        positions = np.flatnonzero(sizes == size)
        yield from ((positions[first : first + most], size) for first in range(0, len(positions), most))


def shrink(effect: float, error: float, scatter: float) -> tuple[float, float]:
    """Return an effect drawn to 0 and its error, for a normal prior with this scatter.

    >>> [round(x, 3) for x in shrink(0.2, 0.1, 0.1)]
    [0.1, 0.071]
    """
    variance = scatter**2 + error**2
    reliability = scatter**2 / variance if variance else 0.0
    return effect * reliability, error * math.sqrt(reliability)
