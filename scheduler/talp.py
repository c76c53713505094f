"""Reports of TALP, as a step of the night: gathered from spools, joined with the records of their jobs."""

from datetime import UTC, timedelta

from esjobs.core.errors import InputError
from esjobs.pop.facade import Pop
from esjobs.pop.joining import is_used
from scheduler.work import NightAccount, NightWork


def talp_night(work: NightWork) -> NightAccount:
    """Gather reports where spools are set, then join what waits for the record of its job.

    A spool that cannot be read is counted in the notes and fails no night: its reports stay where they are,
    and are taken when it can be read again. Trouble with the store does, as in every step.
    """
    notes = _gathered(work) if _is_due(work) else ()
    if not is_used(work.store):
        return NightAccount(notes=notes)
    joined = Pop(work.session).join()
    aside = joined.counts["reports kept aside"]
    told = (f"{aside} reports without a job",) if aside else ()
    return NightAccount(joined.rows_in, joined.rows_out, (*notes, *told))


def _gathered(work: NightWork) -> tuple[str, ...]:
    spools = work.settings.talp.spools
    if not spools:
        return ()
    try:
        report = Pop(work.session).gather(join=False)
    except InputError as error:
        return (f"{len(spools)} of {len(spools)} spools not read", str(error))
    failed = report.counts["spools not read"]
    told = (f"{failed} of {len(spools)} spools not read",) if failed else ()
    return (f"{report.counts['gathered']} reports gathered", *told, *report.notes)


def _is_due(work: NightWork) -> bool:
    """Whether it is the newest night: of many that are made up for, one looks into the spools.

    A host that does not answer would be waited for once in each of them.
    """
    return work.night == work.clock().astimezone(UTC).date() - timedelta(days=1)
