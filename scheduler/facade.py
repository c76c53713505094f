"""Nightly runs in a session: ``s.nights``."""

from esjobs.records.context import Context
from scheduler.condition import Condition, condition
from scheduler.nights import Nights
from scheduler.notifications.notifier import Notifier
from scheduler.notifications.step import office_of
from scheduler.settings import NightsSettings


class Nightly(Nights):
    """Nightly runs of a store, its health and its notifications."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, context.clock)
        self._context = context

    def health(self) -> Condition:
        """Health summary from the ledger and the latest results."""
        context = self._context
        stopped_h = context.settings.section(NightsSettings).ingest_stopped_h
        return condition(context.store, context.clock(), stopped_h)

    @property
    def notifications(self) -> Notifier:
        """Notifications: ``s.nights.notifications.send(night)``; also ``preview``, ``test`` and ``log``."""
        return Notifier(self._context.opener, office_of(self._context))
