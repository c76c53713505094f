"""Step of a night: the interface between capabilities and the scheduler, which runs steps in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

from esjobs.core.clock import Clock
from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.core.rules import CleaningRules
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.records.context import Context
from esjobs.schema.jobs import DAYS
from esjobs.schema.nights import NIGHTS

if TYPE_CHECKING:
    from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Schedule:
    """Lengths of the windows of a night, ascending, that of the headline, and days with late records."""

    windows: tuple[int, ...]
    headline: int
    late_days: int


@dataclass(frozen=True)
class NightWork:
    """A night as its steps see it.

    ``night``: the day that is aggregated. ``windows``: those that are fitted this night, shortest first;
    empty before ``aggregate``, and where the day has no jobs. ``headline``: the one of them whose verdicts
    people and memory follow. ``window``: in a step that is done per window, the one that it is about.
    ``fitted_from``: digest of the inputs of each fit of this attempt, by window; set by the fit and computed
    once, so that what follows from a fit agrees with it on its inputs, whatever is imported meanwhile.
    """

    context: Context
    night: date
    schedule: Schedule
    windows: tuple[Window, ...] = ()
    headline: Window | None = None
    window: Window | None = None
    fitted_from: dict[Window, str] = field(default_factory=dict, compare=False)

    @property
    def store(self) -> "JobStore":
        """The store of the session."""
        return self.context.store

    @property
    def settings(self) -> Sections:
        """The settings of the session."""
        return self.context.settings

    @property
    def clock(self) -> Clock:
        """The clock of the session."""
        return self.context.clock


@dataclass(frozen=True)
class NightAccount:
    """Account of a step. ``notes``: remarks for readers of the ledger; ``counts``: for its columns."""

    rows_in: int = 0
    rows_out: int = 0
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def _always(work: NightWork) -> str | None:
    del work
    return None


def _stored(work: NightWork) -> bool:
    del work
    return True


@dataclass(frozen=True)
class NightStep:
    """A step of every night. It is idempotent: run twice for a night it leaves byte-equal rows.

    ``function`` does it. ``inputs``: a digest of what it is made from; as long as that is the one that the
    ledger has, the step is not done again. None: it is done in every attempt, which suits what is cheap, and
    what has to look at the world (mail that waits). ``stands``: whether what it made is still in the store.
    ``per_window``: once for each window, the headline first. ``idle``: also in a night whose day has no jobs.
    ``after_failure``: also when the night has failed, so that somebody is told. ``first``: before a trigger
    looks for late records, because it may bring some.
    """

    name: str
    function: Callable[[NightWork], NightAccount]
    inputs: Callable[[NightWork], str | None] = _always
    stands: Callable[[NightWork], bool] = _stored
    per_window: bool = False
    idle: bool = False
    after_failure: bool = False
    first: bool = False


def aggregated_days(work: NightWork) -> Window:
    """The days that a night looks at: so many before it that records may be late.

    All days of its longest window where no night was done within that before: a first one, or one after a
    long pause. And back to the first day of that window whose buckets were made in another way.
    """
    from esjobs.publish.publication import read_table
    from esjobs.records.jobs.aggregate import buckets_version

    start = work.night - timedelta(days=work.schedule.windows[-1] - 1)
    late = work.night - timedelta(days=work.schedule.late_days)
    before = Days("night", late - timedelta(days=1), work.night - timedelta(days=1))
    states = read_table(work.store, NIGHTS, [before], ["state"]).column("state").to_pylist()
    if late <= start or "done" not in states:
        return Window.of_days(min(start, late), work.night)
    columns = ["day", "rules", "resolver"]
    made = read_table(work.store, DAYS, [Days.of_window(Window.of_days(start, late))], columns)
    current = (work.settings.section(CleaningRules).digest, buckets_version())
    others = [row["day"] for row in made.to_pylist() if (row["rules"], row["resolver"]) != current]
    return Window.of_days(min([late, *others]), work.night)


def late_days(work: NightWork) -> Window:
    """The night, and the days before it that are looked at for late records."""
    return Window.of_days(work.night - timedelta(days=work.schedule.late_days), work.night)


def runs_inputs(work: NightWork) -> str:
    """A digest of what all windows of the night were fitted from: for steps that follow from its runs."""
    return content_id({str(window): work.fitted_from.get(window) for window in work.windows})
