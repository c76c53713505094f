"""Ranges of samples at which something holds."""

import numpy as np

from esjobs.detect.detectors.measured import NONE, Bools, Ints


def longest_run(holds: Bools) -> tuple[Ints, Ints]:
    """Begin and end (not included) of the longest run of True in each row, the first of equals; -1: none.

    >>> begin, end = longest_run(np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], dtype=bool))
    >>> begin.tolist(), end.tolist()
    ([2, -1], [4, -1])
    """
    length = _lengths(holds)
    last = np.argmax(length, axis=1)
    longest = np.take_along_axis(length, last[:, None], axis=1)[:, 0]
    return np.where(longest > 0, last - longest + 1, NONE), np.where(longest > 0, last + 1, NONE)


def run_around(holds: Bools, sample: Ints) -> tuple[Ints, Ints]:
    """Begin and end of the run of True around a sample of each row; the sample alone where it is False.

    >>> begin, end = run_around(np.array([[1, 0, 1, 1, 0]], dtype=bool), np.array([2]))
    >>> begin.tolist(), end.tolist()
    ([2], [4])
    """
    at = sample[:, None]
    back = np.take_along_axis(_lengths(holds), at, axis=1)[:, 0]
    # of the mirrored row, the run up to the mirrored sample is the run from the sample on
    on = np.take_along_axis(_lengths(holds[:, ::-1]), holds.shape[1] - 1 - at, axis=1)[:, 0]
    return sample - np.maximum(back - 1, 0), sample + np.maximum(on, 1)


def first_and_last(holds: Bools) -> tuple[Ints, Ints]:
    """The first True of each row, and the sample after the last one; -1: none."""
    some = holds.any(axis=1)
    last = holds.shape[1] - np.argmax(holds[:, ::-1], axis=1)
    return np.where(some, np.argmax(holds, axis=1), NONE), np.where(some, last, NONE)


def _lengths(holds: Bools) -> Ints:
    """How many True have come without a break, up to each sample."""
    n = np.arange(1, holds.shape[1] + 1, dtype=np.int32)
    last_false = np.maximum.accumulate(np.where(holds, np.int32(0), n), axis=1)
    return (n - last_false).astype(np.int64)
