"""Deviations and their history in a session: ``s.flags``."""

from datetime import date
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arguments import Filters, Names, WindowLike, day_of, listed
from esjobs.core.report import RunReport
from esjobs.core.verdict_order import verdict_order
from esjobs.core.words import ALL_TYPES, NAMED_LEVELS
from esjobs.flags.settings import WatchSettings
from esjobs.records.answer import Answer
from esjobs.records.choice import values_of
from esjobs.records.context import Facade
from esjobs.records.names import spelling
from esjobs.records.shown import show_table
from esjobs.schema.flags import STANDING_OPEN, STATES
from esjobs.store.checks import writes


class Flags(Facade):
    """Verdicts, open flags, their history and causes; incidents of the day."""

    @property
    def today(self) -> Any:
        """Incidents: what is wrong today. ``s.flags.today.incidents()``."""
        return self._context.facade("today")

    def verdicts(self, **filters: Unpack[Filters]) -> Answer:
        """Return the verdicts of the queues over all processing types, by the default method.

        Confirmed deviations come first, largest first. Filters are those of a result table; ``level``,
        ``type`` and ``method`` replace the defaults.
        """
        shown = show_table(
            self._context.store,
            self._context.clock,
            "flags",
            {"level": "queue", "type": ALL_TYPES, **filters},
        )
        rows = shown.rows
        if shown.run is not None and shown.run.headline is not None and "method" not in filters:
            rows = rows.filter(pc.equal(rows.column("method"), shown.run.headline))
        keys = rows.select(["confirmed", "deviation", "name"]).to_pylist()
        order = sorted(range(len(keys)), key=lambda number: verdict_order(keys[number]))
        return Answer(rows.take(pa.array(order, pa.int64())), run=shown.run)

    def open(self, states: Names | None = None, *, level: Names | None = None) -> Answer:
        """Return open flags, one row per name; ``states``: others than open and acknowledged.

        ``level``: default: queues and CPU models; the flags of a site are those of its queues together.
        """
        from esjobs.flags.overview import open_flags

        chosen = STANDING_OPEN if states is None else listed(states)
        named = spelling.as_stored("unknown state", chosen, STATES)
        levels = values_of("level", level) or NAMED_LEVELS
        return Answer(open_flags(self._context.store, named, levels))

    def events(
        self, name: str, *, level: Names | None = None, processing_type: Names | None = None
    ) -> Answer:
        """Return all events of the flags of a name, oldest first."""
        from esjobs.flags.overview import flag_history

        levels, kinds = values_of("level", level), values_of("processing_type", processing_type)
        return Answer(flag_history(self._context.store, name, levels, kinds))

    @writes
    def update(self, night: date | str | None = None) -> RunReport:
        """Bring the states of flags up to a night; None: the night of the latest run.

        Idempotent: an update repeated for a night gives the same rows. Raises :class:`NoResultError` when no
        complete unrestricted run ends with the night.
        """
        from esjobs.flags.nights import watch

        requested = None if night is None else day_of(night)
        return watch(self._context.store, requested, self._watch, self._headline)

    @writes
    def acknowledge(
        self,
        name: str,
        *,
        until: date | str,
        by: str,
        note: str = "",
        level: str | None = None,
        processing_type: str | None = None,
    ) -> RunReport:
        """Silence the open flags of a name until a night; then they are open again.

        ``processing_type``: only those of one type. Raises :class:`NoResultError` when nothing of the name is
        open, :class:`UsageError` for a day that has passed.
        """
        from esjobs.flags.notes import acknowledge

        return acknowledge(
            self._context.store,
            name,
            self._watch,
            self._headline,
            until=day_of(until),
            by=by,
            text=note,
            level=level,
            processing_type=processing_type,
            now=self._context.clock(),
        )

    @writes
    def answer(
        self,
        name: str,
        *,
        text: str,
        by: str | None = None,
        level: str | None = None,
        processing_type: str | None = None,
    ) -> RunReport:
        """Record a site's answer about the flags of a name; ``by``: the site unless named."""
        from esjobs.flags.notes import answer

        return answer(
            self._context.store,
            name,
            self._watch,
            self._headline,
            text=text,
            by=by,
            level=level,
            processing_type=processing_type,
            now=self._context.clock(),
        )

    @writes
    def decompose(self, window: WindowLike = None) -> RunReport:
        """Decompose the deviations of a run: CPU mix, SMT, declared value, unexplained rest.

        ``window``: as for :meth:`drift`.
        """
        from esjobs.flags.decomposition.decompose import decompose

        context = self._context
        days = None if window is None else context.days(window)
        return decompose(context.store, context.clock, context.settings, days)

    @writes
    def drift(self, window: WindowLike = None) -> RunReport:
        """Find dates from which queues, sites or CPU models ran faster or slower.

        ``window``: one that was run without restriction; None: that of the latest run. Raises
        :class:`NoResultError` when there is none.
        """
        from esjobs.flags.drift.drift import drift

        context = self._context
        days = None if window is None else context.days(window)
        return drift(context.store, context.clock, context.settings, days)

    @property
    def _watch(self) -> WatchSettings:
        return self._context.settings.section(WatchSettings)

    @property
    def _headline(self) -> int:
        headline: int = self._context.peers["nights.headline"](self._context.settings)
        return headline
