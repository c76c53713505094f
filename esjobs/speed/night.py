"""Fits, lines and verdicts as a step of the nightly run."""

from esjobs.core.errors import NothingToFitError
from esjobs.core.identity import content_id
from esjobs.core.query import Days
from esjobs.core.window import Window
from esjobs.publish.latest import prefer_length
from esjobs.publish.publication import read_table
from esjobs.publish.stored import stored_runs
from esjobs.records.night import NightAccount, NightStep, NightWork
from esjobs.schema.declared import COREPOWER
from esjobs.schema.jobs import DAYS
from esjobs.schema.speed import SPEED
from esjobs.speed.question import SpeedQuestion
from esjobs.speed.settings import FitSettings


def fit_window(work: NightWork) -> NightAccount:
    """Fit, correlate and flag one window, from the existing buckets; published in one switch.

    A window without a job that can be fitted is a note: records of many centres carry no events.
    """
    from esjobs.speed.chain import Chain

    window = _window(work)
    if not work.settings.section(FitSettings).nightly:
        work.unfitted.add(window)
        return NightAccount(notes=("fits are switched off (fit.nightly)",))
    prefer_length(work.store, SPEED, work.schedule.headline)
    try:
        fitted, *_, flagged = Chain(work.store, work.clock).judge(question_of(work, window))
    except NothingToFitError as error:
        work.unfitted.add(window)
        return NightAccount(notes=(str(error),))
    return NightAccount(fitted.rows_in, flagged.rows_out, (f"run {fitted.run}", *flagged.notes))


def fit_inputs(work: NightWork) -> str:
    """Return a digest of buckets, declarations and question of the window; read once a night."""
    window = _window(work)
    if window not in work.fitted_from:
        work.fitted_from[window] = _inputs_of(work, window)
    return work.fitted_from[window]


def _inputs_of(work: NightWork, window: Window) -> str:
    days = read_table(work.store, DAYS, [Days.of_window(window)], ["day", "fingerprint", "rules", "resolver"])
    fingerprints = sorted({tuple(map(str, row.values())) for row in days.to_pylist()})
    declared = [
        {name: str(value) for name, value in row.items()}
        for row in read_table(work.store, COREPOWER).to_pylist()
        if row["valid_from"] is None or row["valid_from"] < window.end
    ]
    declared.sort(key=lambda row: sorted(row.items()))
    return content_id({"run": question_of(work, window).run, "days": fingerprints, "declared": declared})


def fit_stands(work: NightWork) -> bool:
    """True if the run of the window is complete in the store."""
    run = question_of(work, _window(work)).run
    return any(item.complete for item in stored_runs(work.store, SPEED, run))


def question_of(work: NightWork, window: Window) -> SpeedQuestion:
    """Return the question of a night about a window."""
    return SpeedQuestion.ask(SPEED, window, work.settings)


def _window(work: NightWork) -> Window:
    if work.window is None:
        raise ValueError("this step requires a window")
    return work.window


FIT = NightStep("fit", fit_window, inputs=fit_inputs, stands=fit_stands, per_window=True)
