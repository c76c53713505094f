"""Publishes what the steps of a question made, in one switch, with their reports; alike for every kind."""

import logging
from collections.abc import Sequence

from esjobs.core.clock import Clock
from esjobs.core.report import RunReport
from esjobs.runs.finding import retired_results
from esjobs.runs.publication import Outcome, record, tidy, write
from esjobs.runs.question import Question
from esjobs.store.base import JobStore

_log = logging.getLogger(__name__)


class Publisher:
    """Puts outcomes of steps into a store. ``clock`` stamps their reports."""

    def __init__(self, store: JobStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def publish(
        self,
        question: Question,
        outcomes: Sequence[Outcome],
        *,
        before: Sequence[RunReport] = (),
        outdated: Sequence[str] = (),
    ) -> list[RunReport]:
        """Write and publish the outcomes, and give all reports.

        What an outcome has written already, partition by partition, becomes visible in the same switch as the
        rows of the run. ``before``: reports of steps whose results are published and which themselves are
        not; ``outdated``: the steps whose earlier results of this run no longer hold. Leftovers are swept.
        """
        changes = [change for outcome in outcomes for change in outcome.written]
        changes += [
            change for outcome in outcomes for change in write(self._store, outcome.report.run, outcome)
        ]
        for run in dict.fromkeys(outcome.report.run for outcome in outcomes):
            changes += retired_results(question.kind, run, outdated)
        reports = [*before, *(outcome.report for outcome in outcomes)]
        described = question.describe()
        entries = [
            entry
            for report in reports
            for entry in record(self._store, report, question.window, described, self._clock())
        ]
        self._store.publish([*changes, *entries])
        for report in reports:
            _log.info(
                "%s: %d %s, %d %s, run %s of %s",
                report.step,
                report.rows_in,
                report.rows_are,
                report.rows_out,
                report.rows_become,
                report.run,
                question.window,
            )
        tidy(self._store)
        return reports
