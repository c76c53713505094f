"""Decomposition of deviations as a step of the nightly run, from the run of the headline window."""

from esjobs.flags.decomposition.reasons import reasons
from esjobs.records.night import NightAccount, NightStep, NightWork, runs_inputs


def reasons_night(work: NightWork) -> NightAccount:
    """Decompose the deviations of the queues of the headline window."""
    report = reasons(work.store, work.clock, work.settings, work.headline)
    return NightAccount(report.rows_in, report.rows_out, report.notes)


REASONS = NightStep("reasons", reasons_night, inputs=runs_inputs)
