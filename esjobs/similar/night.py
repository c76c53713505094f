"""Prediction of missing scores as part of the nightly score step."""

from typing import Any

from esjobs.core.errors import NoResultError
from esjobs.core.window import Window
from esjobs.records.context import Context
from esjobs.similar.prediction import predict
from esjobs.similar.settings import SimilarSettings


def nightly_inputs(context: Context) -> dict[str, Any]:
    """Return the settings of predictions; empty if disabled."""
    settings = context.settings.section(SimilarSettings)
    return settings.model_dump() if settings.nightly else {}


def predict_nightly(context: Context, window: Window) -> tuple[str, ...]:
    """Predict missing scores of a window if enabled; return notes."""
    settings = context.settings.section(SimilarSettings)
    if not settings.nightly:
        return ()
    try:
        report = predict(context.store, window, settings)
    except NoResultError as error:
        return (f"no score predicted: {error}",)
    return (f"{report.rows_out:,} of {report.rows_in:,} missing scores predicted", *report.notes)
