"""The first nights of an installation that has a history: older days in pieces, newest first."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from esjobs.core.query import Count, Query
from esjobs.core.tables import Table
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.scores import SCORES
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, Stage, days, staged

NIGHT = FIRST + timedelta(days=19)


def days_with(stage: Stage, table: Table) -> list[int]:
    """Numbers of the days of which a table has rows, the first day being 1."""
    rows = stage.store.aggregate(Query(("day",), (Count("n"),), over=table)).table
    return sorted((day - FIRST).days + 1 for day in rows.column("day").to_pylist())


def filled(stage: Stage) -> None:
    for day in days(FIRST, 21):
        stage.arrive(day)


def test_older_days_come_in_pieces_and_windows_grow(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"windows": (3, 8, 16), "headline": 8, "late_days": 3, "backfill_jobs": 2000}
    with staged(tmp_path, **settings) as stage:
        filled(stage)
        (first,) = stage.trigger(NIGHT - timedelta(days=1))
        # the night of day 19: days 16 to 19 may be late, 5 days fit into the budget
        assert first["backfill"] == "2025-06-11/2025-06-16"
        assert first["windows"] == "3d,8d"
        assert days_with(stage, BUCKETS) == list(range(11, 20))
        assert days_with(stage, SCORES) == list(range(11, 20))
        # run again it makes up for nothing further
        (again,) = stage.trigger(NIGHT - timedelta(days=1))
        assert (again["backfill"], again["windows"]) == (first["backfill"], "3d,8d")
        assert days_with(stage, BUCKETS) == list(range(11, 20))
        before = visible_rows(stage.store)
        stage.nights.rerun(NIGHT - timedelta(days=1))
        assert visible_rows(stage.store) == before
        (second,) = stage.trigger(NIGHT)
        assert second["backfill"] == "2025-06-06/2025-06-11"
        assert second["windows"] == "3d,8d"
        (third,) = stage.trigger(NIGHT + timedelta(days=1))
        # its longest window begins on day 6: nothing older is of use
        assert (third["backfill"], third["windows"]) == (None, "3d,8d,16d")


def test_days_of_a_large_archive_come_one_at_a_time_or_not_at_all(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"windows": (3, 8), "headline": 8, "late_days": 3}
    with staged(tmp_path, **settings, backfill_jobs=1) as stage:
        filled(stage)
        (row,) = stage.trigger(NIGHT)
        assert row["backfill"] == "2025-06-16/2025-06-17"
        notes = {each["step"]: each["notes"] for each in stage.nights._ledger.steps(NIGHT)}
        assert "3 older days without buckets are left, 1,200 jobs" in notes["backfill"]
    with staged(tmp_path / "none", **settings, backfill_jobs=0) as stage:
        filled(stage)
        (row,) = stage.trigger(NIGHT)
        assert (row["backfill"], row["windows"]) == (None, "3d")


def test_late_records_of_days_behind_a_pause_are_found(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"windows": (3, 16), "headline": 3, "late_days": 2, "catch_up": 0}
    with staged(tmp_path, **settings) as stage:
        stage.live(*days(FIRST, 3))
        # a record of the third day comes after its night, and no trigger until much later
        stage.arrive(FIRST + timedelta(days=2), seed=7, jobs=40)
        for day in days(FIRST + timedelta(days=3), 7):
            stage.arrive(day)
        (row,) = stage.trigger(FIRST + timedelta(days=9))
        assert row["late_days"] == 7
        assert days_with(stage, BUCKETS) == list(range(1, 11))
