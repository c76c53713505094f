"""Prediction of the scores that the jobs of a night lack; part of the step that scores them."""

from typing import Any

from esjobs.core.errors import NoResultError
from esjobs.core.window import Window
from esjobs.records.context import Context
from esjobs.similar.prediction import predict
from esjobs.similar.settings import SimilarSettings


def nightly_inputs(context: Context) -> dict[str, Any]:
    """Settings that decide what is predicted; empty where nights predict nothing."""
    settings = context.settings.section(SimilarSettings)
    return settings.model_dump() if settings.nightly else {}


def predict_nightly(context: Context, window: Window) -> tuple[str, ...]:
    """Predict missing scores of a window where nights do so; notes for readers of the ledger."""
    settings = context.settings.section(SimilarSettings)
    if not settings.nightly:
        return ()
    try:
        report = predict(context.store, window, settings)
    except NoResultError as error:
        return (f"no score is predicted: {error}",)
    return (f"{report.rows_out:,} of {report.rows_in:,} missing scores predicted", *report.notes)
