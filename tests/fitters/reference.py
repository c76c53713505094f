"""A second implementation, written from the formulas, to compare the package with.

It shares no code and no algorithm with it: all ln k and all ln A are parameters, the scale is left free and
removed with a pseudo-inverse, the gradient is written out bucket by bucket and every second derivative
comes from it by a complex step. Plain NumPy and SciPy, for small problems.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Buckets of one component with codes 0 .. n - 1."""

    task: NDArray[np.int64]
    unit: NDArray[np.int64]
    value: Floats
    weight: Floats
    objective: str

    @property
    def n_units(self) -> int:
        return int(self.unit.max()) + 1

    @property
    def n_tasks(self) -> int:
        return int(self.task.max()) + 1

    def ratio(self, parameters: NDArray[Any]) -> NDArray[Any]:
        """x = a k / A; parameters are ln k, then ln A."""
        logs = parameters[: self.n_units][self.unit] - parameters[self.n_units :][self.task]
        return np.asarray(self.value * np.exp(logs))

    def cost(self, parameters: Floats) -> float:
        x = self.ratio(parameters)
        terms = (x - 1) ** 2 if self.objective == "paper" else 2 * (x - np.log(x) - 1)
        return float(np.sum(self.weight * terms))

    def gradient(self, parameters: NDArray[Any]) -> NDArray[Any]:
        x = self.ratio(parameters)
        slope = 2 * self.weight * (x * (x - 1) if self.objective == "paper" else x - 1)
        total = np.zeros(parameters.size, slope.dtype)
        np.add.at(total, self.unit, slope)
        np.add.at(total, self.n_units + self.task, -slope)
        return total

    def hessian(self, parameters: Floats) -> Floats:
        """Second derivatives by a complex step through the gradient."""
        columns = []
        for place in range(parameters.size):
            shifted = parameters.astype(np.complex128)
            shifted[place] += 1e-30j
            columns.append(self.gradient(shifted).imag / 1e-30)
        return np.array(columns)

    def start(self) -> Floats:
        """Least-squares solution of ln a = ln A - ln k."""
        rows = np.arange(self.value.size)
        design = np.zeros((rows.size, self.n_units + self.n_tasks))
        design[rows, self.unit] = -1
        design[rows, self.n_units + self.task] = 1
        return np.asarray(np.linalg.lstsq(design, np.log(self.value), rcond=None)[0], np.float64)


def solve(problem: Problem, start: Floats | None = None) -> Floats:
    """Minimise: BFGS from SciPy, then Newton steps with a pseudo-inverse until they vanish."""
    at = problem.start() if start is None else start
    at = minimize(problem.cost, at, jac=problem.gradient, method="BFGS", options={"gtol": 1e-7}).x
    for _ in range(60):
        step = np.linalg.pinv(problem.hessian(at), rcond=1e-11, hermitian=True) @ problem.gradient(at)
        at = at - step
        if np.abs(step).max() < 1e-13:
            break
    return np.asarray(at, np.float64)


@dataclass(frozen=True)
class Answer:
    """Factors, levels and errors in the scale sum k = n."""

    k: Floats
    level: Floats
    cost: float
    squares: float
    dof: int
    covariance: Floats
    sandwich: Floats


def answer(problem: Problem, start: Floats | None = None) -> Answer:
    """Fit, normalise, and work out errors from the inverse of the full Hessian of all parameters."""
    at = solve(problem, start)
    n = problem.n_units
    shift = np.log(np.exp(at[:n]).mean())
    at = at - shift
    x = problem.ratio(at)
    squares = float(np.sum(problem.weight * (x - 1) ** 2))
    dof = problem.value.size - problem.n_tasks - n + 1
    inverse = np.linalg.pinv(problem.hessian(at), rcond=1e-11, hermitian=True)
    # d(normalised parameters) / d(parameters): subtract the change of ln mean k
    to_scale = np.eye(at.size)
    to_scale[:, :n] -= np.exp(at[:n]) / n
    model = 2 * squares / dof * to_scale @ inverse @ to_scale.T
    meat = np.zeros_like(inverse)
    for task in range(problem.n_tasks):
        rows = problem.task == task
        only = Problem(
            problem.task[rows],
            problem.unit[rows],
            problem.value[rows],
            problem.weight[rows],
            problem.objective,
        )
        x_task = x[rows]
        slope = 2 * only.weight * (x_task * (x_task - 1) if only.objective == "paper" else x_task - 1)
        score = np.zeros(at.size)
        np.add.at(score, only.unit, slope)
        score[n + task] = -slope.sum()
        meat += np.outer(score, score)
    clustered = to_scale @ inverse @ meat @ inverse @ to_scale.T * problem.value.size / dof
    return Answer(
        k=np.exp(at[:n]),
        level=np.exp(at[n:]),
        cost=problem.cost(at),
        squares=squares,
        dof=dof,
        covariance=model[:n, :n],
        sandwich=clustered[:n, :n],
    )


def propagated(problem: Problem, variance: Floats) -> Floats:
    """Variances of ln k from independent relative errors, by refits with each bucket moved.

    Central differences of the complete fit; for exact values (residuals zero) this is what first-order error
    propagation means.
    """
    n = problem.n_units
    centre = solve(problem)
    jacobian = []
    for place in range(problem.value.size):
        ends = []
        for sign in (1.0, -1.0):
            moved = problem.value.copy()
            moved[place] *= np.exp(sign * 1e-4)
            at = solve(Problem(problem.task, problem.unit, moved, problem.weight, problem.objective), centre)
            ends.append(at - np.log(np.exp(at[:n]).mean()))
        jacobian.append((ends[0] - ends[1]) / 2e-4)
    slopes = np.array(jacobian)
    return np.asarray(np.einsum("ji,j,ji->i", slopes, variance, slopes)[:n])


def numeric_gradient(function: Callable[[Floats], float], at: Floats, step: float = 1e-6) -> Floats:
    """Central differences."""
    moves = np.eye(at.size) * step
    return np.array([(function(at + move) - function(at - move)) / (2 * step) for move in moves])
