"""Run times of jobs of one name as cells of nodes and names, to compare nodes by.

Runs of a name often come in bursts of one input, on few nodes: their cells scatter more than jobs do. Each
name's variance is therefore that of its cells, where it is larger (see benchmarks/results/black_holes.md).
"""

import numpy as np

from esjobs.errors.slowness import TimedCells
from fitters import MAD_FACTOR
from fitters.layout.arrays import Floats, Ints, grouped_median

LEAST_RUNS, LEAST_NODES = 20, 5
"""Runs of a name, and nodes that they are on, from which on it counts."""
MOST_NAMES = 2000
"""Names of most runs that count."""
_FAR = 3.0  # Standard deviations
_LEAST_SPREAD = 0.01  # Relative; run times of whole seconds may all be equal
# Median of the square of a standard normal deviate
_MEDIAN_SQUARE = 0.4549


def counted_runs(node: Ints, name: Ints) -> Ints:
    """Return the rows of names with enough runs on enough nodes."""
    n_names = int(name.max(initial=-1)) + 1
    runs = np.bincount(name, minlength=n_names)
    pairs = np.unique(np.stack([name, node]), axis=1)
    usable = (runs >= LEAST_RUNS) & (np.bincount(pairs[0], minlength=n_names) >= LEAST_NODES)
    runs[~usable] = 0
    # memory of the fit grows with names x nodes
    usable[np.argsort(-runs, kind="stable")[MOST_NAMES:]] = False
    return np.flatnonzero(usable[name])


def cells_of_runs(node: Ints, name: Ints, seconds: Floats) -> TimedCells:
    """Return the cells of nodes and names; runs are the rows of the arrays.

    ``ln_cost``: mean ln(run time), runs beyond 3 standard deviations from the cell's median drawn in.
    """
    ln_time = np.log(seconds)
    cells, cell = np.unique(np.stack([name, node]), axis=1, return_inverse=True)
    cell = cell.ravel()
    of_name, of_node = cells
    n_names, n_cells = int(name.max(initial=-1)) + 1, cells.shape[1]
    from_median = np.abs(ln_time - grouped_median(name, ln_time, n_names)[name])
    spread = MAD_FACTOR * grouped_median(name, from_median, n_names)[name]
    far = _FAR * np.maximum(spread, _LEAST_SPREAD)
    middle = grouped_median(cell, ln_time, n_cells)[cell]
    ln_time = middle + np.clip(ln_time - middle, -far, far)
    jobs = np.bincount(cell).astype(np.float64)
    mean = np.bincount(cell, ln_time) / jobs
    squares = np.bincount(cell, (ln_time - mean[cell]) ** 2)
    # names with a run a node take the scatter of all
    overall = squares.sum() / max(float((jobs - 1).sum()), 1.0)
    variance = (np.bincount(of_name, squares) + overall) / (np.bincount(of_name, jobs - 1) + 1.0)
    variance = np.maximum(variance, _LEAST_SPREAD**2)[of_name]
    # bursts: where cells scatter more than their jobs explain, the variance is that of the cells
    apart = jobs * (mean - grouped_median(of_name, mean, n_names)[of_name]) ** 2 / variance
    variance *= np.maximum(grouped_median(of_name, apart, n_names) / _MEDIAN_SQUARE, 1.0)[of_name]
    return TimedCells(of_node, of_name, mean, variance / jobs)
