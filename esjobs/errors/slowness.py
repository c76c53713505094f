"""Nodes on which jobs need more CPU time per event than on other nodes with the same CPU model, task by task.

ln(CPU time per event) of a cell (node i, task t) is a_t + b_i + e, with var e = tau² + s²/n: s² the relative
variance of a job, tau what jobs of one task on one node share. Jobs taken as independent (tau = 0) accuse
several honest nodes a queue (benchmarks/results/black_holes.md).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse, special
from scipy.sparse import csgraph

from esjobs.core.words import HALF_WIDTH_90
from esjobs.errors.black_holes import FALSE_DISCOVERIES, false_discovery_rates
from fitters.layout.arrays import Floats, Ints, Mask
from fitters.threads import one_blas_thread

LEAST_SLOWER = 0.05
"""CPU time per event beyond that of the other nodes, by the lower bound, of a node that is slow."""
LEAST_TASKS = 3
"""Tasks of a node that is slow."""
_LN_TAU_SQ, _LN_TAU_SQ_STEP = (-21.0, 0.0), 21.0 / 4096  # Grid to which tau² is rounded, in ln
_MOST_STEPS, _PRECISION = 50, 1e-5
_LEAST_VARIANCE = 1e-10  # Of jobs that are all equal: a weight must stay finite
# standard deviations of a stray cell; variance that takes its weight; widest half interval, in ln
_STRAY, _NO_WEIGHT, _WIDEST = 4.0, 1e6, 20.0


@dataclass(frozen=True)
class TimedCells:
    """Cells of nodes with one CPU model; ``node``, ``task``: indices from 0.

    ``ln_cost``: ln(CPU time per event), ``error_sq``: its variance by the scatter of jobs, s²/n.
    """

    node: Ints
    task: Ints
    ln_cost: Floats
    error_sq: Floats


@dataclass(frozen=True)
class SlowJudged:
    """Nodes compared with all others of their CPU model; one entry per node, NaN where nothing links it.

    ``slower``: CPU time per event over that of the others, minus 1, with its 90 % interval; ``q``: chance of
    so much, corrected for the number of nodes; ``found``: by all rules. ``tau``: scatter of cells.
    """

    slower: Floats
    low: Floats
    high: Floats
    n_tasks: Ints
    q: Floats
    found: Mask
    tau: float


@one_blas_thread()
def judge_slow(cells: TimedCells) -> SlowJudged:
    """Compare the nodes by a two-way fit, node + task, with weights 1 / (tau² + s²/n).

    tau such that the weighted squares are as many as the degrees of freedom (R. C. Paule, J. Mandel, J. Res.
    NBS 87 (1982) 377); one-sided t-test against the median of the nodes that common tasks link, 5 % false
    discoveries (Benjamini, Hochberg); a lower bound above 5 %, also without the task that adds most, and 3
    tasks. Cells beyond 4 standard deviations do not count. Cost: about 12 systems of the number of nodes.
    """
    n_nodes, n_all = int(cells.node.max(initial=-1)) + 1, int(cells.task.max(initial=-1)) + 1
    n_tasks = np.bincount(cells.node, minlength=n_nodes)
    pairs = sparse.coo_array(
        (np.ones(len(cells.node)), (cells.node, n_nodes + cells.task)), (n_nodes + n_all,) * 2
    )
    # nodes without a chain of common tasks cannot be compared: each part has a free level
    n_parts, part = csgraph.connected_components(pairs, directed=False)
    dof = len(cells.node) - n_all - n_nodes + n_parts
    if dof < 1:
        unknown = np.full(n_nodes, np.nan)
        return SlowJudged(unknown, unknown, unknown, n_tasks, unknown, n_tasks < 0, float("nan"))
    tau_sq = _scatter(cells, dof)
    cells = _without_strays(cells, tau_sq)
    tau_sq = _scatter(cells, max(dof - int((cells.error_sq == _NO_WEIGHT).sum()), 1), tau_sq)
    matrix, right, weight = _equations(cells, tau_sq)
    # singular by one level per part, which rounding leaves at 1e-15 of the largest value; a cell without
    # weight is at 1e-11
    covariance = np.linalg.pinv(matrix, rcond=1e-12, hermitian=True)
    nodes = part[:n_nodes].astype(np.int64)
    contrast = _contrasts(matrix.diagonal(), nodes)
    level = covariance @ right
    slower = np.where(np.isfinite(contrast @ level), level - _centre(level, matrix.diagonal(), nodes), np.nan)
    error = np.sqrt(np.maximum(np.einsum("ij,ij->i", contrast @ covariance, contrast), 1e-12))
    q = np.full(n_nodes, np.nan)
    linked = np.isfinite(slower)
    q[linked] = false_discovery_rates(special.stdtr(dof, -slower / error)[linked])
    # wider intervals mean the same, nothing is known, and would overflow in exp
    half = np.minimum(HALF_WIDTH_90 * error, _WIDEST)
    low, high = np.expm1(slower - half), np.expm1(slower + half)
    found = (q < FALSE_DISCOVERIES) & (low > LEAST_SLOWER) & (n_tasks >= LEAST_TASKS)
    found &= _without_its_worst_task(cells, level, slower, weight)
    return SlowJudged(np.expm1(slower), low, high, n_tasks, q, found, float(np.sqrt(tau_sq)))


def _contrasts(information: Floats, part: Ints) -> Floats:
    """Return weights of each node against the others of its part, well-known ones first; NaN if alone."""
    others = np.where(part[:, None] == part, information, 0.0)
    np.fill_diagonal(others, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.eye(len(part)) - others / others.sum(axis=1, keepdims=True))


def _scatter(cells: TimedCells, dof: int, tau_sq: float = 0.0) -> float:
    """Return tau² by Newton's method from ``tau_sq`` on; 0 where jobs alone scatter as much as the cells.

    One over the weighted squares is nearly linear in tau²; their derivative is -Σ w² r², as the fit is at its
    minimum.
    """
    for _ in range(_MOST_STEPS):
        rest, weight = _rest(cells, tau_sq)
        squares = float(weight @ rest**2)
        # the squares only fall with tau²
        if squares <= dof and tau_sq == 0.0:
            return 0.0
        before = tau_sq
        step = (squares / dof - 1.0) * squares / float(weight**2 @ rest**2)
        tau_sq = max(before + step, 0.0)
        if abs(tau_sq - before) <= _PRECISION * tau_sq:
            break
    # rounded, so that sums in another order do not move it
    low, high, step = *_LN_TAU_SQ, _LN_TAU_SQ_STEP
    place = np.floor((np.clip(np.log(max(tau_sq, 1e-300)), low, high - step / 2) - low) / step)
    return float(np.exp(low + (place + 0.5) * step))


def _without_strays(cells: TimedCells, tau_sq: float) -> TimedCells:
    """Return the cells, those beyond four standard deviations without weight: a job that ran otherwise."""
    rest, weight = _rest(cells, tau_sq)
    stray = np.abs(rest) * np.sqrt(weight) > _STRAY
    return replace(cells, error_sq=np.where(stray, _NO_WEIGHT, cells.error_sq))


def _centre(level: Floats, information: Floats, part: Ints) -> Floats:
    """Return, for each node, the median of the levels of its part, weighted by what is known of them."""
    centre = np.zeros(len(level))
    for number in np.unique(part):
        mine = np.flatnonzero(part == number)
        mine = mine[np.argsort(level[mine])]
        below = np.cumsum(information[mine])
        centre[part == number] = level[mine[np.searchsorted(below, below[-1] / 2)]]
    return centre


def _without_its_worst_task(cells: TimedCells, level: Floats, slower: Floats, weight: Floats) -> Mask:
    """Return true for nodes that are still slow without the task that adds most."""
    values = _without_tasks(cells, cells.ln_cost - level[cells.node], weight) + slower[cells.node]
    order = np.lexsort((values * weight, cells.node))
    # the last cell of each node in this order has the largest weighted excess
    worst = order[np.append(cells.node[order][1:] != cells.node[order][:-1], True)]
    left = weight.copy()
    left[worst] = 0.0
    total = np.maximum(np.bincount(cells.node, left), 1e-12)
    bound = np.bincount(cells.node, left * values) / total - HALF_WIDTH_90 / np.sqrt(total)
    return np.asarray(np.expm1(bound) > LEAST_SLOWER)


def _rest(cells: TimedCells, tau_sq: float) -> tuple[Floats, Floats]:
    """Return the residuals of a fit, and the weights."""
    matrix, right, weight = _equations(cells, tau_sq)
    # one level per part is free: a small ridge fixes it and moves no residual
    level = np.linalg.solve(matrix + np.eye(len(right)) * 1e-9 * max(float(matrix.max()), 1.0), right)
    return _without_tasks(cells, cells.ln_cost - level[cells.node], weight), weight


def _equations(cells: TimedCells, tau_sq: float) -> tuple[Floats, Floats, Floats]:
    """Return matrix and right side of the node effects, tasks eliminated, and the weights of the cells."""
    weight = 1.0 / (tau_sq + np.maximum(cells.error_sq, _LEAST_VARIANCE))
    n_tasks, n_nodes = int(cells.task.max()) + 1, int(cells.node.max()) + 1
    shares = np.bincount(cells.task * n_nodes + cells.node, weight, n_tasks * n_nodes)
    shares = shares.reshape(n_tasks, n_nodes)
    matrix = np.diag(shares.sum(axis=0)) - shares.T @ (shares / shares.sum(axis=1, keepdims=True))
    right = np.bincount(cells.node, weight * _without_tasks(cells, cells.ln_cost, weight)).astype(float)
    return matrix, right, weight


def _without_tasks(cells: TimedCells, values: Floats, weight: Floats) -> Floats:
    """Return values less the weighted mean of their task."""
    return values - (np.bincount(cells.task, weight * values) / np.bincount(cells.task, weight))[cells.task]
