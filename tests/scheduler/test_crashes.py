"""Killed at random moments of every step, begun again: the same rows, and nothing half visible before."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from esjobs import Settings
from esjobs import open as open_session
from tests.scheduler.crashes import Victim, moments
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, NIGHT_STEPS, Hands, History, settings_of, staged

LAST = FIRST + timedelta(days=4)
EVERY_STEP = tuple(step.name for step in NIGHT_STEPS if step.name != "fit")


def rows(settings: Settings) -> dict[str, list[str]]:
    with open_session(settings=settings) as session:
        return visible_rows(session.store)


def shown(settings: Settings) -> list[str]:
    """What readers of the latest flags see."""
    with open_session(settings=settings) as session:
        return sorted(map(repr, session.tables.flags().rows.to_pylist()))


@pytest.mark.parametrize(
    "steps",
    [
        # those that publish most: buckets, both fits, the memory of flags
        pytest.param(("aggregate", "fit 3d", "fit 7d", "watch"), id="longest"),
        pytest.param((*EVERY_STEP, "fit 3d", "fit 7d"), id="every", marks=pytest.mark.matrix),
    ],
)
def test_killed_in_any_step_a_night_ends_the_same(
    tmp_path: Path, history: History, steps: tuple[str, ...]
) -> None:
    hands = Hands()
    with staged(tmp_path, hands, after=history(4)) as stage:
        stage.arrive(LAST)
    hands.morning_after(LAST)
    ready = tmp_path / "jobs.duckdb"
    settings = settings_of(f"duckdb:{tmp_path / 'night.duckdb'}")
    store = Path(shutil.copy(ready, tmp_path / "night.duckdb"))
    old = shown(settings)
    began = Victim(settings, hands.now).survive()
    expected, new = rows(settings), shown(settings)
    assert old != new
    killed = set()
    for step, after_s in moments(began, steps, seed=1):
        for leftover in tmp_path.glob("night.duckdb*"):
            leftover.unlink()
        shutil.copy(ready, store)
        if Victim(settings, hands.now).kill_in(step, after_s):
            killed.add(step)
        assert shown(settings) in (old, new)
        Victim(settings, hands.now).survive()
        assert rows(settings) == expected, step
    assert killed >= {"aggregate", "fit 3d", "fit 7d"}
