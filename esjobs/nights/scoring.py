"""Scores of jobs, as a step of the night."""

from esjobs.core.errors import NoJobsError
from esjobs.efficiency.step import score_digest, score_window
from esjobs.nights.aggregating import aggregated_days
from esjobs.nights.work import NightAccount, NightWork


def score_night(work: NightWork) -> NightAccount:
    """Score the jobs of the night, and of the days before it that changed since they were scored."""
    if not work.settings.efficiency.nightly:
        return NightAccount(notes=("left out: [efficiency] nightly = false",))
    window = aggregated_days(work)
    try:
        report = score_window(work.store, window, work.settings)
    except NoJobsError:
        return NightAccount(notes=(f"no jobs in {window}",))
    return NightAccount(report.rows_in, report.rows_out, (f"days {window}", *report.notes))


def score_inputs(work: NightWork) -> str:
    """A digest of the jobs of these days, of what was detected of them, and of how scores are made."""
    if not work.settings.efficiency.nightly:
        return "left out"
    return score_digest(work.store, aggregated_days(work), work.settings)
