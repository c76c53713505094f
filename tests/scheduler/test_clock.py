"""A clock that was ahead: nothing is run for it, and nights of the future count nowhere."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from esjobs.core.errors import ClockError, UsageError
from scheduler.condition import condition
from scheduler.settings import NightlyFiles
from tests.messages import raised
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, Hands, History, Stage, days, staged

LAST = FIRST + timedelta(days=3)
AHEAD = timedelta(days=60)


def known(stage: Stage) -> tuple[object, ...]:
    """All that a trigger could change: results, ledger, and how often nights were begun."""
    return visible_rows(stage.store), stage.session.tables.nights().rows.to_pylist()


def future_nights(stage: Stage) -> list[date]:
    """What a trigger at a wrong time leaves: accounts of nights that have not come."""
    nights = days(LAST + timedelta(days=3), 60)
    for night in nights:
        stage.nights._ledger.write(
            {"night": night, "state": "missing", "reason": "not run", "attempt": 1, "began": stage.hands.now},
            [{"night": night, "step": "aggregate", "position": 1, "state": "done"}],
        )
    return nights


def test_nothing_is_run_while_the_clock_is_ahead_and_everything_is_as_ever_afterwards(
    tmp_path: Path, history: History
) -> None:
    with staged(tmp_path, after=history(4)) as stage:
        before = known(stage)
        with raised(ClockError):
            stage.trigger(LAST + AHEAD)
        with pytest.raises(ClockError):
            stage.nights.catch_up()
        assert known(stage) == before
        (row,) = stage.live(LAST + timedelta(days=1))
        assert row["state"] == "done"
        assert set(stage.states().values()) == {"done"}


@pytest.mark.parametrize("now", [date(1970, 1, 1), FIRST - timedelta(days=3 * 365)])
def test_nothing_is_run_while_the_clock_is_years_behind(tmp_path: Path, history: History, now: date) -> None:
    with staged(tmp_path, after=history(3)) as stage:
        before = known(stage)
        with raised(ClockError):
            stage.trigger(now)
        with pytest.raises(ClockError):
            stage.nights.catch_up()
        assert known(stage) == before
        (row,) = stage.live(FIRST + timedelta(days=3))
        assert row["state"] == "done"


def test_a_record_with_a_wrong_year_stops_no_night(tmp_path: Path) -> None:
    with staged(tmp_path, fits=False) as stage:
        stage.arrive(date(2060, 1, 1), jobs=20, seed=2)
        (row,) = stage.live(FIRST)
        assert (row["night"], row["state"]) == (FIRST, "done")


def test_nights_without_jobs_follow_each_other_a_day_at_a_time(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(1)) as stage:
        for night in days(FIRST + timedelta(days=1), 5):
            assert [row["state"] for row in stage.trigger(night)] == ["missing"]
        with pytest.raises(ClockError):
            stage.trigger(FIRST + timedelta(days=8))


def test_a_night_that_a_person_names_is_run(tmp_path: Path, history: History) -> None:
    with staged(tmp_path, after=history(1)) as stage:
        later = FIRST + timedelta(days=9)
        stage.hands.morning_after(later)
        made = stage.nights.catch_up(later, later)
        assert [(row["night"], row["state"]) for row in made] == [(later, "missing")]
        assert stage.trigger(later + timedelta(days=1))


def test_a_file_of_the_night_is_evidence_of_it(tmp_path: Path) -> None:
    later = FIRST + timedelta(days=9)
    named = NightlyFiles(format="panda", files=(f"{tmp_path}/{{night}}.csv",))
    for source, accepted in ((named, True), (named.model_copy(update={"files": (f"{tmp_path}/*",)}), False)):
        folder = tmp_path / str(accepted)
        with staged(folder, fits=False, ingest=(source.model_dump(),)) as stage:
            stage.arrive(FIRST)
            (tmp_path / f"{later}.csv").write_text("")
            stage.hands.morning_after(later)
            if accepted:
                assert stage.nights.tend()
            else:
                with pytest.raises(ClockError):
                    stage.nights.tend()


def test_nights_of_the_future_count_nowhere_and_can_be_removed(tmp_path: Path, history: History) -> None:
    hands = Hands()
    with staged(tmp_path, hands, after=history(4)) as stage:
        future = future_nights(stage)
        seen = condition(stage.store, hands.now, 36.0)
        assert (seen.last_night, seen.last_state, dict(seen.nights)) == (LAST, "done", {"done": 4})
        assert seen.future == tuple(future)
        made = stage.live(LAST + timedelta(days=1))
        assert [(row["night"], row["state"]) for row in made] == [(LAST + timedelta(days=1), "done")]
        assert len(stage.states()) == 5
        removed = stage.nights.forget()
        assert removed == {
            "nights": 60,
            "night_steps": 60,
            "notifications": 0,
            "flag_history": 0,
            "flag_events": 0,
        }
        assert condition(stage.store, hands.now, 36.0).future == ()
        assert len(stage.session.tables.nights().to_pandas()) == 5


def test_forgetting_nights_takes_the_memory_of_flags_back_and_no_jobs(
    tmp_path: Path, history: History
) -> None:
    with staged(tmp_path, after=history(3)) as stage:
        before = {
            name: stage.session.tables.read(name).rows.to_pylist() for name in ("flag_states", "flag_events")
        }
        assert before["flag_states"]
        jobs = stage.store.span().jobs
        stage.live(FIRST + timedelta(days=3))
        would = stage.nights.forget(FIRST + timedelta(days=2), dry_run=True)
        with raised(UsageError):
            stage.nights.forget(FIRST + timedelta(days=2))
        assert len(stage.states()) == 4
        removed = stage.nights.forget(FIRST + timedelta(days=2), note="wrong clock")
        assert removed == would
        assert (removed["nights"], removed["flag_history"]) == (1, 1)
        for name, rows in before.items():
            assert stage.session.tables.read(name).rows.to_pylist() == rows
        assert stage.store.span().jobs == jobs + 400
