"""What a trigger does: the night that is due, what is missing, late records, windows, the ledger."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

import scheduler.nights
from esjobs.core.errors import StoreBusyError, UsageError
from esjobs.core.query import Days
from esjobs.publish.publication import read_table
from esjobs.records.jobs import late_jobs
from esjobs.records.night import NightAccount, NightWork
from esjobs.schema.jobs import DAYS
from esjobs.speed.night import fit_window
from esjobs.store.lease import Lease
from tests.messages import raised
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, NIGHT_STEPS, Hands, History, Stage, days, staged


def shown_runs(stage: Stage) -> dict[int, bool]:
    rows = stage.session.tables.latest_runs().rows.to_pylist()
    return {row["window_days"]: row["shown"] for row in rows}


def test_first_nights_fit_windows_as_far_as_data_reach(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(4)) as stage:
        rows = sorted(stage.nights.show().to_pylist(), key=lambda row: row["night"])
        assert [row["state"] for row in rows] == ["done"] * 4
        assert [row["windows"] for row in rows] == ["3d", "3d", "3d", "3d,7d"]
        assert [row["jobs"] for row in rows] == [400] * 4
        assert shown_runs(stage) == {3: False, 7: True}
        flags = stage.session.tables.flags().rows
        assert set(flags.column("window_days").to_pylist()) == {7}


def test_a_second_trigger_of_a_day_does_nothing_again_that_is_done(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(4)) as stage:
        before = visible_rows(stage.store)
        steps = {row["step"]: row["attempt"] for row in stage.nights._ledger.steps(FIRST + timedelta(days=3))}
        assert set(steps.values()) == {1}
        (row,) = stage.trigger(FIRST + timedelta(days=3))
        after = {row["step"]: row["attempt"] for row in stage.nights._ledger.steps(FIRST + timedelta(days=3))}
        assert row["state"] == "done"
        again = {step for step, attempt in after.items() if attempt == 2}
        assert again == {"enter", "talp", "watch", "today", "notify", "prune"}
        assert visible_rows(stage.store) == before


def test_what_is_declared_in_the_middle_of_a_night_is_told_by_all_of_it_next_time(tmp_path: Path) -> None:
    """What follows from a fit is made from what that fit had read, so both are made again."""
    declared = tmp_path / "declared.csv"
    declared.write_text("level,name,corepower,benchmark,valid_from\nqueue,X,10,HS06,2025-01-01\n")

    def fit_and_import(work: NightWork) -> NightAccount:
        account = fit_window(work)
        if declared.exists():
            stage.session.declared.import_values(declared)
            declared.unlink()
        return account

    steps = [replace(step, function=fit_and_import) if step.name == "fit" else step for step in NIGHT_STEPS]
    with staged(tmp_path, steps=steps) as stage:
        stage.live(FIRST)
        stage.trigger(FIRST)
        attempts = {row["step"]: row["attempt"] for row in stage.nights._ledger.steps(FIRST)}
        assert {attempts[step] for step in ("fit 3d", "drift", "decompose")} == {2}
        assert {attempts[step] for step in ("aggregate", "score")} == {1}


def test_late_records_recompute_their_day_and_the_nights_after_it(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(6)) as stage:
        stage.arrive(FIRST + timedelta(days=3), seed=7, jobs=40)
        made = stage.live(FIRST + timedelta(days=6))
        late = {str(row["night"]): row["late_days"] for row in made}
        # the day itself is made once, in the first night that holds it
        assert late == {"2025-06-04": 0, "2025-06-05": 0, "2025-06-06": 0, "2025-06-07": 0}
        first = made[0]
        assert first["jobs"] == 440
        untouched = stage.nights._ledger.steps(FIRST + timedelta(days=2))
        assert {row["attempt"] for row in untouched} == {1}


@pytest.mark.parametrize(("jobs", "again"), [(2, []), (12, ["2025-06-04", "2025-06-05", "2025-06-06"])])
def test_a_few_late_jobs_of_a_large_day_enter_the_due_night_alone(
    tmp_path: Path, history: History, monkeypatch: pytest.MonkeyPatch, jobs: int, again: list[str]
) -> None:
    for module in (late_jobs, scheduler.nights):
        monkeypatch.setattr(module, "LARGE_DAY", 300)
    with staged(tmp_path, after=history(6)) as stage:
        night = FIRST + timedelta(days=3)
        stage.arrive(night, seed=7, jobs=jobs)
        stage.arrive(FIRST + timedelta(days=6))
        stage.hands.morning_after(FIRST + timedelta(days=6))
        planned = stage.nights.plan().to_pylist()
        made = stage.nights.tend()
        assert [str(row["night"]) for row in made] == [str(row["night"]) for row in planned]
        assert [str(row["night"]) for row in made[:-1]] == again
        assert sum(row["late_days"] for row in made) == (0 if again else 1)
        # the late jobs alone were aggregated
        steps = stage.nights._ledger.steps(FIRST + timedelta(days=6 if not again else 3))
        (aggregated,) = (row for row in steps if row["step"] == "aggregate")
        assert aggregated["documents_read"] == jobs + (0 if again else 400)
        counted = read_table(stage.store, DAYS, [Days("day", night, night)], ["n_in"])["n_in"].to_pylist()
        assert sum(counted) == 400 + jobs


def test_records_later_than_that_wait_for_a_rerun(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(6)) as stage:
        stage.arrive(FIRST, seed=7, jobs=40)
        made = stage.live(FIRST + timedelta(days=6))
        assert [str(row["night"]) for row in made] == ["2025-06-07"]
        assert stage.nights.rerun(FIRST)["jobs"] == 440


def test_a_rerun_leaves_the_same_rows(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(5)) as stage:
        before = visible_rows(stage.store)
        # the first one, the last that had one window, the latest
        for night in (days(FIRST, 5)[number] for number in (0, 2, 4)):
            row = stage.nights.rerun(night)
            assert row["state"] == "done"
            assert row["steps_done"] == len(stage.nights._ledger.steps(night))
        assert visible_rows(stage.store) == before
        assert shown_runs(stage) == {3: False, 7: True}


def test_nights_that_no_trigger_ran_are_made_up_for_oldest_first(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(1), catch_up=2) as stage:
        for day in days(FIRST, 6)[1:]:
            stage.arrive(day)
        made = stage.trigger(FIRST + timedelta(days=5))
        assert [str(row["night"]) for row in made] == ["2025-06-02", "2025-06-03", "2025-06-06"]
        states = stage.states()
        assert [states[str(day)] for day in days(FIRST, 6)] == [
            *("done", "done", "done", "missing", "missing", "done")
        ]
        made = stage.nights.catch_up(limit=1)
        assert [str(row["night"]) for row in made] == ["2025-06-04"]
        assert [str(row["night"]) for row in stage.nights.catch_up()] == ["2025-06-05"]
        assert set(stage.states().values()) == {"done"}
        assert stage.nights.catch_up() == []


def test_a_day_without_jobs_is_missing_until_they_come(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(4)) as stage:
        quiet = FIRST + timedelta(days=4)
        (row,) = stage.trigger(quiet)
        assert (row["state"], row["reason"]) == ("missing", "no jobs ended on this day")
        stage.live(FIRST + timedelta(days=5))
        assert stage.states()[str(quiet)] == "missing"
        stage.arrive(quiet)
        made = stage.live(FIRST + timedelta(days=6))
        assert [str(row["night"]) for row in made] == ["2025-06-05", "2025-06-06", "2025-06-07"]
        assert set(stage.states().values()) == {"done"}


def test_results_do_not_depend_on_when_nights_were_run(tmp_path: Path, history: History) -> None:
    with staged(tmp_path / "a", after=history(5)) as stage:
        in_time = visible_rows(stage.store)
    with staged(tmp_path / "b", after=history(1)) as stage:
        for day in days(FIRST, 5)[1:]:
            stage.arrive(day)
        stage.trigger(FIRST + timedelta(days=4))
        assert visible_rows(stage.store, ("latest_runs",)) == {
            name: rows for name, rows in in_time.items() if name != "latest_runs"
        }
        assert shown_runs(stage) == {3: False, 7: True}


def test_the_last_day_that_is_over_is_due_also_when_the_clock_goes_back(
    tmp_path: Path, history: History
) -> None:
    hands = Hands()
    with staged(tmp_path, hands, after=history(2)) as stage:
        hands.now = hands.now.replace(hour=0, minute=20)
        assert str(stage.nights.due) == "2025-06-02"
        hands.let_pass(-3600)
        (row,) = stage.nights.tend()
        assert (str(row["night"]), row["state"]) == ("2025-06-01", "done")
        assert stage.states() == {"2025-06-01": "done"}
        hands.let_pass(3600)
        assert stage.states() == {"2025-06-01": "done", "2025-06-02": "done"}


def test_a_night_before_all_jobs_and_days_in_the_wrong_order_are_refused(
    tmp_path: Path, history: History
) -> None:
    with staged(tmp_path, after=history(1)) as stage:
        before = stage.states()
        with raised(UsageError):
            stage.nights.rerun(date(2020, 1, 1))
        with raised(UsageError):
            stage.nights.catch_up(FIRST, FIRST - timedelta(days=1))
        assert stage.states() == before


def test_a_day_that_is_not_over_is_refused(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(1)) as stage, raised(UsageError):
        stage.nights.rerun(date(2025, 6, 2))


def test_one_process_at_a_time_runs_nights(tmp_path: Path) -> None:
    hands = Hands()
    with staged(tmp_path, hands, fits=False) as stage:
        stage.arrive(FIRST)
        other = Lease(stage.store, "here", hands.clock, what="running nights", timer=hands.timer)
        other.take()
        with raised(StoreBusyError):
            stage.trigger(FIRST)
        assert stage.nights.show().num_rows == 0
        other.give_back()
        assert [row["state"] for row in stage.trigger(FIRST)] == ["done"]


def test_after_a_long_pause_old_nights_are_shown_and_not_every_day_between_is_missing(
    tmp_path: Path, history: History
) -> None:
    with staged(tmp_path, after=history(1)) as stage:
        stage.hands.morning_after(FIRST + timedelta(days=400))
        states = stage.states()
        assert states.pop("2025-06-01") == "done"
        # as many as retention keeps day by day
        assert len(states) == 60
        assert set(states.values()) == {"missing"}
