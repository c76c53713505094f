"""Forecasts of changes in a session: ``s.what_if``."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from esjobs.core.arguments import day_of
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.what_if import buying, declaring, finishing, moving, placing, task


class WhatIf(Facade):
    """Forecasts of changes: ``s.what_if.move("A", "B", task="15350577")``. Nothing is stored."""

    def move(
        self,
        origin: str,
        target: str,
        *,
        task: str | None = None,
        processing_type: str | None = None,
        jobs: int | None = None,
    ) -> Answer:
        """Cost of jobs of one queue at another one: :func:`esjobs.what_if.moving.move`."""
        chosen: dict[str, Any] = {"task": task, "processing_type": processing_type, "jobs": jobs}
        return moving.move(self._context.store, origin, target, **chosen)

    def place_cores(
        self, cores: int = 1000, *, processing_type: str | None = None, memory_mb: float | None = None
    ) -> Answer:
        """Queues by the work of free cores: :func:`esjobs.what_if.placing.place_cores`."""
        chosen: dict[str, Any] = {"processing_type": processing_type, "memory_mb": memory_mb}
        return placing.place_cores(self._context.store, self._measured, cores, **chosen)

    def finish(self, task: str, due: date | str, *, jobs: int | None = None, seed: int = 0) -> Answer:
        """Queues by the chance to finish a task in time: :func:`esjobs.what_if.finishing.finish`."""
        return finishing.finish(self._context.store, task, day_of(due), jobs=jobs, seed=seed)

    def declare(self, values: Mapping[str, float]) -> Answer:
        """Credit of queues that declare other values: :func:`esjobs.what_if.declaring.declare`."""
        return declaring.declare(self._context.store, self._measured, values)

    def drain(self, site: str | None = None) -> Answer:
        """Work lost while a site, or each, is drained: :func:`esjobs.what_if.declaring.drain`."""
        return declaring.drain(self._context.store, self._measured, site)

    def buy(self, prices: str | Path | None = None) -> Answer:
        """CPU models by work per euro and per kilowatt-hour: :func:`esjobs.what_if.buying.buy`."""
        return buying.buy(self._context.store, self._measured, None if prices is None else Path(prices))

    def task(self, task_id: str) -> Answer:
        """Queues that ran a task, against expected: :func:`esjobs.what_if.task.task_story`."""
        return task.task_story(self._context.store, task_id)

    def progress(self, task_id: str) -> Answer:
        """Jobs, failures and events of a task by day: :func:`esjobs.what_if.task.progress`."""
        return task.progress(self._context.store, task_id)

    @property
    def _measured(self) -> placing.Measured:
        measured: placing.Measured = self._context.peers["delivered.measured"]
        return measured
