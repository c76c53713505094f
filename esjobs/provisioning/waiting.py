"""Waiting times, used against requested resources, and losses by failures, from job records."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.states import FAILED
from esjobs.core.window import Window
from esjobs.provisioning.trend import Trend, trend
from esjobs.records.jobs.query import Question, ask
from esjobs.schema.provisioning_names import BY
from esjobs.store.base import JobStore

SIZES = (2, 9, 65, 513)
"""Lower edges of classes of size, in cores."""
SIZE_NAMES: Mapping[str | None, str] = {
    "< 2": "1 core",
    "2 to 9": "2 to 8 cores",
    "9 to 65": "9 to 64 cores",
    "65 to 513": "65 to 512 cores",
    ">= 513": "513 cores or more",
}
SOFTENING_S = 60.0
"""Seconds added to medians before the logarithm: changes among short waits do not matter."""
LEAST_JOBS_A_DAY = 5
"""Jobs of a day required for a point of a trend."""

_LOST = ("failed", "lost_core_h", "lost_share")
_PERCENTILES = ("median:queue_s", "p90:queue_s", "p99:queue_s")

WAITING_SCHEMA = pa.schema(
    [
        *(("name", pa.string()), ("n_jobs", pa.int64()), ("median_s", pa.float64())),
        *(("p90_s", pa.float64()), ("p99_s", pa.float64())),
        *(("change_per_week", pa.float64()), ("change_low", pa.float64()), ("change_high", pa.float64())),
        *(("trend", pa.string()), ("n_days", pa.int64()), ("days_effective", pa.float64())),
    ]
)
USED_SCHEMA = pa.schema(
    [
        *(("name", pa.string()), ("n_jobs", pa.int64()), ("core_h", pa.float64())),
        *(("time_used", pa.float64()), ("memory_used", pa.float64()), ("cores_used", pa.float64())),
    ]
)
LOST_SCHEMA = pa.schema(
    [
        *(("name", pa.string()), ("reason", pa.string()), ("n_jobs", pa.int64())),
        *(("lost_core_h", pa.float64()), ("lost_share", pa.float64()), ("exit_code", pa.string())),
    ]
)


def waiting(store: JobStore, by: str, *, window: Window | None = None, where: Sequence[str] = ()) -> pa.Table:
    """Median, 90 and 99 percentile of the queue time per name, and its trend; longest median first.

    ``n_jobs``: jobs with a queue time. ``change_per_week``: relative change of the daily median (plus a
    minute) per week, 0.1 is 10 % longer, with 95 % interval; ``trend``: growing, shrinking, no change seen,
    or too few days. Raises :class:`NoJobsError` without queue times. Cost: two queries.
    """
    # without it jobs of unknown waiting time would count in n_jobs
    has_share = (*where, "queue_s is present")
    rows = _rows(store, by, ("jobs", *_PERCENTILES), has_share, window)
    daily = _rows(store, by, ("jobs", _PERCENTILES[0]), has_share, window, also=("day",))
    days: dict[str | None, list[Mapping[str, Any]]] = {}
    for row in daily:
        if row["jobs"] >= LEAST_JOBS_A_DAY:
            days.setdefault(row["name"], []).append(row)
    listed = [_waiting_row(row, days.get(row["name"], [])) for row in rows]
    listed.sort(key=lambda row: (-row["median_s"], row["name"] or ""))
    return pa.Table.from_pylist(listed, WAITING_SCHEMA)


def _waiting_row(row: Mapping[str, Any], days: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # on logarithms: from 1 to 2 h is the same growth as from 10 to 20 h, and one bad day has less weight
    slope = trend(
        [day["day"] for day in days], [math.log(day["median:queue_s"] + SOFTENING_S) for day in days]
    )
    return {
        "name": row["name"],
        "n_jobs": row["jobs"],
        "median_s": row["median:queue_s"],
        "p90_s": row["p90:queue_s"],
        "p99_s": row["p99:queue_s"],
        "n_days": len(days),
        **_change(slope),
    }


def _change(slope: Trend | None) -> dict[str, Any]:
    if slope is None:
        return {"trend": "too few days"}
    return {
        # expm1 overflows beyond 709
        "change_per_week": math.expm1(min(slope.per_week, 700.0)),
        "change_low": math.expm1(min(slope.low, 700.0)),
        "change_high": math.expm1(min(slope.high, 700.0)),
        "trend": slope.verdict,
        "days_effective": slope.n_effective,
    }


def used(store: JobStore, by: str, *, window: Window | None = None, where: Sequence[str] = ()) -> pa.Table:
    """Used over requested time, memory and cores per name; most core-hours first.

    Ratios of sums over jobs with both terms: wall-clock over requested time, largest over requested memory,
    CPU time over wall-clock time x cores. Raises :class:`NoJobsError` without jobs.
    """
    names = ("jobs", "core_h", "time_used", "memory_used", "efficiency")
    rows = _rows(store, by, names, where, window)
    listed = [
        {
            "name": row["name"],
            "n_jobs": row["jobs"],
            "core_h": row["core_h"],
            "time_used": row["time_used"],
            "memory_used": row["memory_used"],
            "cores_used": row["efficiency"],
        }
        for row in rows
    ]
    listed.sort(key=lambda row: (-(row["core_h"] or 0.0), row["name"] or ""))
    return pa.Table.from_pylist(listed, USED_SCHEMA)


def lost(store: JobStore, by: str, *, window: Window | None = None, where: Sequence[str] = ()) -> pa.Table:
    """Core-hours of failed jobs per name and reason (final state, exit code); largest first.

    ``lost_share``: of the core-hours of the name's jobs that finished or failed. Names without losses have
    one row without a reason; null if no state is known. Raises :class:`NoJobsError` without jobs.
    """
    total = {row["name"]: row for row in _rows(store, by, _LOST, where, window)}
    parts = _rows(store, by, ("jobs", "core_h"), where, window, also=("state", "exit_code"))
    rows = [_loss(part, total[part["name"]]) for part in parts if part["state"] in FAILED]
    losers = {row["name"] for row in rows}
    # their sums are 0 where states are known, null where none is: neither may be missing
    rows += [
        {
            "name": name,
            "n_jobs": row["failed"],
            "lost_core_h": row["lost_core_h"],
            "lost_share": row["lost_share"],
        }
        for name, row in total.items()
        if name not in losers
    ]
    rows.sort(key=lambda row: (-(row["lost_core_h"] or 0.0), row["name"] or "", row.get("reason") or ""))
    return pa.Table.from_pylist(rows, LOST_SCHEMA)


def _loss(part: Mapping[str, Any], name: Mapping[str, Any]) -> dict[str, Any]:
    share = None
    if part["core_h"] is not None and name["lost_core_h"] and name["lost_share"] is not None:
        # of the same total as the name's share, which leaves out jobs that neither finished nor failed
        share = part["core_h"] * name["lost_share"] / name["lost_core_h"]
    return {
        "name": part["name"],
        "reason": part["state"],
        "n_jobs": part["jobs"],
        "lost_core_h": part["core_h"],
        "lost_share": share,
        "exit_code": part["exit_code"],
    }


def _rows(
    store: JobStore,
    by: str,
    metrics: Sequence[str],
    where: Sequence[str],
    window: Window | None,
    *,
    also: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return rows of a query with the grouping column as ``name``; none without jobs."""
    if by not in BY:
        raise UsageError(f"unknown grouping '{by}'; use one of: {', '.join(BY)}")
    field = "cores" if by == "size" else by
    binned = by == "size"
    edges = (f"cores={','.join(map(str, SIZES))}",) if binned else ()
    # the query groups by its bins itself, under the name of the field
    keys = also if binned else (field, *also)
    question = Question(
        tuple(keys), tuple(dict.fromkeys(("jobs", *metrics))), tuple(where), window, bins=edges
    )
    rows: list[dict[str, Any]] = [row for row in ask(store, question).table.to_pylist() if row["jobs"]]
    for row in rows:
        value = row.pop(field)
        row["name"] = SIZE_NAMES.get(value, value) if binned else value
    return rows
