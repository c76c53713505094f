"""CPU time per event of task units at queues, with the start-up times and factors of a stored run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import UsageError
from esjobs.core.query import In
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import run_of_everything
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.names.spelling import accepted
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.solved import KnownOfTasks, job_variance
from esjobs.records.tasks.sums import read_sums
from esjobs.schema.speed import FITS, SPEED
from esjobs.store.base import JobStore

MIN_JOBS = 5
"""Jobs of a cell that count for the level of its task."""

_PRIOR_JOBS = 4.0  # weight of the scatter of a kind, to which that of a cell is drawn

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """One entry per task unit and queue in the window of a run.

    ``unit``: number in ``keys``; ``queue``: in ``queues``. ``sums``: by ``SUMS`` of buckets. ``job_var``:
    relative variance of the CPU time of a job. ``rho``: start-up time by unit, in events per job; 0 where the
    run corrects none. ``aside``: by unit, decision of the run not to use it, else "". ``ln_k``: by queue; NaN
    outside the largest component. ``sigma_type``: relative, what a queue does to all tasks of a type.
    """

    run: StoredRun
    keys: TaskKeys
    queues: tuple[str, ...]
    unit: IntArray
    queue: IntArray
    sums: Mapping[str, FloatArray]
    job_var: FloatArray
    rho: FloatArray
    aside: npt.NDArray[np.object_]
    ln_k: FloatArray
    sigma_type: float

    @property
    def n_jobs(self) -> FloatArray:
        """Jobs of each cell."""
        return self.sums["n_jobs"]

    @cached_property
    def ln_cost(self) -> FloatArray:
        """ln(CPU seconds per event), with the start-up time counted as events."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self.sums["cpu_s"] / (self.sums["events"] + self.rho[self.unit] * self.n_jobs))

    def number(self, queue: str) -> int:
        """Return the number of a queue; :class:`UsageError` if it has no job in the window."""
        if queue in self.queues:
            return self.queues.index(queue)
        hint = accepted(queue, self.queues, "esjobs show factors --level queue")
        raise UsageError(f"no job of queue '{queue}' entered the buckets of {self.run.window}; {hint}")

    def units(self, task: str | None, processing_type: str | None = None) -> list[int]:
        """Return the units of a task, most jobs first, or of a type; :class:`UsageError` for unknown ones."""
        name, value = ("task_id", task) if task is not None else ("processing_type", processing_type)
        found = np.flatnonzero(getattr(self.keys, name) == value).tolist()
        if not found:
            raise UsageError(f"no job of {name} '{value}' entered {self.run.title}; list: esjobs show tasks")
        jobs = np.bincount(self.unit, self.n_jobs, len(self.keys))
        return sorted(found, key=lambda unit: -float(jobs[unit]))


def read_cells(store: JobStore) -> Cells:
    """Read the cells of the latest unrestricted run.

    Cost: the buckets of its window, as a fit reads them, and four small reads of the run. Raises
    :class:`NoResultError` without a run.
    """
    run = run_of_everything(store, SPEED, "fit")
    rows = read_sums(store, run.window).levels["queue"]
    solved = KnownOfTasks.of_run(store, run)
    keys = [(task, core_class, kind) for task, core_class, kind, _ in rows.keys.listed()]
    rho = np.array([solved.rho.get(key, 0.0) for key in keys])
    aside = np.empty(len(keys), np.object_)
    aside[:] = [solved.aside.get(key, "") for key in keys]
    queues = tuple(str(name) for name in rows.name.names)
    k = solved.factors.get("queue", {})
    ln_k = np.log([k.get(name, np.nan) for name in queues])
    unit = rows.task.names.astype(np.int64)[rows.task.codes]
    job_var = _job_variances(rows.sums, rho[unit], rows.keys.kinds()[unit])
    where = [In("run", (run.run,)), In("level", ("queue",)), In("processing_type", (ALL_TYPES,))]
    fits = read_table(store, FITS, where, ["method", "sigma_type"]).to_pylist()
    sigma = next((row["sigma_type"] for row in fits if row["method"] == run.headline), None)
    return Cells(
        *(run, rows.keys, queues, unit, rows.name.codes.astype(np.int64), rows.sums, job_var, rho, aside),
        *(ln_k, sigma or 0.0),
    )


@dataclass(frozen=True)
class Efficiencies:
    """ln(CPU time over wall time x cores) by queue and kind of work, mean over ``n_tasks`` tasks.

    ``scatter``: standard deviation between tasks of one queue and kind, pooled over all queues.
    """

    mean: FloatArray
    n_tasks: FloatArray
    scatter: float

    def at(self, queue: int, kind: int) -> tuple[float, float] | None:
        """Return the ln for a further task and its variance; None if the queue ran no such kind."""
        number = float(self.n_tasks[queue, kind])
        return (float(self.mean[queue, kind]), self.scatter**2 * (1.0 + 1.0 / number)) if number else None


def efficiencies(cells: Cells) -> Efficiencies:
    """Return the efficiencies of all queues by ``cells.keys.kinds()``; tasks count equally."""
    kinds = cells.keys.kinds()
    shape = len(cells.queues), int(kinds.max(initial=0)) + 1
    used = (cells.n_jobs >= MIN_JOBS) & (cells.sums["core_s"] > 0) & (cells.sums["cpu_s"] > 0)
    value = np.log(cells.sums["cpu_s"][used] / cells.sums["core_s"][used])
    group = cells.queue[used] * shape[1] + kinds[cells.unit[used]]
    number = np.bincount(group, minlength=shape[0] * shape[1]).astype(np.float64)
    mean = np.bincount(group, value, len(number)) / np.maximum(number, 1.0)
    dof = max(float(np.maximum(number - 1.0, 0.0).sum()), 1.0)
    scatter = float(np.sqrt(((value - mean[group]) ** 2).sum() / dof))
    return Efficiencies(mean.reshape(shape), number.reshape(shape), scatter)


def _job_variances(sums: Mapping[str, FloatArray], rho: FloatArray, kind: IntArray) -> FloatArray:
    own = job_variance(sums, sums["events"] + rho * sums["n_jobs"])
    dof = np.where(np.isfinite(own), sums["n_jobs"] - 1.0, 0.0)
    own = np.nan_to_num(own)
    overall = (dof * own).sum() / max(dof.sum(), 1.0)
    total = np.bincount(kind, dof)
    of_kind = np.where(total > 0, np.bincount(kind, dof * own) / np.where(total > 0, total, 1.0), overall)
    return np.asarray((dof * own + _PRIOR_JOBS * of_kind[kind]) / (dof + _PRIOR_JOBS))
