"""The minimum of the profiled cost of one component.

The paper's cost sum w (a k / A - 1)^2 (Matskovskaya & Sciaba, "The dependence of sites speed factor from the
declared HS06", 2018) is not convex in ln k and saturates where a factor goes to zero, so a plain start can
end in a wrong minimum that Minuit calls valid. The gamma quasi-likelihood 2 sum w (x - ln x - 1) has the
same variance law (McCullagh & Nelder, Generalized Linear Models, 1989, chapter 8) and is convex: it has one
minimum per component and gives the start.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from fitters.fit.kernels import GAMMA, GAMMA_FAST, GAMMA_SLOPE, GAUSS_NEWTON, PAPER, single_moves
from fitters.fit.passes import evaluate, hessian_of
from fitters.layout.arrays import Floats
from fitters.layout.columns import count
from fitters.layout.components import Part

MODES = {"paper": PAPER, "gamma": GAMMA}

LONGEST_STEP = 0.5
FINE_STEP = 1e-2
NOISY_STEP = 1e-5
FINAL_STEP = 1e-11
START_STEP = 2e-3
ITERATION_LIMIT = 300

SAMPLE_FROM = 2_000_000
SAMPLE_STEP = 8
"""From so many buckets on, the way to the start takes its first Hessian from every eighth task."""
THETA_LIMIT = 250.0

FAR_RESIDUAL = 0.5
MOVES = np.concatenate([np.arange(-3.0, 0.0, 0.25), np.arange(0.25, 3.25, 0.25)])
ESCAPE_ROUNDS = 20
ESCAPE_TRIALS = 5
UPHILL = 0.05
UPHILL_BUCKETS = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Where the search ended.

    Attributes
    ----------
    theta : float64 array
        ln k with mean 0.
    cost : float
        The cost of the objective.
    squares : float
        sum w (x - 1)^2; equal to the cost for the paper's objective.
    worst : float
        Largest |x - 1|.
    converged : bool
        The last step was below 1e-11, or below 1e-7 and no longer shrinking (round-off).
    step : float
        Largest component of the last Newton step in ln k.
    passes, hessians : int
        Passes over the buckets for cost and gradient, and for the Hessian.
    """

    theta: Floats
    cost: float
    squares: float
    worst: float
    converged: bool
    step: float
    passes: int
    hessians: int


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Cholesky factor of H + lam 1 1^T, lam = tr(H) / n^2.

    H has the constant vector as its null vector (the free scale of all k and A); the penalty lifts it without
    touching anything else, so that solving in the space of zero-sum vectors is exact.
    """

    triangle: Floats
    penalty: float
    norm: float

    def solve(self, right: Floats) -> Floats:
        """Solve (H + lam 1 1^T) x = right."""
        x, _ = lapack.dpotrs(self.triangle, right, lower=0)
        return np.asarray(x, np.float64).ravel()

    def inverse(self) -> Floats:
        """Pseudo-inverse of H, shape (n, n): the inverse without the part along the constant vector."""
        n = self.triangle.shape[0]
        upper, _ = lapack.dpotri(self.triangle, lower=0)
        upper = np.triu(upper)
        full: Floats = upper + np.triu(upper, 1).T
        full -= 1.0 / (self.penalty * n * n)
        return np.ascontiguousarray(full)

    def reciprocal_condition(self) -> float:
        """Estimate the reciprocal condition number (1-norm); below 1e-14 links are lost in round-off."""
        value, _ = lapack.dpocon(self.triangle, self.norm, uplo="U")
        return float(value)


def factorise(hessian: Floats) -> Factor | None:
    """Factor the lower triangle of H in place; None if it is not positive definite beside its null vector."""
    n = hessian.shape[0]
    trace = float(np.trace(hessian))
    if not np.isfinite(trace) or trace <= 0:
        return None
    penalty = trace / n**2
    hessian += penalty
    lower = np.tril(np.abs(hessian))
    norm = float((lower.sum(axis=0) + lower.sum(axis=1) - np.diagonal(lower)).max())
    triangle, info = lapack.dpotrf(hessian.T, lower=0, clean=0, overwrite_a=1)
    return Factor(triangle, penalty, norm) if info == 0 else None


class Descent:
    """Chord Newton search on one component: the factor is kept as long as steps shrink fast."""

    def __init__(self, part: Part, theta: Floats) -> None:
        self.part = part
        self.theta = theta
        self.passes = 0
        self.hessians = 0
        self.step = np.inf
        self.cost = np.inf
        self.squares = np.inf
        self.worst = np.inf

    def evaluate(self, theta: Floats, mode: int) -> tuple[float, Floats]:
        """Return cost and gradient at `theta`; the cost is infinite out of range."""
        if not np.abs(theta).max() < THETA_LIMIT:
            return np.inf, np.empty(theta.size)
        self.passes += 1
        fast = GAMMA_FAST if mode == GAMMA else mode
        cost, self.squares, self.worst, gradient = evaluate(self.part, np.exp(theta), fast)
        return (cost, gradient) if np.isfinite(cost) else (np.inf, gradient)

    def scale(self, rounds: int) -> None:
        """Alternate levels and factors: theta += ln(sum w / sum w x), each unit's mean x becoming 1."""
        part = self.part
        weight = count(part.unit, part.n_units).astype(float)
        if part.weight.size:
            weight = np.bincount(part.unit, part.weight, part.n_units)
        for _ in range(rounds):
            _, gradient = self.evaluate(self.theta, GAMMA_SLOPE)
            ratio = 1.0 + gradient / (2.0 * weight)
            self.theta = self.theta - np.log(np.maximum(ratio, 1e-30))
            self.theta -= self.theta.mean()

    def _sampled(self, mode: int) -> Factor | None:
        """Factor from some of the tasks, times how many there are for each; enough to get near."""
        part = self.part
        sizes = np.diff(part.ptr)[::SAMPLE_STEP]
        chosen = np.zeros(part.n_tasks, bool)
        chosen[::SAMPLE_STEP] = True
        rows = np.repeat(chosen, np.diff(part.ptr))
        some = replace(
            part,
            tasks=part.tasks[::SAMPLE_STEP],
            ptr=np.concatenate([[0], np.cumsum(sizes)]),
            unit=part.unit[rows],
            value=part.value[rows],
            weight=part.weight[rows] if part.weight.size else part.weight,
        )
        return factorise(SAMPLE_STEP * hessian_of(some, np.exp(self.theta), mode))

    def _factor(self, mode: int, stiffness: float) -> Factor | None:
        k = np.exp(self.theta)
        curvatures = [mode]
        if mode == PAPER:
            curvatures = [GAUSS_NEWTON] if self.step > FINE_STEP else [PAPER, GAUSS_NEWTON]
        for kind in curvatures:
            hessian = hessian_of(self.part, k, kind)
            self.hessians += 1
            hessian[np.diag_indices_from(hessian)] *= 1.0 + stiffness
            factor = factorise(hessian)
            if factor is not None:
                return factor
        return None

    def run(self, mode: int, tolerance: float) -> bool:
        """Go to the minimum of the cost of `mode`; True if the last step was below `tolerance`."""
        self.step = np.inf
        self.cost, gradient = self.evaluate(self.theta, mode)
        factor: Factor | None = None
        stiffness = 0.0
        rough = tolerance >= START_STEP
        for _ in range(ITERATION_LIMIT):
            fresh = factor is None
            if factor is None and rough and self.part.n_buckets >= SAMPLE_FROM:
                factor = self._sampled(mode)
            rough = False
            if factor is None:
                factor = self._factor(mode, stiffness)
                if factor is None:
                    return False
            step = -factor.solve(gradient)
            step -= step.mean()
            size = float(np.abs(step).max())
            if not np.isfinite(size):
                return False
            if size > LONGEST_STEP:
                step *= LONGEST_STEP / size
            cost, trial_gradient = self.evaluate(self.theta + step, mode)
            if not np.isfinite(cost) or (size > NOISY_STEP and not cost < self.cost):
                stiffness = max(10.0 * stiffness, 1e-2)
                factor = None
                if stiffness > 1e8:
                    return False
                continue
            self.theta = self.theta + step
            self.cost, gradient = cost, trial_gradient
            previous, self.step = self.step, size
            settled = stiffness < 1e-3
            if (settled and size < tolerance) or (
                fresh and settled and size < 1e-7 and size >= 0.5 * previous
            ):
                return True
            if size > 0.3 * previous or stiffness > 0:
                factor = None
                stiffness = 0.0 if stiffness < 1e-3 else stiffness / 10.0
        return False


def escape(descent: Descent) -> Descent:
    """Look for a lower minimum of the paper's cost one unit away.

    Where a value is far off (|x - 1| > 0.5) the cost is not convex around its unit: the search may have
    settled on either side. All units are moved by factors of 0.05 to 20, each alone; from the most promising
    places the search runs again, and goes on from what is lower. Data without such values cost nothing.
    """
    part = descent.part
    # a stray bucket costs about its weight, on whichever side it is: no more than a few can be won back
    most = UPHILL_BUCKETS * (float(part.weight.mean()) if part.weight.size else 1.0)
    for _ in range(ESCAPE_ROUNDS):
        if descent.worst <= FAR_RESIDUAL:
            break
        change = np.zeros((part.n_units, MOVES.size))
        single_moves(
            part.ptr, part.unit, part.value, part.weight, np.exp(descent.theta), np.exp(MOVES), change
        )
        best = change.argmin(axis=1)
        gain = change[np.arange(part.n_units), best]
        lower = None
        for unit in np.argsort(gain)[:ESCAPE_TRIALS]:
            if gain[unit] > min(UPHILL * descent.cost, most):
                break
            theta = descent.theta.copy()
            theta[unit] += MOVES[best[unit]]
            trial = Descent(part, theta - theta.mean())
            converged = trial.run(PAPER, FINAL_STEP)
            descent.passes += trial.passes
            descent.hessians += trial.hessians
            if converged and trial.cost < descent.cost * (1 - 1e-9):
                trial.passes, trial.hessians = descent.passes, descent.hessians
                lower = trial
                break
        if lower is None:
            break
        descent = lower
    return descent


def minimise(part: Part, mode: int, start: Floats | None = None) -> Solution:
    """Find the minimum of one component.

    Parameters
    ----------
    part
        The component's buckets.
    mode
        `PAPER` or `GAMMA`.
    start
        ln k to start from, for refits of nearly the same data; the convex start is made otherwise.

    Notes
    -----
    Two scaling passes, Newton on the convex gamma cost until the step is below 2e-3, then (paper)
    Gauss-Newton and exact Newton, then `escape`. The factor is renewed when a step is not below 0.3 of the
    previous one. A decrease of the cost is demanded only while steps are above 1e-5: below, the difference
    is round-off.
    """
    descent = Descent(part, np.zeros(part.n_units) if start is None else start - start.mean())
    converged = True
    if start is None:
        descent.scale(2)
    if start is None and mode == PAPER:
        converged = descent.run(GAMMA, START_STEP)
    converged = converged and descent.run(mode, FINAL_STEP)
    if converged and start is None and mode == PAPER:
        descent = escape(descent)
    theta = descent.theta - descent.theta.mean()
    cost = descent.cost
    if mode == GAMMA and not part.weight.size:  # one logarithm per task is too rough where the fit is exact
        cost, *_ = evaluate(part, np.exp(theta), GAMMA)
    return Solution(
        theta,
        cost,
        descent.squares,
        descent.worst,
        converged,
        descent.step,
        descent.passes,
        descent.hessians,
    )
