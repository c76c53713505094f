"""Scatter of similar estimates beyond their errors, and shrinkage to their mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Floats, Mask, group_sums

LEAST_ESTIMATES = 3  # Estimates that a group needs before the others say anything about one of them


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Estimates drawn to the mean of their group, one entry each; mean and scatter, one entry per group."""

    # value, error: shape (n,): Of every estimate, also of those that were missing, which are their group's
    # mean and scatter. NaN where neither the estimate nor its group is known.
    value: Floats
    error: Floats
    # shape (n,): How far each rests on its group: 1 for a missing one, 0 for one that stays as it is
    reliance: Floats
    # mean, mean_error, scatter: NaN in groups of fewer than 3 estimates; shape (n_groups,)
    mean: Floats
    mean_error: Floats
    scatter: Floats


def paule_mandel(
    value: Floats, variance: Floats, group: NDArray[Any], n: int
) -> tuple[Floats, Floats, Floats]:
    """Return scatter, weighted mean and its variance of each group of estimates, shape (n,) each.

    The square of the scatter solves sum (y - mean)^2 / (v + s) = number - 1, at least 0 (Paule & Mandel, J.
    Res. NBS 87 (1982) 377). NaN for groups of fewer than two.

    >>> value, variance = np.array([0.0, 2.0, 4.0]), np.array([1.0, 1.0, 1.0])
    >>> [column.round(3).tolist() for column in paule_mandel(value, variance, np.zeros(3, int), 1)]
    [[1.732], [2.0], [1.333]]
    """
    number = np.bincount(group, minlength=n)
    square = np.zeros(n)
    mean, total = np.full(n, np.nan), np.zeros(n)
    for _ in range(60):
        weight = 1.0 / (variance + square[group])
        total = group_sums(group, weight, n)
        mean = np.divide(group_sums(group, weight * value, n), total, out=np.full(n, np.nan), where=total > 0)
        distance = value - mean[group]
        excess = group_sums(group, weight * distance**2, n) - (number - 1.0)
        slope = group_sums(group, (weight * distance) ** 2, n)
        step = np.divide(excess, slope, out=np.zeros(n), where=slope > 0)
        updated = np.maximum(square + step, 0.0)
        if np.all(np.abs(updated - square) <= 1e-6 * np.maximum(updated, 1e-12)):
            square = updated
            break
        square = updated
    few = number < 2
    scatter = np.where(few, np.nan, np.sqrt(square))
    return scatter, mean, np.divide(1.0, total, out=np.full(n, np.nan), where=total > 0)


def drawn_to_mean(value: Floats, variance: Floats, telling: Mask) -> tuple[Floats, Floats]:
    """Return estimates shrunk to their mean, 0, and their posterior variance, shape (n,) each.

    ``value`` is NaN if missing. ``telling``: estimates that determine the scatter. The likelihood of a
    scatter s is that of normal y with v + s^2, their mean integrated out, with a flat prior (A. Gelman,
    Bayesian Analysis 1 (2006) 515). Given s the result is y t with the variance v t + (1 - t)^2 var(mean), t
    = s^2 / (s^2 + v); it is averaged over all s. The best s alone is often 0 by chance.

    >>> value, variance = np.array([0.1, -0.1, 0.0] * 5), np.full(15, 0.01)
    >>> drawn, unknown = drawn_to_mean(value, variance, np.ones(15, bool))
    >>> drawn[:3].round(2).tolist(), (unknown**0.5)[:3].round(2).tolist()
    ([0.01, -0.01, 0.0], [0.05, 0.05, 0.04])
    """
    valid = np.isfinite(value)
    y, v = value[telling], variance[telling]
    square = _SCATTERS[:, None] ** 2
    weight = 1.0 / (v + square)
    total = weight.sum(axis=1)
    mean = (weight @ y) / total
    chi2 = np.sum(weight * (y - mean[:, None]) ** 2, axis=1)
    ln_likelihood = 0.5 * (np.log(weight).sum(axis=1) - np.log(total) - chi2)
    density = np.exp(ln_likelihood - ln_likelihood.max()) * np.gradient(_SCATTERS)
    density /= density.sum()  # the grid is not even: each scatter stands for its stretch
    # Without an estimate t is 0.
    own = np.where(valid, variance, 1.0)
    trust = np.where(valid, square / (square + own), 0.0)
    supplied = trust * np.where(valid, value, 0.0)
    spread = np.where(valid, trust * own, square) + (1.0 - trust) ** 2 / total[:, None]
    drawn = density @ supplied
    return drawn, density @ (spread + (supplied - drawn) ** 2)


# Of ln f and the like: beyond a factor of 7 nothing is alike. Closer where they matter, near 0.
_SCATTERS: Floats = 2.0 * np.linspace(0.0, 1.0, 101) ** 2


def shrink(value: Floats, error: Floats, group: NDArray[Any], n: int) -> Shrunk:
    """Shrink estimates to the mean of their group as far as their scatter allows (Morris, JASA 78 (1983) 47).

    Missing estimates (NaN) take their group's mean with its scatter; a group of fewer than three is
    unchanged. For errors the scatter is not below its own error: with few estimates it is often 0 by chance.

    >>> value, error = np.array([1.0, 9.0, np.nan, 2.0]), np.array([1.0, 1.0, np.nan, 1.0])
    >>> found = shrink(value, error, np.zeros(4, int), 1)
    >>> bool(1.0 < found.value[0] < 4.0), found.value[2].round(6).tolist()
    (True, 4.0)
    """
    valid = np.isfinite(value) & np.isfinite(error) & (error > 0)
    here = group[valid]
    number = np.bincount(here, minlength=n)
    variance = error[valid] ** 2
    scatter, mean, mean_variance = paule_mandel(value[valid], variance, here, n)
    weight = group_sums(here, 1.0 / (variance + np.nan_to_num(scatter[here]) ** 2), n)
    squares = group_sums(here, 1.0 / (variance + np.nan_to_num(scatter[here]) ** 2) ** 2, n)
    # Var(s) = 2 (n - 1) / (sum of w)^2 with w at the solution: half a standard deviation is what 0 may hide
    with np.errstate(all="ignore"):
        doubt = 0.5 * np.sqrt(2.0 * np.maximum(number - 1, 1)) / np.where(weight > 0, weight, np.nan)
        doubt = np.minimum(doubt, 1.0 / np.sqrt(np.where(squares > 0, squares, np.nan)))
    square = np.maximum(scatter**2, np.nan_to_num(doubt))
    enough = number >= LEAST_ESTIMATES
    mean, square = np.where(enough, mean, np.nan), np.where(enough, square, np.nan)
    mean_error = np.where(enough, np.sqrt(mean_variance), np.nan)
    between, prior = square[group], mean[group]
    own = np.where(valid, error**2, np.inf)
    usable = np.nan_to_num(scatter[group]) ** 2
    with np.errstate(all="ignore"):
        trust = usable / (usable + own)
        posterior = trust * np.where(valid, value, 0.0) + (1.0 - trust) * prior
        room = between / (between + own)
        spread = np.sqrt(room * own + ((1.0 - room) * mean_error[group]) ** 2)
        spread = np.where(valid, spread, np.sqrt(between))
    alone = ~np.isfinite(prior)
    result = np.where(alone, np.where(valid, value, np.nan), posterior)
    result_error = np.where(alone, np.where(valid, error, np.nan), spread)
    reliance = np.where(alone, 0.0, 1.0 - np.nan_to_num(trust))
    return Shrunk(result, result_error, reliance, mean, mean_error, np.sqrt(square))
