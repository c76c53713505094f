"""Aggregating again: only what changed is made again, and the result is that of a store made afresh."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import BooksError, NoJobsError, NoResultError
from esjobs.core.query import In, Query
from esjobs.core.rules import CleaningRules
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import Aggregate
from esjobs.store.duck.store import DuckStore
from tests.conftest import memory_session
from tests.messages import raised
from tests.steps.grids import DAY, grid_jobs, load

KEYS = ["day", "task_id", "core_class", "queue", "cpu_model", "processing_type"]
SPEED = np.array([9.0, 10.0, 11.0])


def some_jobs(seed: int = 1, *, days: int = 3, prefix: str = "") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return grid_jobs(rng, SPEED, tasks=2, jobs=6, days=days, prefix=prefix)


@contextmanager
def made_afresh(session: Session, folder: Path) -> Iterator[Session]:
    """Another store with the same jobs, aggregated once."""
    with memory_session(session.settings) as fresh:
        load(fresh, session.jobs().to_pandas(), folder, "afresh")
        fresh.speed.aggregate()
        yield fresh


def assert_as_made_afresh(session: Session, folder: Path) -> None:
    with made_afresh(session, folder) as fresh:
        for table, order in (("buckets", KEYS), ("day_books", ["day", "kind", "outcome"])):
            found, expected = (
                one.tables.read(table).to_pandas().sort_values(order, ignore_index=True)
                for one in (session, fresh)
            )
            pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=0)
        assert session.tables.buckets().to_pandas()["n_jobs"].sum() == session.store.span().jobs


def recomputed(session: Session, window: str | None = None, *, rebuild: bool = False) -> int:
    return session.speed.aggregate(window, rebuild=rebuild).counts["days recomputed"]


def test_a_late_job_makes_its_day_again_and_no_other(session: Session, tmp_path: Path) -> None:
    load(session, some_jobs(), tmp_path)
    assert recomputed(session) == 3
    assert recomputed(session) == 0
    late = some_jobs(2, prefix="late").iloc[[1]]
    assert set(late["end_time"]) == {DAY + pd.Timedelta(days=1)}
    load(session, late, tmp_path, "late")
    assert recomputed(session) == 1
    assert_as_made_afresh(session, tmp_path)


def test_a_superseded_job_leaves_its_old_day(session: Session, tmp_path: Path) -> None:
    jobs = some_jobs()
    load(session, jobs, tmp_path)
    session.speed.aggregate()
    again = jobs.iloc[[0]].assign(end_time=DAY + pd.Timedelta(days=2, hours=1), queue="ELSEWHERE")
    load(session, again, tmp_path, "again")
    assert recomputed(session) == 2
    buckets = session.tables.buckets().to_pandas()
    assert buckets.loc[buckets["queue"] == "ELSEWHERE", "n_jobs"].sum() == 1
    assert buckets["n_jobs"].sum() == len(jobs)
    assert_as_made_afresh(session, tmp_path)


def test_an_update_that_changes_no_count_is_seen(session: Session, tmp_path: Path) -> None:
    jobs = some_jobs()
    load(session, jobs, tmp_path)
    session.speed.aggregate()
    load(session, jobs.iloc[[0]].assign(cpu_s=jobs["cpu_s"] * 1.01), tmp_path, "same end time")
    assert recomputed(session) == 1
    assert_as_made_afresh(session, tmp_path)


def test_an_undone_load_makes_its_days_again(session: Session, tmp_path: Path) -> None:
    jobs = some_jobs()
    load(session, jobs, tmp_path)
    session.speed.aggregate()
    before = session.tables.buckets().to_pandas()
    wrong = load(session, jobs.iloc[:2].assign(cpu_s=1.0), tmp_path, "wrong")
    assert recomputed(session) == 2
    session.undo(wrong)
    assert recomputed(session) == 2
    pd.testing.assert_frame_equal(session.tables.buckets().to_pandas(), before, rtol=1e-12, atol=0)


def test_changed_rules_make_every_day_again(session: Session, tmp_path: Path) -> None:
    load(session, some_jobs(), tmp_path)
    session.speed.aggregate()
    stricter = Settings(rules=CleaningRules(min_events=100))
    other = Session(session.store, stricter)
    assert recomputed(other) == 3
    assert other.tables.buckets().to_pandas()["events"].sum() < some_jobs()["events"].sum()
    assert_as_made_in_order(other)
    assert recomputed(other) == 0
    assert recomputed(session) == 3
    assert_as_made_afresh(session, tmp_path)


def assert_as_made_in_order(session: Session) -> None:
    """Books hold under any rules: what is binned and what is dropped is what is stored."""
    days = session.tables.day_books().to_pandas()
    counted = days[days["kind"] != "note"]["n_jobs"].sum()
    assert counted == session.store.span().jobs
    assert set(days["rules"]) == {session.settings.rules.digest}


def test_rebuild_makes_every_day_again_and_changes_nothing(session: Session, tmp_path: Path) -> None:
    load(session, some_jobs(), tmp_path)
    session.speed.aggregate()
    before = session.tables.buckets().to_pandas()
    assert recomputed(session, rebuild=True) == 3
    pd.testing.assert_frame_equal(session.tables.buckets().to_pandas(), before, rtol=1e-12, atol=0)


def test_a_window_leaves_the_other_days_alone(session: Session, tmp_path: Path) -> None:
    load(session, some_jobs(), tmp_path)
    assert recomputed(session, "2018-08-11/2018-08-12") == 1
    assert set(session.tables.buckets().to_pandas()["day"].dt.day) == {11}
    assert recomputed(session, "2018-08-01/2018-09-01") == 2
    assert_as_made_afresh(session, tmp_path)


@pytest.mark.parametrize("window", [None, "2018-08-01/2018-09-01"])
@pytest.mark.parametrize("first", [-3, 1, 5], ids=["before", "between", "after"])
def test_days_without_jobs_disappear(
    session: Session, tmp_path: Path, first: int, window: str | None
) -> None:
    """A load with a wrong end time, taken back: no window has to be named to get rid of its buckets."""
    stays = some_jobs().assign(end_time=lambda jobs: DAY + (jobs["end_time"] - DAY) * 2)
    load(session, stays, tmp_path)
    wrong = some_jobs(2, prefix="wrong").assign(end_time=DAY + pd.Timedelta(days=first))
    undone = load(session, wrong, tmp_path, "wrong")
    assert recomputed(session) == 4
    session.undo(undone)
    session.speed.aggregate(window)
    assert set(session.tables.buckets().to_pandas()["day"].dt.day) == {10, 12, 14}
    assert_as_made_afresh(session, tmp_path)


def test_jobs_that_move_away_leave_no_day_behind(session: Session, tmp_path: Path) -> None:
    jobs = some_jobs()
    load(session, jobs, tmp_path)
    session.speed.aggregate()
    last = jobs[jobs["end_time"] == jobs["end_time"].max()]
    first = jobs[jobs["end_time"] == jobs["end_time"].min()]
    moved = pd.concat([first, last]).assign(end_time=jobs["end_time"].max() + pd.Timedelta(days=5))
    load(session, moved, tmp_path, "moved")
    session.speed.aggregate()
    assert set(session.tables.buckets().to_pandas()["day"].dt.day) == {11, 17}
    assert_as_made_afresh(session, tmp_path)


def test_nothing_is_left_when_everything_is_taken_back(session: Session, tmp_path: Path) -> None:
    undone = load(session, some_jobs(), tmp_path)
    session.run()
    session.undo(undone)
    with pytest.raises(NoJobsError):
        session.speed.aggregate("2018-08-01/2018-09-01")
    assert session.tables.buckets().to_pandas().empty
    assert session.tables.day_books().to_pandas().empty
    with pytest.raises(NoResultError):
        session.speed.fit("2018-08-01/2018-09-01")
    assert (
        not session.tables.factors().to_pandas().empty
    )  # published before: stays until it is pruned or replaced


def test_a_fit_alone_refuses_buckets_made_under_other_rules(session: Session, tmp_path: Path) -> None:
    """The run id would name rules that were never applied."""
    load(session, some_jobs(), tmp_path)
    session.speed.aggregate()
    other = Session(session.store, Settings(rules=CleaningRules(min_events=100)))
    with raised(NoResultError):
        other.speed.fit()
    other.speed.aggregate()
    assert other.speed.fit().rows_in == len(other.tables.buckets().to_pandas())


def test_flagging_alone_judges_what_was_fitted(session: Session, tmp_path: Path) -> None:
    """Between fit and flag jobs came: flag reads no buckets, the next fit does."""
    load(session, some_jobs(), tmp_path)
    session.run()
    flags = session.tables.flags().to_pandas()
    new = grid_jobs(np.random.default_rng(3), SPEED, names=["NEW1", "NEW2", "NEW3"], tasks=2, prefix="n")
    load(session, new.assign(task_id=new["task_id"].str[1:]), tmp_path, "new")
    session.speed.aggregate(days := "2018-08-10/2018-08-13")
    session.speed.flag(days)
    pd.testing.assert_frame_equal(session.tables.flags().to_pandas(), flags)
    session.speed.fit(days)
    session.speed.correlate(days)
    assert session.speed.flag(days).rows_out > len(flags)


def test_a_fit_alone_says_when_jobs_are_not_in_the_buckets(session: Session, tmp_path: Path) -> None:
    load(session, some_jobs(), tmp_path)
    session.speed.aggregate()
    assert not any("not aggregated yet" in note for note in session.speed.fit().notes)
    load(session, some_jobs(2, prefix="late").iloc[[1]], tmp_path, "late")
    said = " ".join(session.speed.fit().notes)
    assert "1 days have jobs that are not aggregated yet" in said
    assert "first 2018-08-11" in said
    session.speed.aggregate()
    assert "not aggregated yet" not in " ".join(session.speed.fit().notes)


def test_what_was_concluded_from_earlier_factors_is_concluded_again(session: Session, tmp_path: Path) -> None:
    """The same question fitted again: its verdicts of before are of other factors."""
    load(session, some_jobs(), tmp_path)
    session.run()
    load(session, some_jobs(2, prefix="late"), tmp_path, "late")
    session.speed.aggregate()
    before = session.tables.factors().to_pandas()
    session.speed.fit()
    tables = ("factors", "lines", "flags", "fit_summaries")
    alone = {what: session.tables.read(what).to_pandas() for what in tables}
    assert not alone["factors"]["n_jobs"].equals(before["n_jobs"])
    session.run()
    for what in tables:
        pd.testing.assert_frame_equal(alone[what], session.tables.read(what).to_pandas())


def declare(session: Session, folder: Path, values: dict[str, float]) -> str:
    """Import corepower by queue; the id of the import."""
    file = folder / "declared.csv"
    file.write_text("queue,corepower\n" + "".join(f"{name},{value}\n" for name, value in values.items()))
    session.declared.import_values(file, benchmark="HS06", valid_from="2018-01-01")
    return str(session.tables.corepower().to_pandas()["import_id"].dropna().iloc[-1])


def declared_grid(session: Session, folder: Path) -> dict[str, float]:
    """A grid of queues of as many sites as a line needs, and what they declare: one twice too much."""
    speed = np.arange(9.0, 21.0)
    load(session, grid_jobs(np.random.default_rng(4), speed, tasks=3, jobs=126), folder)
    values = {f"SITE{place:02d}": float(value) for place, value in enumerate(speed)}
    declare(session, folder, {**values, "SITE05": 2 * values["SITE05"]})
    return values


def test_lines_and_verdicts_rest_on_the_same_declarations(session: Session, tmp_path: Path) -> None:
    """Flagging alone after another declaration makes the lines again, too, and says why."""
    values = declared_grid(session, tmp_path)
    session.run()
    before = session.tables.lines(level="queue").to_pandas()
    assert session.tables.flags(name="SITE05", level="queue").to_pandas()["verdict"].iloc[0] == "deviates"
    assert not any("have changed since" in note for note in session.speed.flag().notes)
    imported = declare(session, tmp_path, values)
    report = session.speed.flag()
    (note,) = (note for note in report.notes if "queue have changed since" in note)
    assert "declared values of 1 queue have changed since the verdicts" in note
    assert "for example SITE05" in note
    assert session.tables.flags(name="SITE05", level="queue").to_pandas()["verdict"].iloc[0] == "ok"
    after = session.tables.lines(level="queue").to_pandas()
    assert (after["pearson"] > before["pearson"]).all()
    session.run()
    pd.testing.assert_frame_equal(session.tables.lines(level="queue").to_pandas(), after)
    session.declared.remove(imported)
    assert any("for example SITE05" in note for note in session.speed.correlate().notes)


def test_lines_that_nobody_judged_are_told_from_those_of_now(session: Session, tmp_path: Path) -> None:
    values = declared_grid(session, tmp_path)
    session.speed.aggregate()
    session.speed.fit()
    session.speed.correlate()
    declare(session, tmp_path, values)
    assert any(
        "declared values have changed since the lines were fitted" in note
        for note in session.speed.flag().notes
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_loads_undos_and_windows_ends_alike(session: Session, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    loads: list[str] = []
    for number in range(8):
        if loads and rng.random() < 0.35:
            session.undo(loads.pop(int(rng.integers(len(loads)))))
        else:
            jobs = some_jobs(number, days=int(rng.integers(1, 6)), prefix=str(rng.integers(2)))
            shift = pd.to_timedelta(rng.integers(-1, 2, len(jobs)), unit="D")
            jobs["end_time"] += shift
            loads.append(load(session, jobs.sample(frac=0.5, random_state=number), tmp_path, f"{number}"))
        if session.store.span().jobs and rng.random() < 0.6:
            session.speed.aggregate([None, "2018-08-09/2018-08-12", "2018-08-01/2018-09-01"][rng.integers(3)])
    session.speed.aggregate()
    assert_as_made_afresh(session, tmp_path)


class LateJobs(DuckStore):
    """A store to which a job comes while it is being aggregated, a number of times."""

    def __init__(self, late: pd.DataFrame, times: int) -> None:
        super().__init__(None, tables=TABLES)
        self.late = late
        self.times = times

    def aggregate(self, query: Query) -> Aggregate:
        if self.times and query.over is None:
            self.times -= 1
            row = {"source": "jobs", **self.late.iloc[self.times].to_dict()}
            row["end_time"] = pd.Timestamp(row["end_time"]).to_pydatetime()
            self.put_jobs([pa.RecordBatch.from_pylist([row], schema=PUT_SCHEMA)], f"late {self.times}")
        return super().aggregate(query)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_day_that_does_not_balance_is_made_again(times: int, tmp_path: Path) -> None:
    late = some_jobs(3, days=1, prefix="late")
    with Session(LateJobs(late, times), Settings()) as session:
        load(session, some_jobs(), tmp_path)
        if times == 3:
            with raised(BooksError):
                session.speed.aggregate()
            assert session.tables.day_books().to_pandas().empty
        session.speed.aggregate()
        assert_as_made_afresh(session, tmp_path)


def test_buckets_that_were_lost_are_noticed_and_made_again(session: Session, tmp_path: Path) -> None:
    """Deleted by hand, by a policy of the cluster, by another program."""
    load(session, some_jobs(), tmp_path)
    session.run()
    (day,) = {
        row
        for row in session.tables.buckets().to_pandas()["day"].astype(str)
        if row.endswith(str(DAY.day + 1))
    }
    rows = session.store.read(BUCKETS, [In("day", (day,))])
    half = pa.Table.from_batches(rows).slice(1)
    session.store.publish([session.store.replace(BUCKETS, day, half.to_batches())])
    with raised(BooksError):
        session.speed.fit()
    report = session.speed.aggregate()
    assert report.counts["days recomputed"] == 1
    assert any("1 days from" in note and "lost buckets" in note for note in report.notes)
    assert_as_made_afresh(session, tmp_path)
    assert session.speed.aggregate().counts["days recomputed"] == 0
    session.speed.fit()
