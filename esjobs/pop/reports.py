"""Reports of TALP in a session: collected from spools, joined with job records."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.pop.gathering import gather
from esjobs.pop.joining import is_used, join
from esjobs.pop.settings import TalpSettings, spools_of
from esjobs.records.context import Context
from esjobs.records.ingest.formats.talp import Talp
from esjobs.records.jobs.ingest import ingest


def gather_reports(context: Context, spools: Sequence[str] = (), source: str | None = None) -> RunReport:
    """Collect finished reports from spools, by default those of the settings.

    ``source``: source of the job records, for named spools. Raises :class:`UsageError` without a spool,
    :class:`InputError` if none can be read.
    """
    settings = context.settings.section(TalpSettings)
    chosen = spools_of(spools, source) if spools else settings.spools
    if not chosen:
        raise UsageError("no spool to gather from; specify a folder, or set pop.spools")

    def put(files: Sequence[Path], of_source: str | None) -> RunReport:
        fill = {} if of_source is None else {"source": of_source}
        return ingest(lambda: context.store, Talp(), list(files), fill, now=context.clock())

    return gather(context.store, settings, chosen, put, context.clock().timestamp())


def join_reports(context: Context, *, rebuild: bool = False) -> RunReport:
    """Join reports with job records; ``rebuild``: of all days."""
    significance, smallest = context.peers["drift.limits"](context.settings)
    return join(context.store, rebuild=rebuild, significance=significance, smallest=smallest)


def joined(context: Context, report: RunReport) -> RunReport:
    """Return the report of a load, completed by the join if there are TALP reports."""
    if not is_used(context.store):
        return report
    done = join_reports(context)
    if not done.counts["days"]:
        return report
    of_jobs, aside = (done.counts[name] for name in ("reports joined", "reports without a job"))
    note = f"reports of TALP: {of_jobs:,} joined with jobs, {aside:,} without a job"
    return replace(report, notes=(*report.notes, note, *done.notes))
