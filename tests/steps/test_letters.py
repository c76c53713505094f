"""What a letter to a site must survive: each planted fault once made an honest site look wrong.

The sizes are those of ``benchmarks.honesty``; here one seed of each has to be on the right side by far.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.grids import Grid
from tests.conftest import memory_session
from tests.steps.grids import grid_jobs, load, site_names
from tests.steps.test_broken_assumptions import SMALL, headline, judged


def flags_of(grid: Grid, seed: int = 5) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Flags by name, with what was planted, and all tables."""
    _, truth, found = judged(grid, seed)
    flags = headline(found, "flags").set_index("name").reindex(truth.name)
    return flags.assign(wrong=truth.wrong), found


def assert_only_wrong_ones_are_sent(flags: pd.DataFrame, least: float = 0.6) -> None:
    confirmed = flags["confirmed"].fillna(False).astype(bool)
    assert not (confirmed & (flags["wrong"] == 1)).any()
    compared = flags["verdict"].isin(["deviates", "ok", "undecided"]) & (flags["wrong"] != 1)
    assert confirmed.sum() >= least * compared.sum()


def test_survivors_of_a_limit_are_no_measure_of_speed() -> None:
    """Of 6 slow sites a limit ends 10 to 70 % of the jobs of most tasks: what finishes is short."""
    flags, found = flags_of(SMALL.but(limited=6, jobs=60, rho=1.0, lengths=3.0))
    assert_only_wrong_ones_are_sent(flags)
    assert flags["sentence"].str.contains("long jobs are cut off at [\\d,]+ s", regex=True).sum() >= 3
    assert not (flags["verdict"] == "deviates")[flags["wrong"] == 1].any()
    fit = headline(found, "fits").iloc[0]
    assert 0.75 < fit.jobs_share < 0.98  # cut-off cells are left out, and counted


def cut_jobs(share_failed: float, *, piled: bool) -> pd.DataFrame:
    """Ten queues; at SITE00 some jobs of task0 fail: after the same time, or after any."""
    rng = np.random.default_rng(8)
    jobs = grid_jobs(rng, np.full(10, 11.0), np.full(10, 11.0), names=site_names(10), tasks=4, spread=0.4)
    mine = (jobs["queue"] == "SITE00") & (jobs["task_id"] == "task0")
    wall = jobs.loc[mine, "wall_s"]
    limit = wall.quantile(1 - share_failed)
    failed = wall[wall > limit].index if piled else wall.sample(frac=share_failed, random_state=1).index
    jobs.loc[failed, "state"] = "failed"
    if piled:
        jobs.loc[failed, ["wall_s", "cpu_s"]] = limit * 1.005, limit * 0.9
    return jobs


@pytest.mark.parametrize(
    ("share", "piled", "cut"), [(0.4, True, True), (0.4, False, False), (0.1, True, False)]
)
def test_a_task_is_cut_off_where_its_failed_jobs_pile_up_beyond_the_others(
    share: float, piled: bool, cut: bool, tmp_path: Path
) -> None:
    """Crashes at any time are none, nor are two or three failed jobs."""
    with memory_session() as session:
        load(session, cut_jobs(share, piled=piled), tmp_path)
        session.run()
        factors = session.tables.factors(level="queue", type="all", method="gamma").to_pandas()
    n_tasks = factors.set_index("name")["n_tasks"]
    assert n_tasks["SITE00"] == (3 if cut else 4)
    assert set(n_tasks.drop("SITE00")) == {4}


@pytest.mark.parametrize("multi", [0.5, 1.0])
def test_wrong_core_counts_double_no_declaration(multi: float) -> None:
    """8-core jobs recorded with 4: the value from records doubles, for all jobs or for some."""
    flags, _ = flags_of(SMALL.but(wrong_cores=5, multi=multi))
    assert_only_wrong_ones_are_sent(flags)
    assert flags["sentence"].str.contains("times wall time x cores in its multi-core jobs").sum() == 5


def test_two_values_on_the_same_days_are_no_declaration(tmp_path: Path) -> None:
    """Jobs of SITE00 with 4 cores carry twice the value of its others; SITE01 changes on the second day."""
    rng = np.random.default_rng(9)
    jobs = grid_jobs(rng, np.full(14, 11.0), np.full(14, 11.0), names=site_names(14), tasks=6)
    jobs["cores"] = np.where(rng.random(len(jobs)) < 0.5, 8, 4)
    jobs[["wall_s", "hs06_s"]] /= 4.0
    doubled = (jobs["queue"] == "SITE00") & (jobs["cores"] == 4)
    jobs["hs06_s"] = jobs["wall_s"] * jobs["cores"] * 11.0 * np.where(doubled, 2.0, 1.0)
    later = (jobs["queue"] == "SITE01") & (jobs["end_time"] > jobs["end_time"].min())
    jobs.loc[later, "hs06_s"] *= 2.0
    with memory_session() as session:
        load(session, jobs, tmp_path)
        session.run()
        flags = session.tables.flags(level="queue", type="all", method="gamma").to_pandas().set_index("name")
    assert flags.loc["SITE00", "verdict"] == "implausible"
    assert "two values at once, ratio 2.00: check core counts" in str(flags.loc["SITE00", "sentence"])
    assert flags.loc["SITE01", "origin"] == "changed"
    assert flags.loc["SITE01", "verdict"] == "deviates"
    assert not flags["confirmed"].fillna(False).any()
    assert "the declared value changed inside the window" in str(flags.loc["SITE01", "unstable_under"])
