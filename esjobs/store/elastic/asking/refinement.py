"""Exact quantiles of groups from counts: which bins hold them, and which of some values they are.

Counting finds a quantile without a value being read. The numbers of all groups are cut by the same edges; how
many jobs of a group lie in each bin tells which bin has an order statistic, and how many jobs lie below. Bins
that hold one are cut again, or their few values are listed. Everything here is a function of arrays: counts
are rows of groups and columns of bins, bin ``n`` holds what is at least edge ``n - 1`` and below edge ``n``.

Quantiles are those of the language: the value at place ``fraction x (n - 1)`` of the n values in their order,
between two values interpolated linearly (Hyndman and Fan, definition 7).
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEAR = (0.004, 0.01, 0.02)
"""Ranks beside a fraction that have edges of their own: groups mostly differ by little."""


class InconsistentError(Exception):
    """Values and counts contradict each other: whatever counted cuts its numbers in another way."""


def ranks(fractions: Iterable[float], bins: int) -> list[float]:
    """Ranks of all numbers at which edges pay, about ``bins``: evenly, and closer beside the fractions.

    >>> ranks([0.5], 10)
    [0.25, 0.48, 0.49, 0.496, 0.504, 0.51, 0.52, 0.75]
    """
    asked = list(fractions)
    near = {
        round(rank, 6)
        for fraction in asked
        for step in _NEAR
        for rank in (fraction - step, fraction + step)
        if 0 < rank < 1
    }
    n_even = max(bins - len(near), 4)
    even = {step / n_even for step in range(1, n_even)}
    even = {rank for rank in even if all(abs(rank - fraction) > _NEAR[-1] for fraction in asked)}
    return sorted(even | near)


def edges_at(values: Iterable[float | None], most: int) -> Floats:
    """Numbers as edges: finite, ascending, each once, ``most`` of them at most."""
    known = sorted({float(value) + 0.0 for value in values if value is not None and math.isfinite(value)})
    if len(known) > most:
        known = [known[step * len(known) // most] for step in range(most)]
    return np.array(known, np.float64)


def _places(totals: Counts, fraction: float) -> tuple[Counts, Counts, Floats]:
    """The places of the two values between which a quantile lies, from 0, and how far from the first."""
    place = np.maximum(totals - 1, 0).astype(np.float64) * fraction
    low = np.floor(place)
    return low.astype(np.int64), np.ceil(place).astype(np.int64), place - low


def holding(counts: Counts, fractions: Sequence[float]) -> Mask:
    """Per group the bins that hold a value between which a quantile lies."""
    totals, upto = counts.sum(axis=1), counts.cumsum(axis=1)
    holds = np.zeros(counts.shape, np.bool_)
    some = np.flatnonzero(totals)
    for fraction in fractions:
        for places in _places(totals, fraction)[:2]:
            bins = (upto[some] <= places[some, None]).sum(axis=1)
            holds[some, bins] = True
    return holds


def split(edges: Floats, counts: Counts, holds: Mask, finer: Floats, measured: Counts) -> Counts:
    """The counts by finer edges, which have all former ones, of what was measured in the bins that hold.

    What lies in the other bins stays together: it only tells how many jobs lie below. Raises
    :class:`InconsistentError`.
    """
    lows = np.concatenate([[-np.inf], finer])
    parents = np.searchsorted(edges, lows, side="right")
    firsts = np.searchsorted(parents, np.arange(counts.shape[1]))
    inside = np.where(holds[:, parents], measured, 0)
    if not np.array_equal(np.add.reduceat(inside, firsts, axis=1)[holds], counts[holds]):
        raise InconsistentError("bins do not count what their parts count")
    inside[:, firsts] += np.where(holds, 0, counts)
    return inside


def quantiles(
    edges: Floats,
    counts: Counts,
    holds: Mask,
    listed: tuple[Counts, Floats, Counts],
    fractions: Sequence[float],
) -> list[Floats]:
    """The quantiles of each group, an array a fraction; NaN for groups without a number.

    ``listed``: group, value and how many jobs have it, of all values in the bins that hold; others may be
    among them. Raises :class:`InconsistentError`.
    """
    groups, values, numbers = listed
    bins = np.searchsorted(edges, values, side="right")
    wanted = holds[groups, bins]
    groups, values, numbers, bins = groups[wanted], values[wanted], numbers[wanted], bins[wanted]
    inside = np.zeros(counts.shape, np.int64)
    np.add.at(inside, (groups, bins), numbers)
    if not np.array_equal(inside[holds], counts[holds]):
        raise InconsistentError("bins do not have as many values as they count")
    order = np.lexsort((values, groups))
    groups, values, numbers, bins = groups[order], values[order], numbers[order], bins[order]
    totals = counts.sum(axis=1)
    # places over all groups, one after the other: a value has those up to its end
    first = np.concatenate([[0], totals.cumsum()])
    below = counts.cumsum(axis=1) - counts
    cell = groups * counts.shape[1] + bins
    upto = numbers.cumsum()
    begins = np.flatnonzero(np.diff(cell, prepend=-1))
    before = np.repeat(upto[begins] - numbers[begins], np.diff(np.append(begins, len(cell))))
    ends = first[groups] + below[groups, bins] + upto - before
    answers: list[Floats] = []
    some = np.flatnonzero(totals)
    for fraction in fractions:
        low, high, part = (each[some] for each in _places(totals, fraction))
        found = [values[np.searchsorted(ends, first[some] + place, side="right")] for place in (low, high)]
        answer = np.full(len(totals), np.nan)
        between = zip(*(each.tolist() for each in (*found, low, high, part)), strict=True)
        answer[some] = [
            left if start == end else interpolated(left, right, share)
            for left, right, start, end, share in between
        ]
        answers.append(answer)
    return answers


def interpolated(low: float, high: float, share: float) -> float:
    """The number between two, to the bit as the embedded engine gives it.

    It adds the product with the first to that with the second without rounding the former (a fused
    multiply-add).

    >>> interpolated(1.0, 4.0, 0.5)
    2.5
    """
    second = high * share
    if not (math.isfinite(low) and math.isfinite(second)):
        return low * (1.0 - share) + second
    return float(Fraction(low) * Fraction(1.0 - share) + Fraction(second))
