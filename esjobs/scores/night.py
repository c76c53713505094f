"""Scores of jobs, measured and, where the settings say so, predicted, as a step of the night."""

from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.window import Window
from esjobs.records.night import NightAccount, NightStep, NightWork, aggregated_days
from esjobs.scores.settings import EfficiencySettings
from esjobs.scores.step import score_digest, score_window


def score_night(work: NightWork) -> NightAccount:
    """Score the jobs of the night, and of the days before it that changed since they were scored.

    With ``[similar] nightly`` the scores that they lack are predicted after it, whoever has made the others.
    """
    window = aggregated_days(work)
    account = _scored(work, window)
    predicted: tuple[str, ...] = work.context.peers["similar.predict_nightly"](work.context, window)
    return NightAccount(account.rows_in, account.rows_out, (*account.notes, *predicted))


def score_inputs(work: NightWork) -> str:
    """A digest of the jobs of these days, of what was detected of them, and of how scores are made."""
    nightly = work.settings.section(EfficiencySettings).nightly
    digest = score_digest(work.store, aggregated_days(work), work.settings) if nightly else "left out"
    predicted = work.context.peers["similar.nightly_inputs"](work.context)
    return content_id({"scores": digest, **predicted}) if predicted else digest


def _scored(work: NightWork, window: Window) -> NightAccount:
    if not work.settings.section(EfficiencySettings).nightly:
        return NightAccount(notes=("left out: [scores] nightly = false",))
    try:
        report = score_window(work.store, window, work.settings)
    except NoJobsError:
        return NightAccount(notes=(f"no jobs in {window}",))
    return NightAccount(report.rows_in, report.rows_out, (f"days {window}", *report.notes))


SCORE = NightStep("score", score_night, inputs=score_inputs)
