"""Groups within which jobs of a task are compared, and queues whose jobs make a task look mixed."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.records.tasks.sums import TaskSums
from esjobs.speed.fixed_costs import correct
from fitters.layout.arrays import Codes, Floats, Ints, Texts

# Jobs of a queue in a task below which they are compared together with those of other such queues
FEW_JOBS = 5
MOST_LEFT_OUT = 3  # Queues that may be left out of a task so that it is not mixed


def units_of_enough_jobs(
    jobs: pa.Table, rows: TaskSums, costs: fitters.FixedCosts, key: Codes, residual: Floats
) -> tuple[Texts, Floats]:
    """Return the groups of comparable jobs: queue and CPU model, the queue, or all queues of few jobs.

    The last group is put on one level by the queues' effects in all of their tasks.
    """
    queue = jobs.column("queue").to_numpy(zero_copy_only=False)
    model = pc.fill_null(jobs.column("cpu_model"), "").to_numpy(zero_copy_only=False)
    fine = np.array([f"{queue}|{cpu}" for queue, cpu in zip(queue, model, strict=True)], object)
    where = np.where(_group_sizes(key, fine) >= FEW_JOBS, fine, queue)
    few = _group_sizes(key, where) < FEW_JOBS
    if not few.any():
        return where, residual
    effect = _queue_effects(rows, costs)
    shift = np.array([effect.get(queue, 0.0) for queue in queue[few]])
    residual = residual.copy()
    residual[few] -= shift
    return np.where(few, "queues with few jobs", where), residual


def _group_sizes(key: Codes, where: Texts) -> Ints:
    _, codes = np.unique(where.astype(str), return_inverse=True)
    _, group, size = np.unique(
        key.astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes,
        return_inverse=True,
        return_counts=True,
    )
    return np.asarray(size[group], np.int64)


def _queue_effects(rows: TaskSums, costs: fitters.FixedCosts) -> dict[str, float]:
    # Medians of ln(CPU time per event) over that of the tasks.
    found = correct(costs, rows)
    level = np.log(rows.sums["cpu_s"] / np.where(found.use, found.events_eff, rows.sums["events"]))
    task, name = rows.task.codes, rows.name.codes
    effect = np.zeros(len(rows.name.names))
    for _ in range(3):
        of_task = fitters.grouped_median(task, level - effect[name], len(rows.task.names))
        effect = fitters.grouped_median(name, level - of_task[task], len(effect))
    return dict(zip(rows.name.names.tolist(), effect.tolist(), strict=True))


def without_worst(
    key: Codes, queues: pa.ChunkedArray, where: Texts, residual: Floats, mixed: set[int]
) -> dict[int, tuple[str, ...]]:
    """Return the queues without which a mixed task is not mixed: those that scatter most, three at most.

    One queue with wrong records would exclude all of its tasks.
    """
    queue = queues.to_numpy(zero_copy_only=False).astype(str)
    left = np.isin(key, list(mixed)) & np.isfinite(residual)
    removed: dict[int, tuple[str, ...]] = dict.fromkeys(mixed, ())
    found: dict[int, tuple[str, ...]] = {}
    for _ in range(MOST_LEFT_OUT):
        if not removed:
            break
        left &= np.isin(key, list(removed))
        for number, name in _widest(key[left], queue[left], residual[left]).items():
            removed[number] = (*removed[number], name)
            left &= ~((key == number) & (queue == name))
        if not left.any():
            break
        table = fitters.find_mixtures(key[left], where[left], residual[left]).tasks
        n_units = dict(zip(table.name.tolist(), table.n_units.tolist(), strict=True))
        for number, decision in zip(table.name.tolist(), table.decision, strict=True):
            if decision == "keep" and n_units[number] > len(removed[number]):
                found[number] = removed.pop(number)
    return found


def _widest(key: Codes, queue: npt.NDArray[np.str_], residual: Floats) -> dict[int, str]:
    names, codes = np.unique(queue, return_inverse=True)
    cells, group = np.unique(key.astype(np.int64) * len(names) + codes, return_inverse=True)
    number = np.bincount(group)
    mean = np.bincount(group, residual) / number
    square = np.bincount(group, (residual - mean[group]) ** 2)
    scatter = np.where(number > 1, square / np.maximum(number - 1, 1), 0.0)
    order = np.lexsort((scatter, cells // len(names)))
    last = np.flatnonzero(np.diff(cells[order] // len(names), append=-1))
    return {int(cell // len(names)): str(names[cell % len(names)]) for cell in cells[order][last]}
