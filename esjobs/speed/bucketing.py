"""Aggregation step of the speed factors. It imports no fits: aggregation does not wait for them."""

from esjobs.core.clock import Clock
from esjobs.core.report import RunReport
from esjobs.publish.publication import Outcome
from esjobs.publish.publisher import Publisher
from esjobs.records.jobs.aggregate import Progress, aggregate
from esjobs.speed.question import SpeedQuestion
from esjobs.store.base import JobStore


def make_buckets(
    store: JobStore, question: SpeedQuestion, *, rebuild: bool, progress: Progress | None
) -> Outcome:
    """Make the missing or stale buckets of the question's window, not yet published."""
    return aggregate(
        store, question.window, question.rules, run=question.run, rebuild=rebuild, progress=progress
    )


def publish_buckets(
    store: JobStore, clock: Clock, question: SpeedQuestion, *, rebuild: bool, progress: Progress | None
) -> RunReport:
    """Make missing or stale buckets of the window, and publish them with their balance."""
    outcome = make_buckets(store, question, rebuild=rebuild, progress=progress)
    return Publisher(store, clock).publish(question, [outcome])[0]
