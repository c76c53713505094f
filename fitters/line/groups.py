"""Declarations in two groups: the line then follows one of them, and neither is known to be right.

A few wrong declarations are what the robust line is for. When a third of all sites overstate by the same
factor, no line can tell who is wrong; but ln(k / c) has two modes.
"""

from dataclasses import dataclass

import numpy as np

from fitters.layout.arrays import Floats, Mask

LEAST_IN_ALL = 10  # Entries below which nothing can be said of their distribution
LEAST_SHARE = 0.2  # Of the smaller group; fewer are wrong declarations that a robust line sets aside
LEAST_GAP = 3.0  # Distance of the groups in standard deviations inside one: nearer ones hardly make two modes
# In twice ln of the likelihood, beyond what two more parameters cost (Schwarz, Ann. Stat. 6 (1978) 461).
LEAST_GAIN = 6.0
_SCATTERS = 16
_ROUNDS = 60


@dataclass(frozen=True, slots=True, eq=False)
class TwoGroups:
    """Two groups of entries of a line."""

    # one per entry: True if it rather belongs to the group of larger k / c: those that declare less for what
    # they deliver
    upper: Mask
    ratio: float  # k / c of the upper over that of the lower group
    cut: float  # ln(k / c) half-way between the groups
    gain: float  # How much better two groups describe the entries than one, see `LEAST_GAIN`


def two_groups(y: Floats, variance: Floats, tau_floor: float) -> TwoGroups | None:
    """Return two groups in ln(k / c), or None if one group describes the entries.

    A mixture of two normals with a common scatter tau beyond the errors, by expectation maximisation from the
    best split of the sorted entries, on a grid of tau; against one normal. O(n) per round.
    """
    n = y.size
    if n < LEAST_IN_ALL or np.ptp(y) < LEAST_GAP * tau_floor:
        return None
    high = _cut(y)
    below, above = y[~high], y[high]
    # A cut makes groups look farther apart than they are: what is too near even so needs no closer look.
    inside = np.sqrt((below.size * np.var(below) + above.size * np.var(above)) / n)
    if above.mean() - below.mean() < LEAST_GAP * max(float(inside), tau_floor):
        return None
    widest = max(float(np.std(y)) * 1.5, 2 * tau_floor)
    scatter = np.geomspace(tau_floor, widest, _SCATTERS)[:, None]
    full = variance + scatter**2
    weight = 1.0 / full
    mean = (weight * y).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    one = _ln_density(y, mean, full).sum(axis=1).max()
    means = np.array([[below.mean(), above.mean()]]).repeat(_SCATTERS, axis=0)
    share = np.full(_SCATTERS, high.mean())
    for _ in range(_ROUNDS):
        belongs, _ = _memberships(y, means, share, full)
        for group, part in enumerate((1.0 - belongs, belongs)):
            total = (part * weight).sum(axis=1)
            means[:, group] = np.divide(
                (part * weight * y).sum(axis=1), total, out=means[:, group].copy(), where=total > 0
            )
        share = np.clip(belongs.mean(axis=1), 1.0 / n, 1.0 - 1.0 / n)
    belongs, ln_likelihood = _memberships(y, means, share, full)
    best = int(ln_likelihood.argmax())
    gain = float(2.0 * (ln_likelihood[best] - one) - 2.0 * np.log(n))
    upper = belongs[best] > 0.5
    gap = float(means[best, 1] - means[best, 0])
    width = float(np.sqrt(np.median(full[best])))
    smaller = min(upper.mean(), 1.0 - upper.mean())
    if gain < LEAST_GAIN or gap < LEAST_GAP * width or smaller < LEAST_SHARE:
        return None
    return TwoGroups(upper, float(np.exp(gap)), float(means[best].mean()), gain)


def _ln_density(y: Floats, mean: Floats, full: Floats) -> Floats:
    density: Floats = -0.5 * ((y - mean) ** 2 / full + np.log(full))
    return density


def _memberships(y: Floats, means: Floats, share: Floats, full: Floats) -> tuple[Floats, Floats]:
    lower = _ln_density(y, means[:, :1], full) + np.log1p(-share)[:, None]
    upper = _ln_density(y, means[:, 1:], full) + np.log(share)[:, None]
    both = np.logaddexp(lower, upper)
    return np.exp(upper - both), both.sum(axis=1)


def _cut(y: Floats) -> Mask:
    # The values above the split that leaves least scatter on either side.
    ordered = np.sort(y)
    n = np.arange(1, y.size)
    below = np.cumsum(ordered)[:-1]
    above = ordered.sum() - below
    between = below**2 / n + above**2 / (y.size - n)
    index = int(between.argmax())
    high: Mask = y > 0.5 * (ordered[index] + ordered[index + 1])
    return high
