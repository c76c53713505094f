"""Mixed tasks in the application: split by what the records name, excluded otherwise, counted always."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from tests.steps.grids import grid_jobs, load, site_names

SPEED = np.linspace(8.0, 12.0, 12)


def mixed_grid(seed: int = 1) -> pd.DataFrame:
    """Four tasks of 40 jobs at 12 sites; of the last one half the jobs take a tenth, at two sites all."""
    jobs = grid_jobs(np.random.default_rng(seed), SPEED, tasks=4, jobs=40)
    last = jobs["task_id"] == sorted(jobs["task_id"].unique())[-1]
    only = jobs["queue"].isin(site_names(12)[:2])
    quick = last & (only | (np.arange(len(jobs)) % 2 == 0))
    jobs["cpu_s"] = np.where(quick, jobs["cpu_s"] / 10, jobs["cpu_s"])
    jobs["wall_s"] = np.where(quick, jobs["wall_s"] / 10, jobs["wall_s"])
    return jobs.assign(transformation=np.where(quick, "merge", "simul"))


def site_factors(session: Session, method: str = "gamma") -> pd.DataFrame:
    return session.tables.factors(level="queue", type="all", method=method).to_pandas().set_index("name")


@pytest.mark.parametrize("named", [True, False])
def test_a_mixed_task_moves_no_factor(session: Session, tmp_path: Path, *, named: bool) -> None:
    jobs = mixed_grid()
    load(session, jobs if named else jobs.drop(columns="transformation"), tmp_path)
    session.run()
    tasks = session.tables.tasks().to_pandas()
    assert ("split" if named else "mixed task") in set(tasks["decision"])
    if named:
        assert set(tasks["work_kind"].dropna()) == {"merge", "simul"}
    factors = site_factors(session)
    relative = factors["k"].to_numpy() / SPEED
    np.testing.assert_allclose(relative / relative.mean(), 1.0, atol=0.08)
    fit = session.tables.fits(level="queue", type="all", method="gamma").to_pandas().iloc[0]
    assert fit["n_jobs"] + fit["n_jobs_dropped"] == len(jobs)
    assert fit["n_jobs_excluded"] == (0 if named else 12 * 40)


def test_flags_alone_see_what_the_fit_saw(session: Session, tmp_path: Path) -> None:
    load(session, mixed_grid(), tmp_path)
    session.run()
    whole = session.tables.flags().to_pandas()
    session.speed.correlate()
    session.speed.flag()
    pd.testing.assert_frame_equal(session.tables.flags().to_pandas(), whole)


def test_a_clean_grid_is_left_alone(session: Session, tmp_path: Path) -> None:
    load(session, grid_jobs(np.random.default_rng(2), SPEED, tasks=4, jobs=40), tmp_path)
    session.run()
    assert not set(session.tables.tasks().to_pandas()["decision"]) & {"split", "mixed task"}


def test_residuals_hold_the_worst_buckets(session: Session, tmp_path: Path) -> None:
    load(session, grid_jobs(np.random.default_rng(3), SPEED, tasks=4, jobs=40), tmp_path)
    session.run()
    rows = session.tables.residuals(level="queue").to_pandas()
    assert rows["rank"].dropna().tolist() == list(range(1, 11))
    worst = rows["pull"].abs()
    assert worst.iloc[:10].is_monotonic_decreasing
    assert worst.iloc[9] >= worst.iloc[10:].max()
    ratio = rows["expected_cpu_s_per_event"] / rows["cpu_s_per_event"] - 1
    np.testing.assert_allclose(rows["deviation"], ratio, rtol=1e-9)
