"""Choice of neighbours and aggregation of their scores: the approaches of the paper, pure.

V. Voevodin, D. Shaikhislamov, D. Nikitenko, How to Assess the Quality of Supercomputer Resource Usage,
Supercomputing Frontiers and Innovations, 2022, section 4.
"""

from dataclasses import dataclass

import numpy as np

from esjobs.core.errors import UsageError
from fitters.layout.arrays import Floats, Mask


@dataclass(frozen=True)
class Limits:
    """Limits of similarity.

    ``static``: of programs. ``limit_a``: distance of jobs of similar programs, ``limit_b``: of any; negative:
    nothing is within. The first two are None if programs are unknown.
    """

    static: float | None
    limit_a: float | None
    limit_b: float

    @property
    def farthest(self) -> float:
        """Largest distance of any neighbour."""
        return max(self.limit_b, self.limit_a or 0.0)


def shown_limit(limit: float | None) -> float | None:
    """Return a limit for display, None if nothing is within it."""
    return None if limit is None or limit < 0 else limit


@dataclass(frozen=True)
class Predicted:
    """Score from neighbours. ``spread``: weighted standard deviation; NaN of a single one."""

    value: float
    spread: float
    n_neighbours: int
    nearest: float


NO_SIMILAR_PROGRAM = "no job of a similar program"
TOO_FAR = "no similar job within the limit"


def neighbours(
    distances: Floats, similarities: Floats | None, limits: Limits, approach: str
) -> tuple[Mask, str]:
    """Return the mask of neighbours and the step (A or B), or the reason for none.

    ``similarities``: of programs, in [0, 1], NaN if unknown. If there is a job of a similar program, combined
    approaches ignore all others.

    >>> limits = Limits(0.8, 0.5, 0.1)
    >>> neighbours(np.array([0.4, 0.05]), np.array([0.9, 0.2]), limits, "combined-1")
    (array([ True, False]), 'A')
    >>> neighbours(np.array([0.4, 0.05]), np.array([0.3, np.nan]), limits, "combined-1")
    (array([False,  True]), 'B')
    """
    if approach != "dynamic":
        if similarities is None or limits.static is None or limits.limit_a is None:
            raise UsageError(f"approach {approach} requires programs, but none was scanned; use dynamic")
        similar = similarities >= limits.static
        # a job of a similar program tells more than any number of others
        if similar.any():
            near = similar & (distances <= limits.limit_a)
            return near, "A" if near.any() else TOO_FAR
        if approach == "combined-2":
            return similar, NO_SIMILAR_PROGRAM
    # step B: behaviour alone, within a much smaller distance
    near = distances <= limits.limit_b
    return near, "B" if near.any() else TOO_FAR


def predicted(scores: Floats, distances: Floats, aggregation: str) -> Predicted:
    """Return the score of a job from those of its neighbours.

    softmax: sum(e^-d x score) / sum(e^-d).

    >>> found = predicted(np.array([10.0, 20.0]), np.array([5000.0, 5000.0 + np.log(3)]), "softmax")
    >>> round(found.value, 9)
    12.5
    """
    # less the smallest distance, which cancels: e^-5000 would be 0
    weights = np.ones(len(scores)) if aggregation != "softmax" else np.exp(distances.min() - distances)
    weights /= weights.sum()
    mean = float(weights @ scores)
    value = float(np.median(scores)) if aggregation == "median" else mean
    spread = float(np.sqrt(weights @ np.square(scores - mean))) if len(scores) > 1 else np.nan
    return Predicted(value, spread, len(scores), float(distances.min()))
