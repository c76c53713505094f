"""Intervals of weighted means per name, and which names differ from the rest.

Jobs of one user, queue and application are alike: they are one cluster, and errors are those of the sums of
clusters, V = G / (G - 1) sum of (sum of w (s - m))^2 / (sum of w)^2 (A. C. Cameron, D. L. Miller, J. Human
Resources 50 (2015) 317). Who differs is told as in :mod:`esjobs.core.rates`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.rates import FEW_JOBS, INTERVAL_SIGMAS, LEAST_ALIKE, NOISE_SIGMAS

_ALIKE = ("user", "queue", "application")
_AT_QUEUE = ("user", "application", "day")
LEAST_CLUSTERS = 5.0
"""Effective clusters, (sum of w)^2 / sum of w^2, below which a mean has no interval."""

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Means:
    """Means by name, NaN where there is none; ``differs`` is None where nothing can be said."""

    mean: Floats
    low: Floats
    high: Floats
    differs: list[bool | None]


def alike(by: str) -> tuple[str, ...]:
    """The columns in which the jobs of a cluster are equal, besides the name.

    Inside a queue, about which itself is asked, few users run jobs: there also the day.
    """
    return _AT_QUEUE if by == "queue" else tuple(name for name in _ALIKE if name != by)


def means(name: Codes, weighted: Floats, weights: Floats, n_jobs: Floats, number: int) -> Means:
    """Means of ``number`` names from the sums of their clusters.

    ``name``: number of the name of each cluster; ``weighted``: sum of w s, ``weights``: sum of w.
    """
    total, over, jobs, squares, clusters = (
        _summed(name, each, number) for each in (weights, weighted, n_jobs, weights**2, np.ones_like(weights))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total > 0, over / total, np.nan)
        spread = _spread(name, weighted, weights, mean, number)
        error = np.sqrt(spread * clusters / (clusters - 1)) / total
        known = (jobs >= FEW_JOBS) & (total**2 / squares >= LEAST_CLUSTERS) & ~np.isnan(error)
    error = np.where(known, error, np.nan)
    reach = INTERVAL_SIGMAS * error
    differs = _differing(mean, error, total, over, spread, known)
    return Means(mean, mean - reach, mean + reach, differs)


def _spread(name: Codes, weighted: Floats, weights: Floats, mean: Floats, number: int) -> Floats:
    """The sum over clusters of the squared sums of w (s - m)."""
    return _summed(name, (weighted - mean[name] * weights) ** 2, number)


def _summed(name: Codes, values: Floats, number: int) -> Floats:
    return np.asarray(np.bincount(name, values, number), np.float64)


def _differing(
    mean: Floats, error: Floats, total: Floats, over: Floats, spread: Floats, known: npt.NDArray[np.bool_]
) -> list[bool | None]:
    """True of a name beyond three standard errors from all others, without those that lie apart."""
    if known.sum() < 2:
        return [None] * len(mean)
    order = np.argsort(np.where(known, mean, np.inf), kind="stable")
    up_to = np.cumsum(np.where(known, total, 0.0)[order])
    middle = mean[order][np.searchsorted(up_to, up_to[-1] / 2)]
    alike = known & (np.abs(mean - middle) <= NOISE_SIGMAS * error)
    found: list[bool | None] = []
    for place in range(len(mean)):
        others = total > 0
        others[place] = False
        left = others & alike
        if total[left].sum() >= LEAST_ALIKE * total[others].sum():
            others = left
        rest = total[others].sum()
        if not known[place] or rest <= 0:
            found.append(None)
            continue
        rest_error = np.sqrt(spread[others].sum()) / rest
        away = abs(mean[place] - over[others].sum() / rest)
        found.append(bool(away > NOISE_SIGMAS * np.hypot(error[place], rest_error)))
    return found
