"""Outlier records, excluded from the estimate of start-up times.

Wrong event counts or CPU times of one name must not move the start-up time of every task that it ran, nor be
read as its speed.
"""

from dataclasses import dataclass, replace

import numpy as np

import fitters
from esjobs.core.numbers import percent
from esjobs.records.tasks.sums import TaskSums
from esjobs.speed.bucket_variances import BucketVariances, bucket_variances
from esjobs.speed.fixed_costs import Corrected, correct, fixed_costs
from esjobs.speed.name_costs import rho_of_rows, slopes_of_rows
from fitters.layout.arrays import Floats, Mask, Texts

# Robust standard deviations beyond which the slope of a bucket, or of a name, is not that of its task
FAR = 4.0
LEAST_FACTOR = 1.5  # A start-up time that differs by less is no mistake in the records
# Variance of the jobs of a name over that of the same tasks elsewhere that puts its records in doubt
WIDE_RATIO = 4.0
WIDE_SCATTER = 0.5  # Scatter of jobs that they need as well; below it they may be nodes of different speed
_MOST = 16.0  # What one bucket counts for at most, in times the variance of its task
_LEAST_DOF = 20.0
_LEAST_BUCKETS = 5  # Buckets of a task from which a median of what they say is safe from one of them
_LEAST_ELASTICITY = 0.02


@dataclass(frozen=True)
class OutlierRecords:
    """Outliers: the mask of rows excluded from start-up times.

    ``reason``: by code of the name, why its records are doubtful, or empty.
    """

    rows: Mask
    reason: Texts


# The start-up times of tasks, None where nothing has a name, and the records that have no part in them
FoundCosts = tuple[fitters.FixedCosts | None, OutlierRecords]


def costs_without_outliers(rows: TaskSums, min_bucket_jobs: int) -> FoundCosts:
    """Return the start-up times of all tasks from ordinary buckets, and the outliers."""
    rows = rows[rows.cut.codes < 0]
    costs = fixed_costs(rows, min_bucket_jobs)
    nothing = np.full(len(rows.name.names), "", object)
    if costs is None:
        return None, OutlierRecords(np.zeros(len(rows), np.bool_), nothing)
    outliers = _outlier_records(_robust(costs, rows), rows)
    left_out = outliers.rows
    kept = np.bincount(rows.task.codes[~left_out], minlength=len(rows.task.names))
    # a task with nothing else left keeps them: it would have no start-up time at all
    left_out &= kept[rows.task.codes] > 1
    if not left_out.any():
        return costs, outliers
    costs = fixed_costs(rows, min_bucket_jobs, without=left_out)
    if costs is None:
        return None, outliers
    # start-up times without them first, so that they do not hide each other
    return costs, OutlierRecords(left_out, _outlier_records(costs, rows).reason)


def costs_of_sites(found: FoundCosts, rows: TaskSums) -> FoundCosts:
    """Return the fixed costs that queues tell, and the sites whose records are doubtful by them.

    A site mixes queues of different speed, so its own buckets would tell the fixed costs worse.
    """
    costs, _ = found
    if costs is None:
        return None, OutlierRecords(np.zeros(len(rows), np.bool_), np.full(len(rows.name.names), "", object))
    return costs, _outlier_records(costs, rows)


def _robust(costs: fitters.FixedCosts, rows: TaskSums) -> fitters.FixedCosts:
    # The median over the buckets of a task: few of them cannot move it.
    nothing, one = np.zeros(len(rows)), np.ones(len(rows))
    elasticity = slopes_of_rows(rows, nothing, one).elasticity
    informative = np.isfinite(elasticity)
    length = rows.sums["events"] / rows.sums["n_jobs"]
    rho = length / np.clip(elasticity, _LEAST_ELASTICITY, None) - length
    n_tasks = len(rows.task.names)
    median = fitters.grouped_median(rows.task.codes[informative], rho[informative], n_tasks)
    several = np.bincount(rows.task.codes[informative], minlength=n_tasks) >= _LEAST_BUCKETS
    of_key = np.full(len(rows.keys), np.nan)
    of_key[rows.task.names[several]] = np.maximum(median[several], 0.0)
    table = costs.tasks
    robust = of_key[table.name.astype(np.int64)]
    valid = np.isfinite(robust) & np.isfinite(table.share)
    decision = np.where(valid & (table.decision != "excluded"), "apply", table.decision)
    table = replace(table, rho=np.where(valid, robust, table.rho), decision=decision)
    return replace(costs, tasks=table)


def _outlier_records(costs: fitters.FixedCosts, rows: TaskSums) -> OutlierRecords:
    found = correct(costs, rows)
    valid = bucket_variances(rows, found)
    rho = rho_of_rows(costs, rows)
    slopes = slopes_of_rows(rows, rho, valid.per_job_of_task)
    length = rows.sums["events"] / rows.sums["n_jobs"]
    pull = (slopes.elasticity - length / (length + rho)) / slopes.error
    informative = np.isfinite(pull)
    # errors that are too small everywhere make no record an outlier
    spread = fitters.MAD_FACTOR * float(np.median(np.abs(pull[informative]))) if informative.any() else 0.0
    scale = max(spread, 1.0)
    far = informative & (np.abs(np.nan_to_num(pull)) > FAR * scale)
    reason = _wide_names(rows, valid, found)
    apart = _names_far(rows, slopes, rho)
    reason[apart & (reason == "")] = "CPU time does not grow with events as in the same tasks elsewhere"
    return OutlierRecords(far | valid.stray | (reason != "")[rows.name.codes], reason)


def _names_far(rows: TaskSums, slopes: fitters.BucketSlopes, rho: Floats) -> Mask:
    n_names = len(rows.name.names)
    costs = fitters.unit_costs(slopes, np.nan_to_num(rho), rows.name.codes, n_names)
    informative = np.isfinite(costs.first)
    if informative.sum() < fitters.LEAST_DOF:
        return np.zeros(n_names, np.bool_)
    distance = np.abs(np.nan_to_num(costs.first - np.median(costs.first[informative])))
    scatter = fitters.MAD_FACTOR * float(np.median(distance[informative]))
    limit = FAR * np.hypot(np.nan_to_num(costs.first_err), scatter)
    return np.asarray(informative & (distance > limit) & (distance > np.log(LEAST_FACTOR)))


def _wide_names(rows: TaskSums, valid: BucketVariances, found: Corrected) -> Texts:
    # Jobs of the same tasks scatter far more there than elsewhere.
    n_names = len(rows.name.names)
    jobs, name = rows.sums["n_jobs"], rows.name.codes
    own = np.where(found.use, found.rel_var - found.rel_var_rho, found.rel_var_raw) * jobs
    usable = np.isfinite(own) & (jobs > 1) & (rows.mixed.codes < 0) & np.isfinite(valid.per_job_of_task)
    dof = np.where(usable, jobs - 1.0, 0.0)
    base = np.where(usable, valid.per_job_of_task, 1.0)
    # one wild bucket must not put all records of a name in doubt
    capped = np.minimum(np.where(usable, own, 0.0), _MOST * base)
    total = np.bincount(name, dof, n_names)
    divisor = np.where(total > 0, total, 1.0)
    ratio = np.bincount(name, dof * capped / base, n_names) / divisor
    here = np.sqrt(np.bincount(name, dof * capped, n_names) / divisor)
    elsewhere = np.sqrt(np.bincount(name, dof * base, n_names) / divisor)
    doubt = (total >= _LEAST_DOF) & (ratio > WIDE_RATIO) & (here > WIDE_SCATTER)
    reason = np.full(n_names, "", object)
    for code in np.flatnonzero(doubt):
        reason[code] = (
            f"the scatter of jobs of one task is {percent(float(here[code]))} here and "
            f"{percent(float(elsewhere[code]))} elsewhere"
        )
    return reason
