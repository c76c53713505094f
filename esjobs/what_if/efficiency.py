"""CPU efficiency of a kind of work at a queue, from the tasks that it ran; pure."""

from dataclasses import dataclass

import numpy as np

from esjobs.what_if.cells import MIN_JOBS, Cells, FloatArray, IntArray


@dataclass(frozen=True)
class Efficiencies:
    """ln(CPU time over wall time x cores) per queue and kind of work: mean over tasks, variance of a task.

    ``scatter``: standard deviation between tasks of one queue and kind, pooled over all of them.
    """

    mean: FloatArray
    n_tasks: FloatArray
    kinds: IntArray
    n_kinds: int
    scatter: float

    def at(self, queue: int, unit: int) -> tuple[float, float] | None:
        """Return ln(efficiency) expected of a task unit at a queue, and its variance; None if it ran no such
        kind.
        """
        group = queue * self.n_kinds + int(self.kinds[unit])
        if not self.n_tasks[group]:
            return None
        return float(self.mean[group]), self.scatter**2 * (1.0 + 1.0 / float(self.n_tasks[group]))


def efficiencies(cells: Cells) -> Efficiencies:
    """Return the efficiencies of all queues; tasks count alike, since their mix changes."""
    kinds = cells.keys.kinds()
    n_kinds = int(kinds.max(initial=0)) + 1
    core_s = cells.sums["core_s"]
    used = (cells.n_jobs >= MIN_JOBS) & (core_s > 0) & (cells.sums["cpu_s"] > 0)
    value = np.log(cells.sums["cpu_s"][used] / core_s[used])
    group = cells.queue[used] * n_kinds + kinds[cells.unit[used]]
    size = len(cells.queues) * n_kinds
    number = np.bincount(group, minlength=size).astype(float)
    mean = np.bincount(group, value, size) / np.maximum(number, 1.0)
    squares = float(((value - mean[group]) ** 2).sum())
    dof = float(np.maximum(number - 1.0, 0.0).sum())
    return Efficiencies(mean, number, kinds, n_kinds, float(np.sqrt(squares / dof)) if dof else 0.0)
