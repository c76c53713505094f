"""Groups that are ranked by a rate: the interval of each, and which of them differ from the rest."""

import numpy as np

from esjobs.core.arrays import Floats, Mask
from esjobs.core.rates import (
    FEW_JOBS,
    INTERVAL_SIGMAS,
    LEAST_ALIKE,
    NOISE_SIGMAS,
    differ,
    said,
    shares_differ,
    wilson,
)
from esjobs.records.jobs.questions.formulas import Parts, Ratio


def interval(formula: Ratio, parts: Parts) -> tuple[Floats, Floats]:
    """Both ends of the 95 % interval of each group: Wilson's of a share of jobs, else of standard errors."""
    return _ends(formula, parts, INTERVAL_SIGMAS)


def differing(formula: Ratio, parts: Parts) -> list[bool | None]:
    """Return, per group, True if it differs from the rest by more than three standard errors; None: unknown.

    The rest are all other groups, without those that lie as far from the median of all, while half of the
    other jobs is left. Groups of fewer than five jobs are not judged.
    """
    values, count = formula.values(parts), parts[formula.counted]
    judged = ~np.isnan(values) & (count >= FEW_JOBS)
    if judged.sum() < 2:
        return [None] * len(values)
    low, high = _ends(formula, parts, NOISE_SIGMAS)
    # weighted by jobs: many small groups do not set what is usual
    middle = _weighted_median(values[judged], count[judged])
    typical = judged & (low <= middle) & (middle <= high)
    rest = _rest(formula, parts, typical)
    rest_values, rest_count = formula.values(rest), rest[formula.counted]
    if _is_share(formula):
        apart = shares_differ(values, count, rest_values, rest_count)
    else:
        apart = differ(values, formula.errors(parts), rest_values, formula.errors(rest))
    judged &= ~np.isnan(rest_values) & (rest_count > 1)
    return [bool(found) if is_judged else None for found, is_judged in zip(apart, judged, strict=True)]


def sentence(found: list[bool | None]) -> str:
    """Return how many groups differ, "" if none was judged."""
    judged = [each for each in found if each is not None]
    return said(sum(judged), len(judged)) if judged else ""


def _is_share(formula: Ratio) -> bool:
    return not formula.over.factors and not formula.under.factors


def _ends(formula: Ratio, parts: Parts, sigmas: float) -> tuple[Floats, Floats]:
    values = formula.values(parts)
    if _is_share(formula):
        return wilson(values, parts[formula.counted], sigmas)
    reach = sigmas * formula.errors(parts)
    return values - reach, values + reach


def _rest(formula: Ratio, parts: Parts, typical: Mask) -> Parts:
    count = np.nan_to_num(parts[formula.counted])
    others, left = count.sum() - count, count[typical].sum() - np.where(typical, count, 0.0)
    # where most other jobs lie far off there is nothing typical: all others are the rest
    enough = left >= LEAST_ALIKE * others
    rest = {}
    for part in formula.parts(errors=True):
        sums = np.nan_to_num(parts[part])
        own = np.where(typical, sums, 0.0)
        rest[part] = np.where(enough, own.sum() - own, sums.sum() - sums)
    return rest


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(up_to, up_to[-1] / 2)])
