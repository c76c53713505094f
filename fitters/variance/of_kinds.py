"""Scatter of a unit over all tasks of a kind: more tasks of the kind do not average it away.

A site that is 10 % off for every task of one type is off by that in the mean of a hundred of them. The
residual of a bucket is interaction of unit and task, plus what unit and kind have with each other; the
latter is what the means of cells (unit, kind) scatter beyond what the former explains.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Floats, group_sums, without_means

# Relative scatter of unit and kind where it cannot be estimated. Half that of unit and task: it does not
# shrink with tasks, and with more than this no deviation below 40 % could be told from a limit of 20 %.
ASSUMED_SIGMA = 0.05
LEAST_DOF = 10
_SWEEPS, _FLAT = 30, 1e-9
_ROUNDS = 40


@dataclass(frozen=True, slots=True, eq=False)
class KindScatter:
    """Scatter of unit and kind."""

    # sigma, error: Relative; the error is 68 % upwards, NaN unless estimated
    sigma: float
    error: float
    # ``estimated`` with 10 degrees of freedom or more, otherwise ``assumed``
    source: Literal["estimated", "assumed"]
    dof: int  # Cells of unit and kind beyond one for each unit and kind
    # shape (n_units,): By how much sigma^2 reaches a unit's factor: the sum over kinds of the squares of
    # their shares in its weight, 1 for a unit with one kind, 1 / n_kinds where their weights are equal; 0
    # for a unit without buckets
    share: Floats

    @property
    def unit_variance(self) -> Floats:
        """Variance to add to that of ln k of each unit.

        Where sigma is told from 0, half an error of sigma^2 more: with few kinds the factor rests on sigma
        alone, and a pull has the tails of an estimated variance. Where it is not, less: an estimate cannot be
        negative, so that on average something would be added where nothing is. With t = sigma^2 over its
        error, t^2 / (1 + t^2) of sigma^2 + half its error.
        """
        square = self.sigma**2
        if self.source == "estimated" and square > 0:
            error = (self.sigma + self.error) ** 2 - square
            usable = (square / error) ** 2
            square = usable / (1.0 + usable) * (square + 0.5 * error)
        return np.asarray(square * self.share)


def kind_scatter(
    unit: NDArray[Any], kind: NDArray[Any], residual: Floats, variance: Floats, n_units: int
) -> KindScatter:
    """Estimate the scatter of unit and kind from the residuals of a fit, without stray buckets.

    ``variance``: of each residual, from jobs and the interaction of unit and task. y of a cell (unit, kind)
    is the weighted mean of its residuals, v = 1 / (sum of weights); s solves sum (y - a_unit - b_kind)^2 / (v
    + s) = dof, a and b fitted with the same weights (Paule & Mandel, J. Res. NBS 87 (1982) 377). Linear in
    the buckets.

    >>> unit, kind = np.repeat(np.arange(40), 4), np.tile([0, 0, 1, 1], 40)
    >>> effect = np.repeat(np.random.default_rng(1).normal(0, 0.2, 80), 2)
    >>> found = kind_scatter(unit, kind, effect, np.full(160, 0.0001), 40)
    >>> round(found.sigma, 1), found.source, found.dof, float(found.share[0])
    (0.2, 'estimated', 39, 0.5)
    """
    n_kinds = int(kind.max(initial=-1)) + 1
    cells, cell = np.unique(unit.astype(np.int64) * max(n_kinds, 1) + kind, return_inverse=True)
    of_unit, of_kind = cells // max(n_kinds, 1), cells % max(n_kinds, 1)
    weight = group_sums(cell, 1.0 / variance, cells.size)
    total = group_sums(of_unit, weight, n_units)
    share = group_sums(of_unit, (weight / np.where(total > 0, total, 1.0)[of_unit]) ** 2, n_units)
    several = np.bincount(of_unit, minlength=n_units)[of_unit] > 1
    # Each kind takes one mean, but one of them is that of the units.
    dof = int(several.sum()) - np.unique(of_unit[several]).size - (np.unique(of_kind[several]).size - 1)
    if dof < LEAST_DOF:
        return KindScatter(ASSUMED_SIGMA, float("nan"), "assumed", max(dof, 0), share)
    mean = group_sums(cell, residual / variance, cells.size) / weight
    v, y, a, b = 1.0 / weight[several], mean[several], of_unit[several], of_kind[several]
    square, deviation = 0.0, np.inf
    for _ in range(_ROUNDS):
        w = 1.0 / (v + square)
        distance = without_means(y, w, ((a, n_units), (b, n_kinds)), _SWEEPS, _FLAT)
        chi2, slope = float(w @ distance**2), float((w * distance) @ (w * distance))
        if slope <= 0:
            break
        deviation = float(np.sqrt(2.0 * dof)) / slope
        # Newton on 1 / chi2, which is nearly a straight line in the square
        updated = max(square + chi2 * (chi2 / dof - 1.0) / slope, 0.0)
        change, square = abs(updated - square), updated
        if change <= 1e-3 * deviation:
            break
    sigma = float(np.sqrt(square))
    return KindScatter(sigma, float(np.sqrt(square + deviation)) - sigma, "estimated", dof, share)


def inner_scatter(cell: NDArray[Any], residual: Floats, variance: Floats, dof: int) -> float:
    """Return the scatter of residuals inside cells beyond their variances; NaN below one degree of freedom.

    >>> cell, residual = np.array([0, 0, 1, 1]), np.array([1.1, 0.9, -0.9, -1.1])
    >>> round(inner_scatter(cell, residual, np.full(4, 1e-6), 2), 3)
    0.141
    """
    if dof < 1:
        return float("nan")
    n = int(cell.max()) + 1
    square = 0.0
    for _ in range(_ROUNDS):
        weight = 1.0 / (variance + square)
        # codes may skip cells, whose weight is 0
        mean = group_sums(cell, weight * residual, n) / np.maximum(group_sums(cell, weight, n), 1e-300)
        distance = residual - mean[cell]
        chi2, slope = float(weight @ distance**2), float((weight * distance) @ (weight * distance))
        if slope <= 0:
            break
        updated = max(square + chi2 * (chi2 / dof - 1.0) / slope, 0.0)
        if abs(updated - square) <= 1e-4 * updated:
            square = updated
            break
        square = updated
    return float(np.sqrt(square))
