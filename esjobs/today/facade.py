"""Incidents of sites in a session: ``s.flags.today``."""

from datetime import date

from esjobs.core.arguments import WindowLike, day_of, window_of
from esjobs.core.query import Days, In
from esjobs.core.report import RunReport
from esjobs.publish.publication import read_table
from esjobs.records.answer import Answer
from esjobs.records.context import Facade
from esjobs.schema.today import INCIDENT_NIGHTS, INCIDENTS, TODAY_DAYS
from esjobs.store.checks import writes
from esjobs.today.settings import TodaySettings


class Today(Facade):
    """Incidents: what is wrong today, since when, at what cost, and why."""

    def incidents(self, night: date | str | None = None) -> Answer:
        """Return the incidents of a night (None: the last one), open ones first, by cost."""
        from esjobs.today.overview import listed, notes_of

        store = self._context.store
        if night is None:
            rows = read_table(store, INCIDENTS)
        else:
            rows = read_table(store, INCIDENT_NIGHTS, [Days("night", day_of(night), day_of(night))])
        day = None if night is None else day_of(night)
        return Answer(listed(rows), notes_of(store, day), title="incidents")

    def days(self, site: str) -> Answer:
        """Return the judged days of a site: observed and expected, oldest first."""
        rows = read_table(self._context.store, TODAY_DAYS, [In("site", (site,))])
        return Answer(rows.sort_by([("day", "ascending"), ("metric", "ascending")]))

    def incident(self, site: str, *, window: WindowLike = None) -> Answer:
        """Return the cost of an incident at a site, one row; window None: that of the watch, open or newest.

        See :func:`esjobs.today.incident.incident`.
        """
        from esjobs.today.incident import incident

        return incident(self._context.store, site, window_of(window, self._context.clock))

    @writes
    def update(self, night: date | str | None = None) -> RunReport:
        """Judge the sites on a night (None: the last day with jobs), and nights before it that were not."""
        from esjobs.today.nights import update

        context = self._context
        requested = None if night is None else day_of(night)
        return update(context.store, requested, context.settings.section(TodaySettings))

    @writes
    def update_running_day(self) -> RunReport:
        """Judge the sites on the day that is not over, as far as its jobs are there; the night does so again.

        Without jobs of that day nothing changes.
        """
        from esjobs.today.nights import update

        context = self._context
        settings = context.settings.section(TodaySettings)
        return update(context.store, context.clock().date(), settings, partial=True)

    @writes
    def acknowledge(self, site: str, *, until: date | str, by: str, note: str = "") -> RunReport:
        """Silence the open incident of a site until a night; then it is reported again.

        Raises :class:`NoResultError` when nothing of the site is open.
        """
        from esjobs.today.nights import update
        from esjobs.today.overview import acknowledge
        from esjobs.today.so_far import running_days

        context = self._context
        report = acknowledge(context.store, site, until=day_of(until), by=by, text=note, now=context.clock())
        night = day_of(report.window or "")
        partial = night in running_days(context.store)
        update(context.store, night, context.settings.section(TodaySettings), partial=partial)
        return report
