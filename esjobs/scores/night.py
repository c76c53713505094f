"""Nightly step: measured scores and, if enabled, predicted ones."""

from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.window import Window
from esjobs.records.night import NightAccount, NightStep, NightWork, aggregated_days, left_out, with_backfill
from esjobs.scores.score import score, score_digest
from esjobs.scores.settings import EfficiencySettings


def score_night(work: NightWork) -> NightAccount:
    """Score jobs of the night, of earlier days that changed and of the backfill; predict missing scores if
    enabled.
    """
    rows_in = rows_out = 0
    notes: list[str] = []
    for window in with_backfill(work, aggregated_days(work)):
        account = _scored(work, window)
        rows_in, rows_out = rows_in + account.rows_in, rows_out + account.rows_out
        notes += [*account.notes, *work.context.peers["similar.predict_nightly"](work.context, window)]
    return NightAccount(rows_in, rows_out, tuple(dict.fromkeys(notes)))


def score_inputs(work: NightWork) -> str:
    """Return a digest of jobs, issues and score settings of the night's days."""
    out = _left_out(work)
    windows = with_backfill(work, aggregated_days(work))
    digests = [] if out else [score_digest(work.store, window, work.settings) for window in windows]
    digest = content_id({"days": digests})
    # predictions of scores belong to this step: they follow from new scores
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


def _off(work: NightWork) -> tuple[str, ...]:
    """Return why nothing is done; predictions are made without scores, too."""
    return () if work.context.peers["similar.nightly_inputs"](work.context) else _left_out(work)


SCORE = NightStep("score", score_night, inputs=score_inputs, off=_off)
