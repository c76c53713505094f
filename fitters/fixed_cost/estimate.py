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

from fitters.fixed_cost.job_sums import Rows, Scatter
from fitters.fixed_cost.of_buckets import SMALLEST_Q, bucket_costs
from fitters.fixed_cost.of_jobs import job_cost
from fitters.layout.arrays import Floats, Ints, Texts, texts
from fitters.layout.table import Table

RATIO_LIMIT = 1.2
"""Mean events per job that differ by less between units leave the factors alone."""

EFFECT_LIMIT = 0.02
"""What the ratio of two factors may move by before it matters: a fraction of what units differ by anyway."""

SIGNIFICANCE = 3.0
LEAST_JOBS = 50
CANNOT_BE_ESTIMATED = "events per job differ and fixed cost unknown"


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
    decision : array of str
        ``apply``: correct with rho; ``proportional``: the slope does too little or is not significant, leave
        as it is;
        ``equal lengths``: the units' jobs are alike, leave as it is; ``rising``: CPU time per event rises
        with events, which no fixed cost explains, leave as it is; ``set aside``: the task cannot be used.
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
    From jobs: rho minimises the gamma quasi-deviance of c_j about L_i (n_j + rho) with a free level per unit
    profiled out, trimmed at \\|ln residual\\| > 0.5; errors from bootstrap samples of the jobs
    (`cost_of_jobs`). From buckets: least squares inside the units by their second moments, not trimmed
    (`cost_of_buckets`). Both look only at the scatter inside units: whether units differ does not enter.

    Decision, per task: units whose mean events per job differ by a factor of at most 1.2 are left as they
    are. Otherwise the correction is applied if the slope is below 0 by more than three of its errors and its
    effect, by which it moves the logarithm of the ratio of two factors, |slope| x ln(events_ratio), is above
    2 %. (A limit on the slope itself, 0.1, lets 4 % of bias pass between jobs of 10 and 40 events.) Where it
    cannot be estimated the task is set aside: no second moments, fewer than 50 jobs, events that do not vary
    inside the units, or a slope so uncertain (error 1/3) that not even a job of nothing but fixed cost could
    be told from a proportional one.

    From jobs about 0.1 ms per job and task; from buckets all tasks at once, linear in the buckets.

    >>> events = [10, 20, 30, 40] * 15 + [40, 60, 80, 120] * 15
    >>> cpu_s = [2.0 * (n + 25) for n in events[:60]] + [3.0 * (n + 25) for n in events[60:]]
    >>> costs = estimate_fixed_cost(["t"] * 120, ["A"] * 60 + ["B"] * 60, events, cpu_s)
    >>> costs.tasks.rho.round(6).tolist(), costs.tasks.decision.tolist()
    ([25.0], ['apply'])
    """
    rows = Rows.read(task, unit, n_jobs, events, cpu_s, (events_sq, cpu_s_sq, events_cpu_s))
    scatter = Scatter.of(rows)
    n_tasks = rows.task_names.size
    columns = _from_jobs(rows) if n_jobs is None else _from_buckets(scatter, n_tasks)
    columns |= {"name": rows.task_names, **_lengths(scatter, n_tasks)}
    present = columns["n_units"] > 0
    columns = {name: column[present] for name, column in columns.items()}
    return FixedCosts(
        CostTable(**columns, **_decide(columns)),
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
    return {"events_ratio": ratio, "n_units": n_units, "n_jobs": n_jobs}


def _from_jobs(rows: Rows) -> dict[str, NDArray[Any]]:
    n_tasks = rows.task_names.size
    order = np.argsort(rows.task, kind="stable")
    ptr = np.searchsorted(rows.task[order], np.arange(n_tasks + 1))
    names = ("q", "q_err", "slope", "slope_err", "mean_events", "n_used", "n_trimmed")
    table = np.full((len(names), n_tasks), np.nan)
    for number in range(n_tasks):
        jobs_of_task = order[ptr[number] : ptr[number + 1]]
        if jobs_of_task.size == 0:
            continue
        rng = np.random.default_rng([0, number])
        cost = job_cost(rows.unit[jobs_of_task], rows.events[jobs_of_task], rows.cpu_s[jobs_of_task], rng)
        estimates = (cost.q, cost.q_err, cost.slope, cost.slope_err, cost.mean_events, cost.n_used)
        table[:, number] = (*estimates, jobs_of_task.size - cost.n_used)
    return _in_events(dict(zip(names, table, strict=True)))


def _from_buckets(scatter: Scatter, n_tasks: int) -> dict[str, NDArray[Any]]:
    cost = bucket_costs(scatter, n_tasks)
    columns: dict[str, NDArray[Any]] = {name: getattr(cost, name) for name in cost.__slots__}
    return _in_events({**columns, "n_trimmed": np.zeros(n_tasks)})


def _in_events(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """From the share q = m / (m + rho) to rho; dropped where the estimate rests on too few jobs."""
    q, q_err = columns.pop("q"), columns.pop("q_err")
    m, enough = columns["mean_events"], columns["n_used"] >= LEAST_JOBS
    enough &= columns["n_used"] >= columns["n_trimmed"]
    inside = np.clip(q, SMALLEST_Q, 1.0)
    with np.errstate(invalid="ignore"):
        columns["rho"] = np.where(enough, m / inside - m, np.nan)
        columns["rho_err"] = np.where(enough, m * q_err / inside**2, np.nan)
    for name in ("slope", "slope_err"):
        columns[name] = np.where(enough, columns[name], np.nan)
    return columns


def _decide(columns: dict[str, NDArray[Any]]) -> dict[str, Texts]:
    n = columns["n_jobs"].size
    decision, reason = texts(n), texts(n)
    for index in range(n):
        row = {name: float(columns[name][index]) for name in columns if name != "name"}
        decision[index], reason[index] = _verdict(row)
    return {"decision": decision, "reason": reason}


def _verdict(row: dict[str, float]) -> tuple[str, str]:
    if row["n_units"] < 2:
        return "equal lengths", "one unit only"
    lengths = f"mean events per job differ by {row['events_ratio']:.2f}x between units"
    if row["events_ratio"] <= RATIO_LIMIT:
        return "equal lengths", lengths
    slope, error = row["slope"], row["slope_err"]
    why = _unknown(row)
    if why:
        return "set aside", f"{CANNOT_BE_ESTIMATED}: {why}"
    measured = f"slope {slope:.2f} +- {error:.2f}, {lengths}"
    effect = abs(slope) * np.log(row["events_ratio"])
    clear = effect > EFFECT_LIMIT and abs(slope) > SIGNIFICANCE * error
    if clear and slope > 0:
        return "rising", f"CPU time per event rises with events: {measured}"
    if clear and row["rho"] > 0:
        return "apply", measured
    return "proportional", measured


def _unknown(row: dict[str, float]) -> str:
    if row["n_jobs"] < LEAST_JOBS:
        return f"{row['n_jobs']:.0f} jobs"
    if not row["n_used"] > 0:
        return "no second moments"
    if row["n_trimmed"] > row["n_used"]:
        return f"{row['n_trimmed']:.0f} of {row['n_jobs']:.0f} jobs are off any common line"
    if row["n_used"] < LEAST_JOBS:
        return f"{row['n_used']:.0f} of {row['n_jobs']:.0f} jobs usable"
    if not np.isfinite(row["slope"]) or not np.isfinite(row["rho"]):
        return "events do not vary inside the units"
    if not SIGNIFICANCE * row["slope_err"] < 1.0:
        return f"slope {row['slope']:.2f} +- {row['slope_err']:.2f}"
    return ""
