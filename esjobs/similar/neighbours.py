"""Which jobs a score is predicted from, and what their scores make: the approaches of the paper, pure.

V. Voevodin, D. Shaikhislamov, D. Nikitenko, How to Assess the Quality of Supercomputer Resource Usage,
Supercomputing Frontiers and Innovations, 2022, section 4.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import UsageError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Limits:
    """When programs are alike (``static``: similarity from there on), and jobs (distances up to there).

    ``coarse``: of jobs of programs that are alike, ``fine``: of any. The first two are None where nothing is
    known of programs. Below 0 a distance leaves out everything.
    """

    static: float | None
    coarse: float | None
    fine: float

    @property
    def farthest(self) -> float:
        """No neighbour is beyond."""
        return max(self.fine, self.coarse or 0.0)


def told_limit(limit: float | None) -> float | None:
    """A limit as it is told: None where there is none, or nothing within it."""
    return None if limit is None or limit < 0 else limit


@dataclass(frozen=True)
class Predicted:
    """A score from neighbours. ``spread``: their weighted standard deviation; NaN of a single one."""

    value: float
    spread: float
    n_neighbours: int
    nearest: float


NO_PROGRAM_ALIKE = "no job of a program that is alike"
TOO_FAR = "no similar job within the limit"


def neighbours(
    distances: Floats, similarities: Floats | None, limits: Limits, approach: str
) -> tuple[Mask, str]:
    """Which of the comparable jobs are neighbours, and in which step (A or B), or why there is none.

    ``similarities``: static ones, in [0, 1], NaN where nothing is known of one of both programs. Once there
    is a job of a program that is alike, combined approaches look no further, as near as others may be.

    >>> limits = Limits(0.8, 0.5, 0.1)
    >>> neighbours(np.array([0.4, 0.05]), np.array([0.9, 0.2]), limits, "combined-1")
    (array([ True, False]), 'A')
    >>> neighbours(np.array([0.4, 0.05]), np.array([0.3, np.nan]), limits, "combined-1")
    (array([False,  True]), 'B')
    """
    if approach != "dynamic":
        if similarities is None or limits.static is None or limits.coarse is None:
            raise UsageError(f"nothing is known of programs, which {approach} needs; take dynamic")
        alike = similarities >= limits.static
        if alike.any():
            near = alike & (distances <= limits.coarse)
            return near, "A" if near.any() else TOO_FAR
        if approach == "combined-2":
            return alike, NO_PROGRAM_ALIKE
    near = distances <= limits.fine
    return near, "B" if near.any() else TOO_FAR


def predicted(scores: Floats, distances: Floats, aggregation: str) -> Predicted:
    """The score of a job from those of its neighbours, one at least.

    softmax: sum(e^-d x score) / sum(e^-d). The least distance is subtracted of all, which changes nothing but
    that no weight is lost to rounding.

    >>> found = predicted(np.array([10.0, 20.0]), np.array([5000.0, 5000.0 + np.log(3)]), "softmax")
    >>> round(found.value, 9)
    12.5
    """
    weights = np.ones(len(scores)) if aggregation != "softmax" else np.exp(distances.min() - distances)
    weights /= weights.sum()
    mean = float(weights @ scores)
    value = float(np.median(scores)) if aggregation == "median" else mean
    spread = float(np.sqrt(weights @ np.square(scores - mean))) if len(scores) > 1 else np.nan
    return Predicted(value, spread, len(scores), float(distances.min()))
