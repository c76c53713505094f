"""Notifications of one session."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, fields
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.report import RunReport
from esjobs.flags.answering.links import links_of
from esjobs.flags.answering.settings import WebSettings
from esjobs.records.context import Context
from esjobs.speed.settings import FitSettings
from esjobs.store.base import JobStore
from scheduler.notifications.alerts import alerts_of
from scheduler.notifications.log import log_rows
from scheduler.notifications.notices import Notice
from scheduler.notifications.preview import Previewed, preview
from scheduler.notifications.sample_message import Tried, try_recipients
from scheduler.notifications.settings import NotifySettings
from scheduler.notifications.sources import last_night
from scheduler.notifications.step import Mailer, notify_night

Alerts = Callable[[JobStore, date], Sequence[Notice]]


class Notifier:
    """Notifications: send, preview, test, log. ``open_store``: called when a store is required; a test needs
    none. ``alerts``: of a night besides flags, for previews.
    """

    def __init__(
        self, open_store: Callable[[], JobStore], mailer: Mailer, alerts: Alerts | None = None
    ) -> None:
        self._open_store = open_store
        self._mailer = mailer
        self._alerts = alerts

    def send(
        self, night: date | None = None, *, alerts: Sequence[Notice] = (), retry: bool = False
    ) -> RunReport:
        """Send the new notices of a night (None: the newest), and pending messages."""
        store = self._open_store()
        return notify_night(store, self._mailer, self._night(store, night), alerts=alerts, retry=retry)

    def preview(self, night: date | None, out: str | Path) -> pa.Table:
        """Write the messages of a night (None: the newest) into a folder; one row per message."""
        store = self._open_store()
        night = self._night(store, night)
        alerts = self._alerts(store, night) if self._alerts else ()
        return _rows(preview(store, self._mailer, night, Path(out), alerts), Previewed)

    def test(self, recipients: Sequence[str] = ()) -> pa.Table:
        """Send a test message to some recipients, or to all; one row each."""
        return _rows(try_recipients(self._open_store, self._mailer, recipients), Tried)

    def log(
        self,
        *,
        recipients: Collection[str] = (),
        states: Collection[str] = (),
        first: date | None = None,
        last: date | None = None,
    ) -> pa.Table:
        """Return the log of messages with answers, newest first."""
        return log_rows(self._open_store(), recipients=recipients, states=states, first=first, last=last)

    def _night(self, store: JobStore, night: date | None) -> date:
        chosen = night or last_night(store, self._mailer.clock().date())
        if chosen is None:
            raise NoResultError("no night has run yet, so no notifications exist; run: esjobs serve --once")
        return chosen


def notifier(context: Context) -> Notifier:
    """Return the notifier of a session."""
    settings = context.settings
    limit = settings.section(FitSettings).deviation_limit
    # read for each mail, not now: keys are rotated
    links = partial(links_of, settings.section(WebSettings), settings.location)
    mailer = Mailer(settings.section(NotifySettings), limit, context.clock, settings.location, links=links)
    return Notifier(context.opener, mailer, lambda store, night: alerts_of(store, settings, night))


def _rows(rows: Sequence[Any], kind: type) -> pa.Table:
    schema = pa.schema(
        [pa.field(one.name, pa.int64() if one.type in (int, "int") else pa.string()) for one in fields(kind)]
    )
    return pa.Table.from_pylist([asdict(one) for one in rows], schema=schema)
