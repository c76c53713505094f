"""Effects of units and of classes from the same buckets: ln a = level of task - unit - class.

Which part of a unit's speed is that of its classes of machines, and which its own, is told by classes that
several units have: as effects of firms and workers are told apart by workers that move (J. M. Abowd,
F. Kramarz, D. N. Margolis, Econometrica 67 (1999) 251). Weighted least squares with the levels of tasks taken
out exactly; all effects are fitted together, so that their errors know of each other.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from fitters.effects.reduced import Reduced, cross_products, solve_reduced, two_way
from fitters.errors import InputError
from fitters.layout.arrays import Codes, Floats, Mask
from fitters.threads import one_blas_thread

_SWEEPS = 6
_STRAY = 4.0  # Standard deviations beyond which a bucket is left out
_LEAST_DOF = 10
_ASSUMED_INTERACTION = 0.1
_MANY = 4  # Spare clusters per effect from which their covariance stands alone
_MOST_WIDENING = 4.0  # Of variances from few clusters; the assumed interaction stands beside them


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Effects in ln; positive is faster.

    ``unit``: relative to the median unit of the largest component, shape (n_units,); ``of_class``: up to a
    common constant, shape (n_classes,). NaN outside that component, whose units are linked both by tasks and
    by classes: units without a common task have no common scale, and without a common class nothing tells
    the two kinds of effects apart.
    ``interaction``: scatter of buckets beyond that of jobs. ``residual``: of each bucket, what its value is
    beyond the level of its task and both effects; ``weight``: 1 / variance of it, 0 for buckets left out.
    """

    unit: Floats
    of_class: Floats
    interaction: float
    n_rejected: int
    residual: Floats
    weight: Floats
    _covariances: tuple[Floats, ...]

    def variance(self, units: Floats, classes: Floats) -> float:
        """Variance of a contrast, with these weights of the effects of units and classes.

        Weights of units, and those of classes, must add up to 0: only differences are known. From the
        residuals, clustered by task and unit; with few clusters, if it is larger, from the variances of the
        buckets as if these were independent.
        """
        weights = np.concatenate([units, classes])
        return max(float(weights @ matrix @ weights) for matrix in self._covariances)


@one_blas_thread()
def fit_effects(
    task: Codes, unit: Codes, of_class: Codes, value: Floats, variance: Floats, n_units: int, n_classes: int
) -> Effects:
    """Fit the effects of units and classes to ``value``, ln of the time per event.

    ``task``, ``unit``, ``of_class``: codes of each bucket from 0. ``variance``: of the value, from the
    scatter of jobs. Raises :class:`InputError` without buckets or for values not finite.
    """
    if not len(value) or not (np.isfinite(value).all() and np.isfinite(variance).all()):
        raise InputError("effects require buckets with finite values and variances")
    kept = comparable(task, unit, of_class)
    rejected = 0
    interaction = _ASSUMED_INTERACTION
    weight = np.where(kept, 1.0 / (variance + interaction**2), 0.0)
    design = two_way(unit, of_class, n_units, n_classes)
    solution = solve_reduced(task, design, value, weight)
    for sweep in range(_SWEEPS):
        n_fitted = solution.rank + len(np.unique(task[kept]))
        interaction = _interaction(solution.residual, variance, kept, n_fitted)
        # once, when the interaction has settled: a mask that follows every sweep may alternate
        if sweep == 1:
            stray = kept & (np.abs(solution.residual) > _STRAY * np.sqrt(variance + interaction**2))
            kept, rejected = kept & ~stray, int(stray.sum())
        weight = np.where(kept, 1.0 / (variance + interaction**2), 0.0)
        solution = solve_reduced(task, design, value, weight)
    clustered = _clustered(solution, task, unit, kept)
    known_units = np.bincount(unit[kept], minlength=n_units) > 0
    known_classes = np.bincount(of_class[kept], minlength=n_classes) > 0
    effect = np.where(known_units, solution.effects[:n_units], np.nan)
    return Effects(
        effect - (np.nanmedian(effect) if known_units.any() else 0.0),
        np.where(known_classes, solution.effects[n_units:], np.nan),
        interaction,
        rejected,
        solution.residual,
        weight,
        (clustered,) if _are_many(task, unit, kept, solution.rank) else (solution.covariance, clustered),
    )


def comparable(task: Codes, unit: Codes, of_class: Codes) -> Mask:
    """Return the mask of the buckets of units in the largest set that both tasks and classes link."""
    # dropping units for one kind of link may cut the other, so both are taken in turn
    kept = np.ones(len(unit), np.bool_)
    while True:
        before = int(kept.sum())
        for links in (task, of_class):
            kept[kept] = _largest(unit[kept], links[kept])
        if int(kept.sum()) == before:
            return kept


def _largest(unit: Codes, link: Codes) -> Mask:
    if not len(unit):
        return np.zeros(0, np.bool_)
    n_units, n_links = int(unit.max()) + 1, int(link.max()) + 1
    graph = sparse.coo_matrix((np.ones(len(unit)), (unit, n_units + link)), shape=(n_units + n_links,) * 2)
    _, label = csgraph.connected_components(graph, directed=False)
    size = np.bincount(label[np.unique(unit)])
    if size.max() < 2:
        return np.zeros(len(unit), np.bool_)
    return np.asarray(label[unit] == int(np.argmax(size)), np.bool_)


def _interaction(residual: Floats, variance: Floats, kept: Mask, n_fitted: int) -> float:
    dof = int(kept.sum()) - n_fitted
    if dof < _LEAST_DOF:
        return _ASSUMED_INTERACTION
    low, high = 0.0, 1.0
    # chi2 falls with the interaction: thirty bisections find it to 1e-9
    for _ in range(30):
        middle = (low + high) / 2
        chi2 = float(np.sum(residual[kept] ** 2 / (variance[kept] + middle**2)))
        low, high = (middle, high) if chi2 > dof else (low, middle)
    return (low + high) / 2


def _are_many(task: Codes, unit: Codes, kept: Mask, rank: int) -> bool:
    """True if the (task, unit) clusters are enough for the clustered covariance alone."""
    n_clusters = len(np.unique(task[kept].astype(np.int64) << 32 | unit[kept]))
    return n_clusters - len(np.unique(task[kept])) >= _MANY * rank


def _clustered(solution: Reduced, task: Codes, unit: Codes, kept: Mask) -> Floats:
    # Clustered by (task, unit): the effect of a unit on a task is one draw for all its classes.
    pairs, cluster = np.unique(task.astype(np.int64) << 32 | unit, return_inverse=True)
    score = np.where(kept, solution.weight * solution.residual, 0.0)
    sums = sparse.csr_matrix((score, (cluster, np.arange(len(score)))))
    scores = (sums @ solution.design).tocsr(), np.bincount(cluster, score).astype(np.float64)
    middle = cross_products(scores, scores, (pairs >> 32).astype(np.int32), solution.means)
    n_clusters = len(np.unique(cluster[kept]))
    n_fitted = solution.rank + len(np.unique(task[kept]))
    spare = max(n_clusters - n_fitted, 1)
    covariance: Floats = (
        solution.covariance @ middle @ solution.covariance * min(n_clusters / spare, _MOST_WIDENING)
    )
    return covariance
