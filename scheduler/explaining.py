"""Drift of the factors and reasons of deviations, from the run of the headline window."""

from esjobs.flags.decomposition.reasons import reasons
from esjobs.flags.drift.drift import drift
from scheduler.work import NightAccount, NightWork


def drift_night(work: NightWork) -> NightAccount:
    """Factors of the days that lack them, and changes in the days up to the night."""
    report = drift(work.store, work.clock, work.settings, work.headline)
    return NightAccount(report.rows_in, report.rows_out, report.notes)


def reasons_night(work: NightWork) -> NightAccount:
    """The deviations of the queues of the headline window taken apart."""
    report = reasons(work.store, work.clock, work.settings, work.headline)
    return NightAccount(report.rows_in, report.rows_out, report.notes)
