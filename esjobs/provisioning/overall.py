"""Overall effect of several contacts: a random-effects mean. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from scipy import stats

from esjobs.core.arrays import Floats
from esjobs.provisioning.matching import CONFIDENCE, Effect, verdict_of

LEAST_CONTACTS = 3
"""Contacts required for an interval."""


@dataclass(frozen=True)
class Overall:
    """Mean effect over contacts with 95 % interval.

    ``spread``: standard deviation of the effects beyond their errors.
    """

    n_contacts: int
    effect: float
    low: float
    high: float
    spread: float

    def verdict(self, *, high_is_good: bool) -> str:
        """Return ``improved``, ``worse`` or ``no change seen``."""
        return verdict_of(self.low, self.high, high_is_good=high_is_good)


def shared_errors(effects: Sequence[Effect], kinds: Sequence[str], on: Sequence[date], days: int) -> Floats:
    """Return covariances of errors of effects with common controls; 0 on the diagonal.

    Controls of different ``kinds`` differ. Contacts d days apart share part of the jobs: the correlation of
    changes between two windows of ``days`` is 1 - 3 d / (2 days), at least 0, for independent days.
    """
    pairs = {(kind, name) for each, kind in zip(effects, kinds, strict=True) for name in each.common}
    names = {pair: at for at, pair in enumerate(sorted(pairs))}
    errors = np.zeros((len(effects), len(names)))
    for row, (each, kind) in enumerate(zip(effects, kinds, strict=True)):
        for name, error in each.common.items():
            errors[row, names[kind, name]] = error
    ordinal = np.array([day.toordinal() for day in on], np.float64)
    overlap = np.maximum(0.0, 1 - 1.5 * np.abs(ordinal[:, None] - ordinal) / days)
    shared: Floats = (errors @ errors.T) * overlap
    np.fill_diagonal(shared, 0.0)
    return shared


def overall(effects: Sequence[Effect], shared: Floats | None = None) -> Overall | None:
    """Return the mean effect of comparable contacts, None below three.

    Random effects: each contact has its own effect, and an error from its interval. Spread after R.
    DerSimonian and N. Laird, Controlled Clinical Trials 7 (1986) 177; interval after J. Hartung and G. Knapp,
    Statistics in Medicine 20 (2001) 3875: Student's t with n - 1 degrees of freedom on sqrt(sum(w (effect -
    mean)²) / ((n - 1) sum w)), w = 1 / (error² + spread²), at least sqrt(1 / sum w). ``shared`` covariances
    (:func:`shared_errors`) add sum(w_i w_j shared_ij) / (sum w)² to the squared error.
    """
    places = [at for at, each in enumerate(effects) if not each.extrapolated]
    used = [effects[at] for at in places]
    n = len(used)
    if n < LEAST_CONTACTS:
        return None
    y = np.array([each.effect for each in used])
    # standard errors: the half-width of each interval over its quantile of Student's t
    quantiles = [float(stats.t.ppf(0.5 + CONFIDENCE / 2, each.n_matched - 2)) for each in used]
    variance = np.array([((e.high - e.low) / 2 / q) ** 2 for e, q in zip(used, quantiles, strict=True)])
    # who never scatters at all would have the whole weight
    variance = np.maximum(variance, 1e-12 * max(float(variance.max()), float(y.var()), 1e-300))
    w = 1 / variance
    # moments: what chi2 exceeds its expectation by, over what it grows with the spread
    excess = float(w @ (y - (w @ y) / w.sum()) ** 2) - (n - 1)
    spread2 = max(0.0, excess / float(w.sum() - (w @ w) / w.sum()))
    w = 1 / (variance + spread2)
    mean = float((w @ y) / w.sum())
    seen = float(w @ (y - mean) ** 2) / (n - 1)
    square = max(1.0, seen) / float(w.sum())
    if shared is not None:
        square += max(0.0, float(w @ shared[np.ix_(places, places)] @ w) / float(w.sum()) ** 2)
    error = math.sqrt(square)
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * error
    return Overall(n, mean, mean - reach, mean + reach, math.sqrt(spread2))
