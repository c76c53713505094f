"""The plan of coming nights against what these nights then do."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs.scores.settings import EfficiencySettings
from scheduler.nights import Nights
from scheduler.plan import sentences
from scheduler.settings import NightsSettings
from tests.messages import compare_text
from tests.scheduler.stage import FIRST, Stage, days, staged

COUNTED = ("documents_read", "documents_written", "bytes_written")
SETTINGS: dict[str, Any] = {"windows": (3, 8), "headline": 8, "late_days": 3}


def planned(stage: Stage, night: date) -> list[dict[str, Any]]:
    stage.hands.morning_after(night)
    rows: list[dict[str, Any]] = stage.nights.plan().to_pylist()
    return rows


def assert_right(stage: Stage, plan: dict[str, Any], within: float = 0.3) -> None:
    """The plan of a night agrees with the sum over its steps."""
    steps = stage.nights._ledger.steps(plan["night"])
    for name in COUNTED:
        done = sum(step[name] for step in steps)
        assert plan[name] == pytest.approx(done, rel=within), name


def test_a_first_night_is_planned_by_rates_and_the_next_by_what_it_did(tmp_path: Path) -> None:
    with staged(tmp_path, **SETTINGS) as stage:
        for day in days(FIRST, 10):
            stage.arrive(day)
        night = FIRST + timedelta(days=9)
        first, *others = planned(stage, night)
        assert (first["night"], first["backfill"], others) == (night, "2025-06-03/2025-06-07", [])
        stage.nights.tend()
        assert_right(stage, first)
        # nothing is due any more: the plan is that of the coming night, whose jobs are not there yet
        (forecast,) = planned(stage, night)
        assert forecast["night"] == night + timedelta(days=1)
        assert forecast["jobs"] == 400
        stage.arrive(night + timedelta(days=1))
        (second,) = planned(stage, night + timedelta(days=1))
        stage.nights.tend()
        assert_right(stage, second)
        assert_right(stage, {**forecast, "night": second["night"]})


def test_the_nights_of_a_backfill_are_planned_to_its_end(tmp_path: Path) -> None:
    with staged(tmp_path, **SETTINGS, backfill_jobs=450) as stage:
        for day in days(FIRST, 10):
            stage.arrive(day)
        night = FIRST + timedelta(days=9)
        stage.nights.pause(by="ann")
        rows = planned(stage, night)
        # a piece is a day; by the end of the backfill the window has moved on
        assert [row["backfill"] for row in rows] == ["2025-06-06/2025-06-07", "2025-06-05/2025-06-06"]
        compare_text("\n".join(sentences(stage.nights.plan())))


def test_a_longer_window_is_planned_by_what_a_shorter_one_did(tmp_path: Path) -> None:
    """Its fit writes about as many rows as that of the shorter window, not four times as many."""
    with staged(tmp_path, **SETTINGS | {"windows": (3,), "headline": 3}) as stage:
        for day in days(FIRST, 13):
            stage.arrive(day)
        for last in (10, 11):
            stage.hands.morning_after(FIRST + timedelta(days=last))
            stage.nights.tend()
        longer = stage.session.settings.section(NightsSettings).model_copy(update={"windows": (3, 12)})
        settings = stage.session.settings.model_copy(update={"nights": longer})
        nights = Nights(replace(stage.session._context, settings=settings), retry=stage.hands.patience)
        stage.hands.morning_after(FIRST + timedelta(days=12))
        (plan,) = [row for row in nights.plan().to_pylist() if row["night"] == FIRST + timedelta(days=12)]
        nights.tend()
        assert "fit 12d" in [step["step"] for step in stage.nights._ledger.steps(plan["night"])]
        assert_right(stage, plan)


def test_a_step_that_is_off_costs_nothing(tmp_path: Path) -> None:
    read = {}
    with staged(tmp_path, **SETTINGS) as stage:
        stage.arrive(FIRST)
        stage.hands.morning_after(FIRST)
        for nightly in (True, False):
            scores = stage.session.settings.section(EfficiencySettings).model_copy(
                update={"nightly": nightly}
            )
            settings = stage.session.settings.model_copy(update={"scores": scores})
            nights = Nights(replace(stage.session._context, settings=settings))
            (row,) = nights.plan().to_pylist()
            read[nightly] = row["documents_read"]
    assert read[True] == read[False] + 400
