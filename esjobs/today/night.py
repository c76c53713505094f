"""Daily watch as a step of the nightly run."""

from esjobs.core.errors import ReadLimitError
from esjobs.records.night import NightAccount, NightStep, NightWork
from esjobs.today.nights import update
from esjobs.today.settings import TodaySettings


def today_night(work: NightWork) -> NightAccount:
    """Judge the night, and later nights that are done again."""
    try:
        report = update(work.store, work.night, work.settings.section(TodaySettings))
    except ReadLimitError as error:
        # an archive of others that the cluster cannot sum up: its fits do not depend on this
        return NightAccount(notes=(f"not judged: {error}",))
    counts = tuple(f"{count} {name}" for name, count in report.counts.items())
    return NightAccount(report.rows_in, report.rows_out, (*counts, *report.notes))


def _off(work: NightWork) -> tuple[str, ...]:
    nightly = work.settings.section(TodaySettings).nightly
    return () if nightly else ("disabled: [today] nightly = false",)


TODAY = NightStep("today", today_night, off=_off)
