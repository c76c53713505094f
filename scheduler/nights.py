"""The nights of an installation: the one that is due, those that are missing, those with late records."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.publication import rows_table
from esjobs.records.context import Context
from esjobs.records.jobs.aggregate import days_behind
from esjobs.records.night import NightStep
from esjobs.schema.nights import NIGHTS
from esjobs.settings import RetentionSettings
from esjobs.store.base import JobStore
from esjobs.store.lease import Lease
from scheduler.condition import Condition, condition
from scheduler.files import lacking, names_night
from scheduler.forgetting import forget_nights
from scheduler.ledger import Ledger, Row, days_between
from scheduler.night import NightRunner
from scheduler.notifications.notifier import Notifier
from scheduler.patience import REAL_TIME, Patience
from scheduler.settings import NightsSettings
from scheduler.steps import night_steps
from scheduler.unwritten import Unwritten
from scheduler.witnesses import last_complete_day, require_plausible

_LONGEST_STEP_S = 1_800.0
"""A step may be silent for so long before another process takes the nights over from one elsewhere."""

NOT_RUN = "not run"
"""Why a night is missing that no trigger ran."""

_Choice = Callable[[NightRunner], Sequence[date]]


class Nights:
    """Everything that is asked of nights, over one session. One process at a time runs them."""

    def __init__(
        self,
        context: Context,
        *,
        steps: Sequence[NightStep] | None = None,
        patience: Patience = REAL_TIME,
    ) -> None:
        self._context = context
        self._clock = context.clock
        self._settings = context.settings.section(NightsSettings)
        self._rules = context.settings.section(CleaningRules)
        self._given_steps = steps
        self._patience = patience

    @property
    def _store(self) -> JobStore:
        return self._context.store

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._store, self._clock)

    @property
    def _steps(self) -> Sequence[NightStep]:
        """Those of the capabilities, which are imported when nights are run."""
        if self._given_steps is None:
            return night_steps(self._context.settings.capabilities)
        return self._given_steps

    @property
    def notifications(self) -> Notifier:
        """Notifications: ``s.nights.notifications.send(night)``; also ``preview``, ``test`` and ``log``."""
        notifier: Notifier = self._context.facade("notifications")
        return notifier

    def health(self) -> Condition:
        """How the installation is: nights, flags, fits, the newest job; what the metrics tell."""
        return condition(self._store, self._clock(), self._settings.ingest_stopped_h)

    @property
    def due(self) -> date:
        """The last day of UTC that is over."""
        return last_complete_day(self._clock())

    def show(self, first: date | None = None, last: date | None = None) -> pa.Table:
        """The nights from one to another, oldest first, with those that are missing; rows of ``nights``.

        Without a first one all that have an account, and those missing since retention keeps each
        (:meth:`_remembered`); without a last one up to the one that is due.
        """
        last = last or self.due
        stored = {row["night"]: row for row in self._ledger.nights(first, last)}
        since = first or self._remembered(list(stored), last)
        expected = days_between(since, last) if since else []
        rows = [
            stored.get(night, {"night": night, "state": "missing", "reason": NOT_RUN})
            for night in sorted({*stored, *expected})
        ]
        return rows_table(NIGHTS, rows)

    def tend(self, unwritten: Unwritten | None = None) -> list[Row]:
        """What a trigger does: nights with late records and missing ones, oldest first, then the due one.

        ``unwritten``: why the trigger before failed, where that could not be written down. The nights that it
        is about and that have no account have failed for this reason, which is told before they are made up
        for. Raises :class:`ClockError` when the clock seems to be wrong, see :mod:`scheduler.witnesses`.
        """

        def chosen(runner: NightRunner) -> list[date]:
            due = self.due
            self._require_plausible(due)
            if self._settings.ingest:
                runner.prepare(due)
            late = self._with_late_records(due)
            missing = self._missing(due - timedelta(days=1))
            self._mark(runner, missing, unwritten)
            wanted = missing[: self._settings.catch_up]
            return sorted({*late, *wanted, due})

        return self._run(chosen)

    def catch_up(
        self, first: date | None = None, last: date | None = None, limit: int | None = None
    ) -> list[Row]:
        """Run the nights that are missing or failed, oldest first; ``limit``: so many at most.

        Without a first one from the first night that is remembered, without a last one up to the one that is
        due. Raises :class:`UsageError` for a day that is not over, :class:`ClockError` as :meth:`tend` does
        where no last night is named.
        """
        self._require_over(last)
        if last is None:
            self._require_plausible(self.due)

        def chosen(runner: NightRunner) -> list[date]:
            del runner
            missing = self._missing(last or self.due, first, with_jobs_only=False)
            return missing if limit is None else missing[:limit]

        return self._run(chosen)

    def rerun(self, night: date) -> Row:
        """Run a night again, every step of it; :class:`UsageError` for a day that is not over."""
        self._require_over(night)
        return self._run(lambda _: [night], again=True)[0]

    def forget(self, after: date | None = None) -> dict[str, int]:
        """Remove what is kept of the nights after a day; None: of those that have not come yet.

        Removed are their accounts, messages, states and events of flags; never jobs, buckets or runs. The
        number of nights by table.
        """
        with self._lease().turn(0.0):
            return forget_nights(self._store, self._clock().date() if after is None else after)

    def _run(self, choice: _Choice, *, again: bool = False) -> list[Row]:
        lease = self._lease()
        with lease.turn(0.0):
            runner = NightRunner(self._context, self._steps, alive=lease.keep, patience=self._patience)
            return [runner.run(night, again=again) for night in choice(runner)]

    def _lease(self) -> Lease:
        return Lease(
            self._store,
            self._context.settings.place,
            self._clock,
            what="running nights",
            request_s=_LONGEST_STEP_S,
            timer=self._patience.timer,
            pause=self._patience.pause,
        )

    def _require_plausible(self, night: date) -> None:
        """Files of a night are evidence, too, where the name of each has the day."""
        files = [source for source in self._settings.ingest if names_night(source)]
        if not files or lacking(files, night):
            require_plausible(self._store, self._clock, night)

    def _missing(self, last: date, first: date | None = None, *, with_jobs_only: bool = True) -> list[date]:
        """The nights up to one that are not done, oldest first.

        ``with_jobs_only``: of those that found no jobs, the ones whose jobs have come since.
        """
        stored = {row["night"]: row for row in self._ledger.nights(None, last)}
        since = first or self._remembered(list(stored), last)
        if since is None:
            return []
        nights = [
            night
            for night in days_between(since, last)
            if night not in stored or stored[night]["state"] != "done"
        ]
        if not with_jobs_only:
            return nights
        empty = {night for night in nights if _was_empty(stored.get(night))}
        recent = {night for night in empty if night >= self._late_since(last)}
        filled: set[date] = set()
        if recent:
            window = Window.of_days(min(recent), max(recent))
            days = self._store.day_fingerprints(window).column("day").to_pylist()
            filled = recent & set(days)
        return [night for night in nights if night not in empty or night in filled]

    def _with_late_records(self, due: date) -> list[date]:
        """The nights that are done whose windows hold a day that has changed since, as far as one looks."""
        since, before = self._late_since(due), due - timedelta(days=1)
        if since > before:
            return []
        window = Window.of_days(since, before)
        changed = days_behind(self._store, window, self._rules)
        if not changed:
            return []
        rows = self._ledger.nights(min(changed), before)
        return [row["night"] for row in rows if row["state"] == "done"]

    def _mark(self, runner: NightRunner, nights: Sequence[date], unwritten: Unwritten | None) -> None:
        """Give nights that have no account one, so that they can be told."""
        accounts = {row["night"]: row for row in self._ledger.nights()}
        for night in nights:
            known = accounts.get(night, {}).get("state")
            if unwritten is not None and night <= unwritten.until and known in (None, "running"):
                runner.note_failure(night, unwritten.reason)
            elif night not in accounts:
                self._ledger.write({"night": night, "state": "missing", "reason": NOT_RUN, "attempt": 0}, [])

    def _remembered(self, stored: Sequence[date], last: date) -> date | None:
        """The first night that must have an account: the first there is, as far as retention keeps each."""
        if not stored:
            return None
        kept = self._context.settings.section(RetentionSettings).keep_daily
        days = max(kept, self._settings.late_days, 1)
        return max(min(stored), last - timedelta(days=days - 1))

    def _late_since(self, due: date) -> date:
        return due - timedelta(days=self._settings.late_days)

    def _require_over(self, night: date | None) -> None:
        if night is not None and night > self.due:
            raise UsageError(f"{night} is not over; the last night that can be run is {self.due}")


def _was_empty(row: dict[str, Any] | None) -> bool:
    return row is not None and row["state"] == "missing" and bool(row["attempt"])
