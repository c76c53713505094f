"""Forecasts of changes in a session: ``s.what_if``."""

from esjobs.records.answer import Answer
from esjobs.records.context import Facade


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
        """CPU time, wall time, memory and waiting of jobs of one queue at another one.

        See :func:`esjobs.what_if.moving.move`.
        """
        from esjobs.what_if.moving import move

        return move(
            self._context.store, origin, target, task=task, processing_type=processing_type, n_jobs=jobs
        )
