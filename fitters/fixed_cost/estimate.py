"""Start-up time of a job, in events.

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
from fitters.layout.arrays import Floats, Ints, Mask, Texts
from fitters.layout.table import Table
from fitters.variance.of_estimates import shrink

# A share below -1, or one known no better than to 0.5, says nothing about other tasks of its kind
MOST_RISING, LARGEST_ERROR = 1.0, 0.5
WIDE_ERROR, SMALL_SHARE = 0.1, 0.3
ASSUMED_SCATTER = 0.1  # Of the shares of tasks of a kind, where single tasks cannot tell theirs


@dataclass(frozen=True, eq=False)
class CostTable(Table):
    """One row per task that has a row left, sorted by name."""

    name: Texts
    # rho, rho_err: Start-up time of a job in events, at least 0, and its standard error. NaN where it is
    # unknown.
    rho: Floats
    rho_err: Floats
    # slope, slope_err: Of ln(CPU time per event) on ln(events) inside the units: 0 is proportional, -1 all
    # fixed. NaN where unknown.
    slope: Floats
    slope_err: Floats
    events_ratio: Floats  # Largest over smallest mean events per job of its units
    mean_events: Floats  # Mean events per job of the task
    n_units: Ints
    # n_jobs, n_used, n_trimmed: Jobs of the task; those that the estimate rests on; those left out because
    # their CPU time is more than a factor exp(0.5) off (never from buckets)
    n_jobs: Floats
    n_used: Floats
    n_trimmed: Floats
    # share, share_err: The share of the start-up time in the CPU time of a mean job, rho / (m + rho), and its
    # error; below 0 where CPU time per event seems to rise. NaN where unknown.
    share: Floats
    share_err: Floats
    is_drawn: Mask  # True if the share was drawn to that of the task's kind
    # The part of the error that all tasks of the kind have in common, at most; 0 where none was drawn
    common_err: Floats
    # How far the share rests on that of the task's kind: 0 where it is its own, 1 where it has none
    reliance: Floats
    # ``apply``: correct with rho; ``proportional``: it moves factors by less than 2 % at two of its errors,
    # or is not above 0: leave as it is; ``equal lengths``: the units' jobs are equally long, leave as it is;
    # ``rising``: CPU time per event rises with events, which no start-up time explains, leave as it is;
    # ``excluded``: the task cannot be used
    decision: Texts
    reason: Texts


@dataclass(frozen=True, eq=False)
class FixedCosts:
    """The start-up times of tasks."""

    tasks: CostTable
    source: Literal["jobs", "buckets"]
    n_rows: int  # Rows that came in
    dropped: Mapping[str, int]  # Rows that were not used, by reason


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
    """Estimate the start-up time of every task, and decide on its correction.

    ``task``, ``unit``: labels; put the core class into the task, and leave out units outside the fit.
    ``events``, ``cpu_s`` (s, over all cores): of each job, or with ``n_jobs`` sums over the jobs of the row.
    ``events_sq``, ``cpu_s_sq``, ``events_cpu_s``: sums over jobs, required for an estimate from sums; NaN if
    unknown.

    Least squares inside the units by their second moments (`bucket_costs`); single jobs are trimmed before
    (`trimmed`). With f +- e the share of the start-up time in a mean job and r the ratio of mean events per
    job between units: r <= 1.2 is left as it is; so is (|f| + 2 e) ln r <= 2 %, its effect on the ratio of
    two factors; up to e ln r = 0.5 the cost is corrected, with its error; beyond, or without an estimate, the
    task is excluded. Significance plays no part: small start-up times dropped in every task add up. Linear in
    the rows.

    Raises :class:`InputError`: no rows, different lengths, text in a number, some but not all sums of
    squares.

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
    columns = _shares(scatter if kept is None else Scatter.of(kept), n_trimmed)
    plain = _lengths(scatter, n_tasks)
    mean = columns["mean_events"]
    columns["mean_events"] = np.where(np.isfinite(mean), mean, plain.pop("mean_events"))
    columns |= {"name": rows.task_names, **plain}
    present = columns["n_units"] > 0
    columns = {name: column[present] for name, column in columns.items()}
    columns["common_err"], columns["reliance"] = np.zeros((2, columns["n_jobs"].size))
    source: Literal["jobs", "buckets"] = "jobs" if n_jobs is None else "buckets"
    return FixedCosts(_completed(columns), source, rows.n_rows, rows.dropped)


def _lengths(scatter: Scatter, n_tasks: int) -> dict[str, NDArray[Any]]:
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


def _shares(scatter: Scatter, n_trimmed: Floats) -> dict[str, NDArray[Any]]:
    # From q = m / (m + rho) to the share of the start-up time, 1 - q; NaN if it rests on too few jobs. Where
    # q is at its end, 1, the slope replaces it: estimates that cannot be negative have a biased mean.
    cost = bucket_costs(scatter, n_trimmed.size)
    columns: dict[str, NDArray[Any]] = {name: getattr(cost, name) for name in cost.__slots__}
    columns["n_trimmed"] = n_trimmed
    q, q_err = columns.pop("q"), columns.pop("q_err")
    enough = columns["n_used"] >= LEAST_JOBS_TOGETHER
    enough &= columns["n_trimmed"] <= MOST_TRIMMED * (columns["n_used"] + columns["n_trimmed"])
    for name in ("slope", "slope_err"):
        columns[name] = np.where(enough, columns[name], np.nan)
    # Beyond 1 the estimate is as good as below while its error is small; a wide one runs into its end there.
    at_end = (q > LARGEST_Q - 1e-6) | ((q > 1.0 - 1e-6) & (columns["slope_err"] > WIDE_ERROR))
    share = np.where(at_end, np.minimum(-columns["slope"], 0.0), 1.0 - q)
    error = np.where(at_end, columns["slope_err"], q_err)
    valid = enough & np.isfinite(share) & np.isfinite(error)
    columns["share"] = np.where(valid, share, np.nan)
    columns["share_err"] = np.where(valid, error, np.nan)
    columns["is_drawn"] = np.zeros(q.size, np.bool_)
    return columns


def _completed(columns: dict[str, NDArray[Any]]) -> CostTable:
    rho, rho_err = in_events(columns["share"], columns["share_err"], columns["mean_events"])
    return CostTable(**columns, rho=rho, rho_err=rho_err, **decide(columns))


def draw_fixed_costs(
    costs: FixedCosts, kind: NDArray[Any], of_kind: tuple[Floats, Floats] | None = None
) -> FixedCosts:
    """Shrink the start-up times of tasks to the mean of their kind, as far as errors explain the scatter.

    ``kind``: code of each task's kind, in the order of ``costs.tasks``; tasks of a kind start the same way.
    ``of_kind``: share and error per kind from elsewhere (`kind_shares`), for kinds with fewer than three
    estimates; their tasks scatter by 0.1 about it. The decisions are made again. A task without an estimate
    takes the mean of its kind. The shrunk quantity is the share f = rho / (m + rho), see `shrink`.
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
