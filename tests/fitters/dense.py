"""The robust path once more, from its description: stray buckets, interaction, effects of kinds.

Dense matrices, medians and root finding of the standard libraries, one component, small problems. It shares
no code with the package; where the package stops a search early, this one goes to the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from tests.fitters.reference import Problem, solve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Robust:
    """What the robust fit found; k in the scale sum k = n."""

    k: Floats
    kept: NDArray[np.bool_]
    sigma_int: float
    rounds: int


def one_hot(codes: Ints) -> Floats:
    """Indicator columns, one per code."""
    return np.asarray(codes[:, None] == np.arange(codes.max() + 1), np.float64)


def root(function: Callable[[float], float], start: float) -> float:
    """Where a falling function of a variance crosses 0; 0 where it is below from the beginning."""
    if function(0.0) <= 0:
        return 0.0
    high = start
    while function(high) > 0:
        high *= 4.0
    return float(brentq(function, 0.0, high, xtol=1e-16, rtol=1e-14))


def robust_fit(task: Ints, unit: Ints, value: Floats, rel_var: Floats) -> Robust:
    """Gamma objective, weights 1 / (rel_var + sigma^2), buckets beyond four robust deviations left out."""
    tasks, units = one_hot(task), one_hot(unit)
    dof_of_all = value.size - tasks.shape[1] - units.shape[1] + 1
    variance = rel_var + 0.10**2
    ln_x = _from_medians(task, unit, np.log(value))
    kept = _near(tasks, units, ln_x, variance, n_exact=value.size - dof_of_all)
    rounds = 0
    for _ in range(8):
        rounds += 1
        before, was_kept = variance, kept
        ln_k = _fitted(task[kept], unit[kept], value[kept], 1.0 / variance[kept])
        ln_x = _with_levels(tasks, value * np.exp(ln_k[unit]), kept / variance)
        sigma = interaction(task[kept], unit[kept], value[kept], rel_var[kept], ln_k)
        variance = np.maximum(rel_var + sigma**2, 1e-8)
        kept = _near(tasks, units, ln_x, variance)
        if np.abs(np.log(variance / before)).max() < 0.01 and (kept == was_kept).all():
            break
    ln_k = _fitted(task[kept], unit[kept], value[kept], 1.0 / variance[kept])
    sigma = interaction(task[kept], unit[kept], value[kept], rel_var[kept], ln_k)
    k = np.exp(ln_k)
    return Robust(k / k.mean(), kept, sigma, rounds)


def _from_medians(task: Ints, unit: Ints, ln_value: Floats) -> Floats:
    theta = np.zeros(unit.max() + 1)
    for sweep in range(5):
        level = np.array(
            [median(ln_value[task == t] + theta[unit[task == t]]) for t in range(task.max() + 1)]
        )
        if sweep < 4:
            theta = np.array([-median((ln_value - level[task])[unit == u]) for u in range(theta.size)])
    return np.asarray(ln_value + theta[unit] - level[task])


def _near(
    tasks: Floats, units: Floats, ln_x: Floats, variance: Floats, n_exact: int = 0
) -> NDArray[np.bool_]:
    weight = 1.0 / variance
    leverage = weight * (tasks @ (1.0 / (weight @ tasks)) + units @ (1.0 / (weight @ units)))
    room = np.maximum(1.0 - leverage, 0.05)
    pull = np.abs(ln_x) * np.sqrt(weight / room)
    telling = np.sort(pull[room > 0.05])[n_exact:]
    return np.asarray(pull <= 4.0 * 1.4826 * np.median(telling))


def _fitted(task: Ints, unit: Ints, value: Floats, weight: Floats) -> Floats:
    present, dense = np.unique(task, return_inverse=True)
    assert present.size == task.max() + 1
    assert np.bincount(dense).min() > 1
    parameters = solve(Problem(dense, unit, value, weight, "gamma"))
    ln_k = parameters[: unit.max() + 1]
    return np.asarray(ln_k - ln_k.mean())


def _with_levels(tasks: Floats, speed: Floats, weight: Floats) -> Floats:
    level = tasks @ ((weight * speed) @ tasks / (weight @ tasks))
    return np.asarray(np.log(speed / level))


def interaction(task: Ints, unit: Ints, value: Floats, rel_var: Floats, ln_k: Floats) -> float:
    """The sigma for which cube-root residuals of a fit with these weights have chi2 = dof."""
    tasks, units = one_hot(task), one_hot(unit)
    dof = value.size - tasks.shape[1] - units.shape[1] + 1

    def excess(square: float) -> float:
        weight = 1.0 / (rel_var + max(square, 1e-12))
        norm = weight @ tasks
        inside = np.diag(weight) - (tasks * weight[:, None] / norm) @ (tasks * weight[:, None]).T
        inverse = np.linalg.pinv(units.T @ inside @ units, rcond=1e-12, hermitian=True)
        at = ln_k
        for _ in range(60):
            speed = value * np.exp(at[unit])
            y = 3.0 * np.cbrt(speed / (tasks @ ((weight * speed) @ tasks / norm)))
            y = y - tasks @ ((weight * y) @ tasks / norm)
            step = -inverse @ (units.T @ (weight * y))
            at = at + step
            if np.abs(step).max() < 1e-13:
                break
        return float(weight @ y**2 - dof)

    return float(np.sqrt(root(excess, 0.01)))


def kind_sigma(unit: Ints, kind: Ints, residual: Floats, variance: Floats) -> tuple[float, Floats]:
    """Scatter of the cells of unit and kind beyond their variances, and the shares of sigma^2 by unit."""
    n_kinds = int(kind.max()) + 1
    cells = one_hot(np.unique(unit * n_kinds + kind, return_inverse=True)[1])
    pairs = np.unique(unit * n_kinds + kind)
    of_unit, of_kind = one_hot(pairs // n_kinds), one_hot(pairs % n_kinds)
    weight = (1.0 / variance) @ cells
    share = ((weight / (of_unit @ (weight @ of_unit))) ** 2) @ of_unit
    several = (of_unit @ of_unit.sum(axis=0)) > 1
    y = (((residual / variance) @ cells) / weight)[several]
    design = np.hstack([of_unit, of_kind])[several]
    dof = y.size - np.linalg.matrix_rank(design)

    def excess(square: float) -> float:
        size = np.sqrt(1.0 / weight[several] + square)
        scaled = design / size[:, None]
        left = y / size - scaled @ np.linalg.lstsq(scaled, y / size, rcond=1e-12)[0]
        return float(left @ left - dof)

    return float(np.sqrt(root(excess, 0.01))), share


def inner_sigma(cell: Ints, residual: Floats, variance: Floats, dof: int) -> float:
    """Scatter inside cells, their weighted means taken out."""
    cells = one_hot(cell)

    def excess(square: float) -> float:
        weight = 1.0 / (variance + square)
        distance = residual - cells @ ((weight * residual) @ cells / (weight @ cells))
        return float(weight @ distance**2 - dof)

    return float(np.sqrt(root(excess, 0.01)))
