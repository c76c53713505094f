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
from esjobs.store.base import Expiring

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

    ``night``: the day that is aggregated. ``windows``: fitted this night, shortest first; empty before
    ``aggregate`` and for a day without jobs. ``headline``: the one whose verdicts are shown. ``window``: of a
    step that runs per window. ``fitted_from``: digest of the inputs of each fit of this attempt; set once by
    the fit, so that later steps agree with it. ``unfitted``: windows of this attempt without a fit, because
    no job can be fitted or because the settings ask for none.
    """

    context: Context
    night: date
    schedule: Schedule
    windows: tuple[Window, ...] = ()
    headline: Window | None = None
    window: Window | None = None
    fitted_from: dict[Window, str] = field(default_factory=dict, compare=False)
    unfitted: set[Window] = field(default_factory=set, compare=False)

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

    @property
    def has_factors(self) -> bool:
        """True if the headline window of this night was fitted."""
        return self.headline is not None and self.headline not in self.unfitted


@dataclass(frozen=True)
class NightAccount:
    """Account of a step. ``notes``: remarks for readers of the ledger; ``counts``: for its columns."""

    rows_in: int = 0
    rows_out: int = 0
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int | str] = field(default_factory=dict)


NO_FACTORS = NightAccount(notes=("no speed factors this night",))
"""Account of a step that follows from speed factors, in a night without any."""


@dataclass(frozen=True)
class NightStep:
    """A step of every night; idempotent: run twice for a night it leaves byte-equal rows.

    ``inputs``: digest of its inputs; the step is skipped while the ledger has the same one. None: run in
    every attempt. ``stands``: True if its results are still stored. ``off``: notes why the settings switch it
    off; empty if they do not. ``needs``: steps whose failure skips it. ``per_window``: once per window, the
    headline first. ``idle``: also in a night without jobs. ``after_failure``: reports the failure of a night.
    ``first``: before a trigger looks for late records.
    """

    name: str
    function: Callable[[NightWork], NightAccount]
    inputs: Callable[[NightWork], str | None] = lambda _work: None
    stands: Callable[[NightWork], bool] = lambda _work: True
    off: Callable[[NightWork], tuple[str, ...]] = lambda _work: ()
    needs: tuple[str, ...] = ("aggregate",)
    per_window: bool = False
    idle: bool = False
    after_failure: bool = False
    first: bool = False


def longest_window(work: NightWork) -> Window:
    """Return the days that the longest window of a night covers."""
    return Window.of_days(work.night - timedelta(days=work.schedule.windows[-1] - 1), work.night)


def aggregated_days(work: NightWork) -> Window:
    """Return the days that a night looks at: those on which records may be late.

    After nights that were not run also the days that these would have looked at, and back to the first day
    whose buckets are outdated; no further than the longest window. Days before it without buckets are those
    of the backfill.
    """
    from esjobs.publish.publication import read_table
    from esjobs.records.jobs.aggregate import buckets_version

    start, back = longest_window(work).first_day, timedelta(days=work.schedule.late_days)
    # without nights missed and with current buckets these days are all
    late = work.night - back
    if late <= start:
        return Window.of_days(late, work.night)
    before = Days("night", start, work.night - timedelta(days=1))
    nights = read_table(work.store, NIGHTS, [before], ["night", "state"]).to_pylist()
    done = [row["night"] for row in nights if row["state"] == "done"]
    # what the night after the last complete one would have looked at
    since = max(start, max(done) + timedelta(days=1) - back) if done else late
    columns = ["day", "rules", "resolver"]
    made = read_table(work.store, DAYS, [Days.of_window(Window.of_days(start, late))], columns)
    current = (work.settings.section(CleaningRules).digest, buckets_version())
    others = [row["day"] for row in made.to_pylist() if (row["rules"], row["resolver"]) != current]
    return Window.of_days(min([late, since, *others]), work.night)


def backfilled_days(work: NightWork) -> Window | None:
    """Return the days that the backfill of this night made up for, by the ledger; None without any."""
    from esjobs.publish.publication import read_table

    rows = read_table(work.store, NIGHTS, [Days("night", work.night, work.night)], ["backfill"])
    text = next(iter(rows.column("backfill").to_pylist()), None)
    return None if text is None else Window.parse(text)


def with_backfill(work: NightWork, window: Window) -> tuple[Window, ...]:
    """Return the windows of a step that judges jobs: its own, and that of the night's backfill."""
    piece = backfilled_days(work)
    return (window,) if piece is None else (window, piece)


def left_out(work: NightWork, nightly: bool | None, section: str) -> tuple[str, ...]:
    """Return the note of a step that a night leaves out; none if it is done.

    ``nightly``: the setting; None leaves out jobs of others, of which every document would be read.
    """
    if nightly is None and isinstance(work.store, Expiring) and work.store.forgets:
        return (f"disabled: the jobs index belongs to others; enable it with [{section}] nightly = true",)
    return (f"disabled: [{section}] nightly = false",) if nightly is False else ()


def late_days(work: NightWork) -> Window:
    """The night, and the days before it that are looked at for late records."""
    return Window.of_days(work.night - timedelta(days=work.schedule.late_days), work.night)


def runs_inputs(work: NightWork) -> str:
    """A digest of what all windows of the night were fitted from: for steps that follow from its runs."""
    return content_id({str(window): work.fitted_from.get(window) for window in work.windows})
