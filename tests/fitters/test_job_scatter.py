"""Scatter of single jobs: that of a unit's machines is found beside that of tasks."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fitters import job_scatter, unit_scatter

N_TASKS, N_UNITS = 12, 8
TASK, UNIT = (part.ravel() for part in np.indices((N_TASKS, N_UNITS)))
OF_TASK = np.linspace(0.01, 0.09, N_TASKS)
OF_UNIT = np.array([0.5, 0.6, 0.8, 1.0, 1.0, 1.2, 1.5, 2.5])
JOBS = np.random.default_rng(0).integers(2, 60, TASK.size).astype(np.float64)
ONE_KIND = np.zeros(N_TASKS, np.int64)


def drawn(rng: np.random.Generator) -> NDArray[np.float64]:
    """Variances of the jobs of each bucket."""
    return np.asarray(OF_TASK[TASK] * OF_UNIT[UNIT] * rng.chisquare(JOBS - 1.0) / (JOBS - 1.0))


def by_unit(variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much the jobs of each unit scatter, relative to all."""
    scatter = job_scatter(TASK, ONE_KIND, JOBS, variance)
    ratio = (unit_scatter(scatter, UNIT, JOBS, variance) / scatter.of_task)[:N_UNITS]
    return np.asarray(ratio / np.exp(np.log(ratio).mean()))


def test_units_of_unlike_machines_scatter_more_in_every_task() -> None:
    rng = np.random.default_rng(1)
    found = np.array([by_unit(drawn(rng)) for _ in range(20)])
    expected = OF_UNIT / np.exp(np.log(OF_UNIT).mean())
    assert np.median(found, axis=0) == pytest.approx(expected, rel=0.15)
    # 12 buckets of some 30 jobs: sqrt(2 / 360) of each
    assert np.std(np.log(found), axis=0).max() < 0.15


def test_a_bucket_of_wrong_records_does_not_widen_its_unit() -> None:
    variance = drawn(np.random.default_rng(2))
    broken = np.where(np.arange(TASK.size) == 3 * N_UNITS + 4, 50.0 * variance, variance)
    assert by_unit(broken) == pytest.approx(by_unit(variance), rel=0.05)


def test_single_jobs_scatter_as_those_of_their_unit_elsewhere() -> None:
    variance = drawn(np.random.default_rng(3))
    jobs = np.where(TASK == 5, 1.0, JOBS)
    variance[TASK == 5] = np.nan
    scatter = job_scatter(TASK, ONE_KIND, jobs, variance)
    per_job = unit_scatter(scatter, UNIT, jobs, variance)
    assert np.isfinite(per_job).all()
    ratio = (per_job / scatter.of_task).reshape(N_TASKS, N_UNITS)
    assert ratio == pytest.approx(np.broadcast_to(ratio[0], ratio.shape))
