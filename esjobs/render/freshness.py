"""Age of a stored run: its newest day with jobs, what its fit and the nights since allow."""

from datetime import UTC, datetime, time

from esjobs.core.freshness import LIGHTS, OF_DEMO, Freshness
from esjobs.core.query import In
from esjobs.core.words import ALL_TYPES
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.schema.declared import COREPOWER
from esjobs.schema.nights import NIGHTS
from esjobs.schema.speed import FITS
from esjobs.store.base import JobStore


def freshness_of(store: JobStore, run: StoredRun, now: datetime | None) -> Freshness:
    """Age of a run of speed factors at a time; None: pages tell it when somebody looks."""
    of_demo = read_table(store, COREPOWER, [In("source", (OF_DEMO,))], ("source",))
    return Freshness(run.reach, now, _best(store, run), of_demo.num_rows > 0)


def _best(store: JobStore, run: StoredRun) -> str:
    """The answer that the fit of all queues and the nights since the newest day with jobs allow."""
    where = [In("run", (run.run,)), In("level", ("queue",)), In("method", (run.headline or "",))]
    fits = read_table(store, FITS, [*where, In("processing_type", (ALL_TYPES,))]).to_pylist()
    if not fits or fits[0]["status"] != "ok":
        return LIGHTS[2]
    nights = read_table(store, NIGHTS, [In("state", ("failed",))], ("night", "state")).to_pylist()
    failed = any(datetime.combine(row["night"], time(), UTC) >= run.reach for row in nights)
    return LIGHTS[1] if failed or fits[0]["minuit_valid"] is False else LIGHTS[0]
