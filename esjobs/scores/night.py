"""Nightly step: measured scores and, if enabled, predicted ones."""

from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.window import Window
from esjobs.records.night import NightAccount, NightStep, NightWork, aggregated_days, left_out
from esjobs.scores.score import score, score_digest
from esjobs.scores.settings import EfficiencySettings


def score_night(work: NightWork) -> NightAccount:
    """Score jobs of the night, and of earlier days that changed; then predict missing scores if enabled."""
    window = aggregated_days(work)
    account = _scored(work, window)
    predicted: tuple[str, ...] = work.context.peers["similar.predict_nightly"](work.context, window)
    return NightAccount(account.rows_in, account.rows_out, (*account.notes, *predicted))


def score_inputs(work: NightWork) -> str:
    """Return a digest of jobs, issues and score settings of the night's days."""
    out = _left_out(work)
    digest = "left out" if out else score_digest(work.store, aggregated_days(work), work.settings)
    predicted = work.context.peers["similar.nightly_inputs"](work.context)
    return content_id({"scores": digest, **predicted}) if predicted else digest


def _scored(work: NightWork, window: Window) -> NightAccount:
    if notes := _left_out(work):
        return NightAccount(notes=notes)
    try:
        report = score(work.store, window, work.settings)
    except NoJobsError:
        return NightAccount(notes=(f"no jobs in {window}",))
    return NightAccount(report.rows_in, report.rows_out, (f"days {window}", *report.notes))


def _left_out(work: NightWork) -> tuple[str, ...]:
    return left_out(work, work.settings.section(EfficiencySettings).nightly, "scores")


SCORE = NightStep("score", score_night, inputs=score_inputs)
