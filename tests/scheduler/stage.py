"""A grid whose days arrive one after the other, and a clock that a test moves."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from esjobs import Settings
from esjobs import open as open_session
from esjobs.api.session import Session
from esjobs.capabilities import CAPABILITIES
from esjobs.records.demo import Grid
from esjobs.records.night import NightStep
from esjobs.store.base import JobStore
from scheduler.nights import Nights
from scheduler.retry_policy import RetryPolicy
from scheduler.steps import night_steps

FIRST = date(2025, 6, 1)
NIGHT_STEPS = night_steps(CAPABILITIES)
History = Callable[[int], Path]
"""Fixture: the file of a store after so many nights."""


@dataclass
class Hands:
    """A clock and a timer that go on when they are told to; pauses pass at once and are remembered."""

    now: datetime = datetime(2025, 6, 2, 3, 30, tzinfo=UTC)
    passed: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def clock(self) -> datetime:
        return self.now

    def timer(self) -> float:
        return self.passed

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.let_pass(seconds)

    def let_pass(self, seconds: float) -> None:
        self.passed += seconds
        self.now += timedelta(seconds=seconds)

    def morning_after(self, night: date) -> None:
        self.now = datetime.combine(night + timedelta(days=1), time(3, 30), UTC)

    @property
    def patience(self) -> RetryPolicy:
        return RetryPolicy(self.timer, self.pause)


def settings_of(store: str, *, fits: bool = True, **nights: Any) -> Settings:
    """Settings of a small installation: one method, windows of three and seven days.

    Fits are four fifths of a night: without them where only the order of nights matters.
    """
    given = {"windows": (3, 7), "headline": 7, "late_days": 3, **nights}
    fit = {"methods": ("gamma",), "nightly": fits}
    return Settings.model_validate({"store": store, "fit": fit, "nights": given})


class Stage:
    """An installation whose jobs arrive a day at a time."""

    def __init__(self, session: Session, hands: Hands, steps: Sequence[NightStep] = NIGHT_STEPS) -> None:
        self.session = session
        self.hands = hands
        self.grid = Grid(jobs_per_day=400, n_queues=20, n_models=8)
        self.nights = Nights(session._context, steps=steps, retry=hands.patience)

    @property
    def store(self) -> JobStore:
        return self.session.store

    def arrive(self, day: date, *, seed: int = 1, jobs: int = 400) -> None:
        """The jobs of a day; with another seed further ones, which come late."""
        grid = Grid(seed=seed, jobs_per_day=jobs, n_queues=20, n_models=8) if seed != 1 else self.grid
        self.store.put_jobs(grid.jobs(day), f"{day} {seed}")

    def trigger(self, night: date) -> list[dict[str, Any]]:
        """What happens in the morning after a night."""
        self.hands.morning_after(night)
        return self.nights.tend()

    def live(self, *nights: date) -> list[dict[str, Any]]:
        """Jobs arrive, and the trigger comes, for one night after the other; all accounts."""
        rows = []
        for night in nights:
            self.arrive(night)
            rows += self.trigger(night)
        return rows

    def states(self) -> dict[str, str]:
        return {str(row["night"]): row["state"] for row in self.nights.show().to_pylist()}

    def done_again(self, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
        """Nights, by the steps that were done in them."""
        return {str(row["night"]): row["steps_done"] for row in rows}


def days(first: date, number: int) -> list[date]:
    return [first + timedelta(days=each) for each in range(number)]


@contextmanager
def staged(
    folder: Path,
    hands: Hands | None = None,
    steps: Sequence[NightStep] = NIGHT_STEPS,
    *,
    after: Path | None = None,
    **settings: Any,
) -> Iterator[Stage]:
    """An installation in a folder; ``after``: its store begins as a copy of one of the ``history``."""
    store = folder / "jobs.duckdb"
    hands = hands or Hands()
    if after is not None:
        folder.mkdir(exist_ok=True)
        shutil.copy(after, store)
        hands.morning_after(FIRST + timedelta(days=int(after.stem) - 1))
    with open_session(settings=settings_of(f"duckdb:{store}", **settings), clock=hands.clock) as session:
        yield Stage(session, hands, steps)
