"""Differences of rates: intervals of shares, and a group against all others together.

Command line, pages and bundles share this rule.
"""

from statistics import NormalDist

import numpy as np

from esjobs.core.arrays import Floats, Mask

CONFIDENCE = 0.95
INTERVAL_SIGMAS = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
"""Half the width of an interval in standard errors."""

NOISE_SIGMAS = 3.0
"""Standard errors above which a difference is not noise; without a difference exceeded once in 370."""

LEAST_ALIKE = 0.5
"""Least share of the jobs that must remain in the rest when outlying groups are excluded from it.

As points out of control are when the limits of a control chart are set (D. C. Montgomery, Introduction to
Statistical Quality Control, phase I): one bad group would else make all others look good.
"""

FEW_JOBS = 5
"""A name with fewer jobs has no place in a ranking of rates on a page."""


def wilson(share: Floats, count: Floats, sigmas: float = INTERVAL_SIGMAS) -> tuple[Floats, Floats]:
    """Return both ends of the interval of a share of ``count`` jobs; NaN for none.

    E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209: valid for few jobs and for shares near 0 and 1.

    >>> low, high = wilson(np.array([0.0]), np.array([11.0]))
    >>> float(low[0]), round(float(high[0]), 3)
    (0.0, 0.259)
    """
    square = sigmas**2
    with np.errstate(divide="ignore", invalid="ignore"):
        # the roots p of (share - p)^2 = sigmas^2 p (1 - p) / n, as centre and half-width
        middle = (share + square / (2 * count)) / (1 + square / count)
        within = np.maximum(share * (1 - share), 0.0) / count + square / (4 * count**2)
        reach = sigmas * np.sqrt(within) / (1 + square / count)
    return np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0)


def shares_differ(share: Floats, count: Floats, rest: Floats, rest_count: Floats) -> Mask:
    """True where two shares differ by more than their noise; False where one is unknown.

    Interval of a difference: R. G. Newcombe, Statistics in Medicine 17 (1998) 873, method 10.
    """
    low, high = wilson(share, count, NOISE_SIGMAS)
    rest_low, rest_high = wilson(rest, rest_count, NOISE_SIGMAS)
    # of each interval the side that faces the other share counts
    above = share - rest > np.hypot(share - low, rest_high - rest)
    below = rest - share > np.hypot(high - share, rest - rest_low)
    return np.asarray(above | below, np.bool_)


def differ(value: Floats, error: Floats, rest: Floats, rest_error: Floats) -> Mask:
    """True where two numbers differ by more than three standard errors of their difference."""
    return np.asarray(np.abs(value - rest) > NOISE_SIGMAS * np.hypot(error, rest_error), np.bool_)


def said(n_differing: int, n_groups: int) -> str:
    """Return the number of groups that differ from the rest, as a sentence.

    >>> said(0, 25)
    'none of 25 groups differs from the rest by more than 3 standard errors'
    """
    start = f"{n_differing:,}" if n_differing else "none"
    verb = "differ" if n_differing > 1 else "differs"
    return (
        f"{start} of {n_groups:,} groups {verb} from the rest by more than {NOISE_SIGMAS:.0f} standard errors"
    )
