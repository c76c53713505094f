"""The fixed cost of a job, in events.

The CPU time of a job is (alpha + beta events) / k, so that CPU time per event also measures how long the
jobs of a unit are. With rho = alpha / beta the mean a = C / (E + rho N) of N jobs, E events and C
seconds measures the speed alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fitters.fixed_cost.decisions import LEAST_JOBS_TOGETHER, MOST_TRIMMED, decide, in_events
from fitters.fixed_cost.job_sums import Rows, Scatter
from fitters.fixed_cost.of_buckets import LARGEST_Q, bucket_costs
from fitters.fixed_cost.of_jobs import trimmed
from fitters.layout.arrays import Floats, Ints, Texts
from fitters.layout.table import Table
from fitters.variance.of_estimates import shrink

MOST_RISING, LARGEST_ERROR = 1.0, 0.5
"""A share below -1, or one known no better than to 0.5, says nothing about other tasks of its kind."""

WIDE_ERROR, SMALL_SHARE = 0.1, 0.3
ASSUMED_SCATTER = 0.1
"""Of the shares of tasks of a kind, where single tasks cannot tell theirs."""


@dataclass(frozen=True, eq=False)
class CostTable(Table):
    """One row per task that has a row left, sorted by name.

    Attributes
    ----------
    name : array of labels
    rho, rho_err : float64 arrays
        Fixed cost of a job in events, at least 0, and its standard error. NaN where it is unknown.
    slope, slope_err : float64 arrays
        Of ln(CPU time per event) on ln(events) inside the units: 0 is proportional, -1 all fixed. NaN where
        unknown.
    events_ratio : float64 array
        Largest over smallest mean events per job of its units.
    mean_events : float64 array
        Mean events per job of the task.
    n_units : int64 array
    n_jobs, n_used, n_trimmed : float64 arrays
        Jobs of the task; those that the estimate rests on; those left out because their CPU time is more
        than a factor exp(0.5) off (never from buckets).
    share, share_err : float64 arrays
        The share of the fixed cost in the CPU time of a mean job, rho / (m + rho), and its error; below 0
        where CPU time per event seems to rise. NaN where unknown.
    is_drawn : bool array
        Whether the share was drawn to that of the task's kind.
    common_err : float64 array
        The part of the error that all tasks of the kind have in common, at most; 0 where none was drawn.
    reliance : float64 array
        How far the share rests on that of the task's kind: 0 where it is its own, 1 where it has none.
    decision : array of str
        ``apply``: correct with rho; ``proportional``: it moves factors by less than 2 % at two of its
        errors, or is not above 0: leave as it is; ``equal lengths``: the units' jobs are alike, leave as it
        is; ``rising``: CPU time per event rises with events, which no fixed cost explains, leave as it is;
        ``set aside``: the task cannot be used.
    reason : array of str
    """

    name: Texts
    rho: Floats
    rho_err: Floats
    slope: Floats
    slope_err: Floats
    events_ratio: Floats
    mean_events: Floats
    n_units: Ints
    n_jobs: Floats
    n_used: Floats
    n_trimmed: Floats
    share: Floats
    share_err: Floats
    is_drawn: NDArray[np.bool_]
    common_err: Floats
    reliance: Floats
    decision: Texts
    reason: Texts


@dataclass(frozen=True, eq=False)
class FixedCosts:
    """The fixed costs of tasks.

    Attributes
    ----------
    tasks : CostTable
    source : str
        ``jobs`` or ``buckets``.
    n_rows : int
        Rows that came in.
    dropped : mapping reason -> rows
        Those that were not used.
    """

    tasks: CostTable
    source: Literal["jobs", "buckets"]
    n_rows: int
    dropped: Mapping[str, int]


def estimate_fixed_cost(
    task: object,
    unit: object,
    events: object,
    cpu_s: object,
    *,
    n_jobs: object = None,
    events_sq: object = None,
    cpu_s_sq: object = None,
    events_cpu_s: object = None,
) -> FixedCosts:
    """Estimate the fixed cost of every task, and decide whether it has to be taken out.

    Parameters
    ----------
    task, unit
        Labels. Jobs on one core and on several cost differently: make the core class part of the task. Leave
        out units that do not enter the fit, because they count for the ratio of lengths.
    events, cpu_s
        Of each job; or, with n_jobs, their sums over the jobs of the row. CPU time in s, over all cores.
    n_jobs
        Jobs of the row. None: every row is one job.
    events_sq, cpu_s_sq, events_cpu_s
        Sums of events^2, CPU time^2 and events x CPU time over the jobs of the row; NaN where unknown.
        Without them nothing can be estimated from buckets.

    Returns
    -------
    FixedCosts
        One row per task; what is unknown is NaN with a reason.

    Raises
    ------
    InputError
        No rows, different lengths, text in a number, some but not all of the sums of squares.

    Notes
    -----
    Least squares inside the units by their second moments (`bucket_costs`); single jobs are trimmed before,
    at \\|ln residual\\| > 0.5 about the median of their task and unit (`trimmed`). Only the scatter inside
    units is looked at: whether units differ does not enter.

    Decision, per task: units whose mean events per job differ by a factor of at most 1.2 are left as they
    are. Otherwise, f +- e being the share of the fixed cost in a mean job and r the ratio of the lengths:
    left as it is where (\\|f\\| + 2 e) ln r, by which it can move the ratio of two factors, is at most 2 %;
    taken out, its error propagated, while e ln r is at most 0.5; set aside beyond, and where nothing can be
    estimated: no second moments, fewer than 50 jobs, events that do not vary inside the units. Whether the
    estimate differs from 0 by some errors plays no part: small fixed costs thrown away in every task add up.

    All tasks at once, linear in the rows.

    >>> events = [10, 20, 30, 40] * 15 + [40, 60, 80, 120] * 15
    >>> cpu_s = [2.0 * (n + 25) for n in events[:60]] + [3.0 * (n + 25) for n in events[60:]]
    >>> costs = estimate_fixed_cost(["t"] * 120, ["A"] * 60 + ["B"] * 60, events, cpu_s)
    >>> costs.tasks.rho.round(6).tolist(), costs.tasks.decision.tolist()
    ([25.0], ['apply'])
    """
    rows = Rows.read(task, unit, n_jobs, events, cpu_s, (events_sq, cpu_s_sq, events_cpu_s))
    scatter = Scatter.of(rows)
    n_tasks = rows.task_names.size
    kept, n_trimmed = trimmed(rows) if n_jobs is None else (None, np.zeros(n_tasks))
    columns = _from_buckets(scatter if kept is None else Scatter.of(kept), n_trimmed)
    plain = _lengths(scatter, n_tasks)
    mean = columns["mean_events"]
    columns["mean_events"] = np.where(np.isfinite(mean), mean, plain.pop("mean_events"))
    columns |= {"name": rows.task_names, **plain}
    present = columns["n_units"] > 0
    columns = {name: column[present] for name, column in columns.items()}
    columns["common_err"], columns["reliance"] = np.zeros((2, columns["n_jobs"].size))
    return FixedCosts(
        _completed(columns),
        "jobs" if n_jobs is None else "buckets",
        rows.n_rows,
        rows.dropped,
    )


def _lengths(scatter: Scatter, n_tasks: int) -> dict[str, NDArray[Any]]:
    """Units and jobs of every task, and by how much mean events per job differ between its units."""
    n_units = np.bincount(scatter.task, minlength=n_tasks).astype(np.int64)
    mean = scatter.events / scatter.jobs
    high, low = np.zeros(n_tasks), np.full(n_tasks, np.inf)
    np.maximum.at(high, scatter.task, mean)
    np.minimum.at(low, scatter.task, mean)
    ratio = np.divide(high, low, out=np.full(n_tasks, np.nan), where=n_units > 0)
    n_jobs = np.bincount(scatter.task, scatter.jobs, n_tasks)
    events = np.bincount(scatter.task, scatter.events, n_tasks)
    mean_events = np.divide(events, n_jobs, out=np.full(n_tasks, np.nan), where=n_jobs > 0)
    return {"events_ratio": ratio, "n_units": n_units, "n_jobs": n_jobs, "mean_events": mean_events}


def _from_buckets(scatter: Scatter, n_trimmed: Floats) -> dict[str, NDArray[Any]]:
    cost = bucket_costs(scatter, n_trimmed.size)
    columns: dict[str, NDArray[Any]] = {name: getattr(cost, name) for name in cost.__slots__}
    return _shares({**columns, "n_trimmed": n_trimmed})


def _shares(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """From q = m / (m + rho) to the share of the fixed cost, 1 - q; none where it rests on too few jobs.

    Where q is at its end, 1, the slope stands for it: estimates that cannot be negative are no unbiased ones
    of a mean.
    """
    q, q_err = columns.pop("q"), columns.pop("q_err")
    enough = columns["n_used"] >= LEAST_JOBS_TOGETHER
    enough &= columns["n_trimmed"] <= MOST_TRIMMED * (columns["n_used"] + columns["n_trimmed"])
    for name in ("slope", "slope_err"):
        columns[name] = np.where(enough, columns[name], np.nan)
    # Beyond 1 the estimate is as good as below while its error is small; a wide one runs into its end there.
    at_end = (q > LARGEST_Q - 1e-6) | ((q > 1.0 - 1e-6) & (columns["slope_err"] > WIDE_ERROR))
    share = np.where(at_end, np.minimum(-columns["slope"], 0.0), 1.0 - q)
    error = np.where(at_end, columns["slope_err"], q_err)
    known = enough & np.isfinite(share) & np.isfinite(error)
    columns["share"] = np.where(known, share, np.nan)
    columns["share_err"] = np.where(known, error, np.nan)
    columns["is_drawn"] = np.zeros(q.size, np.bool_)
    return columns


def _completed(columns: dict[str, NDArray[Any]]) -> CostTable:
    rho, rho_err = in_events(columns["share"], columns["share_err"], columns["mean_events"])
    return CostTable(**columns, rho=rho, rho_err=rho_err, **decide(columns))


def draw_fixed_costs(
    costs: FixedCosts, kind: NDArray[Any], of_kind: tuple[Floats, Floats] | None = None
) -> FixedCosts:
    """Draw the fixed costs of tasks to the mean of their kind, as far as they scatter no more than their
    errors.

    Parameters
    ----------
    costs
        From `estimate_fixed_cost`.
    kind : integer array, shape (n_tasks,)
        Code of each task's kind from 0, in the order of ``costs.tasks``: what starts alike, such as a
        processing type on one core.
    of_kind : pair of float64 arrays, shape (n_kinds,)
        Share of the fixed cost of each kind and its error from elsewhere (`kind_shares`), for kinds of whose
        tasks fewer than three tell theirs; the tasks of such a kind are taken to scatter by 0.1 about it.

    Returns
    -------
    FixedCosts
        Decided anew. A task without an estimate of its own takes the mean of its kind, with its scatter as
        error.

    Notes
    -----
    What is drawn is the share f = rho / (m + rho) of a mean job, whose scatter within a kind follows from the
    estimates themselves (`shrink`): where tasks differ truly they stay as they are. `common_err` is the
    error that all tasks of a kind have in common.
    """
    columns = costs.tasks.columns()
    number = max(int(kind.max(initial=0)) + 1, 0 if of_kind is None else of_kind[0].size)
    own, own_err = columns["share"], columns["share_err"]
    # Errors that go with the estimate would make a weighted mean of several one-sided; the slope's hardly do.
    own_err = np.where(own < SMALL_SHARE, columns["slope_err"], own_err)
    sensible = (own > -MOST_RISING) & (own_err < LARGEST_ERROR)
    drawn = shrink(np.where(sensible, own, np.nan), np.where(sensible, own_err, np.nan), kind, number)
    mean, mean_err = drawn.mean, drawn.mean_error
    left = ~sensible & ~np.isfinite(drawn.value)
    value, error = np.where(left, own, drawn.value), np.where(left, own_err, drawn.error)
    reliance = drawn.reliance
    if of_kind is not None:
        instead = ~np.isfinite(mean) & np.isfinite(of_kind[0])
        missing = instead[kind] & ~np.isfinite(value)
        reliance = np.where(missing, 1.0, reliance)
        value = np.where(missing, of_kind[0][kind], value)
        error = np.where(missing, np.hypot(of_kind[1], ASSUMED_SCATTER)[kind], error)
        mean = np.where(instead, of_kind[0], mean)
        mean_err = np.where(instead, of_kind[1], mean_err)
    changed = np.isfinite(mean)[kind]
    columns = {name: column for name, column in columns.items() if name not in _DECIDED}
    columns |= {
        "share": value,
        "share_err": error,
        "is_drawn": changed,
        "common_err": reliance * np.nan_to_num(mean_err)[kind],
        "reliance": reliance,
    }
    return FixedCosts(_completed(columns), costs.source, costs.n_rows, costs.dropped)


_DECIDED = {"rho", "rho_err", "decision", "reason"}
