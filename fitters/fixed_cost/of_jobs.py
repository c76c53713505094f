"""Trimming of single jobs that differ from the others of their task and unit."""

from dataclasses import replace

import numpy as np

from fitters.fixed_cost.job_sums import Rows, Scatter
from fitters.fixed_cost.of_buckets import bucket_costs
from fitters.layout.arrays import Floats, Mask, grouped_median

# Jobs whose ln residual is further off are left out: another kind of work, a stuck job, a lost file
TRIM_LIMIT = 0.5
ROUNDS = 20


def trimmed(rows: Rows) -> tuple[Rows, Floats]:
    """Return the jobs without outliers, and the number of outliers per task.

    ``rows`` are single jobs. Start-up times from second moments and trimming about the median of task and
    unit take turns until the jobs that count stay the same.
    """
    n_tasks, n_units = rows.task_names.size, rows.unit_names.size
    _, cell = np.unique(rows.task.astype(np.int64) * max(n_units, 1) + rows.unit, return_inverse=True)
    n_cells = int(cell.max(initial=-1)) + 1
    inside = np.ones(rows.task.size, np.bool_)
    for _ in range(ROUNDS):
        cost = bucket_costs(Scatter.of(_some(rows, inside)), n_tasks)
        with np.errstate(all="ignore"):
            rho = np.nan_to_num(np.maximum(cost.mean_events * (1.0 / cost.q - 1.0), 0.0))
        residual = np.log(rows.cpu_s / (rows.events + rho[rows.task]))
        centre = grouped_median(cell[inside], residual[inside], n_cells)
        again = np.abs(residual - centre[cell]) <= TRIM_LIMIT
        if np.array_equal(again, inside):
            break
        inside = again
    return _some(rows, inside), np.bincount(rows.task[~inside], minlength=n_tasks).astype(np.float64)


def _some(rows: Rows, chosen: Mask) -> Rows:
    columns = {name: getattr(rows, name)[chosen] for name in ("task", "unit", "jobs", "events", "cpu_s")}
    return replace(rows, **columns, input_row=rows.input_row[chosen])
