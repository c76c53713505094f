"""The scatter between unit and task that job statistics do not explain.

A bucket's relative error has the variance rel_var + sigma_int^2: rel_var from the scatter of its jobs,
sigma_int from what a unit and a task have with each other (memory, I/O, the mix of CPUs that day).
Averaging jobs does not shrink it; averaging tasks does, so that it contributes sigma_int^2 / n_tasks to a
factor.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fitters.fit.passes import scaled_residuals
from fitters.fit.solve import Solution, factorise
from fitters.layout.arrays import EMPTY, Floats
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part

ASSUMED_SIGMA_INT = 0.10  # Used where fewer than `LEAST_DOF` independent loops are there to estimate it
LEAST_DOF = 10
SMALLEST_EXTRA = 1e-12


@dataclass(frozen=True, slots=True)
class SigmaInt:
    """The interaction scatter."""

    value: float  # Relative (0.1 = 10 %); NaN if it is unknown
    error: float  # 68 % upwards; NaN unless estimated
    # ``"estimated"`` from dof >= 10, ``"assumed"`` (0.10), ``"given"`` by the caller, ``"unknown"`` without
    # any rel_var
    source: Literal["estimated", "assumed", "given", "unknown"]
    dof: int  # Independent loops in the data: buckets - tasks - units + components

    @property
    def widening(self) -> float:
        """Factor on errors from an estimated scatter: 1 + 0.7 / dof, for Student's t.

        Between its quantiles at 68 % (1 + 0.5 / dof) and 95 % (1 + 1.3 / dof) of the normal ones it keeps
        both coverages within 0.013 from 10 degrees of freedom on.

        >>> SigmaInt(0.1, 0.02, "estimated", 10).widening, SigmaInt(0.1, 0.02, "given", 10).widening
        (1.07, 1.0)
        """
        return 1.0 + 0.7 / self.dof if self.source == "estimated" else 1.0


def complete_rel_var(buckets: Buckets) -> tuple[Floats, int]:
    """Fill unknown relative variances; return them and the number filled.

    An unknown one becomes the median of rel_var x jobs over known buckets, divided by its jobs. Length 0 if
    none is known.

    >>> from fitters import Buckets
    >>> columns = {"value": [1.0, 1.0, 1.0], "jobs": [10, 20, 40], "rel_var": [0.02, 0.01, None]}
    >>> complete_rel_var(Buckets.from_columns(["t"] * 3, ["A", "B", "C"], **columns))
    (array([0.02 , 0.01 , 0.005]), 1)
    """
    if buckets.rel_var is None:
        return EMPTY, 0
    valid = np.isfinite(buckets.rel_var)
    missing = int(valid.size - np.count_nonzero(valid))
    if missing == 0:
        return buckets.rel_var, 0
    if missing == valid.size:
        return EMPTY, 0
    jobs = np.ones(valid.size) if buckets.jobs is None else buckets.jobs
    per_job = float(np.median(buckets.rel_var[valid] * jobs[valid]))
    return np.where(valid, buckets.rel_var, per_job / jobs), missing


def chi2_of(part: Part, theta: Floats, extra: float) -> tuple[float, float, Floats] | None:
    """Fit of ln k with weights 1 / (rel_var + extra): chi2, -d(chi2)/d(extra), and the new ln k.

    The residual 3 (x^(1/3) - 1), x = a k / A, has nearly the variance of x whether x is Gaussian, gamma or
    log-normal (Wilson & Hilferty, PNAS 17 (1931) 684), and a stray value counts for less than in x itself.
    One linear step from `theta`, which has to be near; None if the normal equations cannot be solved.
    """
    extra = max(extra, SMALLEST_EXTRA)
    *_, right, laplacian = scaled_residuals(part, np.exp(theta), extra, matrix=True)
    factor = factorise(laplacian)
    if factor is None:
        return None
    change = factor.solve(right)
    fitted = theta + change - change.mean()
    chi2, slope, *_ = scaled_residuals(part, np.exp(fitted), extra, matrix=False)
    return chi2, slope, fitted


def estimate_sigma_int(
    parts: tuple[Part, ...],
    solutions: tuple[Solution, ...],
    supplied: float | None = None,
    start: float = ASSUMED_SIGMA_INT,
) -> SigmaInt:
    """Estimate sigma_int from the residuals of all components together; 0.10 below 10 degrees of freedom.

    The s with chi2(s) = dof in the two-way fit of `chi2_of` is taken, at least 0 (Paule & Mandel, J. Res. NBS
    87 (1982) 377; DerSimonian & Kacker, Contemp. Clin. Trials 28 (2007) 105): lost degrees of freedom count
    exactly, and buckets of few jobs do not dominate. Var(chi2) = 2 dof gives the error.
    """
    dof = sum(part.dof for part in parts)
    if supplied is not None:
        return SigmaInt(float(supplied), float("nan"), "given", dof)
    if not any(part.rel_var.size for part in parts):
        return SigmaInt(float("nan"), float("nan"), "unknown", dof)
    if dof < LEAST_DOF:
        return SigmaInt(ASSUMED_SIGMA_INT, float("nan"), "assumed", dof)
    thetas = [solution.theta for solution in solutions]
    square, deviation = start**2, np.inf
    for number in range(60):
        chi2, slope = 0.0, 0.0
        for index, part in enumerate(parts):
            outcome = chi2_of(part, thetas[index], square)
            if outcome is None:
                return SigmaInt(ASSUMED_SIGMA_INT, float("nan"), "assumed", dof)
            thetas[index] = outcome[2]
            chi2 += outcome[0]
            slope += outcome[1]
        if slope <= 0:  # residuals exactly zero
            square, deviation = 0.0, 0.0
            break
        deviation = float(np.sqrt(2.0 * dof)) / slope
        if square == 0.0 and chi2 <= dof:
            break
        # Newton on 1/chi2, which is nearly a straight line in s; from 0 it approaches from below
        target = max(square + chi2 * (chi2 / dof - 1.0) / slope, 0.0)
        change, square = abs(target - square), target
        # one linear step of ln k alone is not near enough
        if number and change <= 1e-4 * deviation and square > 0:
            break
    value = float(np.sqrt(square))
    return SigmaInt(value, float(np.sqrt(square + deviation)) - value, "estimated", dof)
