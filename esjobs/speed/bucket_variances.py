"""What each bucket knows: its relative variance, its own or, with few jobs, mostly that of its task."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.records.tasks.sums import FloatArray, TaskSums
from esjobs.speed.fixed_costs import Corrected


@dataclass(frozen=True)
class BucketVariances:
    """Squared relative standard errors of CPU time per event, one entry per row; NaN where nothing is known.

    ``rel_var``: with the fixed cost taken out, its error included; ``rel_var_raw``: without. ``per_job``:
    relative variance of one job, its own as far as it has jobs to tell; ``per_job_of_task``: that of its
    task.
    """

    rel_var: FloatArray
    rel_var_raw: FloatArray
    per_job: FloatArray
    per_job_of_task: FloatArray
    stray: npt.NDArray[np.bool_]


def bucket_variances(rows: TaskSums, found: Corrected) -> BucketVariances:
    """Variances of all rows: buckets of few jobs take that of their task, and tasks that of their kind."""
    n_jobs = rows.sums["n_jobs"]
    kind = rows.keys.kinds()[rows.task.names]
    kept = rows.mixed.codes < 0
    corrected = _shrunk(rows, kind, np.where(kept, (found.rel_var - found.rel_var_rho) * n_jobs, np.nan))
    raw = _shrunk(rows, kind, np.where(kept, found.rel_var_raw * n_jobs, np.nan))
    with_cost = np.where(found.use, corrected.per_job, raw.per_job) / n_jobs
    return BucketVariances(
        rel_var=with_cost + np.nan_to_num(found.rel_var_rho),
        rel_var_raw=raw.per_job / n_jobs,
        per_job=corrected.per_job,
        per_job_of_task=corrected.of_task,
        stray=corrected.is_stray,
    )


def _shrunk(rows: TaskSums, kind: npt.NDArray[np.int64], variance: FloatArray) -> fitters.JobScatter:
    return fitters.job_scatter(rows.task.codes, kind, rows.sums["n_jobs"], variance)
