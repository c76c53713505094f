"""One night: its steps in order, each with an account, resumed after an interruption."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from esjobs.core.errors import (
    EsjobsError,
    PublishedError,
    ReadLimitError,
    SchemaError,
    StoreBusyError,
    StoreError,
)
from esjobs.core.query import Days
from esjobs.core.version import __version__
from esjobs.publish.publication import read_table
from esjobs.records.context import Context
from esjobs.records.night import NightAccount, NightStep, NightWork, Schedule
from esjobs.records.tasks.memory import release_memory
from esjobs.schema.jobs import DAYS
from esjobs.speed.night import question_of
from esjobs.store.base import Work
from scheduler.backfill import covered_since
from scheduler.files import lacking
from scheduler.ledger import Ledger, Row
from scheduler.retry_policy import REAL_TIME, RetryPolicy
from scheduler.settings import NightsSettings
from scheduler.windows import headline_of, windows_of

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

# Reason of a night that ran and counts as missing; the files that it lacks follow
NO_JOBS = "no jobs ended on this day"


class NightRunner:
    """Runner of nights over a store, step by step. ``alive`` is called between steps: it renews the lease,
    and raises if another process has taken it.
    """

    def __init__(
        self,
        context: Context,
        steps: Sequence[NightStep],
        *,
        alive: Callable[[], None] = lambda: None,
        retry: RetryPolicy = REAL_TIME,
    ) -> None:
        self.context = context
        self.steps = steps
        self.alive = alive
        self.retry = retry
        self.ledger = Ledger(context.store, context.clock)
        self.prepared: set[date] = set()

    def prepare(self, night: date) -> None:
        """Run the steps that may bring late records. A failure repeats in :meth:`run`, which reports it."""
        if any(step.first for step in self.steps):
            _Attempt(self, night).prepare()
            self.prepared.add(night)

    def run(self, night: date, *, again: bool = False) -> Row:
        """Run the steps of a night that are not done or whose inputs changed; return its account.

        ``again``: every step. A failed step fails the night, with the reason in the ledger; steps that do not
        need its result are run. Raises :class:`StoreError` only if not even that can be written,
        :class:`StoreBusyError` if another process runs nights.
        """
        return _Attempt(self, night, again=again).run()

    def note_failure(self, night: date, reason: str) -> Row:
        """Write a failed account of a night afterwards, notify, and return it."""
        return _Attempt(self, night).note_failure(reason)


class _Attempt:
    def __init__(self, runner: NightRunner, night: date, *, again: bool = False) -> None:
        context = runner.context
        self._begun = night in runner.prepared
        self._settings = settings = context.settings.section(NightsSettings)
        schedule = Schedule(settings.windows, settings.headline, settings.late_days)
        self._work = NightWork(context, night, schedule)
        self._steps = runner.steps
        self._ledger = runner.ledger
        self._alive = runner.alive
        self._retry = runner.retry
        self._again = again
        self._began = self._retry.timer()
        self._deadline = self._retry.deadline(settings)
        self._row: Row = {}
        self._earlier: dict[str, Row] = {}
        self._accounts: dict[str, Row] = {}
        self._n_done = 0
        self._failures: dict[str, list[str]] = {}  # steps by reason
        self._lacking: set[str] = set()  # steps without a result that others need
        self._left_out: list[str] = []

    def run(self) -> Row:
        self._begin()
        try:
            self._run_steps()
        except Exception as error:
            self._fail(self._reason(self._text_of(error)))
        return self._row

    def prepare(self) -> None:
        self._begin()
        try:
            for position, step in enumerate(self._steps, 1):
                if step.first:
                    self._do(position, step.name, step, self._work)
        except EsjobsError as error:
            _log.warning("night %s: %s", self._work.night, error)

    def note_failure(self, reason: str) -> Row:
        self._begin()
        self._fail(reason)
        return self._row

    def _begin(self) -> None:
        night = self._work.night
        before = self._patiently(lambda: self._ledger.night(night)) or {}
        self._earlier = {row["step"]: row for row in self._patiently(lambda: self._ledger.steps(night))}
        self._accounts = {
            name: row for name, row in self._earlier.items() if not self._again and row["state"] == "done"
        }
        self._row = {
            **before,
            "night": night,
            "state": "running",
            "reason": None,
            "backfill": before.get("backfill"),
            # steps done beforehand, by prepare(), are of the same attempt
            "attempt": (before.get("attempt") or 0) + (not self._begun),
            "began": self._work.clock(),
            "finished": None,
            "seconds": None,
            "program_version": __version__,
        }
        self._write()

    def _run_steps(self) -> None:
        idle = False
        for position, (name, step, work) in enumerate(self._planned(), 1):
            if idle and not step.idle:
                continue
            if self._lacks(step):
                self._lacking.add(step.name)
                self._left_out.append(name)
                continue
            if step.after_failure and self._failures:
                self._end("failed", self._reason())  # the step reports the account, so it must be final
            done = self._do(position, name, step, work)
            # only after aggregation it is certain whether the day has jobs, late ones included
            if done and step.name == "aggregate":
                idle = not self._look_at_day()
            if step.name == "backfill":
                self._choose_windows()
        self._close(idle=idle)

    def _close(self, *, idle: bool) -> None:
        self._row["steps_done"] = self._n_done
        # runs were named before the fits; windows without enough jobs got none
        if self._work.unfitted:
            fitted = [window for window in self._work.windows if window not in self._work.unfitted]
            self._row["runs"] = ",".join(question_of(self._work, window).run for window in fitted) or None
        if self._failures:
            self._end("failed", self._reason())
        else:
            self._end("missing" if idle else "done", why_missing(self._work) if idle else None)

    def _planned(self) -> Iterator[tuple[str, NightStep, NightWork]]:
        """Yield the steps by name in the ledger; those per window once for each, headline first."""
        for step in self._steps:
            if not step.per_window or self._lacks(step):
                yield step.name, step, self._work
                continue
            for window in sorted(self._work.windows, key=lambda each: each != self._work.headline):
                yield f"{step.name} {window.days}d", step, replace(self._work, window=window)

    def _lacks(self, step: NightStep) -> bool:
        """True if the result of a step that this one needs is lacking."""
        return not self._lacking.isdisjoint(step.needs)

    def _do(self, position: int, name: str, step: NightStep, work: NightWork) -> bool:
        """Do a step unless it is done with the same inputs; return False if it failed."""
        self._alive()
        began, processor, work_before = self._retry.timer(), self._retry.processor(), work.store.work()
        attempt = self._row["attempt"]
        account: Row = {"night": work.night, "step": name, "position": position, "attempt": attempt}
        account["inputs"] = None
        try:
            off = step.off(work)
            account["inputs"] = "left out" if off else self._patiently(lambda: step.inputs(work))
            if self._stands(name, step, work, account["inputs"]):
                self._accounts[name] = {**self._earlier[name], "position": position}
                return True
            _log.info("night %s: %s", work.night, name)
            done = NightAccount(notes=off) if off else self._patiently(lambda: step.function(work))
        except Exception as error:
            reason = self._text_of(error)
            outcome: Row = {"state": "failed", "reason": reason}
            self._note_step_failure(name, step, work, reason)
        else:
            notes = "; ".join(done.notes) or None
            outcome = {"state": "done", "rows_in": done.rows_in, "rows_out": done.rows_out, "notes": notes}
            self._row |= done.counts
            self._n_done += 1
        account |= {"seconds": self._retry.timer() - began, "finished": work.clock()}
        account |= work_columns(work.store.work() - work_before, self._retry.processor() - processor)
        release_memory()
        self._accounts[name] = account | outcome
        self._write()
        return bool(outcome["state"] == "done")

    def _stands(self, name: str, step: NightStep, work: NightWork, inputs: str | None) -> bool:
        """True if a step is done with these inputs, and its results are stored."""
        earlier = self._earlier.get(name)
        # a step without inputs has external ones, such as pending mail: it runs every time
        if self._again or inputs is None or earlier is None:
            return False
        if earlier["state"] != "done" or earlier["inputs"] != inputs:
            return False
        # results may have been pruned or removed since
        return self._patiently(lambda: step.stands(work))

    def _note_step_failure(self, name: str, step: NightStep, work: NightWork, reason: str) -> None:
        _log.error("night %s: %s failed: %s", work.night, name, reason)
        self._failures.setdefault(reason, []).append(name)
        window, headline = work.window, work.headline
        # verdicts rest on the headline and on shorter windows; longer ones stand alone
        if window is None or headline is None or window.days <= headline.days:
            self._lacking.add(step.name)

    def _reason(self, end: str = "") -> str:
        """Return the reason of a failed night: its failed steps, equal reasons once, and what ended it."""
        texts = [f"{', '.join(names)} failed: {reason}" for reason, names in self._failures.items()]
        if self._left_out:
            texts.append(f"skipped: {', '.join(self._left_out)}")
        return "; ".join([*texts, *([end] if end else [])])

    def _text_of(self, error: Exception) -> str:
        """Return the text of an error of ours; log a defect and return its kind alone."""
        if isinstance(error, EsjobsError):
            return str(error)
        # the ledger is mailed and shown; the text of a foreign exception may contain anything
        _log.error("night %s: internal error", self._work.night, exc_info=error)
        return f"internal error in esjobs ({type(error).__name__}); see the log and report it"

    def _look_at_day(self) -> bool:
        """Add the jobs of the day to the account; return False without jobs."""
        work = self._work
        day = [Days("day", work.night, work.night)]
        columns = ["n_in", "n_used", "n_dropped"]
        rows = self._patiently(lambda: read_table(work.store, DAYS, day, columns)).to_pylist()
        n_in, n_used, n_dropped = (sum(row[name] for row in rows) for name in columns)
        self._row |= {"jobs": n_in, "jobs_used": n_used, "jobs_dropped": n_dropped}
        self._row |= {"windows": None, "runs": None}
        return bool(n_in)

    def _choose_windows(self) -> None:
        """Choose the windows whose days have buckets: only after the backfill that is certain."""
        work = self._work
        first = self._patiently(work.store.span).first
        covered = self._patiently(lambda: covered_since(work))
        first_day = first.date() if first else work.night
        windows = windows_of(work.night, work.schedule.windows, first_day, covered)
        headline = headline_of(windows, work.schedule.headline)
        self._work = work = replace(work, windows=windows, headline=headline)
        self._row["windows"] = ",".join(f"{window.days}d" for window in windows)
        self._row["runs"] = ",".join(question_of(work, window).run for window in windows)

    def _fail(self, reason: str) -> None:
        night = self._work.night
        _log.error("night %s failed: %s", night, reason)
        try:
            self._end("failed", reason)
        except StoreBusyError:
            raise
        except StoreError as error:
            # the first failure has to be repaired; the second is often its consequence
            also = "" if str(error) in reason else f"; the failure could not be recorded: {error}"
            raise StoreError(f"night {night} failed: {reason}{also}") from error
        for step in self._steps:
            name = step.name
            if step.after_failure and self._accounts.get(name, {}).get("state") != "failed":
                position = max((row["position"] for row in self._accounts.values()), default=0) + 1
                try:
                    self._do(position, name, step, self._work)
                except EsjobsError as error:
                    _log.warning("night %s: %s after the failure: %s", self._work.night, name, error)

    def _end(self, state: str, reason: str | None) -> None:
        self._row |= {
            "state": state,
            "reason": reason,
            "seconds": self._retry.timer() - self._began,
            "finished": self._work.clock(),
        }
        self._write()
        self._patiently(self._ledger.tidy)

    def _write(self) -> None:
        order = sorted(self._accounts.values(), key=lambda row: row["position"])
        self._patiently(lambda: self._ledger.write(self._row, order))

    def _patiently(self, ask: Callable[[], _Answer]) -> _Answer:
        is_file = self._work.settings.location.startswith("duckdb:")

        def may_pass(error: Exception) -> bool:
            # trouble of a cluster may end by itself, unless an operator must fix it
            return not is_file and not isinstance(error, SchemaError | PublishedError | ReadLimitError)

        prefix = f"night {self._work.night}: "
        return self._retry.until_answered(ask, may_pass, self._deadline, self._settings, prefix)


def work_columns(work: Work, processor_s: float) -> Row:
    """Return the columns of ``night_steps`` that say what a step cost."""
    n_requests = sum(work.requests.values())
    return {
        "processor_s": processor_s + work.server_s,
        "documents_read": work.jobs_read,
        "documents_written": work.rows_written,
        "bytes_written": work.bytes_written,
        "documents_deleted": work.rows_deleted,
        "requests": n_requests,
        "requests_failed": n_requests - work.requests.get("200", 0),
    }


def why_missing(work: NightWork) -> str:
    """Return the reason why a night that ran is missing: no jobs, perhaps because a file did not come."""
    absent = lacking(work.settings.section(NightsSettings).ingest, work.night)
    return "; ".join([NO_JOBS, *(f"file not found: {name}" for name in absent)])


def succeeded(rows: Sequence[Mapping[str, Any]]) -> bool:
    """True if none of these nights failed."""
    return all(row["state"] != "failed" for row in rows)
