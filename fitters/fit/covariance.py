"""Errors of ln k at the minimum of one component.

With H the exact Hessian of the profiled cost in theta = ln k and C its inverse on zero-sum vectors:

model      2 S^2 C, S^2 = cost / dof pooled over components (least squares with the error scale estimated)
stat, int  C_0 [sum_a H_a V_a H_a] C_0: a relative change of a bucket moves the task's gradient by H_a, so
           this is the linear response of the minimum to independent relative errors of variance V. H_a, C_0
           are taken where the model fits exactly (x = 1, h = 2 w: the expected information). At the noisy
           minimum the square of H_a would contain the noise a second time. With V = sigma_int^2 and buckets
           of equal weight the leading term is sigma_int^2 / n_tasks.
sandwich   C [sum_a s_a s_a^T] C n_buckets / dof, clustered by task (Huber 1967; White, Econometrica 48
           (1980) 817; Liang & Zeger, Biometrika 73 (1986) 13)

k is normalised to sum k = n, so with p = k / n: Cov(ln k) = J Cov(theta) J^T, J = 1 - 1 p^T.
"""

from dataclasses import dataclass, replace

import numpy as np

from fitters.fit.passes import expected_hessian, response
from fitters.fit.solve import Solution, factorise
from fitters.layout.arrays import Floats
from fitters.layout.components import Part

_ROWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """Variances of ln k (sum k = n) of one component, from its minimum and shape."""

    k: Floats  # Factors, normalised to mean 1
    inverse_hessian: Floats  # C; shape (n_units, n_units)
    # Reciprocal condition number (1-norm) of the penalised Hessian; below 1e-14 round-off hides links
    condition: float
    # unit_model, unit_stat, unit_int, unit_sandwich: Variances; model per S^2, int per sigma_int^2, sandwich
    # without n_buckets / dof. stat and int are NaN without rel_var and sigma_int.
    unit_model: Floats
    unit_stat: Floats
    unit_int: Floats
    unit_sandwich: Floats

    def with_errors(self, ln_k_err: Floats, variance: float) -> "Propagation":
        """Take errors of ln k at S^2 = `variance` as the model's; where any is NaN nothing changes."""
        if not np.isfinite(ln_k_err).all():
            return self
        return replace(self, unit_model=ln_k_err**2 / variance)


def normalised(theta: Floats) -> Floats:
    """k with sum k = n.

    >>> normalised(np.log([1.0, 3.0])).tolist()
    [0.5, 1.5]
    """
    # only differences count: the largest factor is 1, so that nothing overflows
    k: Floats = np.exp(theta - theta.max())
    k /= k.mean()
    return k


def normalised_variance(diagonal: Floats, share: Floats, p: Floats) -> Floats:
    """Diagonal of J K J^T from the diagonal of K and K p."""
    variance: Floats = np.maximum(diagonal - 2.0 * share + p @ share, 0.0)
    return variance


def normalised_covariance(covariance: Floats, p: Floats) -> Floats:
    """J K J^T with J = 1 - 1 p^T, shape (n, n)."""
    share = covariance @ p
    return covariance - share[:, None] - share[None, :] + p @ share


def propagate(part: Part, solution: Solution, sigma_int: float) -> Propagation | None:
    """Return the variances of a component's factors; None if its Hessian is not positive definite.

    stat needs `part.rel_var`, int a finite `sigma_int`. Time O(n_units^3), with rel_var or sigma_int also the
    sum of squared task sizes; memory about five matrices n_units x n_units.
    """
    factor = solution.factor
    if factor is None:
        return None
    n = part.n_units
    k = normalised(solution.theta)
    p = k / n
    inverse = factor.inverse()
    share = inverse @ p
    unit_stat, unit_int = _propagated(part, p, sigma_int)
    return Propagation(
        k=k,
        inverse_hessian=inverse,
        condition=1.0
        / (_norm(solution.hessian, factor.penalty) * _norm(inverse, 1.0 / (factor.penalty * n * n))),
        unit_model=2.0 * normalised_variance(np.diagonal(inverse), share, p),
        unit_stat=unit_stat,
        unit_int=unit_int,
        unit_sandwich=_response(solution.scores, inverse, p),
    )


def _norm(matrix: Floats, penalty: float) -> float:
    # 1-norm of matrix + penalty, some rows at a time: they stay in the cache.
    total = np.zeros(matrix.shape[0])
    for first in range(0, matrix.shape[0], _ROWS):
        rows = matrix[first : first + _ROWS] + penalty
        total += np.abs(rows, out=rows).sum(axis=0)
    return float(total.max())


def _response(middle: Floats, inverse: Floats, p: Floats) -> Floats:
    half = middle @ inverse
    diagonal = np.einsum("ij,ij->i", inverse, half.T)
    return normalised_variance(diagonal, inverse @ (half @ p), p)


def _propagated(part: Part, p: Floats, sigma_int: float) -> tuple[Floats, Floats]:
    unknown = np.full(part.n_units, np.nan)
    has_stat, has_int = part.rel_var.size > 0, bool(np.isfinite(sigma_int))
    factor = factorise(expected_hessian(part)) if has_stat or has_int else None
    if factor is None:
        return unknown, unknown.copy()
    inverse = factor.inverse()
    return (
        _response(response(part, part.rel_var), inverse, p) if has_stat else unknown,
        _response(response(part, None), inverse, p) if has_int else unknown,
    )
