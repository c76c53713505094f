"""How long jobs wait, what they use of what they ask for, what is lost in failures: from the job records."""

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
"""Where classes of size begin, in cores."""
SIZE_NAMES: Mapping[str | None, str] = {
    "< 2": "1 core",
    "2 to 9": "2 to 8 cores",
    "9 to 65": "9 to 64 cores",
    "65 to 513": "65 to 512 cores",
    ">= 513": "513 cores or more",
}
SOFTENING_S = 60.0
"""Seconds added to a median before its logarithm is taken: changes among waits of seconds are none."""
LEAST_JOBS_A_DAY = 5
"""Jobs of a day without which its median is no point of a trend."""

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
    """Median, 90 and 99 percentile of the time from submission to start per name, and its trend.

    ``n_jobs``: jobs that say how long they waited. ``change_per_week``: the relative change of the daily
    median (plus a minute) a week, 0.1 is 10 % longer, with its 95 % interval; ``trend``: growing, shrinking,
    no change seen, or too few days. Names come with the longest median first. Raises :class:`NoJobsError`
    when no job of the window says how long it waited.

    Cost: two questions, the second per name and day.
    """
    known = (*where, "queue_s is present")
    rows = _asked(store, by, ("jobs", *_PERCENTILES), known, window)
    daily = _asked(store, by, ("jobs", _PERCENTILES[0]), known, window, also=("day",))
    days: dict[str | None, list[Mapping[str, Any]]] = {}
    for row in daily:
        if row["jobs"] >= LEAST_JOBS_A_DAY:
            days.setdefault(row["name"], []).append(row)
    told = [_waiting_row(row, days.get(row["name"], [])) for row in rows]
    told.sort(key=lambda row: (-row["median_s"], row["name"] or ""))
    return pa.Table.from_pylist(told, WAITING_SCHEMA)


def _waiting_row(row: Mapping[str, Any], days: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    moved = trend(
        [day["day"] for day in days],
        [math.log(day["median:queue_s"] + SOFTENING_S) for day in days],
    )
    return {
        "name": row["name"],
        "n_jobs": row["jobs"],
        "median_s": row["median:queue_s"],
        "p90_s": row["p90:queue_s"],
        "p99_s": row["p99:queue_s"],
        "n_days": len(days),
        **_change(moved),
    }


def _change(moved: Trend | None) -> dict[str, Any]:
    if moved is None:
        return {"trend": "too few days"}
    return {
        "change_per_week": math.expm1(min(moved.per_week, 700.0)),
        "change_low": math.expm1(min(moved.low, 700.0)),
        "change_high": math.expm1(min(moved.high, 700.0)),
        "trend": moved.verdict,
        "days_effective": moved.n_effective,
    }


def used(store: JobStore, by: str, *, window: Window | None = None, where: Sequence[str] = ()) -> pa.Table:
    """What jobs used of the time, memory and cores that they asked for or were given, per name.

    Ratios of sums over the jobs that say both: wall-clock time over that requested, largest memory over that
    requested, CPU time over wall-clock time x cores. Missing where no job says both. Names with most
    core-hours come first. Raises :class:`NoJobsError` when there are no jobs.
    """
    names = ("jobs", "core_h", "time_used", "memory_used", "efficiency")
    rows = _asked(store, by, names, where, window)
    told = [
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
    told.sort(key=lambda row: (-(row["core_h"] or 0.0), row["name"] or ""))
    return pa.Table.from_pylist(told, USED_SCHEMA)


def lost(store: JobStore, by: str, *, window: Window | None = None, where: Sequence[str] = ()) -> pa.Table:
    """Core-hours of failed jobs per name and reason: the state that a job ended with, and its exit code.

    ``lost_share``: over the core-hours of the jobs of the name that finished or failed. A name without losses
    has one row, without a reason; null where no state of its jobs is known. The largest losses come first.
    Raises :class:`NoJobsError` when there are
    no jobs.
    """
    total = {row["name"]: row for row in _asked(store, by, _LOST, where, window)}
    parts = _asked(store, by, ("jobs", "core_h"), where, window, also=("state", "exit_code"))
    rows: list[dict[str, Any]] = []
    for part in parts:
        if part["state"] not in FAILED:
            continue
        whole = total[part["name"]]
        known = part["core_h"] is not None and whole["lost_core_h"] and whole["lost_share"] is not None
        rows.append(
            {
                "name": part["name"],
                "reason": part["state"],
                "n_jobs": part["jobs"],
                "lost_core_h": part["core_h"],
                "lost_share": part["core_h"] * whole["lost_share"] / whole["lost_core_h"] if known else None,
                "exit_code": part["exit_code"],
            }
        )
    losers = {row["name"] for row in rows}
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


def _asked(
    store: JobStore,
    by: str,
    metrics: Sequence[str],
    where: Sequence[str],
    window: Window | None,
    *,
    also: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Rows of a question, in which the column that was asked for is called ``name``; none without jobs."""
    if by not in BY:
        raise UsageError(f"no by '{by}'; there are {', '.join(BY)}")
    field = "cores" if by == "size" else by
    binned = by == "size"
    edges = (f"cores={','.join(map(str, SIZES))}",) if binned else ()
    keys = also if binned else (field, *also)
    question = Question(
        tuple(keys), tuple(dict.fromkeys(("jobs", *metrics))), tuple(where), window, bins=edges
    )
    rows: list[dict[str, Any]] = [row for row in ask(store, question).table.to_pylist() if row["jobs"]]
    for row in rows:
        value = row.pop(field)
        row["name"] = SIZE_NAMES.get(value, value) if binned else value
    return rows
