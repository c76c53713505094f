"""What a session answers about the quality of provisioning."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa

from esjobs.core.clock import Clock
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.provisioning.assessment import Comparison, assess, compare, indexed
from esjobs.provisioning.contacts import DAYS, Rank, effects, enter_contact
from esjobs.provisioning.overall import Overall
from esjobs.provisioning.questionnaire import read_questionnaire
from esjobs.provisioning.waiting import lost, used, waiting
from esjobs.store.base import JobStore
from esjobs.store.checks import writes


class Provisioning:
    """Questions about waiting, use and losses; ``s.provisioning`` of a session. Answers are Arrow tables.

    ``by``: site, queue, project, user, application, or size (of jobs, in cores). ``window``: None is all that
    is stored. ``where``: conditions as :meth:`Session.query` takes them as texts.
    ``rank``: how names are ranked by their scores.
    """

    def __init__(self, store: JobStore, clock: Clock, *, rank: Rank, read_only: bool = False) -> None:
        self._store = store
        self._clock = clock
        self._rank = rank
        self.read_only = read_only

    def waiting(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> pa.Table:
        """How long jobs waited, and whether that grows: :func:`~esjobs.provisioning.waiting.waiting`."""
        return waiting(self._store, by, window=self._window(window), where=where)

    def used(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> pa.Table:
        """What was used of what was asked for: :func:`~esjobs.provisioning.waiting.used`."""
        return used(self._store, by, window=self._window(window), where=where)

    def lost(self, by: str, *, window: str | None = None, where: Sequence[str] = ()) -> pa.Table:
        """What failed jobs cost, by reason: :func:`~esjobs.provisioning.waiting.lost`."""
        return lost(self._store, by, window=self._window(window), where=where)

    @writes
    def index(self, file: str | Path) -> RunReport:
        """Make the index of a questionnaire: :func:`~esjobs.provisioning.assessment.assess`.

        ``s.show("quality")`` has its rows. Raises :class:`InputError` for a file that is wrong.
        """
        now = self._clock()
        return assess(self._store, self._rank, read_questionnaire(Path(file), now), now)

    def indexed(self, assessment: str) -> pa.Table:
        """The rows of an index in the columns that people read, the index first, then area by area."""
        return indexed(self._store, assessment)

    def compare(self, first: str, second: str) -> Comparison:
        """Hold two indices together: :func:`~esjobs.provisioning.assessment.compare`."""
        return compare(self._store, first, second)

    @writes
    def contact(
        self,
        kind: str,
        name: str,
        *,
        on: date,
        by: str,
        text: str = "",
        acknowledged: date | None = None,
    ) -> RunReport:
        """Keep that a ``user`` or ``project`` was contacted; entered again for the day it is replaced."""
        return enter_contact(
            self._store, kind, name, on=on, by=by, text=text, acknowledged=acknowledged, now=self._clock()
        )

    def effects(self, score: str = "cpu_efficiency", *, days: int = DAYS) -> pa.Table:
        """What contacts changed, against others: :func:`~esjobs.provisioning.contacts.effects`."""
        return self.effects_together(score, days=days)[0]

    def overall_effect(self, score: str = "cpu_efficiency", *, days: int = DAYS) -> Overall | None:
        """What all contacts changed together: :func:`~esjobs.provisioning.overall.overall`."""
        return self.effects_together(score, days=days)[1]

    def effects_together(
        self, score: str = "cpu_efficiency", *, days: int = DAYS
    ) -> tuple[pa.Table, Overall | None]:
        """Both of these, for the price of one."""
        return effects(self._store, self._rank, score, days)

    def _window(self, window: str | None) -> Window | None:
        return None if window is None else Window.of(window, self._clock())
