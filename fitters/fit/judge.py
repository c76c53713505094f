"""Minuit's opinion on a minimum found by other means.

The parameters are ln k with the scale held by a penalty; the cost is divided by S^2, so that EDM and errors
are in units of chi2 (James & Roos, Comput. Phys. Commun. 10 (1975) 343). Minuit starts at the minimum and
gets the exact gradient and Hessian; what it says is recorded, and what it objects to becomes the
component's status.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from iminuit import Minuit  # type: ignore[import-untyped]
from iminuit.warnings import IMinuitWarning  # type: ignore[import-untyped]

from fitters.fit.covariance import Propagation
from fitters.fit.passes import curvature, evaluate
from fitters.fit.solve import Solution
from fitters.layout.arrays import Floats
from fitters.layout.components import Part

SMALLEST_VARIANCE = 1e-12
FAR_COST = 1e300
_FLAGS = (
    *("is_above_max_edm", "has_reached_call_limit", "has_posdef_covar", "has_made_posdef_covar"),
    "hesse_failed",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Flags of Minuit, and its distance from our own minimum."""

    # valid, accurate, is_above_max_edm, has_reached_call_limit, has_posdef_covar, has_made_posdef_covar,
    # hesse_failed: As in `iminuit.util.FMin`
    valid: bool
    accurate: bool
    # edm, edm_goal: Estimated distance to the minimum and what was asked for, in units of chi2
    edm: float
    edm_goal: float
    is_above_max_edm: bool
    has_reached_call_limit: bool
    has_posdef_covar: bool
    has_made_posdef_covar: bool
    hesse_failed: bool
    n_calls: int
    n_gradients: int
    strategy: int
    hesse: bool  # True if HESSE was run
    shift: float  # Largest |Minuit - own| of ln k in units of its error
    error_ratio: float  # The ratio HESSE / own error that is farthest from 1; NaN without HESSE

    def objection(self) -> str:
        """Return the objections to the minimum; empty if there are none."""
        objections = {
            "not valid": not self.valid,
            "EDM above its limit": self.is_above_max_edm,
            "call limit reached": self.has_reached_call_limit,
            "covariance not positive definite": not self.has_posdef_covar or self.has_made_posdef_covar,
            "HESSE failed": self.hesse_failed,
            "covariance not accurate": self.hesse and not self.accurate,
            f"minimum {self.shift:.2g} sigma away": not self.shift < 1e-3,
            f"HESSE errors {self.error_ratio:.6g} of the expected ones": self.hesse
            and not abs(self.error_ratio - 1.0) < 1e-3,
        }
        return ", ".join(text for text, holds in objections.items() if holds)


def ask_minuit(
    part: Part, solution: Solution, propagation: Propagation, variance: float, *, mode: int, hesse: bool
) -> Verdict:
    """Check a minimum with Minuit.

    `variance` is S^2; where there is none (no degrees of freedom) pass 1. MIGRAD with strategy 0 looks at the
    minimum and one place beside it; HESSE with the analytic Hessian is O(n^3), 2 s for 1000 units.
    """
    n = part.n_units
    variance = max(variance, SMALLEST_VARIANCE)
    start = solution.theta
    penalty = propagation.penalty
    derivatives = _Derivatives(part, mode, solution)

    def cost(theta: Floats) -> float:
        value, _ = derivatives.look(theta)
        value = (value + 0.5 * penalty * float((theta - start).sum()) ** 2) / variance
        return value if np.isfinite(value) else FAR_COST

    def gradient(theta: Floats) -> Floats:
        _, slope = derivatives.look(theta)
        return (slope + penalty * float((theta - start).sum())) / variance

    def hessian(theta: Floats) -> Floats:
        return (derivatives.hessian(theta) + penalty) / variance

    def diagonal(theta: Floats) -> Floats:
        return (np.diagonal(derivatives.hessian(theta)) + penalty) / variance

    with warnings.catch_warnings():
        # without g2 iminuit 2.33 ends in a TypeError when a diagonal element is negative; with it, it warns
        warnings.simplefilter("ignore", IMinuitWarning)
        minuit = _QuietMinuit(cost, start, grad=gradient, g2=diagonal, hessian=hessian if hesse else None)
    minuit.errordef = Minuit.LEAST_SQUARES
    minuit.tol = 1e-4
    minuit.strategy = 0
    minuit.migrad()
    if hesse:
        minuit.hesse()
    own = np.sqrt(2.0 * variance * (np.diagonal(propagation.inverse_hessian) + 1.0 / (penalty * n * n)))
    shift = float(np.max(np.abs(np.asarray(minuit.values) - start) / own))
    ratio = float("nan")
    if hesse:
        ratios = np.asarray(minuit.errors) / own
        ratio = float(ratios[np.argmax(np.abs(ratios - 1.0))])
    summary = minuit.fmin
    if summary is None:  # cannot happen after MIGRAD; tells the type checker
        raise AssertionError
    # Minuit refers to itself and so to this place until the next garbage collection: not to the buckets
    derivatives.leave()
    flags = {name: bool(getattr(summary, name)) for name in _FLAGS}
    return Verdict(
        valid=bool(summary.is_valid),
        accurate=bool(minuit.accurate),
        edm=float(summary.edm),
        edm_goal=float(summary.edm_goal),
        **flags,
        n_calls=int(minuit.nfcn),
        n_gradients=int(minuit.ngrad),
        strategy=0,
        hesse=hesse,
        shift=shift,
        error_ratio=ratio,
    )


class _Derivatives:
    def __init__(self, part: Part, mode: int, solution: Solution) -> None:
        self._part: Part | None = part
        self._mode = mode
        self._start, self._start_hessian = solution.theta, solution.hessian
        self._last = solution.theta, solution.cost, solution.gradient

    def look(self, theta: Floats) -> tuple[float, Floats]:
        if self._part is not None and not np.array_equal(theta, self._last[0]):
            cost, _, _, gradient = evaluate(self._part, np.exp(np.clip(theta, -300, 300)), self._mode)
            self._last = theta.copy(), cost, gradient
        return self._last[1:]

    def hessian(self, theta: Floats) -> Floats:
        if self._part is not None and not np.array_equal(theta, self._start):
            return curvature(self._part, np.exp(np.clip(theta, -300, 300)), self._mode)[0]
        return self._start_hessian

    def leave(self) -> None:
        # Drop the buckets: see `ask_minuit`.
        self._part = None
        self._start_hessian = np.empty((0, 0))


class _QuietMinuit(Minuit):  # type: ignore[misc]
    """Minuit that leaves its covariance matrix where it is.

    Copying it into Python element by element takes longer than the rest of the fit. Should iminuit stop
    calling this method, nothing is lost but the time.
    """

    def _make_covariance(self) -> None:
        self._covariance = None
