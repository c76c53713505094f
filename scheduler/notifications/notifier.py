"""Everything that is asked of notifications, over one session."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.report import RunReport
from esjobs.records.context import Context
from esjobs.speed.settings import FitSettings
from esjobs.store.base import JobStore
from scheduler.notifications.log import log_rows
from scheduler.notifications.notices import Notice
from scheduler.notifications.preview import Previewed, preview
from scheduler.notifications.settings import NotifySettings
from scheduler.notifications.sources import last_night
from scheduler.notifications.step import Office, notify_night
from scheduler.notifications.trial import Tried, try_recipients


class Notifier:
    """Tells people, and says what they were told: ``s.notifier.send(night)``.

    ``open_store``: gives the store when it is needed; a test message needs none.
    """

    def __init__(self, open_store: Callable[[], JobStore], office: Office) -> None:
        self._open_store = open_store
        self._office = office

    def send(
        self, night: date | None = None, *, alerts: Sequence[Notice] = (), retry: bool = False
    ) -> RunReport:
        """Tell of a night (None: the newest) what was not told yet, and send what waits."""
        store = self._open_store()
        return notify_night(store, self._office, self._night(store, night), alerts=alerts, retry=retry)

    def preview(self, night: date | None, out: str | Path) -> pa.Table:
        """Write what would be sent of a night (None: the newest) into a folder; a row for each message."""
        store = self._open_store()
        return _rows(preview(store, self._office, self._night(store, night), Path(out)), Previewed)

    def test(self, recipients: Sequence[str] = ()) -> pa.Table:
        """Send a test message to some recipients, or to all; a row for each."""
        return _rows(try_recipients(self._open_store, self._office, recipients), Tried)

    def log(
        self,
        *,
        recipients: Collection[str] = (),
        states: Collection[str] = (),
        first: date | None = None,
        last: date | None = None,
    ) -> pa.Table:
        """What was sent, when, to whom, and what was answered; the newest first."""
        return log_rows(self._open_store(), recipients=recipients, states=states, first=first, last=last)

    def _night(self, store: JobStore, night: date | None) -> date:
        chosen = night or last_night(store, self._office.clock().date())
        if chosen is None:
            raise NoResultError(
                "no night was ever run, so there is nothing to tell; see: esjobs serve --once"
            )
        return chosen


def notifier(context: Context) -> Notifier:
    """Return the notifier of a session."""
    settings = context.settings
    limit = settings.section(FitSettings).deviation_limit
    office = Office(settings.section(NotifySettings), limit, context.clock, settings.place)
    return Notifier(context.opener, office)


def _rows(told: Sequence[Any], kind: type) -> pa.Table:
    schema = pa.schema(
        [pa.field(one.name, pa.int64() if one.type in (int, "int") else pa.string()) for one in fields(kind)]
    )
    return pa.Table.from_pylist([asdict(one) for one in told], schema=schema)
