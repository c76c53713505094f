"""Scenes that several tests of interrupted work share."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.steps.grids import grid_jobs, write_jobs
from tests.steps.scenes import Scene, opened, scene

SPEED = np.arange(9.3, 21.0)


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Scene]:
    """A store with jobs and results; then new and changed jobs come."""
    folder = tmp_path_factory.mktemp("scenes")
    rng = np.random.default_rng(1)
    old = write_jobs(grid_jobs(rng, SPEED, SPEED), folder / "old.parquet")
    changed = grid_jobs(rng, SPEED * 0.9, SPEED, jobs=100, days=4)
    changed.loc[::50, "cores"] = -1
    new = write_jobs(changed, folder / "new.parquet")
    settled, loaded, twice = (folder / f"{name}.duckdb" for name in ("settled", "loaded", "twice"))
    with opened(settled) as session:
        session.ingest("jobs", old)
        session.run()
    with opened(Path(shutil.copy(settled, loaded))) as session:
        load = session.ingest("jobs", new)
        assert load.dropped
    with opened(Path(shutil.copy(loaded, twice))) as session:
        session.run("2018-08-10/2018-08-12")
        session.run()
    return {
        "ingest": scene(settled, ("ingest", str(new)), folder),
        "aggregate": scene(loaded, ("aggregate",), folder),
        "run": scene(loaded, ("run",), folder),
        "undo": scene(twice, ("undo", load.run), folder),
        "prune": scene(twice, ("prune", "1"), folder),
    }
