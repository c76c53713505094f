"""Scores of jobs, measured and, where it is asked for, predicted, as a step of the night."""

from esjobs.core.errors import NoJobsError, NoResultError
from esjobs.core.identity import content_id
from esjobs.core.window import Window
from esjobs.scores.step import score_digest, score_window
from esjobs.similar.prediction import predict
from scheduler.aggregating import aggregated_days
from scheduler.work import NightAccount, NightWork


def score_night(work: NightWork) -> NightAccount:
    """Score the jobs of the night, and of the days before it that changed since they were scored.

    With ``[similar] nightly`` the scores that they lack are predicted after it, whoever has made the others.
    """
    window = aggregated_days(work)
    account = _scored(work, window)
    if not work.settings.similar.nightly:
        return account
    return NightAccount(account.rows_in, account.rows_out, (*account.notes, *_predicted(work, window)))


def score_inputs(work: NightWork) -> str:
    """A digest of the jobs of these days, of what was detected of them, and of how scores are made."""
    nightly, similar = work.settings.efficiency.nightly, work.settings.similar
    digest = score_digest(work.store, aggregated_days(work), work.settings) if nightly else "left out"
    return content_id({"scores": digest, **similar.model_dump()}) if similar.nightly else digest


def _scored(work: NightWork, window: Window) -> NightAccount:
    if not work.settings.efficiency.nightly:
        return NightAccount(notes=("left out: [efficiency] nightly = false",))
    try:
        report = score_window(work.store, window, work.settings)
    except NoJobsError:
        return NightAccount(notes=(f"no jobs in {window}",))
    return NightAccount(report.rows_in, report.rows_out, (f"days {window}", *report.notes))


def _predicted(work: NightWork, window: Window) -> tuple[str, ...]:
    """Predict, and what a reader of the ledger should know of it."""
    try:
        report = predict(work.store, window, work.settings.similar)
    except NoResultError as error:
        return (f"no score is predicted: {error}",)
    return (f"{report.rows_out:,} of {report.rows_in:,} missing scores predicted", *report.notes)
