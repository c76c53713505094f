"""Credit of queues that declare another value, and work that is lost while a site is drained."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import written
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import many
from esjobs.core.states import FINISHED
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, HALF_WIDTH_90
from esjobs.publish.finding import run_of_everything
from esjobs.publish.stored import StoredRun
from esjobs.records.answer import Answer
from esjobs.records.declared.values import declared_values, known_sites, stored_window
from esjobs.records.jobs.query import query_jobs
from esjobs.records.names.sites import Sites
from esjobs.records.names.spelling import accepted
from esjobs.schema.speed import SPEED
from esjobs.store.base import JobStore
from esjobs.what_if.placing import Measured

# scores per core are of the order of 10: more is that of a machine, or a slip
_LARGEST_SCORE = 10_000
DRAIN_DAYS = 28
"""Days before the drain whose mean is what a day of it loses."""

_DECLARED = pa.schema(
    [("queue", pa.string()), ("benchmark", pa.string())]
    + [
        (name, pa.float64())
        for name in ("declared", "value", "core_h", "credit_h", "credit_h_new", "change_h")
    ]
    + [("share", pa.float64()), ("share_new", pa.float64()), ("rank", pa.int64()), ("rank_new", pa.int64())]
    + [(name, pa.float64()) for name in ("measured", "measured_low", "measured_high")]
)
_PER_DAY = [
    (name, pa.float64()) for name in ("core_h_per_day", "work_h_per_day", "work_h_per_day_err", "grid_share")
]
_DRAINED = pa.schema([("processing_type", pa.string()), ("benchmark", pa.string()), *_PER_DAY])
_DRAINED_SITES = pa.schema(
    [("site", pa.string()), ("benchmark", pa.string()), *_PER_DAY, ("wasted_share", pa.float64())]
)


def declare(store: JobStore, measured: Measured, values: Mapping[str, float]) -> Answer:
    """Return the credit (core-hours x declared score) of queues if they declared other values.

    Over the window of the latest run, with the values that count at its end. ``share`` and ``rank``: of the
    credit of all queues in the same benchmark, 1 the most; all ``values`` change together. ``measured``: what
    the queue would declare, with a 90 % interval. Raises :class:`UsageError` for a queue without jobs or a
    value that is not positive. Cost: one query, the declared values, the flags of the run.
    """
    run = run_of_everything(store, SPEED, "fit")
    jobs = query_jobs(store, ["queue"], ["core_h"], window=run.window).to_pylist()
    hours: dict[str, float] = {row["queue"]: row["core_h"] or 0.0 for row in jobs}
    _require_valid(values, hours, run.window)
    declared, scores = declared_values(store, run.window, "queue", hours), measured(store, run)
    # a queue that declares nothing would declare in the unit in which it is measured
    benchmark = {queue: declared[queue].benchmark or _benchmark(scores.get(queue)) for queue in hours}
    now = {queue: each * (declared[queue].corepower or 0.0) for queue, each in hours.items()}
    new = now | {queue: hours[queue] * value for queue, value in values.items()}
    rows = []
    for queue, value in values.items():
        row = {"queue": queue, "benchmark": benchmark[queue], "value": value, "core_h": hours[queue]}
        row |= {"declared": declared[queue].corepower, "credit_h_new": new[queue]}
        row |= _measured(scores.get(queue))
        row["share_new"], row["rank_new"] = _share_and_rank(queue, new, benchmark)
        if row["declared"] is not None:
            row |= {"credit_h": now[queue], "change_h": new[queue] - now[queue]}
            row["share"], row["rank"] = _share_and_rank(queue, now, benchmark)
        rows.append(row)
    notes = (
        f"core-hours of {run.window}; declared values at its end",
        "not forecast: brokers send other jobs to a queue that declares another value",
    )
    table = pa.Table.from_pylist(rows, schema=_DECLARED)
    return Answer(table, notes, title="credit after other declarations", run=run)


def _require_valid(values: Mapping[str, float], hours: Mapping[str, float], window: Window) -> None:
    for queue, value in values.items():
        if queue not in hours:
            hint = accepted(queue, hours, "esjobs query --by queue")
            raise UsageError(f"no job of queue '{queue}' in {window}; {hint}")
        if not 0 < value < _LARGEST_SCORE:
            raise UsageError(
                f"{queue}={value}: a score per core is a positive number below {_LARGEST_SCORE:,}"
            )


def _benchmark(score: Any) -> str | None:
    return None if score is None else str(score.benchmark)


def _share_and_rank(
    queue: str, credit: Mapping[str, float], benchmark: Mapping[str, str | None]
) -> tuple[float | None, int]:
    peers = [value for name, value in credit.items() if benchmark[name] == benchmark[queue]]
    share = credit[queue] / sum(peers) if sum(peers) else None
    return share, 1 + sum(value > credit[queue] for value in peers)


def _measured(score: Any) -> dict[str, float]:
    if score is None:
        return {}
    spread = float(np.exp(HALF_WIDTH_90 * np.hypot(score.own, score.line)))
    value = score.score
    return {"measured": value, "measured_low": value / spread, "measured_high": value * spread}


def drain(store: JobStore, measured: Measured, site: str | None = None) -> Answer:
    """Return the work per day that a site would not deliver while it is drained, by processing type.

    Without ``site``: that of each site, least work first, beside the share of its core-hours that were lost
    or idle (``wasted_share``). ``core_h_per_day``: mean of finished jobs over the last 28 days, days without
    any included, so that types add up to ``all``; ``work_h_per_day``: of the same times the measured scores,
    with its standard error; a row per benchmark (null: no score). ``grid_share``: of the core-hours of that
    type at all sites. Raises :class:`NoJobsError` without such jobs. Cost: two queries, the flags of the run.
    """
    run, span = run_of_everything(store, SPEED, "fit"), stored_window(store)
    # a window that begins before the data would make the mean of a day too small
    first = run.reach - timedelta(days=DRAIN_DAYS)
    window = Window(first if span is None else max(first, span.start), run.reach)
    sites, scores = known_sites(store, window), measured(store, run)
    if site is None:
        return _each_site(store, window, sites, scores, run)
    by = ["queue", "processing_type"]
    jobs = query_jobs(
        store, by, ["core_h"], where=[written("state", "=", FINISHED)], window=window
    ).to_pylist()
    total: dict[str | None, float] = defaultdict(float)
    mine: dict[tuple[str | None, str | None], list[dict[str, Any]]] = defaultdict(list)
    for row in jobs:
        for kind in (row["processing_type"], ALL_TYPES):
            total[kind] += row["core_h"] or 0.0
            if sites.of(row["queue"]).name == site:
                mine[kind, _benchmark(scores.get(row["queue"]))].append(row)
    if not mine:
        hint = accepted(site, {sites.of(row["queue"]).name for row in jobs}, "esjobs query --by site")
        raise NoJobsError(f"no finished job of site '{site}' in {window}; {hint}")
    rows: list[dict[str, Any]] = [
        {"processing_type": kind, "benchmark": benchmark, **_lost(listed, scores, window, total[kind])}
        for (kind, benchmark), listed in mine.items()
    ]
    rows.sort(key=lambda row: (row["processing_type"] == ALL_TYPES, -row["core_h_per_day"]))
    table = pa.Table.from_pylist(rows, schema=_DRAINED)
    return Answer(table, _drain_notes(window), title=f"lost per day while {site} is drained", run=run)


def _each_site(
    store: JobStore, window: Window, sites: Sites, scores: Mapping[str, Any], run: StoredRun
) -> Answer:
    where = [written("state", "=", FINISHED)]
    jobs = query_jobs(store, ["queue"], ["core_h", "idle_core_h"], where=where, window=window).to_pylist()
    every = query_jobs(store, ["queue"], ["core_h", "lost_core_h"], window=window).to_pylist()
    mine: dict[tuple[str, str | None], list[dict[str, Any]]] = defaultdict(list)
    used: dict[str, float] = defaultdict(float)
    wasted: dict[str, float] = defaultdict(float)
    for row in jobs:
        site = sites.of(row["queue"]).name
        mine[site, _benchmark(scores.get(row["queue"]))].append(row)
        wasted[site] += row["idle_core_h"] or 0.0
    for row in every:
        site = sites.of(row["queue"]).name
        used[site] += row["core_h"] or 0.0
        # all hours of a failed job are lost, idle or not
        wasted[site] += row["lost_core_h"] or 0.0
    # of finished jobs, as the rows: shares of sites add up to 1
    total = sum(row["core_h"] or 0.0 for row in jobs)
    rows: list[dict[str, Any]] = [
        {"site": site, "benchmark": benchmark, **_lost(listed, scores, window, total)}
        | {"wasted_share": wasted[site] / used[site] if used[site] else None}
        for (site, benchmark), listed in mine.items()
    ]
    # without a score the core-hours alone tell
    rows.sort(
        key=lambda row: (row.get("work_h_per_day") is None, row.get("work_h_per_day"), row["core_h_per_day"])
    )
    table = pa.Table.from_pylist(rows, schema=_DRAINED_SITES)
    return Answer(table, _drain_notes(window), title="lost per day while a site is drained", run=run)


def _drain_notes(window: Window) -> tuple[str, ...]:
    return (
        f"finished jobs, means over {many(window.days, 'day')} [{window}]",
        "rows without a benchmark: no measured score",
        "what other sites could take over is not counted",
    )


def _lost(
    rows: list[dict[str, Any]], scores: Mapping[str, Any], window: Window, total: float
) -> dict[str, float | None]:
    hours = 0.0
    of_queue: dict[str, float] = defaultdict(float)
    for row in rows:
        score = scores.get(row["queue"])
        hours += row["core_h"] or 0.0
        if score is not None:
            of_queue[row["queue"]] += (row["core_h"] or 0.0) * score.score
    lost: dict[str, float | None] = {"core_h_per_day": hours / window.days}
    lost["grid_share"] = hours / total if total else None
    if work := sum(of_queue.values()):
        # own errors are independent, that of the line is common to all queues
        own = sum((value * scores[queue].own) ** 2 for queue, value in of_queue.items())
        common = sum(value * scores[queue].line for queue, value in of_queue.items())
        lost["work_h_per_day"] = work / window.days
        lost["work_h_per_day_err"] = float(np.sqrt(own + common**2)) / window.days
    return lost
