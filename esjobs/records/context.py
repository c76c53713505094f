"""Working context of a capability: the store, settings and clock of one session."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from esjobs.core.arguments import WindowLike
from esjobs.core.clock import Clock
from esjobs.core.errors import NoJobsError
from esjobs.core.plugins import broken, warn
from esjobs.core.report import RunReport
from esjobs.core.sections import Sections
from esjobs.core.window import Window

if TYPE_CHECKING:
    from esjobs.records.jobs.aggregate import Progress
    from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Context:
    """Argument of every facade.

    ``opener`` opens the store at first use. ``progress`` is called with the work, the amount done and the
    total.
    """

    opener: "Callable[[], JobStore]"
    settings: Sections
    clock: Clock
    progress: "Progress | None" = None
    read_only: bool = False

    @property
    def store(self) -> "JobStore":
        """The open store."""
        # the session opens it once and keeps it
        return self.opener()

    @property
    def peers(self) -> Mapping[str, Callable[..., Any]]:
        """Functions that capabilities offer to each other, by name (``scores.rank``)."""
        return _Offers(self.settings)

    def days(self, window: WindowLike) -> Window:
        """Return the whole days of a window, None: of all jobs; :class:`NoJobsError` if there are none."""
        if window is not None:
            return Window.of(window, self.clock()).require_whole_days("this step")
        span = self.store.span()
        if span.first is None or span.last is None:
            raise NoJobsError("no jobs stored; load some: esjobs ingest")
        return Window.of_days(span.first.date(), span.last.date())

    def facade(self, name: str) -> Any:
        """Build the facade of a capability; :class:`LookupError` where it has none."""
        for capability in self.settings.capabilities:
            if capability.name == name and capability.facade is not None:
                return capability.facade.load()(self)
        raise LookupError(f"capability '{name}' has no facade; open the session with esjobs.open")

    def ingested(self, report: RunReport) -> RunReport:
        """Call what capabilities do after each ingest; the account of the load with what they add to it."""
        for capability in self.settings.capabilities:
            if capability.after_ingest is None:
                continue
            try:
                report = capability.after_ingest.load()(self, report)
            # the records are stored: another package must not make the load fail
            except Exception as error:
                if not capability.package or isinstance(error, MemoryError):
                    raise
                warn(f"{capability.package}: '{capability.name}' failed after an ingest: {broken(error)}")
        return report


class Facade:
    """Base of the facades: ``s.NAME`` of a session."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def read_only(self) -> bool:
        """True if the session was opened for reading."""
        return self._context.read_only


class _Offers(Mapping[str, Callable[..., Any]]):
    """Offered functions, each imported at its first use."""

    def __init__(self, settings: Sections) -> None:
        self._offers = {name: lazy for each in settings.capabilities for name, lazy in each.offers.items()}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = self._offers[name].load()
        return function

    def __iter__(self) -> Iterator[str]:
        return iter(self._offers)

    def __len__(self) -> int:
        return len(self._offers)
