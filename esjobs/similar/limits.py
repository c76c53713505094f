"""Limits of similarity from the knowledge base: how far jobs can be apart and still have nearly one score."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FAR_APART = 10.0
"""Scores that differ by more are not alike; the paper counts errors above it."""
NONE_ALIKE = -1.0
"""The limit where the jobs that are nearest differ in score: no distance is small enough, not even 0."""
TOLERATED_FINE = 0.04
"""Part of a group of pairs within the fine limit whose scores may differ by more."""
TOLERATED_COARSE = 0.1
GROUP = 50
"""Pairs of which a part is taken; of fewer it says nothing."""
USUAL_STATIC = 0.8
_STATIC = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_SAME_PROGRAM = 0.9


def farthest_alike(distances: Floats, differences: Floats, tolerated: float) -> float | None:
    """The distance from which on pairs of jobs begin to differ in score; :data:`NONE_ALIKE`: the nearest do.

    Pairs are looked at in the order of their distance, :data:`GROUP` at a time, until more than a tolerated
    part of a group differ by more than :data:`FAR_APART`; the limit is the last pair before the first such
    one of that group. Not the part of all pairs up to the limit: many near ones would make up for a family of
    jobs beyond a gap, of which none is alike. ``differences``: of scores, absolute. None: too few pairs.

    >>> near = np.arange(100) / 100
    >>> farthest_alike(near, np.where(near < 0.5, 1.0, 30.0), 0.04)
    0.49
    """
    if len(distances) < GROUP:
        return None
    order = np.argsort(distances, kind="stable")
    beyond = differences[order] > FAR_APART
    for begin in range(0, len(order), GROUP):
        group = beyond[begin : begin + GROUP]
        if group.sum() > tolerated * GROUP:
            last = begin + int(group.argmax()) - 1
            return float(distances[order[last]]) if last >= 0 else NONE_ALIKE
    return float(distances[order[-1]])


def least_static(similarities: Floats, same: npt.NDArray[np.bool_]) -> float:
    """The least similarity of programs from which on nine of ten pairs of jobs name the same application.

    Of six steps; :data:`USUAL_STATIC` where too few pairs name any.
    """
    if len(similarities) < GROUP:
        return USUAL_STATIC
    for step in _STATIC:
        above = similarities >= step
        if above.any() and same[above].mean() >= _SAME_PROGRAM:
            return step
    return _STATIC[-1]
