"""Correction of bucket sums and jobs for the start-up time."""

from dataclasses import dataclass

import numpy as np

from fitters.errors import InputError, UnknownNameError
from fitters.fixed_cost.estimate import FixedCosts
from fitters.fixed_cost.job_sums import Rows, Scatter
from fitters.layout.arrays import Floats, Mask, Texts, texts
from fitters.layout.columns import factorise, read_numbers


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedSums:
    """Columns for `Buckets.from_columns`, in the order of the input rows."""

    use: Mask  # False where the task is excluded or the row is no measurement
    corrected: Mask  # True if a start-up time was taken out
    rho: Floats  # What was taken out per job, in events; 0 where nothing was. NaN where `use` is false.
    # Events + rho x jobs; the corrected mean is cpu_s / events_eff. NaN where `use` is false.
    events_eff: Floats
    # Relative variance of that mean, the error of rho included; NaN without second moments or with one job
    rel_var: Floats
    rel_var_rho: Floats  # The part of it that the error of rho gives
    rel_var_raw: Floats  # Relative variance of the plain mean cpu_s / events
    reason: Texts  # Why a row is not used, otherwise empty


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
    """Correct bucket sums for the start-up time of the tasks with decision ``apply``.

    Sums as in `estimate_fixed_cost`, one row per (task, unit); the units may be others than in ``costs``.
    rel_var = N / (N - 1) (S_cc - 2 L S_nc + L^2 S_nn) / C^2 + (d_i - mean d)^2 rho_err^2 with L = C / (E +
    rho N) and d_i = N / (E + rho N): the delta method, and the derivative of ln a by rho relative to the mean
    unit of the task; the common part belongs to the task's level.

    Raises :class:`InputError` as `estimate_fixed_cost`, and for several rows of a (task, unit);
    :class:`UnknownNameError` for a task that ``costs`` does not have.

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
        raise InputError("a (task, unit) has several rows; sum them first")
    table = costs.tasks
    numbers = {name: index for index, name in enumerate(table.name.tolist())}
    missing = [name for name in rows.task_names[np.unique(rows.task)].tolist() if name not in numbers]
    if missing:
        raise UnknownNameError(f"no start-up time of task {missing[0]!r}")
    lookup = np.array([numbers.get(name, 0) for name in rows.task_names.tolist()], np.intp)
    cost = lookup[scatter.task]
    applied, aside = table.decision[cost] == "apply", table.decision[cost] == "excluded"
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
    """Return ln(c / (n + rho)) of each job (or mean job), rho being the start-up time, 0 if unknown.

    rho is subtracted whatever the decision. NaN for events or CPU time not positive, or a task not in
    `costs`.

    >>> from fitters import estimate_fixed_cost
    >>> costs = estimate_fixed_cost(["t"] * 3, ["A"] * 3, [1, 2, 3], [4.0, 8.0, 12.0])
    >>> fixed_cost_residuals(costs, ["t"], [2], [2.0]).tolist()
    [0.0]
    """
    labels = factorise(task, "task")
    n = labels.codes.size
    number, time = read_numbers(events, "events", n), read_numbers(cpu_s, "cpu_s", n)
    table = costs.tasks
    numbers = dict(zip(table.name.tolist(), table.rho.tolist(), strict=True))
    rho = np.array([numbers.get(name, np.inf) for name in labels.names.tolist()])
    each = np.append(np.where(np.isnan(rho), 0.0, rho), np.inf)[labels.codes]
    good = (number > 0) & (time > 0) & np.isfinite(number) & np.isfinite(time) & np.isfinite(each)
    result = np.full(n, np.nan)
    result[good] = np.log(time[good]) - np.log(number[good] + each[good])
    return result
