"""The memory of flags, as a step of the night."""

from esjobs.flags.nights import watch
from scheduler.work import NightAccount, NightWork


def watch_night(work: NightWork) -> NightAccount:
    """Bring states and events of flags up to the night, and on through those after it that are done."""
    report = watch(work.store, work.night, work.settings.watch, work.settings.nights.headline)
    told = tuple(f"{count} {name}" for name, count in report.counts.items())
    return NightAccount(report.rows_in, report.rows_out, (*told, *report.notes))
