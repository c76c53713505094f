"""Minimisation by alternating levels and factors, accelerated.

With the levels at their best, each factor's best is known: the mean x of its buckets becomes 1 (gamma), or
its squared residuals the least (paper). In turn they come nearer by a factor that is small where tasks share
many units, and near 1 where few links hold groups of units together. Anderson's mixing of the last steps
(D. G. Anderson, J. ACM 12 (1965) 547; Walker & Ni, SIAM J. Numer. Anal. 49 (2011) 1715) saves about half of
the passes, without any matrix.
"""

import numpy as np

from fitters.fit.kernels import GAMMA, PAPER
from fitters.fit.passes import unit_sums, unit_weights
from fitters.layout.arrays import Floats
from fitters.layout.components import Part

DEPTH = 5
MOST_PASSES = 25  # After so many passes Newton's method is sooner there
WORSE = 2.0  # Where mixing makes the residual so many times larger, its memory is dropped
LARGEST = 250.0

# Relative variance of a unit's values above which the paper's cost may have several minima near
FAR_SCATTER = 0.05


def alternate(part: Part, theta: Floats, mode: int, tolerance: float) -> tuple[Floats, float, int]:
    """Go from `theta` (ln k, mean 0) until a plain alternating step is below `tolerance`, or for 25 passes.

    Returns where it ended, that step and the number of passes. The step is infinite if it ran out of range,
    or where values are so far off that the paper's cost may have several minima: which of them is next only
    a search that descends can tell.
    """
    weight = unit_weights(part)
    moves: list[Floats] = []
    changes: list[Floats] = []
    before = theta
    last = np.empty(0)
    size = np.inf
    for number in range(1, MOST_PASSES + 1):
        sums = unit_sums(part, np.exp(theta), mode)
        with np.errstate(all="ignore"):
            step = np.log(weight / sums[:, 0]) if mode == GAMMA else np.log(sums[:, 0] / sums[:, 1])
            scatter = weight * sums[:, 1] / sums[:, 0] ** 2 - 1.0
        if mode == PAPER and scatter.max() > FAR_SCATTER:
            return theta, np.inf, number
        step -= step.mean()
        previous, size = size, float(np.abs(step).max())
        if not size < LARGEST:
            return before, np.inf, number
        if size < tolerance:
            return theta + step, size, number
        if last.size and size > WORSE * previous:
            moves.clear()
            changes.clear()
        elif last.size:
            moves.append(theta - before)
            changes.append(step - last)
            del moves[:-DEPTH], changes[:-DEPTH]
        before, last = theta, step
        theta = theta + step
        if moves:
            theta = theta - _mixed(moves, changes, step)
        if not np.abs(theta).max() < LARGEST:
            return before, np.inf, number
    return theta, np.inf, MOST_PASSES


def _mixed(moves: list[Floats], changes: list[Floats], step: Floats) -> Floats:
    # Correction of the plain step: the part of it that past steps explain.
    matrix = np.array(changes)
    normal = matrix @ matrix.T
    normal[np.diag_indices_from(normal)] *= 1.0 + 1e-13
    try:
        share = np.linalg.solve(normal, matrix @ step)
    except np.linalg.LinAlgError:
        return np.zeros(step.size)
    return share @ (np.array(moves) + matrix)
