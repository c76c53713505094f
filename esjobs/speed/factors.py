"""One fit: its input, what the fit library made of it, and a status for every name."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.records.tasks.keys import TaskKeys
from esjobs.records.tasks.sums import FloatArray
from esjobs.speed.fit_input import FitInput
from esjobs.speed.judging.verdicts import FEW_JOBS_BRIDGE
from esjobs.speed.shared_effects import SharedEffects, shared_effects

HESSE_LIMIT = 100
"""Up to so many names Minuit's HESSE works out the errors of a fit again; its time grows with their cube."""

TOO_FEW_JOBS = "too few jobs"
NO_COMMON_TASK = "no common task"
MIXED_TASK = "mixed task"
UNKNOWN_COST = "fixed cost unknown"


@dataclass(frozen=True)
class Method:
    """How a fit is made; ``corrected``: with the fixed cost per job taken out, where it is known.

    ``least_jobs``: jobs that a bucket needs whatever the settings say.
    """

    objective: Literal["paper", "gamma"]
    weights: Literal["none", "floor", "variance"]
    robust: Literal["none", "reject"]
    corrected: bool
    least_jobs: int


METHODS: Mapping[str, Method] = {
    "gamma": Method("gamma", "variance", "reject", corrected=True, least_jobs=1),
    "paper": Method("paper", "none", "none", corrected=False, least_jobs=20),
}
"""``paper`` is the article's fit as it was published, of the same jobs.

Stray buckets are rejected and not weighted down by Tukey's biweight: with the few tasks that sites have in
common the latter's errors are too small (``fitters.fit.weighting``), and it gains nothing with many.
"""


def of_other_objective(method: Method) -> Method:
    """The article's objective on what ``gamma`` fits, and the other way round: a systematic of the method."""
    return replace(method, objective="paper" if method.objective == "gamma" else "gamma")


@dataclass(frozen=True)
class Factors:
    """The factors of one fit, one entry per name of the input, sorted by name.

    Arrays of equal length; ``k``, ``k_raw`` (without correction for fixed cost) and the errors are NaN unless
    ``status`` is ``ok``. ``component`` counts from 0, the largest; a name that did not enter the fit is a
    component of its own, behind the others. ``via``: the one name through which it hangs on the others, or
    ``few jobs``, or empty.
    """

    level: str
    processing_type: str
    method: str
    name: npt.NDArray[np.object_]
    k: FloatArray
    k_err: FloatArray
    component: npt.NDArray[np.int64]
    n_units: npt.NDArray[np.int64]
    n_jobs: npt.NDArray[np.int64]
    status: npt.NDArray[np.object_]
    reason: npt.NDArray[np.object_]
    k_raw: FloatArray
    k_err_stat: FloatArray
    k_err_int: FloatArray
    events_per_job: FloatArray
    via: npt.NDArray[np.object_]
    n_tasks: npt.NDArray[np.int64]
    """Tasks behind the keys that ``n_units`` counts, each once whatever its core classes and types."""
    n_components: int
    k_err_type: FloatArray | None = None
    """Parts of ``k_err_int``: what a name does to all tasks of a type, of a class, and its fixed cost."""
    k_err_class: FloatArray | None = None
    k_err_cost: FloatArray | None = None
    only_type: str = ""
    """The processing type of all jobs in the fit, where it is one: what they tell is about that type only."""
    records: npt.NDArray[np.object_] | None = None
    """Why the records of a name are in doubt, empty where they are not."""

    left_out: str = ""
    """Why less than half of the jobs, or of the tasks, are in the fit; empty where more are."""

    @property
    def main(self) -> npt.NDArray[np.bool_]:
        """Names with a factor in the largest component: those that can be compared."""
        return np.asarray((self.component == 0) & (self.status == "ok"), np.bool_)

    @property
    def comparable(self) -> npt.NDArray[np.bool_]:
        """Of these, names that a line may rest on: those behind a link of few jobs are one measurement."""
        return np.asarray(self.main & (self.via != FEW_JOBS_BRIDGE), np.bool_)


@dataclass(frozen=True)
class Fit:
    """One fit: what went in, the factors, and everything the fit library says (None: nothing to fit).

    ``min_bucket_jobs``: what a bucket needed to enter, by the settings or by the method. ``shift``: k by the
    other objective on the same sums over k, minus 1, and the same in standard errors of k; by name. Empty
    unless asked for.
    """

    data: FitInput
    entered: npt.NDArray[np.bool_]
    factors: Factors
    result: fitters.FitResult | None
    min_bucket_jobs: int
    shared: SharedEffects | None = None
    shift: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def buckets(self) -> fitters.BucketTable | None:
        """Residuals, pulls and weights of what entered, bucket by bucket."""
        return None if self.result is None else fitters.bucket_table(self.result)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The row of the input behind each of ``buckets``."""
        return np.empty(0, np.intp) if self.result is None else self.data.rows_of(self.result.source)


def solve(data: FitInput, method: str, min_bucket_jobs: int, how: Method | None = None) -> Fit:
    """Fit one input by one method; ``how``: a variant of it, for tests of stability.

    Buckets with fewer than ``min_bucket_jobs`` jobs, or fewer than the method needs, do not enter, nor those
    of tasks that are set aside; a name that loses all of them, or all links to other names, keeps its row
    with the reason.
    """
    how = how or METHODS[method]
    least = max(min_bucket_jobs, how.least_jobs)
    entered = enters(data, how, least)
    result = _fit(data, entered, how, hesse=how is METHODS[method])
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
    """Factors with the errors of what names do to all tasks of a kind."""
    place = np.searchsorted(data.name.names.astype(str), factors.name.astype(str))
    parts = {
        name: factors.k * np.sqrt(column[place])
        for name, column in (("type", shared.of_type), ("class", shared.of_class), ("cost", shared.of_cost))
    }
    fitted = result.sigma_int.value
    inner = factors.k_err_int * (shared.sigma_int / fitted if fitted > 0 else 1.0)
    more = parts["type"] ** 2 + parts["class"] ** 2 + parts["cost"] ** 2
    k_err_int = np.sqrt(inner**2 + more)
    known = np.isfinite(k_err_int)
    return replace(
        factors,
        k_err_int=np.where(known, k_err_int, factors.k_err_int),
        k_err=np.where(known, np.hypot(factors.k_err_stat, k_err_int), np.sqrt(factors.k_err**2 + more)),
        k_err_type=parts["type"],
        k_err_class=parts["class"],
        k_err_cost=parts["cost"],
        records=_records(data, shared, place),
        only_type=shared.only_type,
    )


def _records(data: FitInput, shared: SharedEffects, place: npt.NDArray[np.intp]) -> npt.NDArray[np.object_]:
    """Why the records of each name are in doubt: its jobs scatter, or its tasks; empty where they are not."""
    of_jobs = shared.odd_buckets if data.odd_records is None else data.odd_records
    return np.where(of_jobs[place] != "", of_jobs[place], shared.odd_buckets[place])


def sigma_type_of(fit: Fit) -> float | None:
    """What names do to all tasks of a type, as a fit tells it; None where it has nothing to tell it from."""
    return None if fit.shared is None else fit.shared.by_type.sigma


def enters(data: FitInput, how: Method, min_bucket_jobs: int) -> npt.NDArray[np.bool_]:
    """The rows that a fit takes: enough jobs, and a task that is not set aside."""
    known = (data.unknown.codes < 0) | (not how.corrected)
    return np.asarray(
        (data.n_jobs >= max(min_bucket_jobs, how.least_jobs)) & (data.mixed.codes < 0) & known, np.bool_
    )


def _fit(
    data: FitInput, rows: npt.NDArray[np.bool_], how: Method, *, hesse: bool = False
) -> fitters.FitResult | None:
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
    judge: Literal["migrad", "hesse"] = "hesse" if hesse and buckets.n_units <= HESSE_LIMIT else "migrad"
    return fitters.fit_speed_factors(buckets, how.objective, how.weights, robust=how.robust, judge=judge)


def with_company(fit: Fit) -> Fit:
    """Add what stands beside a factor: the one without correction, the other objective's, weak bridges.

    Costs up to two fits more.
    """
    if fit.result is None:
        return fit
    how = METHODS[fit.factors.method]
    data, entered, factors = fit.data, fit.entered, fit.factors
    if how.corrected and (data.rho[entered] > 0).any():
        raw = _fit(data, entered, replace(how, corrected=False))
        factors = replace(factors, k_raw=_by_name(factors.name, raw, "k"))
    factors = replace(factors, via=_via(data, entered, factors))
    other = _fit(data, entered, of_other_objective(how))
    shift: dict[str, tuple[float, float]] = {}
    if other is not None:
        found = fitters.compare(fit.result, other)
        for name, ln_ratio, sigma in zip(found.name, found.ln_ratio, found.sigma, strict=True):
            shift[str(name)] = (float(np.expm1(-ln_ratio)), float(-sigma))
    return replace(fit, factors=factors, shift=shift)


def _by_name(names: npt.NDArray[np.object_], result: fitters.FitResult | None, column: str) -> FloatArray:
    """A column of a result for these names; NaN where it has no factor."""
    found = np.full(len(names), np.nan)
    if result is not None:
        units = result.units
        where = np.searchsorted(names.astype(str), units.name.astype(str))
        found[where] = np.where(units.status == "ok", getattr(units, column), np.nan)
    return found


def _via(data: FitInput, entered: npt.NDArray[np.bool_], factors: Factors) -> npt.NDArray[np.object_]:
    """Of the names of the largest component, the one through which they hang on the others, or few jobs.

    A name with few jobs has an error of its own that says so; what is meant is a group of names, or one of
    many jobs, that few jobs link with most others.
    """
    via = np.full(len(factors.name), "", object)
    main = np.isin(data.name.names.astype(str), factors.name[factors.main].astype(str))
    inside = entered & main[data.name.codes]
    if inside.any():
        bridges = fitters.find_bridges(data.task[inside], data.name[inside], data.n_jobs[inside])
        reasons = dict(zip(bridges.name, zip(bridges.via, bridges.sound, strict=True), strict=True))
        group = fitters.linked_groups(data.task[inside], data.name[inside], data.n_jobs[inside])
        size = Counter(group.values())
        for place, name in enumerate(factors.name):
            cut, sound = reasons.get(name, (None, True))
            number = group.get(name, 0)
            several = size[number] > 1 or factors.n_jobs[place] >= fitters.LEAST_LINKING_JOBS
            thin = number > 0 and several
            via[place] = FEW_JOBS_BRIDGE if thin else "" if sound else cut or ""
    return via


def _factors(
    data: FitInput,
    entered: npt.NDArray[np.bool_],
    result: fitters.FitResult | None,
    method: str,
    min_bucket_jobs: int,
) -> Factors:
    used = data.name.used()
    names, position = used.names.astype(str), used.codes
    count = len(names)
    status, reason = _without_fit(data, entered, position, count, min_bucket_jobs)
    component = np.full(count, -1, np.int64)
    n_units, n_tasks = np.zeros(count, np.int64), np.zeros(count, np.int64)
    n_jobs = np.bincount(position, data.n_jobs, count).astype(np.int64)
    n_fitted = 0
    columns = {name: np.full(count, np.nan) for name in ("k", "k_err", "k_err_stat", "k_err_int")}
    if result is not None:
        units = result.units
        where = np.searchsorted(names, units.name.astype(str))
        good = units.status == "ok"
        columns = {name: _by_name(names.astype(object), result, name) for name in columns}
        lost_link = (units.status == NO_COMMON_TASK) & (status[where] != NO_COMMON_TASK)
        was, why = status[where][lost_link], reason[where][lost_link]
        status[where], reason[where] = units.status, units.reason
        reason[where[lost_link]] = "shares tasks with others only through buckets with too few jobs"
        aside = np.isin(was.astype(str), [MIXED_TASK, UNKNOWN_COST])
        status[where[lost_link][aside]], reason[where[lost_link][aside]] = was[aside], why[aside]
        component[where], n_units[where] = units.component, units.n_tasks
        n_tasks[where] = _distinct_tasks(result.buckets, data.keys)
        n_jobs[where[good]] = units.n_jobs[good].astype(np.int64)
        n_fitted = len(result.components)
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
        k_raw=columns["k"],
        events_per_job=_events_per_job(data, entered, position, count),
        via=np.full(count, "", object),
        n_tasks=n_tasks,
        n_components=int(component.max()) + 1 if count else 0,
        k=columns["k"],
        k_err=columns["k_err"],
        k_err_stat=columns["k_err_stat"],
        k_err_int=columns["k_err_int"],
    )


def _distinct_tasks(buckets: fitters.Buckets, keys: TaskKeys) -> npt.NDArray[np.int64]:
    """Per name of a fit, the tasks that determine its factor, each once whatever its task keys."""
    size = np.diff(buckets.ptr)
    _, task = np.unique(keys.task_id[buckets.task_names].astype(str), return_inverse=True)
    linked = np.repeat(size > 1, size)
    n_tasks = int(task.max(initial=0)) + 1
    pairs = np.unique(buckets.unit[linked].astype(np.int64) * n_tasks + np.repeat(task, size)[linked])
    return np.bincount(pairs // n_tasks, minlength=buckets.n_units).astype(np.int64)


def fitted_or_all(
    entered: npt.NDArray[np.bool_], position: npt.NDArray[np.int32], count: int
) -> npt.NDArray[np.bool_]:
    """The rows that speak for each name: those in the fit, or all of a name that has none there."""
    has = np.zeros(count, np.bool_)
    has[position[entered]] = True
    return np.where(has[position], entered, True)


def _events_per_job(
    data: FitInput, entered: npt.NDArray[np.bool_], position: npt.NDArray[np.int32], count: int
) -> FloatArray:
    rows = fitted_or_all(entered, position, count)
    events = np.bincount(position[rows], data.events[rows], count)
    return np.asarray(events / np.bincount(position[rows], data.n_jobs[rows], count))


def _without_fit(
    data: FitInput,
    entered: npt.NDArray[np.bool_],
    position: npt.NDArray[np.int32],
    count: int,
    min_bucket_jobs: int,
) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Status and reason of names before any fit: no common task, set aside, else too few jobs."""
    task, task_names = data.task.codes, data.task.names
    shared = np.zeros(count, np.bool_)
    shared[position[np.bincount(task)[task] > 1]] = True
    most = np.zeros(count, np.int64)
    np.maximum.at(most, position, data.n_jobs)
    status = np.where(shared, TOO_FEW_JOBS, NO_COMMON_TASK).astype(object)
    reason = np.array(
        [f"no task has {min_bucket_jobs} jobs here, the largest has {number}" for number in most], object
    )
    reason[~shared] = "no task of its own runs anywhere else with the same core class and type"
    is_mixed, is_unknown = data.mixed.codes >= 0, data.unknown.codes >= 0
    aside = ~entered & (is_mixed | (is_unknown & (data.n_jobs >= min_bucket_jobs))) & shared[position]
    last = np.full(count, -1, np.int64)
    last[position[aside]] = np.flatnonzero(aside)
    for place in np.flatnonzero(last >= 0):
        row = last[place]
        why = data.mixed if is_mixed[row] else data.unknown
        status[place] = MIXED_TASK if is_mixed[row] else UNKNOWN_COST
        reason[place] = f"{data.keys.readable(task_names[task[row]])}: {why.names[why.codes[row]]}"
    return status, reason
