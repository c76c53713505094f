"""A trigger from outside: opens the store, does what is due, and lets go of the store."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from esjobs.api.factory import embedded_file
from esjobs.api.session import Session
from esjobs.cli.rlimits import require_open_files
from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import (
    BooksError,
    ClockError,
    EsjobsError,
    InputError,
    NoResultError,
    SchemaError,
    StoreBusyError,
)
from esjobs.core.numbers import many
from esjobs.entry import open as open_session
from esjobs.issues.settings import DetectSettings
from esjobs.pop.settings import TalpSettings
from esjobs.settings import Settings
from esjobs.today.settings import TodaySettings
from esjobs.web.beside import web_beside
from scheduler.calendar import Calendar
from scheduler.condition import Condition, condition
from scheduler.endpoint import Endpoint
from scheduler.files import lacking
from scheduler.ledger import Ledger, Row
from scheduler.metrics import Metrics
from scheduler.nights import Nights
from scheduler.notifications.incident_notices import notices_so_far
from scheduler.notifications.job_issues import running_job
from scheduler.pending_failure import PendingFailure, forget, note, noted
from scheduler.retry_policy import REAL_TIME, RetryPolicy
from scheduler.service import PeriodicTask, Service, TriggerResult, serve
from scheduler.settings import NightsSettings
from scheduler.witnesses import last_complete_day

_log = logging.getLogger(__name__)
_WEB_EVERY = timedelta(seconds=30)


@dataclass(frozen=True)
class Trigger:
    """Work of the service and of ``serve --once``.

    The store is open only while nights are run: the file of an embedded store is free in between.
    """

    settings: Settings
    clock: Clock = system_clock
    retry: RetryPolicy = REAL_TIME

    def tend(self, pending: str | None = None) -> tuple[list[Row], Condition]:
        """Run what is due, and look at the installation afterwards.

        Waits for a store that another process holds, and for a cluster that does not answer, as long as a
        night may take (``nights.deadline_h``). ``pending``: why the trigger before failed, where it could
        not be written down; the nights that it should have run get it as the reason. Without one, what the
        process before this has noted. Raises :class:`StoreError` when the time is over, and notes it, and
        :class:`ClockError` when the clock seems to be ahead.
        """
        place = self.settings.location
        reason = noted(place) if pending is None else PendingFailure(pending, date.max)

        def triggered() -> tuple[list[Row], Condition]:
            with self._session() as session:
                rows = Nights(session._context, retry=self.retry).tend(reason)
                return rows, self.condition_of(session)

        chosen = self.settings.section(NightsSettings)
        deadline = self.retry.deadline(chosen)
        try:
            outcome = self.retry.until_answered(triggered, self._may_pass, deadline, chosen)
        except ClockError:
            # nothing was due: there is no night that it could be the reason of
            raise
        except EsjobsError as error:
            note(place, str(error), last_complete_day(self.clock()))
            raise
        forget(place)
        unsent = outcome[1].unsent
        if unsent:
            _log.warning("%s not delivered yet; see: esjobs notify log", many(unsent, "message"))
        return outcome

    def __call__(self, pending: str | None = None) -> TriggerResult:
        """The same, as the service wants it told."""
        rows, condition = self.tend(pending)
        return TriggerResult(
            tuple((str(row["night"]), row["state"], row["reason"]) for row in rows), condition
        )

    def look(self) -> tuple[Condition, datetime | None]:
        """Return the health of the installation, and the start of its newest night.

        Nothing of it where the first night makes the store. Raises :class:`StoreError` while it does not
        answer.
        """
        file = embedded_file(self.settings)
        if self._creates and file is not None and not file.exists():
            return Condition(), None
        with open_session(settings=self.settings, read_only=True, clock=self.clock) as session:
            now = self.clock()
            rows = Ledger(session.store, self.clock).nights()
            began = [row["began"] for row in rows if row["began"] is not None and row["began"] <= now]
            return self.condition_of(session), max(began, default=None)

    def condition_of(self, session: Session) -> Condition:
        """Return the health of the installation."""
        return condition(session.store, self.clock(), self.settings.section(NightsSettings).ingest_stopped_h)

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with open_session(settings=self.settings, create=self._creates, clock=self.clock) as session:
            yield session

    @property
    def _creates(self) -> bool:
        """True if a night reads files: it can be the first thing that happens to a store."""
        return bool(
            self.settings.section(NightsSettings).ingest or self.settings.section(TalpSettings).spools
        )

    def _may_pass(self, error: Exception) -> bool:
        if isinstance(error, SchemaError | BooksError):
            return False
        # a cluster may come back; a file that cannot be read stays so
        return isinstance(error, StoreBusyError) or not self.settings.store.startswith("duckdb:")


def require_files(settings: Settings, rows: Sequence[Row]) -> None:
    """Raise :class:`InputError` where a source of the settings has no file for the last of these nights.

    What else was there is in the results: the night need not have failed.
    """
    if not rows:
        return
    night = rows[-1]["night"]
    names = lacking(settings.section(NightsSettings).ingest, night)
    if names:
        raise InputError(
            f"night {night}: file not found: {', '.join(names)} (nights.ingest); check its delivery. The "
            "next trigger reads it"
        )


def serve_once(settings: Settings) -> list[Row]:
    """Run what is due, publish the metrics, and return the accounts of the nights."""
    chosen = settings.section(NightsSettings)
    calendar = Calendar(chosen.cron, chosen.time_zone)
    metrics = _metrics(chosen)
    ok = False
    try:
        rows, found = Trigger(settings).tend()
        metrics.show(found)
        ok = all(row["state"] != "failed" for row in rows)
    finally:
        # also after a failure: silence would look like a service that has ended
        now = system_clock()
        metrics.triggered(now, calendar.next_after(now), ok=ok)
    return rows


def _metrics(chosen: NightsSettings) -> Metrics:
    return Metrics(chosen.metrics_file, chosen.push_to)


def serve_nights(settings: Settings) -> None:
    """Serve until the process is told to end. Raises :class:`EsjobsError` for settings that cannot work."""
    require_open_files()
    chosen = settings.section(NightsSettings)
    calendar = Calendar(chosen.cron, chosen.time_zone)
    trigger = Trigger(settings)
    metrics = _metrics(chosen)
    service = Service(calendar, trigger, system_clock, metrics, look=trigger.look)
    following = calendar.next_after(system_clock())
    _log.info("nights of %s; next trigger at %s", settings.location, following)
    periodic = [*_gathering(settings, metrics), *_watching(settings, metrics), *_running(settings, metrics)]
    with web_beside(settings) as web, ExitStack() as stack:
        if web is not None:
            periodic.append(PeriodicTask("web", _WEB_EVERY, web.tend, system_clock, metrics))
        if chosen.listen != "nothing":
            endpoint = stack.enter_context(Endpoint(chosen.host, chosen.port, metrics, service.health))
            _log.info("metrics and health at http://%s:%d", *endpoint.address)
        serve(service, calendar, periodic)


def _running(settings: Settings, metrics: Metrics) -> Iterator[PeriodicTask]:
    chosen = settings.section(DetectSettings).running
    if chosen is None:
        return

    def look() -> None:
        with open_session(settings=settings, create=True) as session:
            report, warned = session.issues.look_at_running()
            _log.info("%s", report.headline)
            for note in report.notes:
                _log.warning("%s", note)
            if warned:
                # each is sent once; before the first night the support finds them in the table
                with suppress(NoResultError):
                    session.nights.notifications.send(alerts=[running_job(row) for row in warned])

    every = timedelta(minutes=int(chosen.every.removesuffix("m")))
    yield PeriodicTask("running", every, look, system_clock, metrics)


def _watching(settings: Settings, metrics: Metrics) -> Iterator[PeriodicTask]:
    hours = settings.section(TodaySettings).every
    if hours is None:
        return

    def watch() -> None:
        with open_session(settings=settings) as session:
            report = session.flags.today.update_running_day()
            _log.info("%s", report.headline)
            opened = notices_so_far(session.store, date.fromisoformat(report.run))
            if opened:
                # each is sent once; before the first night the page alone has them
                with suppress(NoResultError):
                    session.nights.notifications.send(alerts=opened)

    every = timedelta(hours=int(hours.removesuffix("h")))
    yield PeriodicTask("today", every, watch, system_clock, metrics)


def _gathering(settings: Settings, metrics: Metrics) -> list[PeriodicTask]:
    """Return the collection of TALP reports, if spools are configured.

    What could be gathered is stored before spools that could not be read are told as a failure.
    """
    if not settings.section(TalpSettings).spools:
        return []

    def gather() -> None:
        with open_session(settings=settings, create=True) as session:
            report = session.pop.gather()
        # every few minutes: a round that finds nothing is not worth a line
        if report.rows_out or report.counts["new junk files"]:
            _log.info("%s", report.headline)
        if report.counts["spools not read"]:
            raise InputError("; ".join(report.notes))

    every = timedelta(minutes=settings.section(TalpSettings).every_minutes)
    return [PeriodicTask("talp", every, gather, system_clock, metrics)]
