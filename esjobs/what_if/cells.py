"""CPU time per event of task units at queues, with the start-up times and factors of a stored run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np

from esjobs.core.errors import UsageError
from esjobs.core.numbers import many, percent
from esjobs.core.query import Days, In, Query, Sum, exactly
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import run_of_everything
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.names.spelling import accepted
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.solved import KnownOfTasks, job_variance
from esjobs.records.tasks.sums import read_queue_sums
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FITS, SPEED
from esjobs.store.base import JobStore
from fitters.layout.arrays import Floats, Ints, Texts

MIN_JOBS = 5
"""Jobs of a cell that count for the level of its task."""
RECENT_DAYS = 7
"""Last days, in which the efficiency of a task counts for what is left of it."""
UNUSUAL, UNUSUAL_ERRORS = 0.1, 3.0
"""ln of the efficiency of a task beside its kind, from which it is unusual, and in standard errors."""

_PRIOR_JOBS = 4.0  # weight of the scatter of a kind, to which that of a cell is drawn


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
    unit: Ints
    queue: Ints
    sums: Mapping[str, Floats]
    job_var: Floats
    rho: Floats
    aside: Texts
    ln_k: Floats
    sigma_type: float

    @property
    def n_jobs(self) -> Floats:
        """Jobs of each cell."""
        return self.sums["n_jobs"]

    @cached_property
    def ln_cost(self) -> Floats:
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
    rows = read_queue_sums(store, run.window)
    solved = KnownOfTasks.of_run(store, run)
    keys = [(task, core_class, kind) for task, core_class, kind, _ in rows.keys.listed()]
    # the start-up times of the run, not new ones: a forecast must be of one piece with its factors
    rho = np.array([solved.rho.get(key, 0.0) for key in keys])
    # filled afterwards: numpy would make texts of one width of a list
    aside = np.empty(len(keys), np.object_)
    aside[:] = [solved.aside.get(key, "") for key in keys]
    queues = tuple(str(name) for name in rows.name.names)
    k = solved.factors.get("queue", {})
    ln_k = np.log([k.get(name, np.nan) for name in queues])
    unit = rows.task.names.astype(np.int64)[rows.task.codes]
    job_var = _job_variances(rows.sums, rho[unit], rows.keys.kinds()[unit])
    where = [In("run", (run.run,)), In("level", ("queue",)), In("processing_type", (ALL_TYPES,))]
    fits = read_table(store, FITS, where, ["method", "sigma_type"]).to_pylist()
    # the scatter by type is that of the method whose factors are published
    sigma = next((row["sigma_type"] for row in fits if row["method"] == run.headline), None)
    return Cells(
        *(run, rows.keys, queues, unit, rows.name.codes.astype(np.int64), rows.sums, job_var, rho, aside),
        *(ln_k, sigma or 0.0),
    )


@dataclass(frozen=True)
class OwnEfficiency:
    """ln of a task's CPU efficiency over that of other tasks of its kind at the same queues.

    ``value``: drawn to 0 by the scatter between tasks; ``variance``: of a further queue around it.
    ``beside``: the ln by number of the queues that tell it. ``part``: by queue, what the task adds to the
    mean of its kind. ``of_days``: True if of the last days.
    """

    value: float
    variance: float
    beside: Mapping[int, float]
    part: Mapping[int, float]
    of_days: bool


@dataclass(frozen=True)
class Efficiencies:
    """ln(CPU time over wall time x cores) by queue and kind of work, mean over ``n_tasks`` tasks.

    ``unit``, ``queue``, ``beside``: of each cell with enough jobs, its ln over the mean of the ``n_others``
    other tasks of its kind at the queue. ``scatter``: standard deviation between tasks of one queue and kind,
    ``within``: between the queues of one task, pooled.
    """

    mean: Floats
    n_tasks: Floats
    scatter: float
    within: float
    unit: Ints
    queue: Ints
    beside: Floats
    n_others: Floats

    def at(self, queue: int, kind: int, own: OwnEfficiency | None = None) -> tuple[float, float] | None:
        """Return the ln for a task and its variance; None if the queue ran no such kind.

        ``own``: the task's own efficiency, at a queue that it ran at what was seen there; None: a task of
        which nothing is known.
        """
        number = float(self.n_tasks[queue, kind])
        if not number:
            return None
        mean, variance = float(self.mean[queue, kind]), self.scatter**2 / number
        if own is None:
            # of an unknown task: the error of the mean of its kind, and one task beside it
            return mean, variance + self.scatter**2
        # the task itself is not among those that it is compared with
        mean -= own.part.get(queue, 0.0)
        if queue in own.beside:
            # a queue that ran the task has its own efficiency of it: half of the scatter is taken to be left
            return mean + own.beside[queue], variance + self.within**2 / 4
        return mean + own.value, variance + own.variance

    def of_task(self, unit: int, of_last_days: Mapping[int, float] | None = None) -> OwnEfficiency:
        """Return the efficiency of a task unit beside others.

        ``of_last_days``: by queue, ln of the efficiency of the last days over that of the window; the window
        counts where there are none.
        """
        mine = np.flatnonzero(self.unit == unit)
        beside = {int(self.queue[cell]): float(self.beside[cell]) for cell in mine}
        # the mean of n tasks moves by an n-th of what one of them is beside the n - 1 others
        part = {
            int(self.queue[cell]): float(self.beside[cell]) / float(self.n_others[cell] + 1) for cell in mine
        }
        if of_last_days:
            beside = {
                queue: value + of_last_days[queue] for queue, value in beside.items() if queue in of_last_days
            }
        # variance of tasks proper, without what they do at single queues
        between = max(self.scatter**2 - self.within**2, 0.0)
        if not beside or not between:
            return OwnEfficiency(0.0, self.scatter**2, beside, part, bool(of_last_days))
        # mean of a normal law with a normal prior around 0: the prior weighs as within² / between queues
        weight = len(beside) + self.within**2 / between
        # of a queue that has not run the task: its own scatter, and the error of the drawn mean
        variance = self.within**2 * (1 + 1 / weight)
        return OwnEfficiency(sum(beside.values()) / weight, variance, beside, part, bool(of_last_days))


def efficiencies(cells: Cells) -> Efficiencies:
    """Return the efficiencies of all queues by ``cells.keys.kinds()``; tasks count equally."""
    kinds = cells.keys.kinds()
    shape = len(cells.queues), int(kinds.max(initial=0)) + 1
    # the logarithm of a few jobs is mostly their own scatter
    used = (cells.n_jobs >= MIN_JOBS) & (cells.sums["core_s"] > 0) & (cells.sums["cpu_s"] > 0)
    unit, queue = cells.unit[used], cells.queue[used]
    value = np.log(cells.sums["cpu_s"][used] / cells.sums["core_s"][used])
    group = queue * shape[1] + kinds[unit]
    number = np.bincount(group, minlength=shape[0] * shape[1]).astype(np.float64)
    mean = np.bincount(group, value, len(number)) / np.maximum(number, 1.0)
    scatter = _pooled(value - mean[group], np.maximum(number - 1.0, 0.0))
    # a task that is alone of its kind at a queue cannot be compared
    several = number[group] > 1
    unit, queue, group = unit[several], queue[several], group[several]
    n_others = number[group] - 1.0
    # the mean holds the task: that of the others is further away by this factor
    beside = (value[several] - mean[group]) * (n_others + 1.0) / n_others
    of_unit = np.bincount(unit, minlength=len(cells.keys)).astype(np.float64)
    of_task = np.bincount(unit, beside, len(of_unit)) / np.maximum(of_unit, 1.0)
    within = _pooled(beside - of_task[unit], np.maximum(of_unit - 1.0, 0.0))
    of_queue = mean.reshape(shape), number.reshape(shape)
    return Efficiencies(*of_queue, scatter, within, unit, queue, beside, n_others)


def _pooled(residual: Floats, dof: Floats) -> float:
    return float(np.sqrt((residual**2).sum() / max(float(dof.sum()), 1.0)))


def recent_efficiencies(store: JobStore, cells: Cells, unit: int) -> dict[int, float]:
    """Return by queue ln of a task unit's efficiency in the last days over that of the window; one query."""
    key = dict(zip(("task_id", "core_class", "processing_type"), cells.keys.parts(unit), strict=False))
    where = (last_days(cells.run, RECENT_DAYS), *(exactly(name, value) for name, value in key.items()))
    metrics = tuple(Sum(name, name) for name in ("n_jobs", "cpu_s", "core_s"))
    cpu_s, core_s = cells.sums["cpu_s"], cells.sums["core_s"]
    mine = np.flatnonzero((cells.unit == unit) & (cpu_s > 0) & (core_s > 0))
    of_window = dict(zip(cells.queue[mine].tolist(), cpu_s[mine] / core_s[mine], strict=True))
    number = {name: position for position, name in enumerate(cells.queues)}
    found: dict[int, float] = {}
    for row in store.aggregate(Query(("queue",), metrics, where=where, over=BUCKETS)).table.to_pylist():
        # -1: a queue of the last days that the run has not seen
        usual = of_window.get(number.get(row["queue"], -1))
        if usual and (row["n_jobs"] or 0) >= MIN_JOBS and row["cpu_s"] and row["core_s"]:
            found[number[row["queue"]]] = float(np.log(row["cpu_s"] / row["core_s"] / usual))
    return found


def last_days(run: StoredRun, number: int) -> Days:
    """Return the last days of a run's data, not before its window."""
    # the data of a run end at the midnight after their last day
    last = run.reach.date() - timedelta(days=1)
    return Days("day", max(last - timedelta(days=number - 1), run.window.first_day), last)


def efficiency_note(own: OwnEfficiency, within: float) -> str | None:
    """Return a sentence about a task whose efficiency is not that of its kind; None if it is."""
    # both: large enough to matter, and too large for the scatter between queues
    sure = UNUSUAL_ERRORS * within / np.sqrt(max(len(own.beside), 1))
    if abs(own.value) < UNUSUAL or abs(own.value) < sure:
        return None
    when = f", in the last {RECENT_DAYS} days" if own.of_days else ""
    side = f"{percent(abs(float(np.expm1(own.value))))} {'below' if own.value < 0 else 'above'}"
    queues = many(len(own.beside), "queue")
    return f"CPU efficiency of this task is {side} that of its kind of work at {queues}{when}"


def _job_variances(sums: Mapping[str, Floats], rho: Floats, kind: Ints) -> Floats:
    own = job_variance(sums, sums["events"] + rho * sums["n_jobs"])
    dof = np.where(np.isfinite(own), sums["n_jobs"] - 1.0, 0.0)
    # cells of one job have no variance of their own and take that of their kind
    own = np.nan_to_num(own)
    overall = (dof * own).sum() / max(dof.sum(), 1.0)
    total = np.bincount(kind, dof)
    of_kind = np.where(total > 0, np.bincount(kind, dof * own) / np.where(total > 0, total, 1.0), overall)
    return np.asarray((dof * own + _PRIOR_JOBS * of_kind[kind]) / (dof + _PRIOR_JOBS))
