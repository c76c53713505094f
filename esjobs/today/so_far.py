"""Days that are not over: which were judged, and the part of their jobs that usually is there at an hour."""

from datetime import date, timedelta

import numpy as np

from esjobs.core.keys import TimePart
from esjobs.core.query import Count, In, Query
from esjobs.core.states import FAILED, FINISHED
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.names.sites import Sites
from esjobs.schema.today import EVERYWHERE, TODAY_DAYS
from esjobs.store.base import JobStore
from esjobs.store.merge import plain

DAYS = 7  # Days before, whose hours say how many jobs to expect by now
SOFT = 50.0  # Jobs that the hours of all sites weigh at one


def usual_parts(store: JobStore, sites: Sites) -> dict[str, float]:
    """Return by site the usual part of a day's jobs that end before the hour of the last stored job.

    Empty without jobs before. Cost: one grouped query to the jobs of a week.
    """
    last = store.span().last
    if last is None:
        return {}
    window = Window.of_days(last.date() - timedelta(days=DAYS), last.date() - timedelta(days=1))
    ended = (In("state", (*FINISHED, *FAILED)),)
    query = Query(
        ("queue", "hour"), (Count("n"),), window, ended, made=(TimePart("hour", "hour"),), books=False
    )
    jobs: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    for row in plain(store.aggregate(query).table).to_pylist():
        of_site = jobs.setdefault(sites.of(row["queue"] or "").name, np.zeros(2))
        of_site += np.array([row["hour"] < last.hour, True]) * row["n"]
    before, every = sum(jobs.values(), np.zeros(2))
    common = before / max(every, 1.0)
    return {site: float((n[0] + SOFT * common) / (n[1] + SOFT)) for site, n in jobs.items()}


def running_days(store: JobStore) -> set[date]:
    """Return the days that were judged before they were over."""
    rows = read_table(store, TODAY_DAYS, [In("site", (EVERYWHERE,))], ["day", "partial"]).to_pylist()
    return {row["day"] for row in rows if row["partial"]}
