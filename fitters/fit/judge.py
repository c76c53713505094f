"""Minuit's opinion on a minimum found by other means, and MINOS intervals.

The parameters are ln k with the scale held by a penalty; the cost is divided by S^2, so that EDM and errors
are in units of chi2 (James & Roos, Comput. Phys. Commun. 10 (1975) 343). Minuit starts at the minimum and
gets the exact gradient and Hessian; what it says is recorded, and what it objects to becomes the
component's status.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from iminuit import Minuit  # type: ignore[import-untyped]
from iminuit.warnings import IMinuitWarning  # type: ignore[import-untyped]

from fitters.fit.covariance import Propagation, symmetric
from fitters.fit.passes import evaluate, hessian_of
from fitters.fit.solve import Solution
from fitters.layout.arrays import Floats
from fitters.layout.components import Part

HESSE_LIMIT = 300
"""HESSE is run up to so many units; its cost grows with the cube (2 s for 1000)."""

SMALLEST_VARIANCE = 1e-12
FAR_COST = 1e300


@dataclass(frozen=True, slots=True)
class Verdict:
    """Minuit's flags as they are, and how far it is from our own answer.

    Attributes
    ----------
    valid, accurate, is_above_max_edm, has_reached_call_limit, has_posdef_covar, has_made_posdef_covar,
    hesse_failed
        As in `iminuit.util.FMin`.
    edm, edm_goal : float
        Estimated distance to the minimum and what was asked for, in units of chi2.
    n_calls, n_gradients : int
    strategy : int
    hesse : bool
        Whether HESSE was run (components of up to 300 units).
    shift : float
        Largest |Minuit - own| of ln k in units of its error.
    error_ratio : float
        The ratio HESSE / own error that is farthest from 1; NaN without HESSE.
    """

    valid: bool
    accurate: bool
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
    hesse: bool
    shift: float
    error_ratio: float

    def objection(self) -> str:
        """Say what speaks against the minimum; empty if nothing does."""
        objections = {
            "not valid": not self.valid,
            "EDM above its limit": self.is_above_max_edm,
            "call limit reached": self.has_reached_call_limit,
            "covariance not positive definite": not self.has_posdef_covar or self.has_made_posdef_covar,
            "HESSE failed": self.hesse_failed,
            "covariance not accurate": self.hesse and not self.accurate,
            f"minimum {self.shift:.2g} sigma away": not self.shift < 1e-3,
            f"HESSE errors {self.error_ratio:.6g} of ours": self.hesse
            and not abs(self.error_ratio - 1.0) < 1e-3,
        }
        return ", ".join(text for text, holds in objections.items() if holds)


@dataclass(frozen=True, slots=True)
class MinosInterval:
    """MINOS errors of one unit's factor, in the scale sum k = n.

    `lower` is negative, `upper` positive, both NaN where MINOS failed; `valid` is MINOS's own flag.
    """

    name: object
    k: float
    lower: float
    upper: float
    valid: bool


def ask_minuit(
    part: Part,
    solution: Solution,
    propagation: Propagation,
    variance: float,
    *,
    mode: int,
    hesse: bool,
    known_hessian: Floats,
) -> Verdict:
    """Let Minuit look at a minimum.

    `known_hessian` is the lower triangle there; `variance` is S^2; where there is none (no degrees of
    freedom) pass 1. MIGRAD with strategy 0 takes two calls from the minimum; HESSE with the analytic Hessian
    is O(n^3).
    """
    n = part.n_units
    variance = max(variance, SMALLEST_VARIANCE)
    start = solution.theta
    penalty = propagation.penalty

    # Minuit refers to itself and so to these functions until the next garbage collection: not to the buckets
    held, known = [part], [known_hessian]

    def cost(theta: Floats) -> float:
        value, *_ = evaluate(held[0], np.exp(np.clip(theta, -300, 300)), mode)
        value = (value + 0.5 * penalty * float((theta - start).sum()) ** 2) / variance
        return value if np.isfinite(value) else FAR_COST

    def gradient(theta: Floats) -> Floats:
        *_, slope = evaluate(held[0], np.exp(np.clip(theta, -300, 300)), mode)
        slope += penalty * float((theta - start).sum())
        return slope / variance

    def hessian(theta: Floats) -> Floats:
        if np.array_equal(theta, start):
            full = symmetric(known[0])
        else:
            full = symmetric(hessian_of(held[0], np.exp(np.clip(theta, -300, 300)), mode))
        return (full + penalty) / variance

    minuit = _minuit(cost, start, gradient, hessian, _QuietMinuit)
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
    held.clear()
    known.clear()
    return Verdict(
        valid=bool(summary.is_valid),
        accurate=bool(minuit.accurate),
        edm=float(summary.edm),
        edm_goal=float(summary.edm_goal),
        is_above_max_edm=bool(summary.is_above_max_edm),
        has_reached_call_limit=bool(summary.has_reached_call_limit),
        has_posdef_covar=bool(summary.has_posdef_covar),
        has_made_posdef_covar=bool(summary.has_made_posdef_covar),
        hesse_failed=bool(summary.hesse_failed),
        n_calls=int(minuit.nfcn),
        n_gradients=int(minuit.ngrad),
        strategy=0,
        hesse=hesse,
        shift=shift,
        error_ratio=ratio,
    )


class _QuietMinuit(Minuit):  # type: ignore[misc]
    """Minuit that leaves its covariance matrix where it is.

    Copying it into Python element by element takes longer than the rest of the fit. Should iminuit stop
    calling this method, nothing is lost but the time.
    """

    def _make_covariance(self) -> None:
        self._covariance = None


def _minuit(
    cost: object, start: Floats, gradient: object, hessian: object, kind: type[Minuit] = Minuit
) -> Minuit:
    def diagonal(values: Floats) -> Floats:
        return np.ascontiguousarray(np.diagonal(hessian(values)))  # type: ignore[operator]

    with warnings.catch_warnings():
        # without g2 iminuit 2.33 ends in a TypeError when a diagonal element is negative; with it, it warns
        warnings.simplefilter("ignore", IMinuitWarning)
        minuit = kind(cost, start, grad=gradient, g2=diagonal, hessian=hessian)
    minuit.errordef = Minuit.LEAST_SQUARES
    minuit.tol = 1e-4
    return minuit


def minos_intervals(
    part: Part,
    propagation: Propagation,
    variance: float,
    names: Mapping[int, object],
    *,
    mode: int,
) -> tuple[MinosInterval, ...]:
    """MINOS intervals of some factors (Eadie et al., Statistical Methods in Experimental Physics, 1971).

    `names` are the names by place in the component. The factors themselves are the parameters, with a
    penalty on (sum k - n)^2 a hundred times stiffer than the Hessian: with an equally stiff one the free
    scale leaks into the error. O(n^3) once, then some passes over the buckets per unit.
    """
    n = part.n_units
    penalty = 100.0 * propagation.penalty
    variance = max(variance, SMALLEST_VARIANCE)

    held = [part]  # as above

    def cost(k: Floats) -> float:
        if not np.min(k) > 0:
            return FAR_COST
        value, *_ = evaluate(held[0], k, mode)
        value = (value + 0.5 * penalty * float(k.sum() - n) ** 2) / variance
        return value if np.isfinite(value) else FAR_COST

    def gradient(k: Floats) -> Floats:
        k = np.maximum(k, 1e-300)
        *_, slope = evaluate(held[0], k, mode)
        return (slope / k + penalty * float(k.sum() - n)) / variance

    def hessian(k: Floats) -> Floats:
        k = np.maximum(k, 1e-300)
        *_, slope = evaluate(held[0], k, mode)
        full = symmetric(hessian_of(held[0], k, mode)) - np.diag(slope)
        return (full / np.outer(k, k) + penalty) / variance

    minuit = _minuit(cost, propagation.k, gradient, hessian)
    minuit.strategy = 1
    minuit.migrad()
    intervals = []
    for index, name in names.items():
        lower = upper = float("nan")
        valid = False
        if minuit.valid:
            minuit.minos(index)
            errors = minuit.merrors[f"x{index}"]
            valid = bool(errors.is_valid)
            lower = float(errors.lower) if errors.lower_valid else lower
            upper = float(errors.upper) if errors.upper_valid else upper
        intervals.append(MinosInterval(name, float(propagation.k[index]), lower, upper, valid))
    held.clear()
    return tuple(intervals)
