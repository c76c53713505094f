"""Decomposition of deviations as a step of the nightly run, from the run of the headline window."""

from esjobs.flags.decomposition.decompose import decompose
from esjobs.records.night import NO_FACTORS, NightAccount, NightStep, NightWork, runs_inputs


def decompose_night(work: NightWork) -> NightAccount:
    """Decompose the deviations of the queues of the headline window."""
    if not work.has_factors:
        return NO_FACTORS
    report = decompose(work.store, work.clock, work.settings, work.headline)
    return NightAccount(report.rows_in, report.rows_out, report.notes)


DECOMPOSE = NightStep("decompose", decompose_night, inputs=runs_inputs, needs=("fit",))
