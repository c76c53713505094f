"""Quality of provisioning in a session: ``s.provisioning``."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.provisioning.assessment import assess, compare, indexed
from esjobs.provisioning.contacts import DAYS, Rank, effects, enter_contact
from esjobs.provisioning.questionnaire import read_questionnaire
from esjobs.provisioning.waiting import lost, used, waiting
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.store.base import JobStore
from esjobs.store.checks import writes


class Provisioning(Facade):
    """Waiting, use, losses, quality indices and contacts.

    ``by``: site, queue, project, user, application, or size (of jobs, in cores). ``window``: None is all
    data. ``where``: conditions as texts, as in :meth:`Session.query`.
    """

    def waiting(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> Answer:
        """Waiting times and their trend: :func:`~esjobs.provisioning.waiting.waiting`."""
        return Answer(waiting(self._store, by, window=self._window(window), where=where))

    def used(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> Answer:
        """Used against requested resources: :func:`~esjobs.provisioning.waiting.used`."""
        return Answer(used(self._store, by, window=self._window(window), where=where))

    def lost(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> Answer:
        """Core-hours of failed jobs, by cause: :func:`~esjobs.provisioning.waiting.lost`."""
        return Answer(lost(self._store, by, window=self._window(window), where=where))

    @writes
    def index(self, file: str | Path) -> RunReport:
        """Compute the index of a questionnaire: :func:`~esjobs.provisioning.assessment.assess`.

        ``s.tables.quality_index()`` has its rows. Raises :class:`InputError` for a wrong file.
        """
        now = self._context.clock()
        return assess(self._store, self._rank, read_questionnaire(Path(file), now), now)

    def indexed(self, assessment: str) -> Answer:
        """Rows of an index for people, the index first, then area by area."""
        return Answer(indexed(self._store, assessment))

    def compare(self, first: str, second: str) -> Answer:
        """Compare two indices: :func:`~esjobs.provisioning.assessment.compare`."""
        return compare(self._store, first, second)

    @writes
    def contact(
        self, kind: str, name: str, *, on: date, by: str, text: str = "", acknowledged: date | None = None
    ) -> RunReport:
        """Record that a ``user`` or ``project`` was contacted; a second entry of the day replaces it."""
        now = self._context.clock()
        return enter_contact(
            self._store, kind, name, on=on, by=by, text=text, acknowledged=acknowledged, now=now
        )

    def effects(self, score: str = "cpu_efficiency", *, days: int = DAYS) -> Answer:
        """Effect of contacts against a control group: :func:`~esjobs.provisioning.contacts.effects`.

        ``details``: overall effect (:func:`~esjobs.provisioning.overall.overall`), None for too few contacts.
        """
        rows, overall = effects(self._store, self._rank, score, days)
        return Answer(rows, details=overall)

    @property
    def _store(self) -> JobStore:
        return self._context.store

    @property
    def _rank(self) -> Rank:
        return self._context.peers["scores.rank"]

    def _window(self, window: str | None) -> Window | None:
        return None if window is None else Window.of(window, self._context.clock())
