"""Bucket sums and jobs with the fixed cost taken out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitters.errors import InputError, UnknownNameError
from fitters.fixed_cost.estimate import FixedCosts
from fitters.fixed_cost.job_sums import Rows, Scatter
from fitters.layout.arrays import Floats, Texts, texts
from fitters.layout.columns import factorise, read_numbers


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedSums:
    """Columns for `Buckets.from_columns`, in the order of the input rows.

    Attributes
    ----------
    use : bool array
        False where the task is set aside or the row is no measurement.
    corrected : bool array
        Whether a fixed cost was taken out.
    rho : float64 array
        What was taken out per job, in events; 0 where nothing was. NaN where `use` is false.
    events_eff : float64 array
        Events + rho x jobs; the corrected mean is cpu_s / events_eff. NaN where `use` is false.
    rel_var : float64 array
        Relative variance of that mean, the error of rho included; NaN without second moments or with one job.
    rel_var_rho : float64 array
        The part of it that the error of rho gives.
    rel_var_raw : float64 array
        Relative variance of the plain mean cpu_s / events.
    reason : array of str
        Why a row is not used, otherwise empty.
    """

    use: NDArray[np.bool_]
    corrected: NDArray[np.bool_]
    rho: Floats
    events_eff: Floats
    rel_var: Floats
    rel_var_rho: Floats
    rel_var_raw: Floats
    reason: Texts


def correct_fixed_cost(
    costs: FixedCosts,
    task: object,
    unit: object,
    n_jobs: object,
    events: object,
    cpu_s: object,
    *,
    events_sq: object = None,
    cpu_s_sq: object = None,
    events_cpu_s: object = None,
) -> CorrectedSums:
    """Take the fixed cost out of bucket sums, where it was decided to.

    Parameters
    ----------
    costs
        Of the same tasks, from jobs or from buckets; the units may be others (CPU models instead of sites).
    task, unit, n_jobs, events, cpu_s, events_sq, cpu_s_sq, events_cpu_s
        Sums over jobs as in `estimate_fixed_cost`, one row per (task, unit).

    Raises
    ------
    InputError
        As in `estimate_fixed_cost`, and where a (task, unit) has several rows.
    UnknownNameError
        For a task that `costs` does not have.

    Notes
    -----
    rel_var = N / (N - 1) (S_cc - 2 L S_nc + L^2 S_nn) / C^2 + (d_i - mean d)^2 rho_err^2 with
    L = C / (E + rho N) and d_i = N / (E + rho N): the delta method for the ratio of sums, and the derivative
    of ln a by rho less its mean over the units of the task. What an error of rho moves in common belongs to
    the level of the task and not to the factors.

    >>> sums = {"n_jobs": [100, 100], "events": [1000, 4000], "cpu_s": [3500.0, 6500.0]}
    >>> squares = {"events_sq": [11e3, 17e4], "cpu_s_sq": [13e4, 44e4], "events_cpu_s": [36000.0, 27e4]}
    >>> from fitters import estimate_fixed_cost
    >>> costs = estimate_fixed_cost(["t", "t"], ["A", "B"], **sums, **squares)
    >>> corrected = correct_fixed_cost(costs, ["t", "t"], ["A", "B"], **sums, **squares)
    >>> costs.tasks.rho.round(1).tolist(), (sums["cpu_s"] / corrected.events_eff).round(2).tolist()
    ([25.0], [1.0, 1.0])
    """
    rows = Rows.read(task, unit, n_jobs, events, cpu_s, (events_sq, cpu_s_sq, events_cpu_s))
    scatter = Scatter.of(rows)
    if scatter.jobs.size != rows.jobs.size:
        raise InputError("a (task, unit) has several rows; add them up first")
    table = costs.tasks
    known = {name: index for index, name in enumerate(table.name.tolist())}
    missing = [name for name in rows.task_names[np.unique(rows.task)].tolist() if name not in known]
    if missing:
        raise UnknownNameError(f"there is no fixed cost of task {missing[0]!r}")
    lookup = np.array([known.get(name, 0) for name in rows.task_names.tolist()], np.intp)
    cost = lookup[scatter.task]
    applied, aside = table.decision[cost] == "apply", table.decision[cost] == "set aside"
    rho = np.where(applied, table.rho[cost], 0.0)
    doubt = np.where(applied | (table.decision[cost] == "proportional"), table.rho_err[cost], 0.0)
    d = scatter.jobs / (scatter.events + rho * scatter.jobs)
    number = np.bincount(scatter.task)
    centred = d - (np.bincount(scatter.task, d) / np.maximum(number, 1))[scatter.task]
    from_rho = (centred * np.nan_to_num(doubt)) ** 2
    per_bucket = {
        "rho": np.where(aside, np.nan, rho),
        "events_eff": np.where(aside, np.nan, scatter.events + rho * scatter.jobs),
        "rel_var": np.where(aside, np.nan, scatter.relative_variance(rho) / scatter.jobs + from_rho),
        "rel_var_rho": np.where(aside, np.nan, from_rho),
        "rel_var_raw": scatter.relative_variance(np.zeros(rho.size)) / scatter.jobs,
    }
    columns = {name: np.full(rows.n_rows, np.nan) for name in per_bucket}
    for name, column in per_bucket.items():
        columns[name][rows.input_row] = column[scatter.row]
    use, corrected = np.zeros((2, rows.n_rows), bool)
    use[rows.input_row], corrected[rows.input_row] = ~aside[scatter.row], applied[scatter.row]
    reason = texts(rows.n_rows, "no measurement")
    reason[rows.input_row] = np.where(aside, table.reason[cost], "")[scatter.row]
    return CorrectedSums(use=use, corrected=corrected, reason=reason, **columns)


def fixed_cost_residuals(costs: FixedCosts, task: object, events: object, cpu_s: object) -> Floats:
    """Logarithm of CPU time per event with the fixed cost taken out, ln(c / (n + rho)), shape (n,).

    Parameters
    ----------
    costs
        Of the same tasks. rho is taken out whether it is to be applied or not; an unknown one counts as 0.
    task, events, cpu_s
        Of each job, or sums divided by the number of jobs.

    Returns
    -------
    float64 array
        NaN where events or CPU time are not positive, the task is missing or has no row in `costs`.

    >>> from fitters import estimate_fixed_cost
    >>> costs = estimate_fixed_cost(["t"] * 3, ["A"] * 3, [1, 2, 3], [4.0, 8.0, 12.0])
    >>> fixed_cost_residuals(costs, ["t"], [2], [2.0]).tolist()
    [0.0]
    """
    labels = factorise(task, "task")
    n = labels.codes.size
    number, time = read_numbers(events, "events", n), read_numbers(cpu_s, "cpu_s", n)
    table = costs.tasks
    known = dict(zip(table.name.tolist(), table.rho.tolist(), strict=True))
    rho = np.array([known.get(name, np.inf) for name in labels.names.tolist()])
    each = np.append(np.where(np.isnan(rho), 0.0, rho), np.inf)[labels.codes]
    good = (number > 0) & (time > 0) & np.isfinite(number) & np.isfinite(time) & np.isfinite(each)
    result = np.full(n, np.nan)
    result[good] = np.log(time[good]) - np.log(number[good] + each[good])
    return result
