"""What several contacts changed together: a mean over contacts that differ. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
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


def overall(effects: Sequence[Effect]) -> Overall | None:
    """The mean effect of contacts; None of fewer than three. Effects that are not comparable are left out.

    A model of random effects: each contact has an effect of its own around the mean, and an error, the half
    width of its interval over Student's t. The spread is that of R. DerSimonian and N. Laird, Controlled
    Clinical Trials 7 (1986) 177; the interval that of J. Hartung and G. Knapp, Statistics in Medicine 20
    (2001) 3875: Student's t with n - 1 degrees of freedom on sqrt(sum(w (effect - mean)²) / ((n - 1) sum w)),
    w = 1 / (error² + spread²), taken at least as large as sqrt(1 / sum w), the error that the intervals
    themselves promise. Contacts are taken as independent, though names of one group are compared with the
    same others.
    """
    used = [each for each in effects if not each.extrapolated]
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
    error = math.sqrt(max(1.0, seen) / float(w.sum()))
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * error
    return Overall(n, mean, mean - reach, mean + reach, math.sqrt(spread2))


def _error(effect: Effect) -> float:
    """The standard error of an effect, from the half width of its interval."""
    return (effect.high - effect.low) / 2 / float(stats.t.ppf(0.5 + CONFIDENCE / 2, effect.n_matched - 2))
