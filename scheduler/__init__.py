"""Nightly runs: steps in order, ledger, and service."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "nights",
    sections=(("nights", Lazy("scheduler.settings:NightsSettings")),),
    steps=(
        StepEntry("ingest", Lazy("scheduler.files:INGEST")),
        StepEntry("aggregate", Lazy("scheduler.aggregating:AGGREGATE"), after=("ingest", "talp")),
        StepEntry("backfill", Lazy("scheduler.backfill:BACKFILL"), after=("aggregate",)),
        StepEntry("prune", Lazy("scheduler.retention:PRUNE"), after=("notify",)),
    ),
    facade=Lazy("scheduler.nights:Nights"),
    offers={"nights.headline": Lazy("scheduler.settings:headline")},
)
