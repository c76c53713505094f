"""Nights of an installation: the due one, missing ones, those with late records."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import cached_property

import pyarrow as pa

from esjobs.core.errors import StoreError, UsageError
from esjobs.core.query import Days
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.publication import read_table, rows_table
from esjobs.records.context import Context
from esjobs.records.jobs.aggregate import days_behind
from esjobs.records.jobs.late_jobs import LARGE_DAY
from esjobs.records.night import NightStep
from esjobs.schema.jobs import DAYS
from esjobs.schema.nights import NIGHTS
from esjobs.settings import RetentionSettings
from esjobs.store.base import JobStore
from esjobs.store.lease import Lease
from scheduler.condition import Condition, condition
from scheduler.files import lacking, names_night
from scheduler.ledger import RUNNING_NIGHTS, Ledger, Row, days_between
from scheduler.night import NightRunner
from scheduler.notifications.notifier import Notifier
from scheduler.orders import enter, pause_in_force
from scheduler.pending_failure import PendingFailure
from scheduler.plan import Planner
from scheduler.removal import forget_nights
from scheduler.retry_policy import REAL_TIME, RetryPolicy
from scheduler.settings import NightsSettings
from scheduler.steps import night_steps
from scheduler.witnesses import last_complete_day, require_plausible

# Silence of a step after which another process takes the nights over from one on another machine
_LONGEST_STEP_S = 1_800.0
_log = logging.getLogger(__name__)
NOT_RUN = "not run"  # Why a night is missing that no trigger ran
_Choice = Callable[[NightRunner], Sequence[date]]


class Nights:
    """Nights of one session; one process at a time runs them."""

    def __init__(
        self, context: Context, *, steps: Sequence[NightStep] | None = None, retry: RetryPolicy = REAL_TIME
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._settings = context.settings.section(NightsSettings)
        self._rules = context.settings.section(CleaningRules)
        self._given_steps = steps
        self._retry = retry

    @property
    def _store(self) -> JobStore:
        return self._context.store

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._store, self._clock)

    @property
    def _steps(self) -> Sequence[NightStep]:
        if self._given_steps is None:
            return night_steps(self._context.settings.capabilities)
        return self._given_steps

    @property
    def notifications(self) -> Notifier:
        """Notifications: ``s.nights.notifications.send(night)``; also ``preview``, ``test`` and ``log``."""
        notifier: Notifier = self._context.facade("notifications")
        return notifier

    def health(self) -> Condition:
        """Return the health summary: nights, flags, fits, newest job."""
        return condition(self._store, self._clock(), self._settings.ingest_stopped_h)

    @property
    def due(self) -> date:
        """Last complete day of UTC."""
        return last_complete_day(self._clock())

    def show(self, first: date | None = None, last: date | None = None) -> pa.Table:
        """Return the nights of a period, oldest first, including missing ones; rows of ``nights``.

        Without ``first`` all nights with an account, and missing ones as far back as retention keeps each;
        without ``last`` up to the due one.
        """
        last = last or self.due
        stored = {row["night"]: row for row in self._ledger.nights(first, last)}
        rows = [
            stored.get(night, {"night": night, "state": "missing", "reason": NOT_RUN})
            for night in sorted({*stored, *self._expected(stored, first, last)})
        ]
        return rows_table(NIGHTS, rows)

    def tend(self, pending: PendingFailure | None = None) -> list[Row]:
        """Run nights with late records and missing ones, oldest first, then the due one.

        Nothing while nights are paused. ``pending``: failure of the previous trigger that the ledger does not
        have. Its nights without an account become failed with this reason before they are made up for. Raises
        :class:`ClockError` if the clock seems wrong, see :mod:`scheduler.witnesses`.
        """
        paused = pause_in_force(self._store)
        if paused is not None:
            _log.warning("nothing is run: nights are paused %s; esjobs nights resume", paused)
            return []

        def chosen(runner: NightRunner) -> list[date]:
            due = self.due
            self._require_plausible(due)
            # files first: late records in them decide which nights are run again
            if self._settings.ingest:
                runner.prepare(due)
            missing = self._missing(due - timedelta(days=1))
            self._mark(runner, missing, pending)
            return self._choice(due, missing)

        return self._run(chosen)

    def _choice(self, due: date, missing: Sequence[date]) -> list[date]:
        """Return the nights of a trigger: with late records, missing ones, the due one."""
        late = self._with_late_records(due)
        return sorted({*late, *missing[: self._settings.catch_up], due})

    def plan(self) -> pa.Table:
        """Return what the next trigger will run and what it will cost, a row per night.

        Nights after the next trigger follow while older days have no buckets. Columns: night,
        documents_read, documents_written, bytes_written, processor_s, jobs, backfill, basis.
        """
        due = self.due
        stored = self._ledger.night(due)
        choice = self._choice(due, self._missing(due - timedelta(days=1)))
        # the due night is done already: the next trigger comes when another day is over
        if choice == [due] and stored is not None and stored["state"] == "done":
            choice = [due + timedelta(days=1)]
        return Planner(self._context, self._steps).plan(choice)

    def catch_up(
        self, first: date | None = None, last: date | None = None, limit: int | None = None
    ) -> list[Row]:
        """Run missing or failed nights, oldest first; ``limit``: at most this many.

        Without ``first`` from the first remembered night, without ``last`` up to the due one. Raises
        :class:`UsageError` for a day that is not over, :class:`ClockError` as :meth:`tend` without ``last``.
        """
        self._require_over(last)
        if first is not None and last is not None and first > last:
            raise UsageError(f"{first} is after {last}; begin with the older night")
        if last is None:
            self._require_plausible(self.due)

        def chosen(runner: NightRunner) -> list[date]:
            del runner
            missing = self._missing(last or self.due, first, with_jobs_only=False)
            return missing if limit is None else missing[:limit]

        return self._run(chosen)

    def rerun(self, night: date) -> Row:
        """Run every step of a night again; :class:`UsageError` for a day not over, or before all jobs."""
        self._require_over(night)
        first = None
        # what is wrong with a store is the night's to report
        with suppress(StoreError):
            first = self._store.span().first
        if first is not None and night < first.date():
            raise UsageError(f"no jobs on or before {night}; the first ended on {first.date()}")
        return self._run(lambda _: [night], again=True)[0]

    def pause(self, *, by: str | None = None, note: str = "") -> None:
        """Run no nights by triggers until :meth:`resume`; ``by`` None: the account of the store."""
        enter(self._store, "pause", by=by, text=note, now=self._clock())

    def resume(self, *, by: str | None = None, note: str = "") -> None:
        """End a pause: the next trigger makes up for what is missing."""
        enter(self._store, "resume", by=by, text=note, now=self._clock())

    def forget(
        self, after: date | None = None, *, by: str | None = None, note: str = "", dry_run: bool = False
    ) -> dict[str, int]:
        """Remove accounts, messages, flag states and events of the nights after a day (None: of the future).

        Jobs, buckets and runs stay. Returns the number of nights by table; ``dry_run``: nothing is removed.
        The order is kept, with ``by``, the account and these numbers. Raises :class:`UsageError` for nights
        that are over, without a reason in ``note``.
        """
        last = self._clock().date() if after is None else after
        if dry_run:
            return forget_nights(self._store, last, dry_run=True)
        if last < self.due and not note.strip():
            raise UsageError(
                f"nights from {last + timedelta(days=1)} to {self.due} are over: their flag states and "
                "messages would be lost; add the reason (--note), or see what would be removed (--dry-run)"
            )
        with self._lease().turn(0.0):
            found = forget_nights(self._store, last, dry_run=True)
            # the order first: nothing is removed without a record of who wanted it
            enter(self._store, "forget", by=by, text=note, now=self._clock(), night=last, removed=found)
            return forget_nights(self._store, last)

    def _run(self, choice: _Choice, *, again: bool = False) -> list[Row]:
        lease = self._lease()
        with lease.turn(0.0):
            runner = NightRunner(self._context, self._steps, alive=lease.keep, retry=self._retry)
            return [runner.run(night, again=again) for night in choice(runner)]

    def _lease(self) -> Lease:
        return Lease(
            self._store,
            self._context.settings.location,
            self._clock,
            what=RUNNING_NIGHTS,
            request_s=_LONGEST_STEP_S,
            timer=self._retry.timer,
            pause=self._retry.pause,
        )

    def _require_plausible(self, night: date) -> None:
        # Files of a night are evidence too, if every name contains the day.
        files = [source for source in self._settings.ingest if names_night(source)]
        if not files or lacking(files, night):
            require_plausible(self._store, self._clock, night)

    def _missing(self, last: date, first: date | None = None, *, with_jobs_only: bool = True) -> list[date]:
        """Return nights that are not done, oldest first.

        ``with_jobs_only``: those that ran without jobs only if jobs have come since.
        """
        stored = {row["night"]: row for row in self._ledger.nights(None, last)}
        expected = self._expected(stored, first, last)
        nights = [night for night in expected if stored.get(night, {}).get("state") != "done"]
        return self._with_jobs(nights, stored, last) if with_jobs_only else nights

    def _with_jobs(self, nights: Sequence[date], stored: Mapping[date, Row], last: date) -> list[date]:
        """Return nights without those that ran without jobs, unless some have come since."""
        # a night that no trigger ran is missing too, after 0 attempts: it may have jobs
        empty = {night for night in nights if night in stored and _was_empty(stored[night])}
        empty -= self._filled({night for night in empty if night >= self._late_since(last)})
        return [night for night in nights if night not in empty]

    def _expected(self, stored: Collection[date], first: date | None, last: date) -> list[date]:
        """Return the nights that must have an account: from ``first``, or as long as retention keeps all."""
        since = first or self._remembered(stored, last)
        return days_between(since, last) if since else []

    def _filled(self, nights: set[date]) -> set[date]:
        if not nights:
            return nights
        window = Window.of_days(min(nights), max(nights))
        return nights & set(self._store.day_fingerprints(window).column("day").to_pylist())

    def _with_late_records(self, due: date) -> list[date]:
        """Return nights done whose windows have a day, within ``late_days``, that has changed since."""
        since, before = self._late_since(due), due - timedelta(days=1)
        changed = self._changed(Window.of_days(since, before)) if since <= before else None
        if not changed:
            return []
        # a changed day is in the windows of every night after it
        rows = self._ledger.nights(min(changed), before)
        return [row["night"] for row in rows if row["state"] == "done"]

    def _changed(self, window: Window) -> set[date]:
        """Return days whose jobs have changed since they were aggregated.

        Not those with a few late jobs among many: the due night adds them, and no earlier result moves.
        """
        now = days_behind(self._store, window, self._rules)
        if not now:
            return set()
        rows = read_table(self._store, DAYS, [Days.of_window(window)], ["day", "n_in"]).to_pylist()
        then: Counter[date] = Counter()
        for row in rows:
            then[row["day"]] += row["n_in"]
        few = self._settings.rerun_frac
        return {
            day
            for day, n_jobs in now.items()
            if n_jobs < LARGE_DAY or not 0 < n_jobs - then[day] < few * then[day]
        }

    def _mark(self, runner: NightRunner, nights: Sequence[date], pending: PendingFailure | None) -> None:
        # Every night gets an account, so that it is reported.
        accounts = {row["night"]: row for row in self._ledger.nights()}
        for night in nights:
            existing = accounts.get(night, {}).get("state")
            if pending is not None and night <= pending.until and existing in (None, "running"):
                runner.note_failure(night, pending.reason)
            elif night not in accounts:
                self._ledger.write({"night": night, "state": "missing", "reason": NOT_RUN, "attempt": 0}, [])

    def _remembered(self, stored: Collection[date], last: date) -> date | None:
        # the first night that must have an account: as far back as retention keeps every one
        if not stored:
            return None
        kept = self._context.settings.section(RetentionSettings).keep_daily
        days = max(kept, self._settings.late_days, 1)
        return max(min(stored), last - timedelta(days=days - 1))

    def _late_since(self, due: date) -> date:
        return due - timedelta(days=self._settings.late_days)

    def _require_over(self, night: date | None) -> None:
        if night is not None and night > self.due:
            raise UsageError(f"{night} has not ended (UTC); the latest night that can run is {self.due}")


def _was_empty(row: Row) -> bool:
    return row["state"] == "missing" and bool(row["attempt"])
