"""Change points of the factors as a step of the nightly run, from the run of the headline window."""

from esjobs.flags.drift.drift import drift
from esjobs.records.night import NO_FACTORS, NightAccount, NightStep, NightWork, runs_inputs


def drift_night(work: NightWork) -> NightAccount:
    """Fit the days that have no factors, and find change points up to the night."""
    if not work.has_factors:
        return NO_FACTORS
    report = drift(work.store, work.clock, work.settings, work.headline)
    return NightAccount(report.rows_in, report.rows_out, report.notes)


DRIFT = NightStep("drift", drift_night, inputs=runs_inputs, needs=("fit",))
