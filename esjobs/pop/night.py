"""Nightly step: TALP reports collected from spools and joined with job records."""

from datetime import UTC, timedelta

from esjobs.core.errors import InputError
from esjobs.pop.joining import is_used
from esjobs.pop.reports import gather_reports, join_reports
from esjobs.pop.settings import TalpSettings
from esjobs.records.night import NightAccount, NightStep, NightWork


def talp_night(work: NightWork) -> NightAccount:
    """Collect reports if spools are set, then join those that wait for a job record.

    Unreadable spools are noted and do not fail the night; their reports stay.
    """
    # of several overdue nights only the newest reads spools: a host that does not answer would delay each
    is_newest = work.night == work.clock().astimezone(UTC).date() - timedelta(days=1)
    notes = _gathered(work) if is_newest else ()
    if not is_used(work.store):
        return NightAccount(notes=notes)
    joined = join_reports(work.context)
    aside = joined.counts["reports without a job"]
    without_job = (f"{aside} reports without a job",) if aside else ()
    return NightAccount(joined.rows_in, joined.rows_out, (*notes, *without_job))


def _gathered(work: NightWork) -> tuple[str, ...]:
    spools = work.settings.section(TalpSettings).spools
    if not spools:
        return ()
    try:
        report = gather_reports(work.context)
    except InputError as error:
        return (f"{len(spools)} of {len(spools)} spools not read", str(error))
    failed = report.counts["spools not read"]
    unread = (f"{failed} of {len(spools)} spools not read",) if failed else ()
    return (f"{report.counts['gathered']} reports gathered", *unread, *report.notes)


TALP = NightStep("talp", talp_night, needs=(), idle=True)
