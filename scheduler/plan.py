"""Cost of the coming nights: documents read and written, bytes and processor time.

A step costs what it cost per unit (job, window) in the last nights of this installation. Before the first
night the rates are those measured elsewhere, see :mod:`scheduler.rates`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.numbers import count, many
from esjobs.core.query import Days
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.context import Context
from esjobs.records.jobs.aggregate import days_and_late_jobs
from esjobs.records.night import NightStep, NightWork, Schedule, aggregated_days, longest_window
from esjobs.schema.jobs import DAYS
from esjobs.schema.nights import NIGHT_STEPS
from scheduler.backfill import after_newest, days_without_buckets, next_piece
from scheduler.ledger import Ledger, Row
from scheduler.rates import Cost, FirstRates
from scheduler.settings import NightsSettings
from scheduler.windows import windows_of

_LEARNED_FROM = 5  # Nights; fewer follow a change of the installation sooner, more even out a single one
_FORECAST_FROM = 7  # Days: a week has quiet ones
_MOST_NIGHTS = 400  # A backfill by a tiny budget has no end within reach
_SCHEMA = pa.schema(
    [
        ("night", pa.date32()),
        ("documents_read", pa.int64()),
        ("documents_written", pa.int64()),
        ("bytes_written", pa.int64()),
        ("processor_s", pa.float64()),
        ("jobs", pa.int64()),
        ("backfill", pa.string()),
        ("basis", pa.string()),
    ]
)


@dataclass(frozen=True)
class _Night:
    """A night to come: its own jobs, those of days to be made, those of the backfill, those of windows.

    ``brought``: jobs that the night reads from files itself.
    """

    night: date
    jobs: int
    brought: int
    changed: int
    older: int
    piece: Window | None
    windows: Mapping[int, int]  # Jobs by length in days

    def units(self, step: str) -> float:
        """Return the number of units of a step, by its name in the ledger."""
        if step == "ingest":
            return self.brought
        if step == "aggregate":
            return self.changed
        if step == "backfill":
            return self.older
        # steps that follow the buckets of a day, whichever step made them
        if step in ("detect", "score", "today"):
            return self.changed + self.older
        length = _fitted(step)
        return 1 if length is None else self.windows.get(length, 0)


def _fitted(step: str) -> int | None:
    """Return the length of the window that a step fits; None of other steps."""
    name, _, days = step.partition(" ")
    return int(days.removesuffix("d")) if name == "fit" else None


@dataclass
class _DayJobs:
    """Days of an installation: jobs of those with buckets, of those to be made, and of older ones without.

    ``late``: of those to be made, the late jobs where these are all that is read.
    """

    jobs: dict[date, int] = field(default_factory=dict)
    behind: dict[date, int] = field(default_factory=dict)
    late: dict[date, int] = field(default_factory=dict)
    without: dict[date, int] = field(default_factory=dict)

    def jobs_of(self, window: Window, forecast: int, last: date) -> int:
        """Return the jobs of days with buckets in a window; days after ``last`` are forecast."""
        stored = sum(n for day, n in self.jobs.items() if window.first_day <= day <= window.last_day)
        return stored + forecast * max((window.last_day - last).days, 0)

    def make(self, night: date, piece: Window | None) -> tuple[dict[date, int], dict[date, int]]:
        """Move the days that a night makes to those with buckets; return what it reads of both kinds."""
        changed = {day: self.behind.pop(day) for day in list(self.behind) if day <= night}
        oldest = piece.first_day if piece else date.max
        older = {day: self.without.pop(day) for day in list(self.without) if day >= oldest}
        self.jobs |= changed | older
        return {day: self.late.get(day, n) for day, n in changed.items()}, older

    @property
    def newest(self) -> date:
        """Newest day with jobs."""
        return max({**self.jobs, **self.behind}, default=date.min)

    @property
    def forecast(self) -> int:
        """Mean of the newest days."""
        found = {**self.jobs, **self.behind}
        newest = [found[day] for day in sorted(found)[-_FORECAST_FROM:]]
        return round(sum(newest) / len(newest)) if newest else 0


class Planner:
    """Plan of coming nights."""

    def __init__(self, context: Context, steps: Sequence[NightStep]) -> None:
        self._context = context
        self._steps = steps
        self._settings = settings = context.settings.section(NightsSettings)
        self._schedule = Schedule(settings.windows, settings.headline, settings.late_days)
        self._ledger = Ledger(context.store, context.clock)

    def plan(self, nights: Sequence[date]) -> pa.Table:
        """Return a row per night: those given, and further ones until no older day lacks buckets."""
        day_jobs = self._day_jobs(nights)
        history = self._history()
        rates = FirstRates(self._context, {**day_jobs.without, **day_jobs.jobs, **day_jobs.behind})
        rows = []
        for night in self._nights(nights, day_jobs, history):
            cost = Cost()
            for name, step in self._names(night):
                units = 0.0 if step.off(self._work(night.night)) else night.units(name)
                learned = history.cost(name, units)
                cost += rates.cost(name, units) if learned is None else learned
            rows.append(
                {
                    "night": night.night,
                    **cost.rounded(),
                    "jobs": night.jobs,
                    "backfill": None if night.piece is None else str(night.piece),
                    "basis": history.basis,
                }
            )
        return pa.Table.from_pylist(rows, schema=_SCHEMA)

    def _names(self, night: _Night) -> Iterator[tuple[str, NightStep]]:
        for step in self._steps:
            if step.per_window:
                yield from ((f"{step.name} {length}d", step) for length in night.windows)
            else:
                yield step.name, step

    def _work(self, night: date) -> NightWork:
        return NightWork(self._context, night, self._schedule)

    def _day_jobs(self, nights: Sequence[date]) -> _DayJobs:
        store = self._context.store
        works = [self._work(night) for night in nights]
        looked_at = [aggregated_days(work) for work in works]
        late = Window.of_days(min(each.first_day for each in looked_at), max(nights))
        first = min(longest_window(work).first_day for work in works)
        jobs = self._jobs(first, max(nights))
        before = late.first_day - timedelta(days=1)
        without = days_without_buckets(store, Window.of_days(first, before) if first <= before else None)
        rules = self._context.settings.section(CleaningRules)
        return _DayJobs(jobs, *days_and_late_jobs(store, late, rules), without)

    def _jobs(self, first: date, last: date) -> dict[date, int]:
        """Return the jobs of days with buckets."""
        days = [Days("day", first, last)]
        jobs: dict[date, int] = defaultdict(int)
        for row in read_table(self._context.store, DAYS, days, ["day", "n_in"]).to_pylist():
            jobs[row["day"]] += row["n_in"]
        return dict(jobs)

    def _nights(self, nights: Sequence[date], day_jobs: _DayJobs, history: "_History") -> Iterator[_Night]:
        """Yield the nights in order, with the days that each makes."""
        forecast, newest = day_jobs.forecast, day_jobs.newest
        last = max(nights)
        further = (last + timedelta(days=ahead) for ahead in range(1, _MOST_NIGHTS))
        for night in (*nights, *further):
            work = self._work(night)
            piece = self._piece(day_jobs, longest_window(work))
            if night > last and piece is None:
                return
            changed, older = day_jobs.make(night, piece)
            made, own = sum(changed.values()), day_jobs.jobs.get(night, 0)
            if night > newest:
                made, own = made + forecast + history.late_jobs, forecast
            windows = self._windows(work, day_jobs, forecast, newest)
            brought = own if self._settings.ingest else 0
            yield _Night(night, own, brought, made, sum(older.values()), piece, windows)

    def _piece(self, day_jobs: _DayJobs, window: Window) -> Window | None:
        # the window moves on by a night: its oldest days need no buckets any longer
        day_jobs.without = {day: n for day, n in day_jobs.without.items() if day >= window.first_day}
        return next_piece(day_jobs.without, self._settings.backfill_jobs)

    def _windows(self, work: NightWork, day_jobs: _DayJobs, forecast: int, newest: date) -> dict[int, int]:
        first = min({**day_jobs.jobs, **day_jobs.without}, default=work.night)
        covered = after_newest(day_jobs.without)
        windows = windows_of(work.night, self._schedule.windows, first, covered)
        return {window.days: day_jobs.jobs_of(window, forecast, newest) for window in windows}

    def _history(self) -> "_History":
        every = [row for row in self._ledger.nights() if row["state"] == "done"]
        # a first night costs more: compiled code, connections, tables are new
        nights = every[1:][-_LEARNED_FROM:] or every
        if not nights:
            return _History()
        first, last = nights[0]["night"], nights[-1]["night"]
        done = {row["night"]: row for row in nights}
        steps = read_table(self._context.store, NIGHT_STEPS, [Days("night", first, last)]).to_pylist()
        steps = [row for row in steps if row["night"] in done and row["processor_s"] is not None]
        day_jobs = _DayJobs(self._jobs(first - timedelta(days=self._schedule.windows[-1]), last))
        found = _History(f"nights {first} to {last}", every[0]["night"])
        for row in steps:
            found.add(row, done[row["night"]], day_jobs)
        return found


def _units_done(step: Row, night: Row, day_jobs: _DayJobs) -> float:
    """Return the number of units that a step did, see :meth:`_Night.units`."""
    name = step["step"]
    if name in ("aggregate", "backfill", "detect", "score", "today"):
        return step["documents_read"] or 0
    if name == "ingest":
        return night["jobs"] or 0
    length = _fitted(name)
    if length is None:
        return 1
    window = Window.of_days(night["night"] - timedelta(days=length - 1), night["night"])
    return day_jobs.jobs_of(window, 0, window.last_day)


@dataclass
class _History:
    """Costs and units of the steps of the last nights; ``first``: night of the installation."""

    basis: str = "no night yet: rates of another machine"
    first: date = date.min
    _costs: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))
    _units: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _times: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _late: list[int] = field(default_factory=list)

    def add(self, step: Row, night: Row, day_jobs: _DayJobs) -> None:
        """Add the account of a step."""
        name, units = step["step"], _units_done(step, night, day_jobs)
        # the first night makes all late days, none of which is late
        if name == "aggregate" and step["night"] > self.first:
            self._late.append(max((step["documents_read"] or 0) - (night["jobs"] or 0), 0))
        # a step that did nothing, for its jobs were those of before, says nothing of its rate
        if units:
            self._costs[name] += Cost.of(step)
            self._units[name] += units
            self._times[name] += 1

    @property
    def late_jobs(self) -> int:
        """Jobs of earlier days that a night makes again, the median."""
        return sorted(self._late)[len(self._late) // 2] if self._late else 0

    def cost(self, name: str, units: float) -> Cost | None:
        """Return the cost of so many units; None if the step was never done."""
        if not units:
            return Cost()
        if not self._units.get(name):
            return self._of_other_window(units) if _fitted(name) is not None else None
        return self._costs[name].times(units / self._units[name])

    def _of_other_window(self, units: float) -> Cost | None:
        """Return the cost of a fit of a length that was never done, by the longest one that was.

        Rows and time of a fit follow from its names and methods: with four times the days they grow by a
        fifth and by a tenth (300,000 jobs of the demo). Jobs that are read grow with the window.
        """
        longest = max(
            (each for each in self._units if _fitted(each)), key=lambda each: _fitted(each) or 0, default=None
        )
        if longest is None:
            return None
        times = self._times[longest]
        one = self._costs[longest].times(1 / times)
        return replace(one, documents_read=one.documents_read * units * times / self._units[longest])


def sentences(rows: pa.Table, most: int = 10) -> list[str]:
    """Describe a plan, a line per night, and the nights of the backfill together."""
    listed: list[dict[str, Any]] = rows.to_pylist()
    backfill = [row for row in listed if row["backfill"] is not None]
    lines = [
        f"night {row['night']}: {cost_in_words(row)}"
        + (f"; with older days {row['backfill']}" if row in backfill else "")
        for row in listed[:most]
    ]
    if len(listed) > most:
        lines.append(f"... and {many(len(listed) - most, 'further night')}")
    if len(backfill) > 1:
        total = sum((Cost.of(row) for row in backfill), Cost()).rounded()
        lines.append(f"{many(len(backfill), 'night')} with backfill, in all: {cost_in_words(total)}")
    if listed:
        lines.append(f"rates: {listed[0]['basis']}")
    return lines


def cost_in_words(row: Mapping[str, Any]) -> str:
    """Return the sentence about a cost.

    >>> cost_in_words({"documents_read": 3000, "documents_written": 41, "bytes_written": 2.5e6,
    ...     "processor_s": 900})
    'reads 3,000 documents, writes 41, about 0.25 processor hours, 2.5 MB'
    """
    read, written = count(row["documents_read"]), count(row["documents_written"])
    return (
        f"reads {read} documents, writes {written}, about {row['processor_s'] / 3600:.2g} processor hours, "
        f"{_size(row['bytes_written'])}"
    )


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
