"""Confidence intervals of weighted means per name, and names that differ from the rest.

Jobs of one user, queue and application are correlated and form one cluster. Errors are cluster-robust: V = G
/ (G - 1) sum of (sum of w (s - m))^2 / (sum of w)^2 (A. C. Cameron, D. L. Miller, J. Human Resources 50
(2015) 317). Significance as in :mod:`esjobs.core.rates`.
"""

from dataclasses import dataclass

import numpy as np

from esjobs.core.arrays import Floats, Ints, Mask
from esjobs.core.rates import FEW_JOBS, INTERVAL_SIGMAS, LEAST_ALIKE, NOISE_SIGMAS

_CLUSTER = ("user", "queue", "application")
LEAST_CLUSTERS = 5.0
"""Effective clusters, (sum of w)^2 / sum of w^2, required for an interval."""


@dataclass(frozen=True)
class Means:
    """Means by name, NaN if missing; ``differs``: None if undecidable."""

    mean: Floats
    low: Floats
    high: Floats
    differs: list[bool | None]


def cluster_columns(by: str) -> tuple[str, ...]:
    """Return the columns that define a cluster, besides the name.

    Few users run jobs in one queue, and a user few applications in few queues: with ``by`` a queue or a user
    the day is a column, too.
    """
    columns = tuple(name for name in _CLUSTER if name != by)
    return (*columns, "day") if by in ("queue", "user") else columns


def means(name: Ints, weighted: Floats, weights: Floats, n_jobs: Floats, n_names: int) -> Means:
    """Return means of ``n_names`` names from the sums of their clusters.

    ``name``: index of each cluster's name; ``weighted``: sum of w s; ``weights``: sum of w.
    """
    total, over, jobs, squares, clusters = (
        _summed(name, each, n_names)
        for each in (weights, weighted, n_jobs, weights**2, np.ones_like(weights))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(total > 0, over / total, np.nan)
        spread = _summed(name, (weighted - mean[name] * weights) ** 2, n_names)
        # few clusters look too alike: the factor of the sandwich formula
        error = np.sqrt(spread * clusters / (clusters - 1)) / total
        valid = (jobs >= FEW_JOBS) & (total**2 / squares >= LEAST_CLUSTERS) & ~np.isnan(error)
    error = np.where(valid, error, np.nan)
    reach = INTERVAL_SIGMAS * error
    differs = _differing(mean, error, total, over, spread, valid)
    # no score is negative
    return Means(mean, np.maximum(mean - reach, 0.0), mean + reach, differs)


def _summed(name: Ints, values: Floats, n_names: int) -> Floats:
    return np.asarray(np.bincount(name, values, n_names), np.float64)


def _differing(
    mean: Floats, error: Floats, total: Floats, over: Floats, spread: Floats, valid: Mask
) -> list[bool | None]:
    """Return True for names beyond three standard errors from all others, outliers excluded."""
    if valid.sum() < 2:
        return [None] * len(mean)
    order = np.argsort(np.where(valid, mean, np.inf), kind="stable")
    up_to = np.cumsum(np.where(valid, total, 0.0)[order])
    # the median by hours: a few bad names must not make all others look good
    middle = mean[order][np.searchsorted(up_to, up_to[-1] / 2)]
    typical = valid & (np.abs(mean - middle) <= NOISE_SIGMAS * error)
    found: list[bool | None] = []
    for number in range(len(mean)):
        others = total > 0
        others[number] = False
        left = others & typical
        # outliers are left out only while most of the hours remain to compare with
        if total[left].sum() >= LEAST_ALIKE * total[others].sum():
            others = left
        rest = total[others].sum()
        if not valid[number] or rest <= 0:
            found.append(None)
            continue
        rest_error = np.sqrt(spread[others].sum()) / rest
        away = abs(mean[number] - over[others].sum() / rest)
        found.append(bool(away > NOISE_SIGMAS * np.hypot(error[number], rest_error)))
    return found
