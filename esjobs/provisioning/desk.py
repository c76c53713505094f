"""What a session answers about the quality of provisioning."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core.clock import Clock
from esjobs.core.window import Window
from esjobs.provisioning.waiting import lost, used, waiting
from esjobs.store.base import JobStore


class Provisioning:
    """Questions about waiting, use and losses; ``s.provisioning`` of a session. Answers are Arrow tables.

    ``by``: site, queue, project, user, application, or size (of jobs, in cores). ``window``: None is all that
    is stored. ``where``: conditions as :meth:`Session.query` takes them as texts.
    """

    def __init__(self, store: JobStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def waiting(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> pa.Table:
        """How long jobs waited, and whether that grows: :func:`~esjobs.provisioning.waiting.waiting`."""
        return waiting(self._store, by, window=self._window(window), where=where)

    def used(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> pa.Table:
        """What was used of what was asked for: :func:`~esjobs.provisioning.waiting.used`."""
        return used(self._store, by, window=self._window(window), where=where)

    def lost(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> pa.Table:
        """What failed jobs cost, by reason: :func:`~esjobs.provisioning.waiting.lost`."""
        return lost(self._store, by, window=self._window(window), where=where)

    def _window(self, window: str | None) -> Window | None:
        return None if window is None else Window.of(window, self._clock())
