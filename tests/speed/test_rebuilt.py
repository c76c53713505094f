"""Stored rows that let a reader rebuild what was fitted."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.grids import Grid
from benchmarks.honesty import run_grid

GRID = Grid(sites=16, tasks=20, sites_per_task=10, types=1, multi=0.0, rho=1.0, lengths=3.0, rho_scatter=0.6)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Tables of a grid whose queues have start-up times of their own; all of its tasks are kept."""
    return run_grid(GRID, 62_000, {})[1]


def of_queues(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table.level == "queue") & (table.method == "gamma")]


def test_factors_follow_from_the_stored_residuals(found: dict[str, Any]) -> None:
    """ln of CPU time per event with start-up time, corrected for the deviation, is level less ln k."""
    rows = of_queues(found["residuals"])
    used = rows[rows.status == "used"]
    assert used.rho.nunique() > used.task_id.nunique()
    events = used.events_per_job
    seconds = used.cpu_s_per_event * events / (events + used.rho)
    expected = np.log((seconds * (1 + used.deviation)).to_numpy(float))
    tasks, task = np.unique(used.task_id, return_inverse=True)
    names, name = np.unique(used.name, return_inverse=True)
    design = np.zeros((len(used), len(tasks) + len(names)))
    design[np.arange(len(used)), task] = 1
    design[np.arange(len(used)), len(tasks) + name] = -1
    ln_k = np.linalg.lstsq(design, expected, rcond=None)[0][len(tasks) :]
    factors = of_queues(found["factors"])
    k = factors[factors.processing_type == "all"].set_index("name").k[names].to_numpy(float)
    move = ln_k - np.log(k)
    np.testing.assert_allclose(move, move.mean(), atol=1e-6)


def test_the_error_of_a_start_up_time_holds_what_queues_differ_by(found: dict[str, Any]) -> None:
    fit = of_queues(found["fits"]).set_index("processing_type").loc["all"]
    assert fit.sigma_cost_kind == "corrected"
    tasks = found["tasks"].dropna(subset="rho")
    relative = (tasks.rho_err / tasks.rho).to_numpy(float)
    # ten queues a task, of unequal information
    assert (relative > 0.9 * fit.sigma_cost / np.sqrt(10)).all()
    assert np.median(relative) < 2.5 * fit.sigma_cost / np.sqrt(10)
