"""Publication of the steps of a question with their reports, in one switch."""

import logging
from collections.abc import Sequence

from esjobs.core.arrow import table_schema
from esjobs.core.clock import Clock
from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.publish.account import entry, origin, record, signed
from esjobs.publish.earlier import predecessor, with_before
from esjobs.publish.finding import retired_results
from esjobs.publish.latest import publish
from esjobs.publish.publication import Outcome, tidy
from esjobs.publish.question import Question
from esjobs.publish.stored import StoredRun
from esjobs.store.base import Change, Generation, JobStore

_log = logging.getLogger(__name__)


class Publisher:
    """Publisher of step outcomes; ``clock`` stamps their reports."""

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
        """Write and publish the outcomes, and return all reports.

        ``before``: reports of steps whose results are already published. ``outdated``: steps whose earlier
        results of this run are retired. The latest run changes in the same switch; garbage is collected
        afterwards.
        """
        reported = [*(Outcome(report) for report in before), *outcomes]
        entries = [entry(question, outcome, self._clock()) for outcome in reported]
        changes: list[Change] = [change for outcome in outcomes for change in outcome.written]
        compared = any(table.before for outcome in outcomes for table in outcome.rows)
        # stored with the rows: a comparison must not change when older windows are fitted later
        earlier = predecessor(self._store, question, entries) if compared else None
        for outcome in outcomes:
            changes += self._write(question, outcome, earlier)
        for run in dict.fromkeys(outcome.report.run for outcome in outcomes):
            changes += retired_results(question.kind, run, outdated)
        reports = [outcome.report for outcome in reported]
        for row, report in zip(entries, reports, strict=True):
            changes += record(self._store, row, report)
        # one switch for results, accounts and the pointer to the latest run: readers see all of it or nothing
        publish(self._store, question.kind, changes, entries)
        for report in reports:
            _log.info("%s", report.headline)
        tidy(self._store)
        return reports

    def _write(self, question: Question, outcome: Outcome, earlier: StoredRun | None) -> list[Generation]:
        run = outcome.report.run
        stamp = origin(question, run)
        written = []
        for table, rows in outcome.rows.items():
            if table.partition != "run":
                raise UsageError(
                    f"'{table.name}' is replaced per {table.partition}; write one partition at a time"
                )
            signed_rows = signed(rows.cast(table_schema(table)), stamp)
            if table.before:
                signed_rows = with_before(self._store, table, signed_rows, earlier)
            written.append(self._store.replace(table, run, signed_rows.to_batches()))
        return written
