"""What is done between nights: how often, and what a failure means for the next time."""

from datetime import UTC, datetime, timedelta

import pytest

from esjobs.core.errors import StoreError
from scheduler.metrics import Metrics
from scheduler.service import PeriodicTask

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


class Gathering:
    """Something that is done, and may fail."""

    def __init__(self) -> None:
        self.now = NOON
        self.done: list[datetime] = []
        self.error: Exception | None = None
        self.metrics = Metrics()

    def __call__(self) -> None:
        self.done.append(self.now)
        if self.error is not None:
            raise self.error

    def task(self) -> PeriodicTask:
        return PeriodicTask("gathering", timedelta(minutes=5), self, lambda: self.now, self.metrics)

    def counted(self) -> tuple[int, int]:
        """How often it went well, and how often it failed, as Prometheus reads it."""
        named = {
            result: f'esjobs_periodic_tasks_total{{result="{result}",task="gathering"}} '
            for result in ("ok", "failed")
        }
        lines = self.metrics.text().decode().splitlines()
        ok, failed = (
            next(float(line.removeprefix(start)) for line in lines if line.startswith(start))
            for start in named.values()
        )
        return int(ok), int(failed)


def test_every_five_minutes_whenever_the_service_looks() -> None:
    gathering = Gathering()
    task = gathering.task()
    for _ in range(60):
        task.tick()
        gathering.now += timedelta(seconds=30)
    assert [each - NOON for each in gathering.done] == [timedelta(minutes=5 * n) for n in range(6)]


def test_a_failure_is_logged_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    gathering = Gathering()
    task = gathering.task()
    gathering.error = StoreError("the cluster is gone; try again")
    for _ in range(3):
        task.tick()
        gathering.now += timedelta(minutes=5)
    assert len(gathering.done) == 3
    assert caplog.messages == ["gathering: the cluster is gone; try again"]
    gathering.error = None
    task.tick()
    assert gathering.counted() == (1, 3)
    gathering.error = StoreError("the cluster is gone; try again")
    gathering.now += timedelta(minutes=5)
    task.tick()
    assert len(caplog.messages) == 2


def test_a_defect_does_not_end_the_service(caplog: pytest.LogCaptureFixture) -> None:
    gathering = Gathering()
    gathering.error = ZeroDivisionError()
    assert gathering.task().tick()
    assert gathering.counted() == (0, 1)
    assert "internal error" in caplog.text


def test_a_clock_that_is_put_back_does_not_stop_it() -> None:
    gathering = Gathering()
    task = gathering.task()
    task.tick()
    gathering.now -= timedelta(days=1)
    assert task.tick()
