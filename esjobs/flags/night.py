"""Memory of flags as a step of the nightly run."""

from esjobs.flags.nights import watch
from esjobs.flags.settings import WatchSettings
from esjobs.records.night import NO_FACTORS, NightAccount, NightStep, NightWork


def watch_night(work: NightWork) -> NightAccount:
    """Bring states and events of flags up to the night, and through the later nights that are done."""
    if not work.has_factors:
        return NO_FACTORS
    report = watch(work.store, work.night, work.settings.section(WatchSettings), work.schedule.headline)
    counts = tuple(f"{count} {name}" for name, count in report.counts.items())
    return NightAccount(report.rows_in, report.rows_out, (*counts, *report.notes))


WATCH = NightStep("watch", watch_night, needs=("fit",))
