"""What several contacts changed together: a mean over contacts that differ. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
from scipy import stats

from esjobs.provisioning.matching import CONFIDENCE, Effect

LEAST_CONTACTS = 3
"""Of fewer the interval is too wide to say anything."""


@dataclass(frozen=True)
class Overall:
    """The mean effect over contacts with its 95 % interval, and how much effects differ beyond their errors.

    ``spread``: standard deviation of the effects themselves; 0 where their errors explain what is seen.
    """

    n_contacts: int
    effect: float
    low: float
    high: float
    spread: float

    def verdict(self, *, high_is_good: bool) -> str:
        """``improved``, ``worse``, or ``no change seen``."""
        if self.low > 0 or self.high < 0:
            return "improved" if (self.low > 0) == high_is_good else "worse"
        return "no change seen"


def shared_errors(
    effects: Sequence[Effect], kinds: Sequence[str], on: Sequence[date], days: int
) -> npt.NDArray[np.float64]:
    """Covariances of the errors of effects that are held against the same names; 0 on the diagonal.

    ``kinds``: names of another kind are other names. ``on``, ``days``: of contacts on different days only a
    part of the jobs is the same. Of changes between two windows of so many days, d days apart, the
    correlation is 1 - 3 d / (2 days), as of days that are independent; below 0 it is taken as 0.
    """
    names = {pair: at for at, pair in enumerate(sorted({*_pairs(effects, kinds)}))}
    errors = np.zeros((len(effects), len(names)))
    for row, (each, kind) in enumerate(zip(effects, kinds, strict=True)):
        for name, error in each.common.items():
            errors[row, names[kind, name]] = error
    place = np.array([day.toordinal() for day in on], np.float64)
    alike = np.maximum(0.0, 1 - 1.5 * np.abs(place[:, None] - place) / days)
    shared: npt.NDArray[np.float64] = (errors @ errors.T) * alike
    np.fill_diagonal(shared, 0.0)
    return shared


def _pairs(effects: Sequence[Effect], kinds: Sequence[str]) -> list[tuple[str, str]]:
    return [(kind, name) for each, kind in zip(effects, kinds, strict=True) for name in each.common]


def overall(effects: Sequence[Effect], shared: npt.NDArray[np.float64] | None = None) -> Overall | None:
    """The mean effect of contacts; None of fewer than three. Effects that are not comparable are left out.

    ``shared``: covariances of their errors (:func:`shared_errors`), none without it.

    A model of random effects: each contact has an effect of its own around the mean, and an error, the half
    width of its interval over Student's t. The spread is that of R. DerSimonian and N. Laird, Controlled
    Clinical Trials 7 (1986) 177; the interval that of J. Hartung and G. Knapp, Statistics in Medicine 20
    (2001) 3875: Student's t with n - 1 degrees of freedom on sqrt(sum(w (effect - mean)²) / ((n - 1) sum w)),
    w = 1 / (error² + spread²), taken at least as large as sqrt(1 / sum w), the error that the intervals
    themselves promise. What effects share by being held against the same names does not average out:
    sum(w_i w_j shared_ij) / (sum w)² is added to the square of the error.
    """
    places = [at for at, each in enumerate(effects) if not each.extrapolated]
    used = [effects[at] for at in places]
    n = len(used)
    if n < LEAST_CONTACTS:
        return None
    y = np.array([each.effect for each in used])
    variance = np.array([_error(each) ** 2 for each in used])
    # who never scatters at all would have the whole weight
    variance = np.maximum(variance, 1e-12 * max(float(variance.max()), float(y.var()), 1e-300))
    w = 1 / variance
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


def _error(effect: Effect) -> float:
    """The standard error of an effect, from the half width of its interval."""
    return (effect.high - effect.low) / 2 / float(stats.t.ppf(0.5 + CONFIDENCE / 2, effect.n_matched - 2))
