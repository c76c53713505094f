"""CPU time per event of task units at queues, with the start-up times and factors of a stored run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from esjobs.core.query import In
from esjobs.core.words import ALL_TYPES
from esjobs.publish.finding import run_of_everything
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.solved import job_variance
from esjobs.records.tasks.sums import read_sums
from esjobs.schema.speed import FACTORS, FITS, SPEED, TASK_RESULTS
from esjobs.store.base import JobStore

MIN_JOBS = 5
"""Jobs of a cell that tells something of its task."""

_PRIOR_JOBS = 4.0  # jobs that the scatter of a kind counts like, when that of a cell is drawn to it
UNKNOWN_COST = "start-up time unknown"

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TaskUnit:
    """Result of a run for a task unit: start-up time in events per job, its error, decision and reason.

    ``rho``: None if unknown. ``corrected``: true if the run took it out.
    """

    rho: float | None = None
    rho_err: float = 0.0
    corrected: bool = False
    decision: str = "kept"
    reason: str | None = None

    @property
    def mixed(self) -> bool:
        """True if the sums of the unit mix kinds of work."""
        return self.decision in ("mixed task", "split")

    @property
    def clear(self) -> bool:
        """True if the run used the unit."""
        return not self.mixed and self.decision != UNKNOWN_COST


@dataclass(frozen=True)
class Cells:
    """One entry per task unit and queue of the window of a run.

    ``unit``: number in ``keys``; ``queue``: in ``queues``. ``sums``: by ``SUMS`` of buckets. ``rho``:
    start-up time in events per job; ``job_var``: relative variance of a job's CPU time, drawn to that of its
    kind. ``ln_k``: by queue; NaN outside the largest component. ``cost_factor``: of rho, by queue.
    ``sigma_type``: what a queue does to all tasks of a type, 0 unless estimated.
    """

    run: StoredRun
    keys: TaskKeys
    queues: tuple[str, ...]
    unit: IntArray
    queue: IntArray
    sums: Mapping[str, FloatArray]
    units: Mapping[int, TaskUnit]
    rho: FloatArray
    job_var: FloatArray
    ln_k: FloatArray
    cost_factor: FloatArray
    sigma_type: float

    @property
    def n_jobs(self) -> FloatArray:
        """Jobs of each cell."""
        return self.sums["n_jobs"]

    @property
    def ln_cost(self) -> FloatArray:
        """ln(CPU seconds per event, start-up time included in the events)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self.sums["cpu_s"] / (self.sums["events"] + self.rho * self.n_jobs))

    def of_task(self, task: str) -> list[int]:
        """Return the units of a task, most jobs first; empty for an unknown one."""
        found = np.flatnonzero(self.keys.task_id == task).tolist()
        return sorted(found, key=lambda unit: -float(self.n_jobs[self.unit == unit].sum()))

    def of_type(self, processing_type: str) -> list[int]:
        """Return the units of a processing type."""
        found: list[int] = np.flatnonzero(self.keys.processing_type == processing_type).tolist()
        return found

    def number(self, queue: str) -> int | None:
        """Return the number of a queue; None if it has no job in the window."""
        return self.queues.index(queue) if queue in self.queues else None


def read_cells(store: JobStore) -> Cells:
    """Read the cells of the latest unrestricted run.

    Cost: the buckets of its window, as a fit reads them, and three tables of the run. Raises
    :class:`NoResultError` without a run.
    """
    run = run_of_everything(store, SPEED, "fit", None)
    rows = read_sums(store, run.window).levels["queue"]
    stored = _stored_units(store, run)
    numbers = rows.task.names.astype(np.int64)
    units = {int(number): stored.get(rows.keys.parts(number)[:3], TaskUnit()) for number in numbers}
    queues = tuple(str(name) for name in rows.name.names)
    ln_k, factor, fit = _stored_queues(store, run, queues)
    unit, queue = numbers[rows.task.codes], rows.name.codes.astype(np.int64)
    by_name = fit.get("sigma_cost_kind") == "corrected"
    taken = {
        number: each.rho or 0.0 if each.corrected or (by_name and each.decision == "kept") else 0.0
        for number, each in units.items()
    }
    rho = np.array([taken[int(number)] for number in unit]) * factor[queue]
    job_var = _job_variances(rows.sums, rho, rows.keys.kinds()[unit])
    estimated = fit.get("sigma_type_kind") == "estimated"
    sigma_type = float(fit.get("sigma_type") or 0.0) if estimated else 0.0
    return Cells(
        *(run, rows.keys, queues, unit, queue, rows.sums, units, rho, job_var, ln_k, factor),
        sigma_type=sigma_type,
    )


def _stored_units(store: JobStore, run: StoredRun) -> dict[tuple[str | None, ...], TaskUnit]:
    columns = ["task_id", "core_class", "task_type", "work_kind", "decision", "reason", "rho", "rho_err"]
    rows = read_table(store, TASK_RESULTS, [In("run", (run.run,))], columns).to_pylist()
    return {
        (row["task_id"], row["core_class"], row["task_type"]): TaskUnit(
            row["rho"],
            row["rho_err"] or 0.0,
            row["decision"] == "corrected",
            row["decision"],
            row["reason"],
        )
        # kinds of a split task have no sums of their own in the buckets
        for row in sorted(rows, key=lambda row: row["work_kind"] is None)
    }


def _stored_queues(
    store: JobStore, run: StoredRun, queues: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, Mapping[str, Any]]:
    """Return ln k and the factor of the start-up time of each queue, and the row of the fit."""
    where = [
        In("run", (run.run,)),
        In("level", ("queue",)),
        In("processing_type", (ALL_TYPES,)),
        In("method", (run.headline or "",)),
    ]
    columns = ["sigma_cost", "sigma_cost_kind", "sigma_type", "sigma_type_kind"]
    rows = read_table(store, FITS, where, columns).to_pylist()
    fit: Mapping[str, Any] = rows[0] if rows else {}
    columns = ["name", "k", "component", "cost_factor", "cost_factor_err"]
    factors = {row["name"]: row for row in read_table(store, FACTORS, where, columns).to_pylist()}
    ln_k, factor = np.full(len(queues), np.nan), np.ones(len(queues))
    scatter = fit.get("sigma_cost") if fit.get("sigma_cost_kind") == "corrected" else None
    for position, name in enumerate(queues):
        row = factors.get(name, {})
        if row.get("component") == 0 and row["k"] is not None:
            ln_k[position] = np.log(row["k"])
        if scatter and row.get("cost_factor") and row["cost_factor_err"] is not None:
            # drawn to the common value, as in the fit
            weight = scatter**2 / (scatter**2 + row["cost_factor_err"] ** 2)
            factor[position] = row["cost_factor"] ** weight
    return ln_k, factor, fit


def _job_variances(sums: Mapping[str, FloatArray], rho: FloatArray, kind: IntArray) -> FloatArray:
    own = job_variance(sums, sums["events"] + rho * sums["n_jobs"])
    dof = np.where(np.isfinite(own), sums["n_jobs"] - 1.0, 0.0)
    own = np.nan_to_num(own)
    total = np.bincount(kind, dof)
    overall = float((dof * own).sum() / max(dof.sum(), 1.0))
    of_kind = np.bincount(kind, dof * own) / np.where(total > 0, total, 1.0)
    of_kind = np.where(total > 0, of_kind, overall)[kind]
    return np.asarray((dof * own + _PRIOR_JOBS * of_kind) / (dof + _PRIOR_JOBS))
