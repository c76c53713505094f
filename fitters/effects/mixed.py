"""Speeds of units that no task links: one mixed model over the classes that they share with others.

    ln a = A_task - h_class - s_unit + u_task,unit + e,    s ~ N(0, scatter^2),  u ~ N(0, interaction^2)

A and h are fixed, s and u random (C. R. Henderson, Biometrics 31 (1975) 423). Units linked by tasks are
compared by these; sets that no task links are linked by their classes alone, and then a unit is known no
better than by the scatter of units beside their classes: the error of a contrast says so.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from fitters.effects.reduced import determined, normal_matrix, project, two_way
from fitters.layout.arrays import Codes, Floats, Mask
from fitters.threads import one_blas_thread

_RANK = 1e-9
_LEAST_SCATTER = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class MixedEffects:
    """Predicted effects of units and estimated ones of classes, in ln; positive is faster.

    ``determined``: classes whose effect is known beside that of the others, shape (n_classes,).
    """

    unit: Floats
    of_class: Floats
    determined: Mask
    _covariance: Floats

    def contrast(self, units: Floats, classes: Floats) -> tuple[float, float]:
        """Return a contrast with these weights and its standard error; those of classes add up to 0."""
        weights = np.concatenate([units, classes])
        value = float(weights @ np.concatenate([self.unit, self.of_class]))
        return value, float(np.sqrt(max(weights @ self._covariance @ weights, 0.0)))


@one_blas_thread()
def fit_mixed(
    task: Codes,
    unit: Codes,
    of_class: Codes,
    value: Floats,
    variance: Floats,
    interaction: float,
    scatter: float,
    n_units: int,
    n_classes: int,
) -> MixedEffects:
    """Solve the mixed model of ``value``, ln of the time per event.

    ``variance``: of the value, from the scatter of jobs; ``interaction``: of unit and task, one draw for all
    classes of a unit; ``scatter``: of units beside their classes. Cost: cube of units + classes.
    """
    design = two_way(unit, of_class, n_units, n_classes)
    precision = 1.0 / np.maximum(variance, 1e-12)
    _, cluster = np.unique(task.astype(np.int64) << 32 | unit, return_inverse=True)
    inside = np.bincount(cluster, precision)
    # rows of a cluster share a draw, whose covariance has a closed inverse (Sherman and Morrison): what it
    # leaves of their weights, and of their products
    weight = precision / (1.0 + interaction**2 * inside[cluster])
    sums = sparse.csr_matrix((precision, (cluster, np.arange(len(value)))))
    lost = interaction**2 / (1.0 + interaction**2 * inside)
    clustered = (sums @ design).tocsr()
    tasks, total, _, means = project(task, design, weight)
    normal = normal_matrix(design, precision) - (clustered.T @ sparse.diags(lost) @ clustered).toarray()
    normal -= (means.T @ sparse.diags(total) @ means).toarray()
    right = design.T @ (precision * value) - clustered.T @ (lost * (sums @ value))
    right = right - means.T @ (tasks @ value)
    # the prior of the random effects: a penalty on each unit (ridge)
    normal[np.arange(n_units), np.arange(n_units)] += 1.0 / max(scatter, _LEAST_SCATTER) ** 2
    eigen, vectors = linalg.eigh(normal)
    good = eigen > _RANK * eigen[-1]
    covariance = (vectors[:, good] / eigen[good]) @ vectors[:, good].T
    effects = covariance @ right
    # nothing determines the level of all classes
    return MixedEffects(
        effects[:n_units], effects[n_units:], determined(vectors[n_units:, ~good]), covariance
    )
