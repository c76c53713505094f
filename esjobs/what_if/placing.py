"""Queues by the work that free cores would deliver in them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import written
from esjobs.core.numbers import exact_percent, many
from esjobs.core.words import HALF_WIDTH_90
from esjobs.records.answer import Answer
from esjobs.records.jobs.query import query_jobs
from esjobs.schema.what_if import AT_QUEUE
from esjobs.store.base import JobStore
from esjobs.what_if.cells import efficiencies, read_cells

Measured = Callable[..., Mapping[str, Any]]
"""Function of a store, a run and a level: by name, its measured ``score`` per core and ``benchmark``.

Relative errors: ``own`` of the name, ``line`` common to all.
"""

_METRICS = {
    **AT_QUEUE,
    "mem_per_core_max_b": "max:mem_per_core_b",
    "lost_share": "lost_share",
    "n_jobs": "jobs",
}
_NUMBERS = ("work_h", "work_h_low", "work_h_high", "score", "efficiency", *_METRICS)
_SCHEMA = pa.schema(
    [("rank", pa.int64()), ("queue", pa.string()), ("benchmark", pa.string())]
    + [(name, pa.int64() if name == "n_jobs" else pa.float64()) for name in _NUMBERS]
)


def place_cores(
    store: JobStore,
    measured: Measured,
    cores: int,
    *,
    processing_type: str | None = None,
    memory_mb: float | None = None,
) -> Answer:
    """Rank queues by the work that free cores would deliver in them per wall hour.

    ``work_h``: cores x measured score x CPU efficiency of the queue (for the type), in HS06-hours or
    HS23-hours. Its 90 % interval has what is the queue's own: the score without the error of the line, and
    the scatter of efficiency between tasks. ``rank``: 1 + queues of that benchmark whose interval is above;
    overlapping ones share a rank. ``memory_mb``: per core; only queues of which a job used that much. Memory,
    waiting and ``lost_share`` are those of the queue's jobs (of the type). Raises :class:`NoJobsError`
    without any. Cost: the buckets of the run, one query.
    """
    cells = read_cells(store)
    scores, scatter = measured(store, cells.run), efficiencies(cells).scatter
    of_type = np.ones(len(cells.unit), np.bool_)
    where = []
    if processing_type is not None:
        of_type = cells.keys.processing_type[cells.unit] == processing_type
        where = [written("processing_type", "=", [processing_type])]
    jobs = query_jobs(
        store, ["queue"], [*_METRICS.values()], where=where, window=cells.run.window
    ).to_pylist()
    rows, small = [], 0
    for each in jobs:
        score = scores.get(each["queue"])
        mine = of_type & (np.array(cells.queues)[cells.queue] == each["queue"])
        core_s, cpu_s = cells.sums["core_s"][mine], float(cells.sums["cpu_s"][mine].sum())
        if score is None or not core_s.sum():
            continue
        if memory_mb is not None and (each["max:mem_per_core_b"] or 0.0) < memory_mb * 1e6:
            small += 1
            continue
        efficiency = cpu_s / float(core_s.sum())
        error = float(np.hypot(score.own, scatter * np.linalg.norm(core_s) / core_s.sum()))
        work, spread = cores * score.score * efficiency, float(np.exp(HALF_WIDTH_90 * error))
        row = {"queue": each["queue"], "benchmark": score.benchmark, "score": score.score}
        row |= {"work_h": work, "work_h_low": work / spread, "work_h_high": work * spread}
        rows.append(
            row | {"efficiency": efficiency} | {name: each[metric] for name, metric in _METRICS.items()}
        )
    rows.sort(key=lambda row: (row["benchmark"], -row["work_h"]))
    ranked = [{"rank": _rank(row, rows), **row} for row in rows]
    notes = [f"measured scores: {cells.run.title}", "queues of one rank cannot be separated"]
    if ranked:
        line = max(scores[row["queue"]].line for row in ranked)
        notes.append(f"error of the line, common to all and not in the intervals: {exact_percent(line)}")
    if small:
        notes.append(f"{many(small, 'queue')} left out: no job there used so much memory per core")
    if len(rows) + small < len(jobs):
        left = many(len(jobs) - len(rows) - small, "queue")
        notes.append(f"{left} left out: no measured score or efficiency")
    title = f"work of {cores:,} cores per wall hour"
    return Answer(pa.Table.from_pylist(ranked, schema=_SCHEMA), tuple(notes), title=title, run=cells.run)


def _rank(row: Mapping[str, Any], rows: list[dict[str, Any]]) -> int:
    peers = (each for each in rows if each["benchmark"] == row["benchmark"])
    return 1 + sum(1 for each in peers if each["work_h_low"] > row["work_h_high"])
