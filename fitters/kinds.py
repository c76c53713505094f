"""How much kinds of jobs differ inside the units of one task."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitters.buckets import Floats

interaction = 0.10
"""Scatter between unit and kind that is assumed beside the statistics."""

usual_sigma = 0.3
"""Scatter of single jobs where none is known."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """ln ratio of a kind's CPU time per event to the main kind's, its error, and the kind's share of jobs.

    `share` is that of the task or of the unit with the largest one, whichever is larger. `paired` tells
    whether some unit ran both.
    """

    kind: int
    main: int
    ln_ratio: float
    error: float
    share: float
    paired: bool

    def differs(self, gap_limit: float, share_limit: float) -> bool:
        """Whether mixing the two would move means: far apart, for certain, and not rare everywhere."""
        size = abs(self.ln_ratio)
        return size > gap_limit and size > 3.0 * self.error and self.share >= share_limit


def contrasts(
    unit: NDArray[np.intp], kind: NDArray[np.intp], jobs: Floats, mean: Floats, variance: Floats
) -> list[Contrast]:
    """Compare every kind of one task with the one of most jobs.

    Parameters
    ----------
    unit, kind, jobs : shape (n,)
        One row per (unit, kind).
    mean : shape (n,)
        ln of CPU time per event, the fixed cost taken out.
    variance : shape (n,)
        Relative variance of single jobs; NaN: unknown, then the average of the known ones.

    Notes
    -----
    Inside units that ran both, with weights 1 / (variance_1 / N_1 + variance_2 / N_2 + 2 x 0.1^2). Without
    such a unit the averages over all units are compared, and units are taken to scatter by 0.3.

    >>> unit, kind = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> jobs, mean = np.array([50.0, 20.0, 60.0]), np.array([0.0, 2.0, 0.3])
    >>> found = contrasts(unit, kind, jobs, mean, np.full(3, 0.04))
    >>> found[0].kind, found[0].ln_ratio, round(found[0].share, 2)
    (1, 2.0, 0.29)
    """
    known = np.isfinite(variance)
    spread = usual_sigma**2
    if known.any() and jobs[known].sum() > 0:
        spread = float(np.sum(jobs[known] * variance[known]) / jobs[known].sum())
    noise = np.where(known, np.maximum(variance, 0.25 * spread), spread) / jobs
    whole = np.bincount(kind, jobs)
    main = int(np.argmax(whole))
    at_unit = np.bincount(unit, jobs)
    place = np.full(at_unit.size, -1)
    place[unit[kind == main]] = np.flatnonzero(kind == main)
    found = []
    for other in np.flatnonzero(whole > 0).tolist():
        if other == main:
            continue
        rows = np.flatnonzero(kind == other)
        share = max(float(whole[other] / whole.sum()), float((jobs[rows] / at_unit[unit[rows]]).max()))
        pair = rows[place[unit[rows]] >= 0]
        if pair.size:
            partner = place[unit[pair]]
            weight = 1.0 / (noise[pair] + noise[partner] + 2.0 * interaction**2)
            ratio = float(np.sum(weight * (mean[pair] - mean[partner])) / weight.sum())
            error = float(1.0 / np.sqrt(weight.sum()))
        else:
            sides = [_average(mean[side], noise[side]) for side in (rows, np.flatnonzero(kind == main))]
            ratio, error = sides[0][0] - sides[1][0], float(np.hypot(sides[0][1], sides[1][1]))
        found.append(Contrast(other, main, ratio, error, share, bool(pair.size)))
    return found


def _average(mean: Floats, noise: Floats) -> tuple[float, float]:
    weight = 1.0 / (noise + usual_sigma**2)
    return float(np.sum(weight * mean) / weight.sum()), float(1.0 / np.sqrt(weight.sum()))
