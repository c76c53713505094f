"""Working context of a capability: the store, settings and clock of one session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.arguments import WindowLike
from esjobs.core.clock import Clock
from esjobs.core.errors import NoJobsError
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import Progress
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Context:
    """Argument of every facade.

    ``opener`` returns the store, opening it at first use. ``progress``: called with the work, the amount done
    and the total. ``location``: the store as messages name it. ``peers``: functions that other capabilities
    offer, by name (``scores.rank``).
    """

    opener: Callable[[], JobStore]
    settings: Sections
    clock: Clock
    progress: Progress | None = None
    read_only: bool = False
    location: str = ""
    peers: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def store(self) -> JobStore:
        """The open store."""
        return self.opener()

    def days(self, window: WindowLike) -> Window:
        """Whole days of a window; None means all days with jobs.

        Raises :class:`NoJobsError` when no window is named and no jobs are stored.
        """
        if window is not None:
            return Window.of(window, self.clock()).require_whole_days("this step")
        span = self.store.span()
        if span.first is None or span.last is None:
            raise NoJobsError("no jobs are stored; ingest some first: esjobs ingest")
        return Window.of_days(span.first.date(), span.last.date())


class Facade:
    """Base of the facades: ``s.NAME`` of a session."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def read_only(self) -> bool:
        """True if the session was opened for reading."""
        return self._context.read_only
