"""Days of a site as the daily watch judged them, and its incidents in these days."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.query import Days, Filter, In
from esjobs.publish.publication import read_table
from esjobs.schema.today import EFFICIENCY, FAILED, INCIDENT_NIGHTS, REPORTED, TODAY_DAYS
from esjobs.store.base import JobStore

DAYS_SHOWN = 42  # Last judged days of a site on its page
METRICS = (EFFICIENCY, FAILED)  # Metrics of a site that its page shows
_COLUMNS = ("day", "metric", "observed", "expected", "low", "high", "cost_core_h", "partial", "mark")

Row = Mapping[str, Any]


def days_of_site(store: JobStore, site: str, metrics: tuple[str, ...] = METRICS) -> list[Row]:
    """Return metrics of the last judged days of a site, or of all together, oldest first.

    Cost: these numbers of every judged day.
    """
    where = [In("site", (site,)), In("metric", metrics)]
    rows = read_table(store, TODAY_DAYS, where, _COLUMNS).to_pylist()
    if not rows:
        return []
    first = max(row["day"] for row in rows) - timedelta(days=DAYS_SHOWN - 1)
    return sorted((row for row in rows if row["day"] >= first), key=lambda row: (row["day"], row["metric"]))


def incidents_of_site(store: JobStore, site: str, days: Sequence[Row]) -> list[Row]:
    """Return the reported incidents of a site as of their last night within these days, newest first."""
    if not days:
        return []
    newest = newest_incidents(store, days[0]["day"], days[-1]["day"], In("site", (site,))).to_pylist()
    reported = [row for row in newest if row["state"] in REPORTED]
    return sorted(reported, key=lambda row: (row["since"], row["total_core_h"]), reverse=True)


def newest_incidents(store: JobStore, first: date, last: date, *where: Filter) -> pa.Table:
    """Return the incidents of some nights, each as of the last of them."""
    rows = read_table(store, INCIDENT_NIGHTS, [Days("night", first, last), *where])
    newest = {row["incident"]: row for row in sorted(rows.to_pylist(), key=lambda row: row["night"])}
    return pa.Table.from_pylist(list(newest.values()), schema=rows.schema)


def days_within(incidents: Sequence[Row], last: date) -> set[date]:
    """Return the days of incidents, of one that lasts up to ``last``."""
    return {
        row["since"] + timedelta(days=ahead)
        for row in incidents
        for ahead in range(((row["until"] or last) - row["since"]).days + 1)
    }
