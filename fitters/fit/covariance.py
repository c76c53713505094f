"""Errors of ln k and ln A at the minimum of one component.

With H the exact Hessian of the profiled cost in theta = ln k and C its inverse on zero-sum vectors:

model      2 S^2 C, S^2 = cost / dof pooled over components (least squares with the error scale estimated)
stat, int  C_0 [sum_a H_a V_a H_a] C_0: a relative change of a bucket moves the task's gradient by H_a, so
this
           is the linear response of the minimum to independent relative errors of variance V. H_a and C_0
           are taken where the model fits exactly (x = 1, h = 2 w: the expected information). At the noisy
           minimum the square of H_a would contain the noise a second time. With V = sigma_int^2 and buckets
           of equal weight the leading term is sigma_int^2 / n_tasks.
sandwich   C [sum_a s_a s_a^T] C n_buckets / dof, clustered by task (Huber 1967; White, Econometrica 48
(1980) 817;
           Liang & Zeger, Biometrika 73 (1986) 13)

k is normalised to sum k = n, so with p = k / n: Cov(ln k) = J Cov(theta) J^T, J = 1 - 1 p^T.
"""

from dataclasses import dataclass

import numpy as np

from fitters.fit.kernels import EXPECTED
from fitters.fit.passes import hessian_of, level_propagated, level_variances, response, score_products
from fitters.fit.solve import Solution, factorise
from fitters.layout.arrays import Floats
from fitters.layout.components import Part


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """What one component's minimum and shape say about errors; all variances are of ln k with sum k = n.

    Attributes
    ----------
    k : float64 array
        Factors, normalised to mean 1.
    inverse_hessian : float64 array, shape (n_units, n_units)
        C.
    penalty : float
        lam of the penalised Hessian, tr(H) / n^2.
    condition : float
        Estimated reciprocal condition number of the penalised Hessian.
    unit_model, unit_stat, unit_int, unit_sandwich : float64 arrays
        Variances; model per S^2, int per sigma_int^2, sandwich without n_buckets / dof. stat and int are NaN
        without rel_var and sigma_int.
    level : float64 array, shape (n_tasks,)
        A.
    task_model, task_propagated : float64 arrays
        Variances of ln A, model per S^2.
    """

    k: Floats
    inverse_hessian: Floats
    penalty: float
    condition: float
    unit_model: Floats
    unit_stat: Floats
    unit_int: Floats
    unit_sandwich: Floats
    level: Floats
    task_model: Floats
    task_propagated: Floats


def normalised(theta: Floats) -> Floats:
    """k with sum k = n.

    >>> normalised(np.log([1.0, 3.0])).tolist()
    [0.5, 1.5]
    """
    k: Floats = np.exp(theta - theta.max())
    k /= k.mean()
    return k


def symmetric(lower: Floats) -> Floats:
    """Full matrix from its lower triangle."""
    full: Floats = lower + np.tril(lower, -1).T
    return full


def normalised_variance(diagonal: Floats, share: Floats, p: Floats) -> Floats:
    """Diagonal of J K J^T from the diagonal of K and K p."""
    variance: Floats = np.maximum(diagonal - 2.0 * share + p @ share, 0.0)
    return variance


def normalised_covariance(covariance: Floats, p: Floats) -> Floats:
    """J K J^T with J = 1 - 1 p^T, shape (n, n)."""
    share = covariance @ p
    full: Floats = covariance - share[:, None] - share[None, :] + p @ share
    return full


def propagate(
    part: Part,
    solution: Solution,
    mode: int,
    sigma_int: float,
    *,
    hessian: Floats | None = None,
) -> Propagation | None:
    """Work out all variances of a component; None if its Hessian is not positive definite (no minimum).

    `hessian` is its lower triangle at the minimum, if it is known, and is overwritten. stat needs
    `part.rel_var`, int a finite `sigma_int`. Time O(n_units^3 + sum of squared task sizes), memory about
    eight matrices n_units x n_units.
    """
    n = part.n_units
    k = normalised(solution.theta)
    p = k / n
    factor = factorise(hessian_of(part, k, mode) if hessian is None else hessian)
    if factor is None:
        return None
    inverse = factor.inverse()
    share = inverse @ p
    level, task_model = level_variances(part, k, mode, inverse, share)
    return Propagation(
        k=k,
        inverse_hessian=inverse,
        penalty=factor.penalty,
        condition=factor.reciprocal_condition(),
        unit_model=2.0 * normalised_variance(np.diagonal(inverse), share, p),
        unit_sandwich=_response(score_products(part, k, mode), inverse, p)[0],
        level=level,
        task_model=np.maximum(2.0 * task_model, 0.0),
        **_propagated(part, k, sigma_int),
    )


def _response(lower: Floats, inverse: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Variances of ln k from C M C, M by its lower triangle; and M C."""
    middle = symmetric(lower)
    half = middle @ inverse
    diagonal = np.einsum("ij,ij->j", inverse, half)
    return normalised_variance(diagonal, inverse @ (half @ p), p), half


def _propagated(part: Part, k: Floats, sigma_int: float) -> dict[str, Floats]:
    n, p = part.n_units, k / part.n_units
    variances = {
        "unit_stat": np.full(n, np.nan),
        "unit_int": np.full(n, np.nan),
        "task_propagated": np.full(part.n_tasks, np.nan),
    }
    has_stat, has_int = part.rel_var.size > 0, bool(np.isfinite(sigma_int))
    if not has_stat and not has_int:
        return variances
    factor = factorise(hessian_of(part, k, EXPECTED))
    if factor is None:
        return variances
    inverse = factor.inverse()
    half = np.zeros((n, n))
    if has_stat:
        variances["unit_stat"], half = _response(response(part, k, part.rel_var), inverse, p)
    if has_int:
        variances["unit_int"], half_int = _response(response(part, k, None), inverse, p)
        half = half + sigma_int**2 * half_int
    if has_stat and has_int:
        variance = level_propagated(part, k, part.rel_var + sigma_int**2, inverse, inverse @ half, p)
        variances["task_propagated"] = np.maximum(variance, 0.0)
    return variances
