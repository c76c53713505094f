"""Days of a site as the daily watch judged them, and its incidents in these days."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from esjobs.core.query import Days, In
from esjobs.publish.publication import read_table
from esjobs.schema.today import EFFICIENCY, FAILED, INCIDENT_NIGHTS, LASTING, TODAY_DAYS
from esjobs.store.base import JobStore

DAYS_SHOWN = 42
"""Last judged days of a site on its page."""
METRICS = (EFFICIENCY, FAILED)
"""Metrics of a site that its page shows."""
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
    within = Days("night", days[0]["day"], days[-1]["day"])
    rows = read_table(store, INCIDENT_NIGHTS, [In("site", (site,)), within]).to_pylist()
    newest = {row["incident"]: row for row in sorted(rows, key=lambda row: row["night"])}
    reported = [row for row in newest.values() if row["state"] in (*LASTING, "closed")]
    return sorted(reported, key=lambda row: (row["since"], row["total_core_h"]), reverse=True)


def days_within(incidents: Sequence[Row], last: date) -> set[date]:
    """Return the days of incidents, of one that lasts up to ``last``."""
    return {
        row["since"] + timedelta(days=ahead)
        for row in incidents
        for ahead in range(((row["until"] or last) - row["since"]).days + 1)
    }
