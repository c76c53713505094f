"""Parallel efficiency in a session: ``s.pop``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.pop.settings import TalpSettings, spools_of
from esjobs.records.context import Context, Facade
from esjobs.store.checks import writes


class Pop(Facade):
    """POP metrics of jobs, from reports of TALP."""

    @writes
    def gather(
        self, spools: Sequence[str] = (), *, source: str | None = None, join: bool = True
    ) -> RunReport:
        """Collect finished reports from spool folders (default: those of the settings), then join them.

        ``source``: source of the job records, for spools that are named. ``join``: False where :meth:`join`
        follows. Raises :class:`UsageError` without a spool, :class:`InputError` when none can be read.
        """
        from esjobs.pop.gathering import gather
        from esjobs.records.ingest.formats.talp import Talp
        from esjobs.records.jobs.ingest import ingest

        context = self._context
        settings = context.settings.section(TalpSettings)
        chosen = spools_of(spools, source) if spools else settings.spools
        if not chosen:
            raise UsageError("no spool to gather from; name a folder, or set talp.spools in the settings")

        def put(files: Sequence[Path], of_source: str | None) -> RunReport:
            fill = {} if of_source is None else {"source": of_source}
            return ingest(context.opener, Talp(), list(files), fill, now=context.clock())

        report = gather(context.store, settings, chosen, put, context.clock().timestamp())
        return joined_after(context, report) if join else report

    @writes
    def join(self, *, rebuild: bool = False) -> RunReport:
        """Match reports with job records: tables ``pop``, ``orphans``, ``scaling``.

        An ingest joins by itself. ``rebuild``: all days, also where records changed since.
        """
        return _join(self._context, rebuild=rebuild)


def joined_after(context: Context, report: RunReport) -> RunReport:
    """Account of a load, with the reports of TALP that it matched; unchanged where TALP is not used."""
    from esjobs.pop.joining import is_used

    if not is_used(context.store):
        return report
    joined = _join(context)
    if not joined.counts["days"]:
        return report
    of_jobs, aside = (joined.counts[name] for name in ("reports joined", "reports kept aside"))
    note = f"reports of TALP: {of_jobs:,} of known jobs, {aside:,} kept aside"
    return replace(report, notes=(*report.notes, note, *joined.notes))


def _join(context: Context, *, rebuild: bool = False) -> RunReport:
    from esjobs.pop.joining import join

    significance, smallest = context.peers["flags.relevance"](context.settings)
    return join(context.store, rebuild=rebuild, significance=significance, smallest=smallest)
