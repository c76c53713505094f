"""Groups that are ranked by a rate: the interval of each, and which of them differ from the rest."""

import numpy as np
import numpy.typing as npt

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
from esjobs.records.jobs.questions.formulas import Floats, Parts, Ratio

Flags = npt.NDArray[np.bool_]


def interval(formula: Ratio, parts: Parts) -> tuple[Floats, Floats]:
    """Both ends of the 95 % interval of each group: Wilson's of a share of jobs, else of standard errors."""
    return _ends(formula, parts, INTERVAL_SIGMAS)


def differing(formula: Ratio, parts: Parts) -> list[bool | None]:
    """For each group, True if it differs from the rest by more than three standard errors; None: not known.

    The rest are the jobs of all other groups, without those of groups that lie so far from the median of all
    themselves, while half of the jobs of the others is left. Of fewer than five jobs nothing is said.
    """
    values, count = formula.values(parts), parts[formula.counted]
    known = ~np.isnan(values) & (count >= FEW_JOBS)
    if known.sum() < 2:
        return [None] * len(values)
    low, high = _ends(formula, parts, NOISE_SIGMAS)
    middle = _weighted_median(values[known], count[known])
    alike = known & (low <= middle) & (middle <= high)
    rest = _rest(formula, parts, alike)
    rest_values, rest_count = formula.values(rest), rest[formula.counted]
    if _is_share(formula):
        apart = shares_differ(values, count, rest_values, rest_count)
    else:
        apart = differ(values, formula.errors(parts), rest_values, formula.errors(rest))
    known &= ~np.isnan(rest_values) & (rest_count > 1)
    return [bool(found) if told else None for found, told in zip(apart, known, strict=True)]


def sentence(found: list[bool | None]) -> str:
    """How many groups differ; empty where it is known of none."""
    known = [each for each in found if each is not None]
    return said(sum(known), len(known)) if known else ""


def _is_share(formula: Ratio) -> bool:
    """True of a number of jobs over another one."""
    return not formula.over.factors and not formula.under.factors


def _ends(formula: Ratio, parts: Parts, sigmas: float) -> tuple[Floats, Floats]:
    values = formula.values(parts)
    if _is_share(formula):
        return wilson(values, parts[formula.counted], sigmas)
    reach = sigmas * formula.errors(parts)
    return values - reach, values + reach


def _rest(formula: Ratio, parts: Parts, alike: Flags) -> Parts:
    """The sums of the jobs that each group is held against."""
    count = np.nan_to_num(parts[formula.counted])
    others, left = count.sum() - count, count[alike].sum() - np.where(alike, count, 0.0)
    enough = left >= LEAST_ALIKE * others
    rest = {}
    for part in formula.parts(errors=True):
        sums = np.nan_to_num(parts[part])
        own = np.where(alike, sums, 0.0)
        rest[part] = np.where(enough, own.sum() - own, sums.sum() - sums)
    return rest


def _weighted_median(values: Floats, weights: Floats) -> float:
    """The value at which half of the weight is of lower ones."""
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(up_to, up_to[-1] / 2)])
