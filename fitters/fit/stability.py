"""How much factors change when a task is left out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitters.fit.kernels import GAMMA
from fitters.fit.results import FitResult, Fitted
from fitters.fit.solve import MODES, minimise
from fitters.fit.threads import modest_blas
from fitters.layout.arrays import EMPTY, Floats, Texts
from fitters.layout.components import Part
from fitters.layout.kernels import unit_roots
from fitters.layout.table import Table

REFIT_LIMIT = 40
"""Components of up to so many tasks are fitted again for each task; larger ones take one Newton step."""

LOST_LINK = 1e-9


@dataclass(frozen=True, eq=False)
class LeftOut(Table):
    """One row per bucket of a fitted component, task after task.

    Attributes
    ----------
    name : array of labels
        The unit.
    task : array of labels
        The task that is left out.
    component : int64 array
    ln_change : float64 array
        ln k without the task minus ln k with it, both scaled to the same sum over the units that stay
        connected with this one. NaN unless the status is ``ok``.
    status : array of str
        ``ok``; ``only task`` (the unit has no other); ``splits`` (without the task the component falls
        apart and, above 40 tasks, is not fitted again); ``alone`` (the unit stays without a partner); ``not
        converged``.
    method : array of str
        ``refit`` or ``newton``.
    """

    name: Texts
    task: Texts
    component: NDArray[np.int64]
    ln_change: Floats
    status: Texts
    method: Texts


def leave_one_task_out(result: FitResult, *, refit_up_to: int = REFIT_LIMIT) -> LeftOut:
    """Work out how each unit's factor changes when one of its tasks is left out.

    Components of up to `refit_up_to` tasks are fitted again for every task, from the old minimum. In larger
    ones one Newton step is made with the Hessian without the task, (H - H_a)^-1 s_a, s_a being the task's
    gradient at the minimum; the inverse follows from C by a small system per task (Cook, Technometrics 19
    (1977) 15, for linear models). Units that only this task holds are left out with it, and the step is no
    worse for it.

    Exact refits take one search per task; the Newton step O(sum of cubed task sizes).
    """
    names, tasks, numbers, changes, statuses, methods = [], [], [], [], [], []
    mode = MODES[result.settings.objective]
    for number in sorted(result.fitted):
        inside = result.fitted[number]
        part = inside.part
        exact = part.n_tasks <= refit_up_to
        with modest_blas(part.n_units):
            change, status = _refits(inside, mode) if exact else _newton_steps(inside, mode)
        names.append(result.units.name[part.units[part.unit]])
        tasks.append(np.repeat(result.tasks.name[part.tasks], np.diff(part.ptr)))
        numbers.append(np.full(part.n_buckets, number))
        changes.append(change)
        statuses.append(status)
        methods.append(np.full(part.n_buckets, "refit" if exact else "newton", object))
    if not names:
        texts = np.empty(0, object)
        return LeftOut(texts, texts.copy(), np.empty(0, np.int64), np.empty(0), texts.copy(), texts.copy())
    columns = (names, tasks, numbers, changes, statuses, methods)
    return LeftOut(*(np.concatenate(column) for column in columns))


def _refits(inside: Fitted, mode: int) -> tuple[Floats, Texts]:
    part, theta = inside.part, inside.solution.theta
    change, status = np.full(part.n_buckets, np.nan), np.empty(part.n_buckets, object)
    status[:] = "ok"
    for task in range(part.n_tasks):
        rows = slice(part.ptr[task], part.ptr[task + 1])
        local = part.unit[rows]
        label, fitted, failed = _theta_without(part, theta, task, mode)
        for row, unit in zip(range(rows.start, rows.stop), local.tolist(), strict=True):
            friends = label == label[unit]
            if label[unit] < 0:
                status[row] = "only task"
            elif np.count_nonzero(friends) < 2:
                status[row] = "alone"
            elif failed[unit]:
                status[row] = "not converged"
            else:
                scale = np.log(np.exp(fitted[friends]).sum() / np.exp(theta[friends]).sum())
                change[row] = fitted[unit] - theta[unit] - scale
    return change, status


def _theta_without(
    part: Part, theta: Floats, task: int, mode: int
) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """Fit each piece that is left without `task`: piece of every unit (-1: no bucket), ln k, and failures."""
    sizes = np.diff(part.ptr)
    keep = np.repeat(np.arange(part.n_tasks) != task, sizes)
    ptr = np.concatenate([[0], np.cumsum(np.delete(sizes, task))])
    unit, value = part.unit[keep], part.value[keep]
    weight = part.weight[keep] if part.weight.size else EMPTY
    label = np.full(part.n_units, -1, np.int64)
    fitted, failed = theta.copy(), np.zeros(part.n_units, bool)
    if unit.size == 0:
        return label, fitted, failed
    roots = unit_roots(ptr, unit, part.n_units).astype(np.int64)
    present = np.zeros(part.n_units, bool)
    present[unit] = True
    label[present] = roots[present]
    owner = label[unit[ptr[:-1]]]
    for root in np.unique(owner).tolist():
        indices = np.flatnonzero(label == root)
        tasks_of_piece = np.flatnonzero(owner == root)
        inside = np.repeat(owner == root, np.diff(ptr))
        local = np.zeros(part.n_units, np.int32)
        local[indices] = np.arange(indices.size)
        piece = Part(
            number=0,
            units=indices,
            tasks=tasks_of_piece,
            ptr=np.concatenate([[0], np.cumsum(np.diff(ptr)[tasks_of_piece])]),
            unit=local[unit[inside]],
            value=value[inside],
            weight=weight[inside] if weight.size else EMPTY,
            rel_var=EMPTY,
        )
        solution = minimise(piece, mode, theta[indices])
        if not solution.converged:
            solution = minimise(piece, mode)
        fitted[indices], failed[indices] = solution.theta, not solution.converged
    return label, fitted, failed


def _newton_steps(inside: Fitted, mode: int) -> tuple[Floats, Texts]:
    part = inside.part
    k, inverse = inside.propagation.k, inside.propagation.inverse_hessian
    change, status = np.full(part.n_buckets, np.nan), np.empty(part.n_buckets, object)
    status[:] = "ok"
    count = np.bincount(part.unit, minlength=part.n_units)
    p = k / part.n_units
    x = part.value * k[part.unit] / np.repeat(inside.propagation.level, np.diff(part.ptr))
    weight = part.weight if part.weight.size else np.ones(part.n_buckets)
    for task in range(part.n_tasks):
        rows = np.arange(part.ptr[task], part.ptr[task + 1])
        single = count[part.unit[rows]] == 1
        status[rows[single]] = "only task"
        rows = rows[~single]
        if rows.size < 2:
            change[rows] = 0.0  # what is left of the task fits exactly
            continue
        here = part.unit[rows]
        score, bend = _score(x[rows], weight[rows], mode)
        block = np.diag(bend) - np.outer(bend, bend) / bend.sum()
        small = inverse[np.ix_(here, here)]
        system = np.eye(rows.size) - block @ small
        if np.linalg.svd(system, compute_uv=False)[-1] < LOST_LINK:
            status[rows] = "splits"
            continue
        step = np.linalg.solve(system, score)
        change_of_all = inverse[:, here] @ step
        gone = part.unit[part.ptr[task] : part.ptr[task + 1]][single]
        share = p.copy()
        share[gone] = 0.0
        change[rows] = change_of_all[here] - np.log(np.sum(share * np.exp(change_of_all)) / share.sum())
    return change, status


def _score(x: Floats, weight: Floats, mode: int) -> tuple[Floats, Floats]:
    """Gradient and curvature of single buckets."""
    if mode == GAMMA:
        return 2.0 * weight * (x - 1.0), 2.0 * weight * x
    return 2.0 * weight * x * (x - 1.0), 2.0 * weight * x * (2.0 * x - 1.0)
