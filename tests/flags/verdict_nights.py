"""Verdicts of nights as runs leave them, without fits: a row of ``flags`` is what a test says it is."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from esjobs import Settings
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.flags.nights import watch
from esjobs.flags.settings import WatchSettings
from esjobs.publish.publication import Outcome, rows_table
from esjobs.publish.publisher import Publisher
from esjobs.publish.question import Question
from esjobs.schema.speed import FLAGS, SPEED
from esjobs.store.base import JobStore

FIRST = date(2025, 1, 1)
SHORT, LONG = 3, 9
"""Lengths of the windows of these nights, in days."""
SETTINGS = WatchSettings(quiet_nights=3, absent_nights=3)


def night(number: int) -> date:
    """A night by its number, from 0."""
    return FIRST + timedelta(days=number)


def folded(events: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], str]:
    """The state of every flag from its events, in any order."""
    ordered = sorted(events, key=lambda row: (row["night"], row["position"]))
    return {(row["level"], row["processing_type"], row["name"]): row["to_state"] for row in ordered}


def verdict(
    name: str, deviation: float | None, *, error: float = 0.02, kind: str = "all", **more: Any
) -> dict[str, Any]:
    """A row of ``flags`` by the rules of verdicts; what deviates is confirmed unless said otherwise."""
    if deviation is None:
        word = "too few"
    else:
        width = 1.645 * error
        size = abs(deviation)
        word = "deviates" if size - width > 0.2 else "ok" if size + width < 0.2 else "undecided"
    return {
        "level": "queue",
        "processing_type": kind,
        "name": name,
        "method": "gamma",
        "site": name,
        "verdict": word,
        "confirmed": None if deviation is None else word == "deviates",
        "deviation": deviation,
        "deviation_err": None if deviation is None else error,
        "corepower": 10.4,
        "benchmark": "HS06",
        "origin": "own",
        "k": 1.0,
        "sentence": f"{name} ran like something.",
        **more,
    }


class VerdictNights:
    """Publishes complete runs of two lengths for nights, with the verdicts that are given."""

    def __init__(self, store: JobStore) -> None:
        seconds = itertools.count()
        self.store = store
        self._publisher = Publisher(store, lambda: datetime(2026, 1, 1, tzinfo=UTC) + _seconds(seconds))

    def publish(
        self, number: int, short: Sequence[Mapping[str, Any]], long: Sequence[Mapping[str, Any]]
    ) -> None:
        """The verdicts of a night, in its short and its long window."""
        for days, rows in ((SHORT, short), (LONG, long)):
            question = question_of(number, days)
            outcomes = [
                Outcome(
                    RunReport(step, question.run, 1, 1, 0.0),
                    {FLAGS: rows_table(FLAGS, rows)} if step == "flag" else {},
                )
                for step in SPEED.steps
            ]
            self._publisher.publish(question, outcomes)

    def replace(
        self, number: int, short: Sequence[Mapping[str, Any]], long: Sequence[Mapping[str, Any]]
    ) -> None:
        """Other verdicts for a night that is there, as after late records."""
        changes = []
        for days, rows in ((SHORT, short), (LONG, long)):
            run = question_of(number, days).run
            table = rows_table(FLAGS, [{**row, "run": run} for row in rows])
            changes.append(self.store.replace(FLAGS, run, table.to_batches()))
        self.store.publish(changes)

    def watch(self, number: int | None = None, **settings: Any) -> Any:
        """Bring the memory of flags up to a night."""
        chosen = SETTINGS.model_copy(update=settings)
        return watch(self.store, None if number is None else night(number), chosen, LONG)


def question_of(number: int, days: int) -> Question:
    """What the run of a night and a length asks."""
    window = Window.of_days(night(number) - timedelta(days=days - 1), night(number))
    return Question.ask(SPEED, window, Settings())


def _seconds(count: "itertools.count[int]") -> timedelta:
    return timedelta(seconds=next(count))
