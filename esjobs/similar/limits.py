"""Limits of similarity derived from the knowledge base."""

import numpy as np

from fitters.layout.arrays import Floats, Mask

FAR_APART = 10.0
"""Difference from which scores are not similar, as in the paper."""
NONE_SIMILAR = -1.0
"""Limit if even the nearest jobs differ in score."""
TOLERATED_B = 0.04
"""Tolerated share of differing pairs in a group within limit B."""
TOLERATED_A = 0.1
GROUP = 50
"""Pairs per group."""
USUAL_STATIC = 0.8
_STATIC = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_SAME_PROGRAM = 0.9


def farthest_similar(distances: Floats, differences: Floats, tolerated: float) -> float | None:
    """Return the distance from which pairs of jobs differ in score; :data:`NONE_SIMILAR`: the nearest do.

    Pairs are grouped by distance, :data:`GROUP` each; the limit is the last pair before the first differing
    one in the first group with more than the tolerated share. Not the share of all pairs up to the limit:
    many near ones would outweigh a distant family of different jobs. None: too few pairs.

    >>> near = np.arange(100) / 100
    >>> farthest_similar(near, np.where(near < 0.5, 1.0, 30.0), 0.04)
    0.49
    """
    if len(distances) < GROUP:
        return None
    order = np.argsort(distances, kind="stable")
    beyond = differences[order] > FAR_APART
    # the last group may be smaller: its share is of a full one, so that a single pair decides nothing
    for begin in range(0, len(order), GROUP):
        group = beyond[begin : begin + GROUP]
        if group.sum() > tolerated * GROUP:
            last = begin + int(group.argmax()) - 1
            return float(distances[order[last]]) if last >= 0 else NONE_SIMILAR
    return float(distances[order[-1]])


def least_static(similarities: Floats, same: Mask) -> float:
    """Return the least program similarity at which 90 % of pairs have the same application name.

    One of six steps; :data:`USUAL_STATIC` for too few pairs.
    """
    if len(similarities) < GROUP:
        return USUAL_STATIC
    # from the loosest: more pairs count as similar
    for step in _STATIC:
        above = similarities >= step
        if above.any() and same[above].mean() >= _SAME_PROGRAM:
            return step
    return _STATIC[-1]
