"""The minimum of the profiled cost of one component.

The paper's cost sum w (a k / A - 1)^2 (Matskovskaya & Sciaba, "The dependence of sites speed factor from the
declared HS06", 2018) is not convex in ln k and saturates where a factor goes to zero, so a plain start can
end in a wrong minimum that Minuit calls valid. The gamma quasi-likelihood 2 sum w (x - ln x - 1) has the
same variance law (McCullagh & Nelder, Generalized Linear Models, 1989, chapter 8) and is convex: it has one
minimum per component and gives the start.

Accelerated alternation goes most of the way (`alternation`), a Newton search where that is slow. The last
step is always Newton's with the exact Hessian, which also says how far the minimum was.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import lapack

from fitters.fit.alternation import alternate
from fitters.fit.kernels import GAMMA, GAUSS_NEWTON, PAPER, mirror, single_moves
from fitters.fit.passes import curvature, evaluate
from fitters.layout.arrays import Floats
from fitters.layout.components import Part

MODES = {"paper": PAPER, "gamma": GAMMA}

LONGEST_STEP = 0.5  # A factor of 1.6 in k, beyond which the quadratic model means little
FINE_STEP = 1e-2  # Below it the exact curvature of the paper's cost is used: positive near a minimum
NOISY_STEP = 1e-5  # Below it a decrease of the cost is round-off, and no step is refused for it
FINAL_STEP = 1e-11
START_STEP = 2e-3
NEAR_STEP = 1e-9  # Where alternation hands over to the last Newton step
# A Newton step so short ends at the minimum but for round-off: its error is about its square
SETTLED_STEP = 1e-7
ITERATION_LIMIT = 300
THETA_LIMIT = 250.0  # exp of twice as much still is a float64

FAR_RESIDUAL = 0.5
MOVES = np.concatenate([np.arange(-3.0, 0.0, 0.25), np.arange(0.25, 3.25, 0.25)])
ESCAPE_ROUNDS = 20
ESCAPE_TRIALS = 5
UPHILL = 0.05  # A move may cost so much of all before the search goes down again
UPHILL_BUCKETS = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Result of the search."""

    theta: Floats  # ln k with mean 0
    cost: float  # The cost of the objective
    squares: float  # sum w (x - 1)^2; equal to the cost for the paper's objective
    worst: float  # Largest |x - 1|
    converged: bool  # The last step was below 1e-7
    step: float  # Largest component of the last Newton step in ln k
    # passes, hessians: Passes over the buckets for sums, cost and gradient, and for the Hessian
    passes: int
    hessians: int
    gradient: Floats  # In ln k
    factor: "Factor | None" = None  # Of the Hessian before the last step; None if it is not positive definite
    # hessian, scores: There, the Hessian and the sum over tasks of s s^T, s being a task's gradient; shape
    # (n, n), (0, 0) if they were not asked for
    hessian: Floats = field(default_factory=lambda: np.empty((0, 0)))
    scores: Floats = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Cholesky factor of H + lam 1 1^T, lam = tr(H) / n^2.

    H has the constant vector as its null vector (the free scale of all k and A); the penalty lifts it without
    touching anything else, so that solving in the space of zero-sum vectors is exact.
    """

    triangle: Floats
    penalty: float

    def solve(self, right: Floats) -> Floats:
        """Solve (H + lam 1 1^T) x = right."""
        x, _ = lapack.dpotrs(self.triangle, right, lower=0)
        return np.asarray(x, np.float64).ravel()

    def inverse(self) -> Floats:
        """Pseudo-inverse of H, shape (n, n): the inverse without the part along the constant vector."""
        n = self.triangle.shape[0]
        upper, _ = lapack.dpotri(self.triangle, lower=0)
        full: Floats = upper.T
        mirror(full)
        full -= 1.0 / (self.penalty * n * n)
        return full


def factorise(hessian: Floats) -> Factor | None:
    """Factor H, of which the lower triangle is read and overwritten.

    None if it is not positive definite beside its null vector.
    """
    n = hessian.shape[0]
    trace = float(np.trace(hessian))
    if not np.isfinite(trace) or trace <= 0:
        return None
    penalty = trace / n**2
    hessian += penalty
    triangle, info = lapack.dpotrf(hessian.T, lower=0, clean=0, overwrite_a=1)
    return Factor(triangle, penalty) if info == 0 else None


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
        self.gradient = np.empty(0)

    def evaluate(self, theta: Floats, mode: int) -> tuple[float, Floats]:
        """Return cost and gradient at `theta`; the cost is infinite out of range."""
        if not np.abs(theta).max() < THETA_LIMIT:
            return np.inf, np.empty(theta.size)
        self.passes += 1
        cost, self.squares, self.worst, gradient = evaluate(self.part, np.exp(theta), mode)
        return (cost, gradient) if np.isfinite(cost) else (np.inf, gradient)

    def approach(self, mode: int, tolerance: float) -> bool:
        """Go near the minimum of the cost of `mode`; False if the search failed."""
        theta, size, passes = alternate(self.part, self.theta, mode, tolerance)
        self.passes += passes
        self.theta = theta - theta.mean()
        return size < tolerance or self.run(mode, min(tolerance, START_STEP))

    def _factor(self, mode: int, stiffness: float) -> Factor | None:
        k = np.exp(self.theta)
        curvatures = [mode]
        if mode == PAPER:
            curvatures = [GAUSS_NEWTON] if self.step > FINE_STEP else [PAPER, GAUSS_NEWTON]
        for kind in curvatures:
            hessian, *_ = curvature(self.part, k, kind)
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
        for _ in range(ITERATION_LIMIT):
            fresh = factor is None
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

    def settle(self, mode: int) -> tuple[Factor, Floats, Floats] | None:
        """Make the last Newton step; return factor, Hessian and scores before it, None without a minimum.

        A step that is too long starts a Newton search.
        """
        for _ in range(3):
            hessian, scores, gradient = curvature(self.part, np.exp(self.theta), mode)
            self.hessians += 1
            factor = factorise(hessian.copy())
            if factor is not None:
                step = -factor.solve(gradient)
                step -= step.mean()
                self.step = float(np.abs(step).max())
                if self.step < SETTLED_STEP:
                    self.theta = self.theta + step
                    self.cost, self.gradient = self.evaluate(self.theta, mode)
                    return factor, hessian, scores
            if not self.run(mode, FINAL_STEP):
                return None
        return None

    def solution(self, mode: int, *, converged: bool) -> Solution:
        """Return where the descent stands, its levels centred."""
        theta = self.theta - self.theta.mean()
        if not self.gradient.size:
            self.cost, self.gradient = self.evaluate(theta, mode)
        numbers = (self.cost, self.squares, self.worst)
        return Solution(theta, *numbers, converged, self.step, self.passes, self.hessians, self.gradient)


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
            restart = Descent(part, theta - theta.mean())
            converged = restart.run(PAPER, FINAL_STEP)
            descent.passes += restart.passes
            descent.hessians += restart.hessians
            if converged and restart.cost < descent.cost * (1 - 1e-9):
                restart.passes, restart.hessians = descent.passes, descent.hessians
                lower = restart
                break
        if lower is None:
            break
        descent = lower
    return descent


def minimise(part: Part, mode: int, start: Floats | None = None, *, settled: bool = True) -> Solution:
    """Find the minimum of one component; ``mode``: `PAPER` or `GAMMA`.

    ``start``: ln k, for refits of similar data; None: the convex start. ``settled``: make the last Newton
    step, with Hessian and scores. Alternation on the gamma cost to steps of 2e-3, then (paper) on the cost
    itself to 1e-9, then Newton's step, then `escape`; if 25 passes are not enough, a chord Newton search.
    """
    descent = Descent(part, np.zeros(part.n_units) if start is None else start - start.mean())
    converged = True
    if start is None and mode == PAPER:
        converged = descent.approach(GAMMA, START_STEP)
    near = descent.theta
    converged = converged and descent.approach(mode, NEAR_STEP)
    if not settled and mode == GAMMA:
        return descent.solution(mode, converged=converged)
    last = descent.settle(mode) if converged else None
    if last is None and mode == PAPER:
        # alternation goes where the gradient vanishes, which may be a saddle; Newton's search only descends
        descent.theta = near
        converged = descent.run(mode, FINAL_STEP)
        last = descent.settle(mode) if converged else None
    if last is not None and start is None and mode == PAPER:
        lower = escape(descent)
        if lower is not descent:
            descent = lower
            last = descent.settle(mode)
    if last is None:
        return descent.solution(mode, converged=converged and descent.step < SETTLED_STEP)
    return replace(descent.solution(mode, converged=True), factor=last[0], hessian=last[1], scores=last[2])
