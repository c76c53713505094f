"""Relative variance of each bucket: its own, or with few jobs mostly that of its task."""

from dataclasses import dataclass

import numpy as np

import fitters
from esjobs.records.tasks.sums import TaskSums
from esjobs.speed.fixed_costs import Corrected
from fitters.layout.arrays import Floats, Mask


@dataclass(frozen=True)
class BucketVariances:
    """Squared relative standard errors of CPU time per event, one entry per row; NaN where unknown.

    ``rel_var``: with the start-up time taken out, its error included; ``rel_var_raw``: without. ``per_job``:
    relative variance of one job, its own as far as it has jobs to tell; ``per_job_of_task``: that of its
    task.
    """

    rel_var: Floats
    rel_var_raw: Floats
    per_job: Floats
    per_job_of_task: Floats
    stray: Mask


def bucket_variances(rows: TaskSums, found: Corrected) -> BucketVariances:
    """Return the variances of all rows; buckets of few jobs are shrunk to their task, tasks to their kind."""
    n_jobs = rows.sums["n_jobs"]
    kind = rows.keys.kinds()[rows.task.names]
    kept = (rows.mixed.codes < 0) & (rows.cut.codes < 0)
    # without the error of rho, which jobs share: it is added afterwards, unshrunk
    corrected, raw = (
        fitters.job_scatter(rows.task.codes, kind, n_jobs, np.where(kept, rel_var * n_jobs, np.nan))
        for rel_var in (found.rel_var - found.rel_var_rho, found.rel_var_raw)
    )
    with_cost = np.where(found.use, corrected.per_job, raw.per_job) / n_jobs
    return BucketVariances(
        rel_var=with_cost + np.nan_to_num(found.rel_var_rho),
        rel_var_raw=raw.per_job / n_jobs,
        per_job=corrected.per_job,
        per_job_of_task=corrected.of_task,
        stray=corrected.is_stray,
    )
