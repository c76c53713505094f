"""Minimum of one component as Minuit finds it, from a plain start.

MIGRAD starts at k = 1 and knows nothing of our own search; the levels of the tasks are eliminated, so that
the parameters are ln k alone. It gets the exact gradient, HESSE the exact Hessian. The cost is divided by
S^2, so that EDM and errors are in units of chi2 (F. James, M. Roos, Comput. Phys. Commun. 10 (1975) 343).

The cost does not change when all k are multiplied by one number. A penalty on ln(mean k) holds that scale:
it is 0 at the minimum, where sum k = n, so that the errors of HESSE are those of ln k in the published
scale, apart from the constant variance of the scale itself, which is subtracted.
"""

import warnings
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from iminuit import Minuit  # type: ignore[import-untyped]
from iminuit.warnings import IMinuitWarning  # type: ignore[import-untyped]

from fitters.fit.passes import curvature, curvature_diagonal, evaluate
from fitters.fit.solve import Solution, minimise
from fitters.layout.arrays import Floats
from fitters.layout.components import Part

SMALLEST_VARIANCE = 1e-12
VARIANCE_WITHOUT_LOOPS = 1e-6  # In place of S^2 where there is none
FAR_COST = 1e300
# MIGRAD ends at an EDM of 0.002 times this: a ten-thousandth of an error from the minimum
TOLERANCE = 1e-5
ROUND_OFF = 1e-10  # More per degree of freedom: what the sum of so many squares is known to
MOST_CALLS = 10_000
HESSE_LIMIT = 1000  # Units up to which HESSE is run; its time grows with their cube
AGREEMENT = 0.05  # Errors by which two searches for one minimum may differ
_LOWER = 1e-9  # Relative decrease of the cost that is more than round-off


@dataclass(frozen=True, slots=True, eq=False)
class MinuitMinimum:
    """Minimum and errors by MIGRAD and HESSE, beside the minimum of our own search."""

    theta: Floats  # ln k, in the scale sum k = n
    ln_k_err: Floats  # Standard errors of ln k by HESSE in that scale; NaN above `HESSE_LIMIT` units
    variance: float  # S^2 that these errors hold for
    cost: float
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
    # Largest |Minuit - own| of ln k in units of its error; above 0.05 the searches found two minima
    agreement: float = float("nan")
    # The search whose minimum is the result: Minuit's, or our own if that is lower
    found_by: Literal["minuit", "own"] = "minuit"

    @property
    def summary(self) -> dict[str, object]:
        """Everything but the columns of the units."""
        columns = ("theta", "ln_k_err")
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in columns}


def minimise_by_minuit(part: Part, mode: int, variance: float) -> MinuitMinimum:
    """Run MIGRAD from k = 1, then HESSE up to 1000 units; `variance` is S^2, NaN if there is none.

    Strategy 0 with gradient and second derivatives: 80 to 200 passes over the buckets. HESSE with the exact
    Hessian is O(n^3).
    """
    scale = max(variance, SMALLEST_VARIANCE) if np.isfinite(variance) else VARIANCE_WITHOUT_LOOPS
    cost = _Cost(part, mode, scale)
    hesse = part.n_units <= HESSE_LIMIT
    with warnings.catch_warnings():
        # without g2 iminuit 2.33 ends in a TypeError when a diagonal element is negative; with it, it warns
        warnings.simplefilter("ignore", IMinuitWarning)
        minuit = _QuietMinuit(
            cost.value,
            np.zeros(part.n_units),
            grad=cost.gradient,
            g2=cost.diagonal,
            hessian=cost.hessian if hesse else None,
        )
    minuit.errordef = Minuit.LEAST_SQUARES
    minuit.tol = max(TOLERANCE, ROUND_OFF * part.dof)
    minuit.strategy = 0
    minuit.migrad(ncall=MOST_CALLS)
    theta = np.asarray(minuit.values, np.float64)
    theta -= cost.ln_mean(theta)
    error = np.full(part.n_units, np.nan)
    if hesse:
        minuit.hesse()
        error = np.sqrt(np.maximum(np.asarray(minuit.errors) ** 2 - 2.0 * scale / cost.penalty, 0.0))
    summary = minuit.fmin
    if summary is None:  # cannot happen after MIGRAD; tells the type checker
        raise AssertionError
    found = MinuitMinimum(
        theta=theta,
        ln_k_err=error,
        variance=scale,
        cost=evaluate(part, np.exp(theta), mode)[0],
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
    )
    # Minuit refers to itself and so to this place until the next garbage collection: not to the buckets
    cost.leave()
    return found


def lower_minimum(
    part: Part, mode: int, found: MinuitMinimum, own: Solution
) -> tuple[MinuitMinimum, Solution]:
    """Compare Minuit's minimum with our own; return both, the solution that of the lower cost.

    Where both searches ended in one minimum it is Minuit's.
    """
    agreement = _agreement(part, mode, found, own)
    if agreement <= AGREEMENT:
        return replace(found, agreement=agreement), replace(own, theta=found.theta, cost=found.cost)
    if own.converged and not found.cost < own.cost * (1.0 - _LOWER):
        return replace(found, agreement=agreement, found_by="own"), own
    near = minimise(part, mode, found.theta)
    if not near.converged or _agreement(part, mode, found, near) > AGREEMENT:
        # MIGRAD stopped on a slope: what lies below it is not its result
        return replace(found, agreement=agreement, found_by="own"), own
    return replace(found, agreement=agreement), replace(near, theta=found.theta, cost=found.cost)


def _agreement(part: Part, mode: int, found: MinuitMinimum, own: Solution) -> float:
    # In errors by HESSE; without these in the smaller ones that hold where all other units are known.
    if not own.converged:
        return float("inf")
    error = found.ln_k_err
    if not np.isfinite(error).all():
        bend = curvature_diagonal(part, np.exp(own.theta), mode)
        error = np.sqrt(2.0 * found.variance / np.maximum(bend, 1e-300))
    k = np.exp(own.theta - own.theta.max())
    distance = np.abs(found.theta - np.log(k / k.mean()))
    return float(np.max(distance / np.maximum(error, 1e-12)))


class _Cost:
    """Penalised cost over S^2 and its derivatives in ln k; the last place is kept, Minuit asks twice."""

    def __init__(self, part: Part, mode: int, variance: float) -> None:
        self._part: Part | None = part
        self._mode, self._variance = mode, variance
        # what all buckets together would hold a common factor with
        self.penalty = 2.0 * part.n_buckets
        self._last = np.empty(0), 0.0, np.empty(0)

    def value(self, theta: Floats) -> float:
        cost, _ = self._look(theta)
        value = (cost + 0.5 * self.penalty * self.ln_mean(theta) ** 2) / self._variance
        return value if np.isfinite(value) else FAR_COST

    def gradient(self, theta: Floats) -> Floats:
        _, slope = self._look(theta)
        return (slope + self.penalty * self.ln_mean(theta) * _shares(theta)) / self._variance

    def diagonal(self, theta: Floats) -> Floats:
        """Second derivatives of the cost, in the scale of the cost that Minuit sees."""
        if self._part is None:
            return np.ones(theta.size)
        p, distance = _shares(theta), self.ln_mean(theta)
        bend = curvature_diagonal(self._part, _factors(theta), self._mode)
        return (bend + self.penalty * (p**2 + distance * (p - p**2))) / self._variance

    def hessian(self, theta: Floats) -> Floats:
        """Matrix of second derivatives, penalty included, in the same scale."""
        if self._part is None:
            return np.eye(theta.size)
        p, distance = _shares(theta), self.ln_mean(theta)
        bend = curvature(self._part, _factors(theta), self._mode)[0]
        bend += self.penalty * (1.0 - distance) * np.outer(p, p)
        bend[np.diag_indices_from(bend)] += self.penalty * distance * p
        bend /= self._variance
        return bend

    @staticmethod
    def ln_mean(theta: Floats) -> float:
        """ln of the mean k."""
        highest = float(theta.max())
        return highest + float(np.log(np.exp(theta - highest).mean()))

    def leave(self) -> None:
        """Drop the buckets: see `minimise_by_minuit`."""
        self._part = None

    def _look(self, theta: Floats) -> tuple[float, Floats]:
        if self._part is not None and not np.array_equal(theta, self._last[0]):
            cost, _, _, gradient = evaluate(self._part, _factors(theta), self._mode)
            self._last = theta.copy(), cost, gradient
        return self._last[1:]


def _factors(theta: Floats) -> Floats:
    return np.exp(np.clip(theta, -300, 300))


def _shares(theta: Floats) -> Floats:
    k = np.exp(theta - theta.max())
    shares: Floats = k / k.sum()
    return shares


class _QuietMinuit(Minuit):  # type: ignore[misc]
    """Minuit that leaves its covariance matrix where it is.

    Copying it into Python element by element takes longer than the rest of the fit. Should iminuit stop
    calling this method, nothing is lost but the time.
    """

    def _make_covariance(self) -> None:
        self._covariance = None
