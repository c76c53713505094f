"""What is counted can be asked of a store: rows and columns say the same as the texts beside them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs.api.session import Session
from esjobs.core.query import In, Query, Sum
from esjobs.core.words import STANDINGS, status_shown
from esjobs.schema.runs import RUN_COUNTS
from esjobs.schema.speed import PULL_HISTOGRAMS
from tests.steps.grids import grid_jobs, load


@pytest.fixture
def ran(session: Session, tmp_path: Path) -> Session:
    """A run in which one queue deviates and some jobs are dropped."""
    declared = np.arange(9.25, 25.0)
    speed = declared.copy()
    speed[3] *= 2
    jobs = grid_jobs(np.random.default_rng(4), speed, declared, tasks=12)
    jobs.loc[:6, "state"] = "failed"
    jobs.loc[7:9, "events"] = 0
    load(session, jobs, tmp_path)
    session.run()
    return session


def test_bars_of_pulls_are_rows(ran: Session) -> None:
    fits, bars = ran.tables.fits().to_pandas(), ran.tables.pull_histograms().to_pandas()
    key = ["level", "processing_type", "method"]
    drawn = fits.dropna(subset=["pull_width"])
    assert len(drawn)
    assert len(bars) == 20 * len(drawn)
    for _, fit in drawn.iterrows():
        mine = bars[(bars[key] == fit[key]).all(axis=1)].sort_values("low")
        assert 0 < mine["n_buckets"].sum() <= fit["n_buckets"] + fit["n_rejected"]
        assert (mine["low"].iloc[0], mine["high"].iloc[-1]) == (-5, 5)
        assert mine["high"].tolist()[:-1] == mine["low"].tolist()[1:]
    asked = ran.store.aggregate(
        Query(("method",), (Sum("n_buckets", "n"),), where=(In("level", ("queue",)),), over=PULL_HISTOGRAMS)
    ).table.to_pylist()
    expected = bars[bars["level"] == "queue"].groupby("method")["n_buckets"].sum()
    assert {row["method"]: row["n"] for row in asked} == expected.to_dict()


def counted(rows: pd.DataFrame, kind: str) -> dict[str, int]:
    chosen = rows[rows["kind"] == kind].sort_values("position")
    return dict(zip(chosen["name"], chosen["n"].astype(int), strict=True))


def test_counts_and_notes_of_steps_are_rows(ran: Session) -> None:
    runs, counts = ran.tables.runs().to_pandas(), ran.tables.run_counts().to_pandas()
    assert len(runs) == 4
    for _, report in runs.iterrows():
        mine = counts[counts["run_step"] == report["run_step"]]
        assert set(mine["step"]) <= {report["step"]}
        assert set(mine["run"]) <= {report["run"]}
        assert counted(mine, "dropped") == json.loads(report["dropped"])
        assert counted(mine, "count") == json.loads(report["counts"])
        notes = mine[mine["kind"] == "note"].sort_values("position")
        assert notes["text"].tolist() == json.loads(report["notes"])
        assert notes["n"].isna().all()
    assert counts["kind"].isin(("dropped", "count")).any()
    dropped = ran.store.aggregate(
        Query(("name",), (Sum("n", "n"),), where=(In("kind", ("dropped",)),), over=RUN_COUNTS)
    ).table.to_pylist()
    assert {row["name"]: row["n"] for row in dropped} == {"not finished": 7, "no events": 3}


def test_counts_go_with_the_report_they_are_of(ran: Session) -> None:
    ran.speed.fit()
    runs, counts = ran.tables.runs().to_pandas(), ran.tables.run_counts().to_pandas()
    assert set(runs["step"]) == {"aggregate", "fit", "correlate", "flag"}
    assert set(counts["run_step"]) <= set(runs["run_step"])
    (fit,) = runs[runs["step"] == "fit"].to_dict("records")
    mine = counts[(counts["step"] == "fit") & (counts["kind"] == "count")]
    assert dict(zip(mine["name"], mine["n"], strict=True)) == json.loads(fit["counts"])
    ran.run(where="processing_type=simul")
    assert len(set(ran.tables.run_counts().to_pandas()["run"])) == 2
    ran.runs.prune(1)
    assert len(set(ran.tables.run_counts().to_pandas()["run"])) == 1
    assert set(ran.tables.run_counts().to_pandas()["run"]) == set(ran.tables.runs().to_pandas()["run"])
    assert set(ran.tables.pull_histograms().to_pandas()["run"]) == set(ran.tables.runs().to_pandas()["run"])


def test_the_standing_of_a_verdict_is_a_column(ran: Session) -> None:
    flags = ran.tables.flags().to_pandas()
    expected = [
        status_shown(verdict, None if pd.isna(confirmed) else bool(confirmed))
        for verdict, confirmed in zip(flags["verdict"], flags["confirmed"], strict=True)
    ]
    assert flags["status_shown"].tolist() == expected
    assert set(expected) <= set(STANDINGS)
    assert "deviates" in set(flags["verdict"])


def test_a_bucket_knows_what_was_decided_about_its_task(ran: Session) -> None:
    key = ["task_id", "core_class", "task_type"]
    tasks = ran.tables.tasks().to_pandas().set_index(key)
    buckets = ran.tables.residuals().to_pandas()
    assert len(buckets)
    for _, bucket in buckets.iterrows():
        task = tasks.loc[tuple(bucket[key])]
        assert bucket["decision"] == task["decision"]
        # a bucket has the start-up time that was fitted: none where the task has too little to tell one
        assert bucket["rho"] in (0.0, task["rho"]) or (pd.isna(bucket["rho"]) and pd.isna(task["rho"]))
