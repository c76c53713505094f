"""Rows that a dashboard reads as they are: beside a verdict that of the run before, books that add up."""

import itertools
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.schema.speed import FLAGS, SPEED
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.steps.grids import grid_jobs, load

EARLY, MIDDLE, LATE = "2018-08-10/2018-08-12", "2018-08-12/2018-08-14", "2018-08-14/2018-08-16"
BEFORE = ["run_before", "verdict_before", "status_shown_before", "k_before", "corepower_before"]
KEY = list(FLAGS.key)


def jobs() -> pd.DataFrame:
    """Six days; from the third on one queue is half as fast as it declares. Some jobs fail."""
    rng = np.random.default_rng(1)
    speed = np.arange(9.3, 21.0)
    frame = grid_jobs(rng, speed, speed, tasks=3, jobs=126, days=6)
    late = (frame["queue"] == "SITE02") & (frame["end_time"] >= "2018-08-12")
    frame.loc[late, ["cpu_s", "wall_s", "hs06_s"]] *= 2
    frame.loc[::997, "state"] = "failed"
    return frame


def session_of(store: JobStore) -> Session:
    seconds = itertools.count()
    return Session(store, Settings(), clock=lambda: NOW + timedelta(seconds=next(seconds)))


def flags(session: Session, run: str, *columns: str) -> pd.DataFrame:
    """Rows of one run by their key."""
    return session.tables.flags(run=run).to_pandas().set_index(KEY)[list(columns)].sort_index()


def test_what_a_name_was_stands_beside_what_it_is(store: JobStore, tmp_path: Path) -> None:
    with memory_session() as embedded:
        sessions = (session_of(store), session_of(embedded.store))
        for session in sessions:
            load(session, jobs(), tmp_path)
        runs = []
        for window in (EARLY, MIDDLE, LATE, "2018-08-11/2018-08-14"):
            first, second = (session.run(window)[-1].run for session in sessions)
            assert first == second
            left, right = (flags(session, first, *BEFORE) for session in sessions)
            pd.testing.assert_frame_equal(left, right, rtol=1e-9)
            runs.append(first)
        session = sessions[0]
        early, middle, late, of_three_days = runs
        assert flags(session, early, *BEFORE).isna().all(axis=None)
        for run, before in ((middle, early), (late, middle)):
            now = flags(session, run, *BEFORE)
            assert set(now["run_before"]) == {before}
            then = flags(session, before, "verdict", "status_shown", "k", "corepower").reindex(now.index)
            then.columns = pd.Index(BEFORE[1:])
            pd.testing.assert_frame_equal(now[BEFORE[1:]], then)
        names = (
            session.tables.flags(run=middle, level="queue", type="all", method="gamma")
            .to_pandas()
            .set_index("name")
        )
        moved = names.loc["SITE02"]
        assert moved["verdict"] != moved["verdict_before"]
        assert moved["k"] < 0.7 * moved["k_before"]
        assert flags(session, of_three_days, *BEFORE).isna().all(axis=None)


def test_a_restriction_is_compared_with_its_own(store: JobStore, tmp_path: Path) -> None:
    session = session_of(store)
    load(session, jobs(), tmp_path)
    session.run(EARLY)
    alone = session.run(MIDDLE, tasks="task0")[-1].run
    assert session.tables.flags(run=alone).to_pandas()["run_before"].isna().all()
    earlier = session.run(EARLY, tasks="task0")[-1].run
    assert session.run(MIDDLE, tasks="task0")[-1].run == alone
    assert set(session.tables.flags(run=alone).to_pandas()["run_before"]) == {earlier}


def test_steps_alone_are_compared_with_the_same_run(store: JobStore, tmp_path: Path) -> None:
    session = session_of(store)
    load(session, jobs(), tmp_path)
    session.run(EARLY)
    run = session.run(MIDDLE)[-1].run
    before = flags(session, run, *BEFORE)
    assert before["run_before"].notna().all()
    for step in (session.speed.flag, session.speed.fit, session.speed.correlate):
        step(MIDDLE)
        pd.testing.assert_frame_equal(flags(session, run, *BEFORE), before)


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_run_that_is_repeated_gives_equal_rows(store: JobStore, tmp_path: Path, *, rebuild: bool) -> None:
    """Times of the clock stand in ``runs`` alone."""
    session = session_of(store)
    load(session, jobs(), tmp_path)
    session.run(EARLY)

    def rows() -> dict[str, pd.DataFrame]:
        found = {each.name: session.tables.read(each.name).to_pandas() for each in SPEED.tables}
        found["days"] = (
            session.tables.day_books().to_pandas().sort_values(["day", "kind", "outcome"], ignore_index=True)
        )
        return found

    session.run(MIDDLE)
    first = rows()
    session.run(MIDDLE, rebuild=rebuild)
    for name, again in rows().items():
        pd.testing.assert_frame_equal(again, first[name])


def test_the_counts_of_a_day_add_up_without_conditions(store: JobStore, tmp_path: Path) -> None:
    session = session_of(store)
    load(session, jobs().assign(state=lambda frame: frame["state"].where(frame.index % 7 > 0)), tmp_path)
    session.speed.aggregate()
    days = session.tables.day_books().to_pandas()
    assert {"binned", "dropped", "note"} == set(days["kind"])
    sums = days.groupby("day")[["n_in", "n_used", "n_dropped", "n_invalid"]].sum()
    stored = session.jobs().to_pandas().groupby(session.jobs().to_pandas()["end_time"].dt.date).size()
    buckets = session.tables.buckets().to_pandas().groupby("day")["n_jobs"].sum()
    assert sums["n_in"].tolist() == stored.tolist()
    assert sums["n_used"].tolist() == buckets.tolist()
    assert (sums["n_in"] == sums["n_used"] + sums["n_dropped"]).all()
    assert (sums["n_invalid"] == 0).all()
    of_reason = days[days["kind"] == "dropped"].groupby("outcome")[["n_jobs", "n_dropped"]].sum()
    assert (of_reason["n_jobs"] == of_reason["n_dropped"]).all()
