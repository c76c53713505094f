"""One fit: input, result of the fit library, and a status for every name."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.core.tables import columns
from esjobs.records.tasks.keys import TaskKeys
from esjobs.speed.fit_input import FitInput
from esjobs.speed.judging.verdicts import FEW_JOBS_BRIDGE
from esjobs.speed.shared_effects import SharedEffects, shared_effects
from fitters.layout.arrays import Codes, Floats, Ints, Mask, Texts

TOO_FEW_JOBS = "too few jobs"
NO_COMMON_TASK = "no common task"
MIXED_TASK = "mixed task"
UNKNOWN_COST = "start-up time unknown"
CUT_OFF = "cut off"
LATER = columns("k_err_type k_err_class k_err_cost k_err_shift k_err_queues k_via k_via_err")
"""Columns that the steps after a fit fill."""


@dataclass(frozen=True)
class Method:
    """Settings of a fit.

    ``corrected``: for the start-up time per job, if known. ``least_jobs``: jobs that a bucket needs whatever
    the settings are. ``search``: whose minimum is taken.
    """

    objective: Literal["paper", "gamma"]
    weights: Literal["none", "floor", "variance"]
    robust: Literal["none", "reject"]
    corrected: bool
    least_jobs: int
    search: Literal["own", "minuit"] = "own"


# ``paper`` is the article's fit as it was published, of the same jobs. Stray buckets are rejected and not
# weighted down by Tukey's biweight: with the few tasks that sites have in common the latter's errors are too
# small (``fitters.fit.weighting``), and it gains nothing with many.
METHODS: Mapping[str, Method] = {
    "gamma": Method("gamma", "variance", "reject", corrected=True, least_jobs=1),
    "paper": Method("paper", "none", "none", corrected=False, least_jobs=20, search="minuit"),
}


def of_other_objective(method: Method) -> Method:
    """Return the method with the other objective: a systematic uncertainty."""
    return replace(method, objective="paper" if method.objective == "gamma" else "gamma", search="own")


@dataclass(frozen=True)
class Factors:
    """Factors of one fit: arrays of equal length, one entry per name, sorted by name."""

    level: str
    processing_type: str
    method: str
    name: Texts
    k: Floats  # as k_raw and the errors NaN unless the status is ok
    k_err: Floats
    component: Ints  # 0 is the largest; names outside the fit come last, one each
    n_units: Ints
    n_jobs: Ints
    status: Texts
    reason: Texts
    k_raw: Floats  # without correction for the start-up time
    k_err_stat: Floats
    k_err_int: Floats
    events_per_job: Floats
    sole_link: Texts  # the one name that links it with the others, ``few jobs``, or empty
    # Tasks behind the keys that ``n_units`` counts, each once whatever its core classes and types
    n_tasks: Ints
    n_components: int
    # Buckets of each name in the fit, and those that it lost as strays
    n_buckets: Ints
    n_rejected: Ints
    n_cut: Ints  # Task keys that a limit cuts off at each name
    efficiency: Floats  # CPU time over wall time x cores of the jobs behind each name
    # Parts of ``k_err_int``: what a name does to all tasks of a type, of a class, its start-up time, how far
    # a failed test of the model moves it, and of CPU models their queues; NaN where a part is not known
    k_err_type: Floats
    k_err_class: Floats
    k_err_cost: Floats
    k_err_shift: Floats
    k_err_queues: Floats
    # Of queues outside the largest component, the factor that their CPU models tell, on its scale; else NaN
    k_via: Floats
    k_via_err: Floats
    records_doubt: Texts  # Why the records of a name are in doubt, empty where they are not
    # The processing type of all jobs in the fit, where it is one: what they tell is about that type only
    only_type: str = ""
    # Why less than half of the jobs, or of the tasks, are in the fit; empty where more are
    left_out: str = ""
    model_doubt: str = ""  # Tests of the model that failed, in words; empty if none did
    # By name, its grade, interval of ranks, and likely factor; see ``ranking``
    ranking: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def via(self) -> Mask:
        """Mask of the names whose CPU models alone place them on the scale of the largest component."""
        return np.isfinite(self.k_via) & ~self.main

    def on_scale(self, column: str) -> Floats:
        """Return k, k_raw or k_err on the scale of the largest component, through CPU models where needed."""
        other = self.k_via_err if column == "k_err" else self.k_via
        return np.where(self.via, other, getattr(self, column))

    @property
    def fit(self) -> dict[str, object]:
        """Columns that name the fit."""
        return {"level": self.level, "processing_type": self.processing_type, "method": self.method}

    @property
    def main(self) -> Mask:
        """Mask of the names with a factor in the largest component: the comparable ones."""
        return np.asarray((self.component == 0) & (self.status == "ok"), np.bool_)

    @property
    def comparable(self) -> Mask:
        """Mask of the names that a line may rest on: names behind a link of few jobs are one measurement."""
        return np.asarray(self.main & (self.sole_link != FEW_JOBS_BRIDGE), np.bool_)

    @property
    def in_doubt(self) -> Mask:
        """Mask of the names whose records are in doubt."""
        return np.asarray(self.records_doubt != "", np.bool_)


@dataclass(frozen=True)
class Fit:
    """One fit: input, factors and the result of the fit library (None: nothing to fit)."""

    data: FitInput
    entered: Mask
    factors: Factors
    result: fitters.FitResult | None
    min_bucket_jobs: int  # of settings and method the larger
    shared: SharedEffects | None = None
    # by name: k of the other objective over k, minus 1, and in standard errors; empty unless requested
    shift: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def buckets(self) -> fitters.BucketTable | None:
        """Residuals, pulls and weights per bucket in the fit."""
        return None if self.result is None else fitters.bucket_table(self.result)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """Input row behind each of ``buckets``."""
        return np.empty(0, np.intp) if self.result is None else self.data.rows_of(self.result.source)

    def input_rows(self, response: fitters.LinearResponse) -> npt.NDArray[np.intp]:
        """Return the input row behind each row of a linear response."""
        if self.result is None:
            return np.empty(0, np.intp)
        kept = self.result.weighting.kept
        return (self.rows if kept is None else self.rows[kept])[response.rows]


def solve(data: FitInput, method: str, min_bucket_jobs: int) -> Fit:
    """Fit one input by one method.

    Buckets with fewer jobs than ``min_bucket_jobs`` or than the method needs do not enter, nor those of
    excluded tasks. A name that loses all of them, or all links to other names, keeps its row with the reason.
    """
    how = METHODS[method]
    least = max(min_bucket_jobs, how.least_jobs)
    entered = enters(data, how, least)
    result = _fit(data, entered, how)
    shared = None
    if result is not None and how.weights != "none":
        shared = shared_effects(data, entered, result, corrected=how.corrected)
    factors = _factors(data, entered, result, method, least)
    if result is not None and shared is not None:
        factors = _with_shared(factors, data, result, shared)
    return Fit(data, entered, factors, result, least, shared=shared)


def _with_shared(
    factors: Factors, data: FitInput, result: fitters.FitResult, shared: SharedEffects
) -> Factors:
    index = np.searchsorted(data.name.names.astype(str), factors.name.astype(str))
    parts = {
        name: factors.k * np.sqrt(column[index])
        for name, column in (("type", shared.of_type), ("class", shared.of_class), ("cost", shared.of_cost))
    }
    fitted = result.sigma_int.value
    inner = factors.k_err_int * (shared.sigma_int / fitted if fitted > 0 else 1.0)
    # the fit's interaction holds the shared effects, too: its part alone, and these beside it
    more = parts["type"] ** 2 + parts["class"] ** 2 + parts["cost"] ** 2
    k_err_int = np.sqrt(inner**2 + more)
    valid = np.isfinite(k_err_int)
    # what its jobs contradict says more than that its buckets scatter
    of_jobs = shared.outlier_buckets if data.outlier_records is None else data.outlier_records
    return replace(
        factors,
        k_err_int=np.where(valid, k_err_int, factors.k_err_int),
        k_err=np.where(valid, np.hypot(factors.k_err_stat, k_err_int), np.sqrt(factors.k_err**2 + more)),
        k_err_type=parts["type"],
        k_err_class=parts["class"],
        k_err_cost=parts["cost"],
        records_doubt=np.where(of_jobs[index] != "", of_jobs[index], shared.outlier_buckets[index]),
        only_type=shared.only_type,
    )


def enters(data: FitInput, how: Method, least_jobs: int) -> Mask:
    """Return the mask of rows in a fit: enough jobs, a task that is not excluded, and not cut off."""
    valid = ((data.unknown.codes < 0) | (not how.corrected)) & (data.cut.codes < 0)
    return np.asarray((data.n_jobs >= least_jobs) & (data.mixed.codes < 0) & valid, np.bool_)


def _fit(data: FitInput, rows: Mask, how: Method) -> fitters.FitResult | None:
    if not rows.any():
        return None
    buckets = fitters.Buckets.from_columns(
        data.task[rows],
        data.name[rows],
        cpu_s=data.cpu_s[rows],
        events=(data.events_eff if how.corrected else data.events)[rows],
        jobs=data.n_jobs[rows],
        rel_var=(data.rel_var if how.corrected else data.rel_var_raw)[rows],
    )
    return fitters.fit_speed_factors(
        buckets, how.objective, how.weights, robust=how.robust, search=how.search
    )


def with_company(fit: Fit) -> Fit:
    """Add the factor without correction, the other objective's and weak bridges; up to two fits more."""
    if fit.result is None:
        return fit
    how = METHODS[fit.factors.method]
    data, entered, factors = fit.data, fit.entered, fit.factors
    if how.corrected and (data.rho[entered] > 0).any():
        raw = _fit(data, entered, replace(how, corrected=False))
        factors = replace(factors, k_raw=_by_name(factors.name, raw, "k"))
    factors = replace(factors, sole_link=_via(data, entered, factors))
    # what the choice of objective moves is a systematic uncertainty of the method
    other = _fit(data, entered, of_other_objective(how))
    shift: dict[str, tuple[float, float]] = {}
    if other is not None:
        found = fitters.compare(fit.result, other)
        for name, ln_ratio, sigma in zip(found.name, found.ln_ratio, found.sigma, strict=True):
            shift[str(name)] = (float(np.expm1(-ln_ratio)), float(-sigma))
    return replace(fit, factors=factors, shift=shift)


def _by_name(names: Texts, result: fitters.FitResult | None, column: str) -> Floats:
    found = np.full(len(names), np.nan)
    if result is not None:
        units = result.units
        where = np.searchsorted(names.astype(str), units.name.astype(str))
        found[where] = np.where(units.status == "ok", getattr(units, column), np.nan)
    return found


def _via(data: FitInput, entered: Mask, factors: Factors) -> Texts:
    """The one name that links each name of the largest component with the others, or few jobs.

    A name with few jobs has a large error of its own; few jobs that link a group of names, or a name of many
    jobs, show in no error.
    """
    via = np.full(len(factors.name), "", object)
    main = np.isin(data.name.names.astype(str), factors.name[factors.main].astype(str))
    inside = entered & main[data.name.codes]
    if inside.any():
        bridges = fitters.find_bridges(data.task[inside], data.name[inside], data.n_jobs[inside])
        reasons = dict(zip(bridges.name, zip(bridges.via, bridges.sound, strict=True), strict=True))
        group = fitters.linked_groups(data.task[inside], data.name[inside], data.n_jobs[inside])
        size = Counter(group.values())
        for index, name in enumerate(factors.name):
            cut, sound = reasons.get(name, (None, True))
            number = group.get(name, 0)
            several = size[number] > 1 or factors.n_jobs[index] >= fitters.LEAST_LINKING_JOBS
            thin = number > 0 and several
            via[index] = FEW_JOBS_BRIDGE if thin else "" if sound else cut or ""
    return via


def _factors(
    data: FitInput, entered: Mask, result: fitters.FitResult | None, method: str, min_bucket_jobs: int
) -> Factors:
    used = data.name.used()
    names, position = used.names.astype(str), used.codes
    count = len(names)
    status, reason = _without_fit(data, entered, position, count, min_bucket_jobs)
    component = np.full(count, -1, np.int64)
    n_units, n_tasks, n_buckets, n_rejected = np.zeros((4, count), np.int64)
    n_jobs = np.bincount(position, data.n_jobs, count).astype(np.int64)
    n_fitted = 0
    events_per_job, efficiency = _ratios(data, entered, position, count)
    later: dict[str, Any] = {name: np.full(count, np.nan) for name in LATER}
    fitted: dict[str, Any] = {
        name: _by_name(names, result, name) for name in ("k", "k_err", "k_err_stat", "k_err_int")
    }
    if result is not None:
        units = result.units
        where = np.searchsorted(names, units.name.astype(str))
        good = units.status == "ok"
        lost_link = (units.status == NO_COMMON_TASK) & (status[where] != NO_COMMON_TASK)
        was, why = status[where][lost_link], reason[where][lost_link]
        status[where], reason[where] = units.status, units.reason
        reason[where[lost_link]] = (
            "its only tasks in common with other names are in buckets with too few jobs"
        )
        # why its task is excluded says more than that it has no link
        aside = np.isin(was.astype(str), [MIXED_TASK, UNKNOWN_COST, CUT_OFF])
        status[where[lost_link][aside]], reason[where[lost_link][aside]] = was[aside], why[aside]
        component[where], n_units[where] = units.component, units.n_tasks
        n_tasks[where] = _distinct_tasks(result.buckets, data.keys)
        n_buckets[where], n_rejected[where] = units.n_buckets, _strays(result)
        n_jobs[where[good]] = units.n_jobs[good].astype(np.int64)
        n_fitted = len(result.components)
    # names outside the fit: a component each, after those of the fit
    component[component < 0] = n_fitted + np.arange((component < 0).sum())
    return Factors(
        level=data.level,
        processing_type=data.processing_type,
        method=method,
        name=names.astype(object),
        component=component,
        n_units=n_units,
        n_jobs=n_jobs,
        status=status,
        reason=reason,
        k_raw=fitted["k"],
        events_per_job=events_per_job,
        sole_link=np.full(count, "", object),
        n_tasks=n_tasks,
        n_buckets=n_buckets,
        n_rejected=n_rejected,
        n_cut=np.bincount(position, data.cut.codes >= 0, count).astype(np.int64),
        efficiency=efficiency,
        n_components=int(component.max()) + 1 if count else 0,
        records_doubt=np.full(count, "", object),
        **fitted,
        **later,
    )


def _strays(result: fitters.FitResult) -> Ints:
    kept, unit = result.weighting.kept, result.source.unit
    stray = unit[:0] if kept is None else unit[~kept]
    return np.bincount(stray, minlength=len(result.units)).astype(np.int64)


def _distinct_tasks(buckets: fitters.Buckets, keys: TaskKeys) -> Ints:
    size = np.diff(buckets.ptr)
    _, task = np.unique(keys.task_id[buckets.task_names].astype(str), return_inverse=True)
    linked = np.repeat(size > 1, size)
    n_tasks = int(task.max(initial=0)) + 1
    # a task in two core classes or types is one
    pairs = np.unique(buckets.unit[linked].astype(np.int64) * n_tasks + np.repeat(task, size)[linked])
    return np.bincount(pairs // n_tasks, minlength=buckets.n_units).astype(np.int64)


def _ratios(data: FitInput, entered: Mask, position: Codes, count: int) -> tuple[Floats, Floats]:
    # Events per job and CPU efficiency by name, of the rows in the fit; of all where a name has none in it.
    has = np.zeros(count, np.bool_)
    has[position[entered]] = True
    rows = np.where(has[position], entered, True)
    events, n_jobs, cpu_s, core_s = (
        np.bincount(position[rows], column[rows], count)
        for column in (data.events, data.n_jobs, data.cpu_s, data.core_s)
    )
    return events / n_jobs, np.divide(cpu_s, core_s, out=np.full(count, np.nan), where=core_s > 0)


def _without_fit(
    data: FitInput, entered: Mask, position: Codes, count: int, min_bucket_jobs: int
) -> tuple[Texts, Texts]:
    task, task_names = data.task.codes, data.task.names
    shared = np.zeros(count, np.bool_)
    shared[position[np.bincount(task)[task] > 1]] = True
    most = np.zeros(count, np.int64)
    np.maximum.at(most, position, data.n_jobs)
    status = np.where(shared, TOO_FEW_JOBS, NO_COMMON_TASK).astype(object)
    reason = np.array(
        [f"no task has {min_bucket_jobs} jobs here; the largest has {number}" for number in most], object
    )
    reason[~shared] = "none of its tasks runs elsewhere with the same core class and processing type"
    enough = data.n_jobs >= min_bucket_jobs
    # A later reason replaces an earlier one: of a mixed task the rest does not matter.
    for what, why, rows in (
        (CUT_OFF, data.cut, data.cut.codes >= 0),
        (UNKNOWN_COST, data.unknown, (data.unknown.codes >= 0) & enough),
        (MIXED_TASK, data.mixed, data.mixed.codes >= 0),
    ):
        for row in np.flatnonzero(rows & ~entered & shared[position]):
            status[position[row]] = what
            text = why.names[why.codes[row]]
            reason[position[row]] = f"{data.keys.readable(task_names[task[row]])}: {text}"
    return status, reason
