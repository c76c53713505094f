"""Parallel efficiency in a session: ``s.pop``."""

from collections.abc import Sequence

from esjobs.core.report import RunReport
from esjobs.pop.reports import gather_reports, join_reports
from esjobs.records.context import Facade
from esjobs.store.checks import writes


class Pop(Facade):
    """POP metrics of jobs, from reports of TALP."""

    @writes
    def gather(
        self, spools: Sequence[str] = (), *, source: str | None = None, join: bool = True
    ) -> RunReport:
        """Collect finished reports from spool folders (default: those of the settings), then join them.

        ``source``: source of the job records, for named spools. Raises :class:`UsageError` without a spool,
        :class:`InputError` if none can be read.
        """
        report = gather_reports(self._context, spools, source)
        return self._context.ingested(report) if join else report

    @writes
    def join(self, *, rebuild: bool = False) -> RunReport:
        """Match reports with job records: tables ``pop``, ``orphans``, ``scaling``.

        An ingest joins automatically. ``rebuild``: all days, also those whose records changed.
        """
        return join_reports(self._context, rebuild=rebuild)
