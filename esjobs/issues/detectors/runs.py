"""Intervals of samples in which a condition holds."""

import numpy as np

from esjobs.issues.detectors.measured import NONE, Ints, Mask


def longest_run(holds: Mask) -> tuple[Ints, Ints]:
    """Return begin and end (exclusive) of the longest run of True per row, the first of equals; -1: none.

    >>> begin, end = longest_run(np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], dtype=bool))
    >>> begin.tolist(), end.tolist()
    ([2, -1], [4, -1])
    """
    rows, n = holds.shape
    framed = np.zeros((rows, n + 2), bool)
    framed[:, 1:-1] = holds
    # framed by False, so that runs begin and end in their own row: even edges begin, the others end
    edges = np.flatnonzero(framed[:, 1:] != framed[:, :-1])
    row, begin = np.divmod(edges[::2], n + 1)
    length = edges[1::2] - edges[::2]
    # one number per run, larger for a longer run and, of equals, for an earlier one
    best = np.zeros(rows, np.int64)
    np.maximum.at(best, row, length * (n + 1) + (n - begin))
    longest, first = best // (n + 1), n - best % (n + 1)
    return np.where(longest > 0, first, NONE), np.where(longest > 0, first + longest, NONE)


def run_around(holds: Mask, sample: Ints) -> tuple[Ints, Ints]:
    """Return begin and end of the run of True around a sample of each row; the sample alone if False.

    >>> begin, end = run_around(np.array([[1, 0, 1, 1, 0]], dtype=bool), np.array([2]))
    >>> begin.tolist(), end.tolist()
    ([2], [4])
    """
    n = holds.shape[1]
    at, index = sample[:, None], np.arange(n)
    before, after = ~holds & (index < at), ~holds & (index > at)
    begin = _after_last(before)
    end = np.where(after.any(axis=1), np.argmax(after, axis=1), n)
    inside = np.take_along_axis(holds, at, axis=1)[:, 0]
    return np.where(inside, begin, sample), np.where(inside, end, sample + 1)


def first_and_last(holds: Mask) -> tuple[Ints, Ints]:
    """Return the first True of each row and the sample after the last; -1: none."""
    end = _after_last(holds)
    return np.where(end > 0, np.argmax(holds, axis=1), NONE), np.where(end > 0, end, NONE)


def _after_last(holds: Mask) -> Ints:
    """Return the sample after the last True of each row; 0: none."""
    after = np.arange(1, holds.shape[1] + 1, dtype=np.int32)
    last: Ints = np.multiply(holds, after, dtype=np.int32).max(axis=1).astype(np.int64)
    return last
