"""Exact quantiles of groups from counts in bins.

Bin ``n`` holds values from edge ``n - 1`` (included) to edge ``n``; counts are groups x bins. The quantile is
the value at position ``fraction x (n - 1)``, interpolated linearly (Hyndman and Fan, definition 7). Bins that
hold a needed order statistic are split again, or their values listed.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Ranks beside a fraction that have edges of their own: groups mostly differ by little
_NEAR = (0.004, 0.01, 0.02)


class InconsistentError(Exception):
    """Contradiction between values and counts."""


def ranks(fractions: Iterable[float], bins: int) -> list[float]:
    """Return about ``bins`` ranks for edges: even, and denser beside the fractions.

    >>> ranks([0.5], 10)
    [0.25, 0.48, 0.49, 0.496, 0.504, 0.51, 0.52, 0.75]
    """
    wanted = list(fractions)
    near = {
        round(rank, 6)
        for fraction in wanted
        for step in _NEAR
        for rank in (fraction - step, fraction + step)
        if 0 < rank < 1
    }
    # some spread evenly in any case: a sample may miss where the quantile is
    n_even = max(bins - len(near), 4)
    even = {step / n_even for step in range(1, n_even)}
    even = {rank for rank in even if all(abs(rank - fraction) > _NEAR[-1] for fraction in wanted)}
    return sorted(even | near)


def edges_at(values: Iterable[float | None], most: int) -> Floats:
    """Return values as finite, ascending, unique edges, at most ``most``."""
    # plus 0.0 turns -0.0 into 0.0: both are one edge
    finite = sorted({float(value) + 0.0 for value in values if value is not None and math.isfinite(value)})
    if len(finite) > most:
        finite = [finite[step * len(finite) // most] for step in range(most)]
    return np.array(finite, np.float64)


def _places(totals: Counts, fraction: float) -> tuple[Counts, Counts, Floats]:
    """Return the positions of both neighbours of a quantile, from 0, and the share between them."""
    position = np.maximum(totals - 1, 0).astype(np.float64) * fraction
    low = np.floor(position)
    return low.astype(np.int64), np.ceil(position).astype(np.int64), position - low


def holding(counts: Counts, fractions: Sequence[float]) -> Mask:
    """Return per group the bins that hold a neighbour of a quantile."""
    totals, upto = counts.sum(axis=1), counts.cumsum(axis=1)
    holds = np.zeros(counts.shape, np.bool_)
    some = np.flatnonzero(totals)
    for fraction in fractions:
        for places in _places(totals, fraction)[:2]:
            bins = (upto[some] <= places[some, None]).sum(axis=1)
            holds[some, bins] = True
    return holds


def split(edges: Floats, counts: Counts, holds: Mask, finer: Floats, measured: Counts) -> Counts:
    """Return the counts by finer edges from a measurement of the open bins.

    Jobs of other bins stay in their first part. Raises :class:`InconsistentError`.
    """
    lows = np.concatenate([[-np.inf], finer])
    # the coarse bin of each fine one, and the first fine bin of each coarse one
    parents = np.searchsorted(edges, lows, side="right")
    firsts = np.searchsorted(parents, np.arange(counts.shape[1]))
    inside = np.where(holds[:, parents], measured, 0)
    # counts of one snapshot must add up: if not, an edge was understood differently by the cluster
    if not np.array_equal(np.add.reduceat(inside, firsts, axis=1)[holds], counts[holds]):
        raise InconsistentError("a bin and its parts have different counts")
    inside[:, firsts] += np.where(holds, 0, counts)
    return inside


def quantiles(
    edges: Floats,
    counts: Counts,
    holds: Mask,
    listed: tuple[Counts, Floats, Counts],
    fractions: Sequence[float],
) -> list[Floats]:
    """Return the quantiles of each group, an array per fraction; NaN without numbers.

    ``listed``: group, value, number of jobs, of all values in open bins. Raises :class:`InconsistentError`.
    """
    groups, values, numbers = listed
    bins = np.searchsorted(edges, values, side="right")
    # a list may have more than was asked for: clauses are wide
    wanted = holds[groups, bins]
    groups, values, numbers, bins = groups[wanted], values[wanted], numbers[wanted], bins[wanted]
    inside = np.zeros(counts.shape, np.int64)
    np.add.at(inside, (groups, bins), numbers)
    if not np.array_equal(inside[holds], counts[holds]):
        raise InconsistentError("the values of a bin differ from its count")
    # by group, then by value
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
    # end of the places that a value takes among all jobs of its group
    ends = first[groups] + below[groups, bins] + upto - before
    answers: list[Floats] = []
    some = np.flatnonzero(totals)
    for fraction in fractions:
        low, high, part = (each[some] for each in _places(totals, fraction))
        found = [
            values[np.searchsorted(ends, first[some] + position, side="right")] for position in (low, high)
        ]
        answer = np.full(len(totals), np.nan)
        between = zip(*(each.tolist() for each in (*found, low, high, part)), strict=True)
        answer[some] = [
            left if start == end else interpolated(left, right, share)
            for left, right, start, end, share in between
        ]
        answers.append(answer)
    return answers


def interpolated(low: float, high: float, share: float) -> float:
    """Interpolate bit-identically to the embedded engine, which uses a fused multiply-add.

    >>> interpolated(1.0, 4.0, 0.5)
    2.5
    """
    second = high * share
    if not (math.isfinite(low) and math.isfinite(second)):
        return low * (1.0 - share) + second
    # Fractions are exact, so the sum is rounded once, like the machine's fused instruction
    return float(Fraction(low) * Fraction(1.0 - share) + Fraction(second))
