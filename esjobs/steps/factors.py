"""One fit: its input, what the fit library made of it, and a status for every name."""

import time
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.steps.fit_input import FitInput, FloatArray

METHOD_VERSION = "1"
"""Raised when a change of method changes numbers; part of every run id."""

TOO_FEW_JOBS = "too few jobs"
NO_COMMON_TASK = "no common task"


@dataclass(frozen=True)
class Factors:
    """The factors of one fit, one entry per name of the input, sorted by name.

    Arrays of equal length; ``k`` and its error are NaN unless ``status`` is ``ok``. ``component`` counts
    from 0, the largest; a name that did not enter the fit is a component of its own, behind the others.
    """

    level: str
    processing_type: str
    method: str
    name: npt.NDArray[np.object_]
    k: FloatArray
    k_err: FloatArray
    component: npt.NDArray[np.int64]
    n_tasks: npt.NDArray[np.int64]
    n_jobs: npt.NDArray[np.int64]
    status: npt.NDArray[np.object_]
    reason: npt.NDArray[np.object_]
    n_components: int

    @property
    def main(self) -> npt.NDArray[np.bool_]:
        """Names with a factor in the largest component: those that can be compared."""
        return np.asarray((self.component == 0) & (self.status == "ok"), np.bool_)


@dataclass(frozen=True)
class Fit:
    """One fit: what went in, the factors, and everything the fit library says (None: nothing to fit)."""

    data: FitInput
    entered: npt.NDArray[np.bool_]
    factors: Factors
    result: fitters.FitResult | None
    min_bucket_jobs: int
    seconds: float


def solve(data: FitInput, method: str, min_bucket_jobs: int) -> Fit:
    """Fit one input by one method (``paper`` or ``gamma``).

    Buckets with fewer than ``min_bucket_jobs`` jobs do not enter; a name that loses all of them, or all links
    to other names, keeps its row with the reason.
    """
    began = time.perf_counter()
    entered = data.n_jobs >= min_bucket_jobs
    used = data.keep(entered)
    result = None
    if len(used):
        buckets = fitters.Buckets.from_columns(
            used.task, used.name, cpu_s=used.cpu_s, events=used.events, jobs=used.n_jobs, rel_var=used.rel_var
        )
        result = fitters.fit_speed_factors(buckets, objective=cast("Any", method))
    factors = _factors(data, result, method, min_bucket_jobs)
    return Fit(data, entered, factors, result, min_bucket_jobs, time.perf_counter() - began)


def _factors(
    data: FitInput,
    result: fitters.FitResult | None,
    method: str,
    min_bucket_jobs: int,
) -> Factors:
    names, position = np.unique(data.name.astype(str), return_inverse=True)
    count = len(names)
    k, k_err = np.full(count, np.nan), np.full(count, np.nan)
    status, reason = _without_fit(data, position, count, min_bucket_jobs)
    component = np.full(count, -1, np.int64)
    n_tasks = np.zeros(count, np.int64)
    n_jobs = np.bincount(position, data.n_jobs, count).astype(np.int64)
    n_fitted = 0
    if result is not None:
        units = result.units
        where = np.searchsorted(names, units.name.astype(str))
        good = units.status == "ok"
        k[where], k_err[where] = np.where(good, units.k, np.nan), np.where(good, units.k_err, np.nan)
        lost_link = (units.status == NO_COMMON_TASK) & (status[where] == TOO_FEW_JOBS)
        status[where], reason[where] = units.status, units.reason
        reason[where[lost_link]] = "shares tasks with others only through buckets with too few jobs"
        component[where], n_tasks[where] = units.component, units.n_tasks
        n_jobs[where[good]] = units.n_jobs[good].astype(np.int64)
        n_fitted = len(result.components)
    component[component < 0] = n_fitted + np.arange((component < 0).sum())
    return Factors(
        level=data.level,
        processing_type=data.processing_type,
        method=method,
        name=names.astype(object),
        k=k,
        k_err=k_err,
        component=component,
        n_tasks=n_tasks,
        n_jobs=n_jobs,
        status=status,
        reason=reason,
        n_components=int(component.max()) + 1 if count else 0,
    )


def _without_fit(
    data: FitInput, position: npt.NDArray[np.intp], count: int, min_bucket_jobs: int
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Status and reason of names before any fit, from all buckets: no common task, else too few jobs."""
    _, task = np.unique(data.task.astype(str), return_inverse=True)
    shared = np.zeros(count, np.bool_)
    shared[position[np.bincount(task)[task] > 1]] = True
    most = np.zeros(count, np.int64)
    np.maximum.at(most, position, data.n_jobs)
    status = np.where(shared, TOO_FEW_JOBS, NO_COMMON_TASK).astype(object)
    reason = np.array(
        [f"no task has {min_bucket_jobs} jobs here, the largest has {number}" for number in most], object
    )
    reason[~shared] = "no task of its own runs anywhere else with the same core class and type"
    return status, reason
