"""One task in two core classes is two units of A, and one task when a proposal asks for two."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from tests.steps.grids import grid_jobs, write_jobs

SITES = 14


@pytest.mark.parametrize(("tasks", "proposed"), [(1, False), (2, True)])
def test_a_task_in_two_core_classes_counts_once(
    session: Session, tmp_path: Path, tasks: int, proposed: bool
) -> None:
    speed = np.linspace(10, 16, SITES)
    declared = speed.copy()
    declared[0] /= 2
    single = grid_jobs(np.random.default_rng(1), speed, declared, tasks=tasks, jobs=60)
    multi = grid_jobs(np.random.default_rng(2), speed, declared, tasks=tasks, jobs=60)
    multi["cores"] = 8
    multi["wall_s"] /= 8
    multi["job_id"] = "multi-" + multi["job_id"]
    session.ingest("jobs", write_jobs(pd.concat([single, multi]), tmp_path / "jobs.parquet"))
    session.run()
    row = session.tables.flags(level="queue", type="all", method="gamma", name="SITE00").to_pandas().iloc[0]
    assert (row["verdict"], row["n_units"], row["n_tasks"]) == ("deviates", 2 * tasks, tasks)
    assert pd.notna(row["proposed_corepower"]) == proposed
    if not proposed:
        assert "one task only" in row["sentence"]
    factors = session.tables.factors(level="queue", type="all", method="gamma").to_pandas()
    assert set(factors["n_tasks"]) == {tasks}
    session.speed.flag()
    again = session.tables.flags(level="queue", type="all", method="gamma", name="SITE00").to_pandas().iloc[0]
    assert again["n_tasks"] == tasks
