"""Buckets to speed factors: one fit per level, processing type and method."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fitters
from esjobs import __version__
from esjobs.analysis.site_names import guess_rc_site
from esjobs.core import tables
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.settings import LEVELS, FitSettings
from esjobs.steps.fit_input import FitInput, FloatArray, fit_input, processing_types
from esjobs.steps.publication import Outcome, rows_table
from fitters.results import Components, Units

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
    return Fit(data, entered, factors, result, time.perf_counter() - began)


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


def fit(buckets: pa.Table, window: Window, run: str, settings: FitSettings) -> tuple[list[Fit], Outcome]:
    """Fit every level, processing type and method from the buckets of a window.

    Returns the fits and their rows for ``factors``, ``fits`` and ``components``.
    """
    began = time.perf_counter()
    fits = [
        solve(fit_input(buckets, level, kind), method, settings.min_bucket_jobs)
        for level in LEVELS
        for kind in processing_types(buckets)
        for method in settings.methods
    ]
    stamp = {
        "run": run,
        "window_start": window.start,
        "window_end": window.end,
        "program_version": __version__,
    }
    rows = {
        tables.FACTORS: rows_table(tables.FACTORS, _stamped(stamp, fits, _factor_rows)),
        tables.FITS: rows_table(tables.FITS, _stamped(stamp, fits, _fit_rows)),
        tables.COMPONENTS: rows_table(tables.COMPONENTS, _stamped(stamp, fits, _component_rows)),
    }
    with_factor = sum(int((item.factors.status == "ok").sum()) for item in fits)
    report = RunReport(
        "fit",
        run,
        buckets.num_rows,
        rows[tables.FACTORS].num_rows,
        time.perf_counter() - began,
        rows_are="buckets in, factors out",
        counts={
            "fits": len(fits),
            "factors": with_factor,
            "names without a factor": rows[tables.FACTORS].num_rows - with_factor,
        },
        notes=tuple(_notes(fits)),
        window=str(window),
    )
    return fits, Outcome(report, rows)


def _notes(fits: Sequence[Fit]) -> Iterator[str]:
    for item in fits:
        if item.data.level == "cpu_model" and item.data.processing_type == "all" and not len(item.data):
            yield "no record names a CPU model, so no CPU model has a factor"
            return


def _stamped(stamp: Mapping[str, object], fits: Sequence[Fit], rows_of: Any) -> Iterator[dict[str, object]]:
    for item in fits:
        head = {
            **stamp,
            "level": item.data.level,
            "processing_type": item.data.processing_type,
            "method": item.factors.method,
        }
        for row in rows_of(item):
            yield {**head, **row}


def _factor_rows(item: Fit) -> Iterator[dict[str, object]]:
    factors, data = item.factors, item.data
    units = {} if item.result is None else _by_name(item.result.units)
    position = np.searchsorted(factors.name.astype(str), data.name.astype(str))
    sums = {
        column: np.bincount(position, getattr(data, column), len(factors.name))
        for column in ("n_jobs", "events", "cpu_s", "core_s")
    }
    for place, name in enumerate(factors.name):
        unit = units.get(name, {})
        jobs = sums["n_jobs"][place]
        yield {
            "name": name,
            "k": _number(factors.k[place]),
            "k_err": _number(factors.k_err[place]),
            "k_err_stat": _number(unit.get("k_err_stat")),
            "k_err_sandwich": _number(unit.get("k_err_sandwich")),
            "k_raw": _number(factors.k[place]),
            "rho": None,
            "component": int(factors.component[place]),
            "n_tasks": int(factors.n_tasks[place]),
            "n_buckets": int(unit.get("n_buckets", 0)),
            "n_jobs": int(factors.n_jobs[place]),
            "status": factors.status[place],
            "reason": factors.reason[place] or None,
            "k_err_int": _number(unit.get("k_err_int")),
            "k_err_model": _number(unit.get("k_err_model")),
            "rc_site": guess_rc_site(name) if data.level == "site" else None,
            "rc_site_guessed": data.level == "site" or None,
            "events_per_job": _number(sums["events"][place] / jobs),
            "efficiency": _number(sums["cpu_s"][place] / sums["core_s"][place]),
        }


def _by_name(units: Units) -> dict[str, dict[str, Any]]:
    columns = units.columns()
    return {
        name: {column: values[place] for column, values in columns.items()}
        for place, name in enumerate(units.name)
    }


def _number(value: Any) -> float | None:
    """A finite float, or None: the stores hold null, never NaN."""
    return float(value) if value is not None and np.isfinite(value) else None


def _fit_rows(item: Fit) -> Iterator[dict[str, object]]:
    factors, data, result = item.factors, item.data, item.result
    good = factors.status == "ok"
    row: dict[str, object] = {
        "status": "ok" if good.any() else "no factors",
        "reason": None if good.any() else _why_none(item),
        "n_names": int(good.sum()),
        "n_names_without": int((~good).sum()),
        "n_components": 0,
        "n_tasks": 0,
        "n_buckets": 0,
        "n_jobs": 0,
        "n_jobs_dropped": int(data.n_jobs.sum()) + data.n_jobs_unnamed,
        "seconds": item.seconds,
    }
    if result is not None:
        fitted = [part for part in _rows(result.components) if part["status"] in ("ok", "no dof")]
        verdicts = [part["verdict"] for part in fitted if part["verdict"] is not None]
        n_jobs = int(factors.n_jobs[good].sum())
        row |= {
            "n_components": len(fitted),
            "n_tasks": int(sum(part["n_tasks_used"] for part in fitted)),
            "n_buckets": int(sum(part["n_buckets_used"] for part in fitted)),
            "n_jobs": n_jobs,
            "n_jobs_dropped": int(data.n_jobs.sum()) + data.n_jobs_unnamed - n_jobs,
            "f": _number(sum(part["f"] for part in fitted)),
            "dof": result.dof,
            "spread": _number(result.S),
            "chi2": _number(sum(part["reduced_chi2"] * part["dof"] for part in fitted if part["dof"] > 0)),
            "sigma_int": _number(result.sigma_int.value),
            "sigma_int_err": _number(result.sigma_int.error),
            "sigma_int_kind": result.sigma_int.source,
            "minuit_valid": all(verdict.valid for verdict in verdicts) if verdicts else None,
            "minuit_accurate": all(verdict.accurate for verdict in verdicts) if verdicts else None,
            "minuit_edm": _number(max((verdict.edm for verdict in verdicts), default=None)),
            "minuit_calls": int(sum(verdict.n_calls for verdict in verdicts)) if verdicts else None,
        }
    yield row


def _rows(table: Components) -> list[dict[str, Any]]:
    columns = table.columns()
    return [{name: values[place] for name, values in columns.items()} for place in range(len(table))]


def _why_none(item: Fit) -> str:
    if not len(item.data):
        return "no CPU model in the records" if item.data.level == "cpu_model" else "no buckets"
    return "no two names share a task with enough jobs at both"


def _component_rows(item: Fit) -> Iterator[dict[str, object]]:
    factors, data = item.factors, item.data
    details = [] if item.result is None else _rows(item.result.components)
    task_names = data.task.astype(str)
    name_component = dict(zip(factors.name, factors.component, strict=True))
    of_row = np.array([name_component[name] for name in data.name], np.int64)
    main_tasks = _largest_tasks(data, of_row == 0)
    for number in range(factors.n_components):
        members = np.flatnonzero(factors.component == number)
        rows = of_row == number
        detail = details[number] if number < len(details) else {}
        verdict = detail.get("verdict")
        by_jobs = members[np.argsort(-factors.n_jobs[members], kind="stable")]
        yield {
            "component": number,
            "n_names": len(members),
            "n_tasks": len(np.unique(task_names[rows])),
            "n_buckets": int(rows.sum()),
            "n_jobs": int(data.n_jobs[rows].sum()),
            "dof": int(detail["dof"]) if detail else None,
            "spread": _number(detail.get("S")),
            "minuit_valid": None if verdict is None else bool(verdict.valid),
            "names": ", ".join(factors.name[by_jobs]),
            "link": None if number == 0 else _link(list(factors.name[by_jobs]), main_tasks),
        }


def _largest_tasks(data: FitInput, rows: npt.NDArray[np.bool_], most: int = 3) -> list[str]:
    """The tasks that run at most names of the largest component: those that would link another one best."""
    tasks, counts = np.unique(data.task[rows].astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    return [tasks[place].replace("|", " ") for place in order]


def _link(names: Sequence[str], tasks: Sequence[str]) -> str:
    who = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
    if not tasks:
        return "nothing is fitted that it could be linked with"
    return f"jobs of task {' or '.join(tasks)} at {who}, two tasks of 50 jobs or more"
