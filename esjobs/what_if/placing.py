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
    "mem_per_core_max_gb": "mem_per_core_max_gb",
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
    rows = []
    number = {name: position for position, name in enumerate(cells.queues)}
    for each in jobs:
        mine = of_type & (cells.queue == number.get(each["queue"], -1))
        core_s, cpu_s = cells.sums["core_s"][mine], float(cells.sums["cpu_s"][mine].sum())
        if each["queue"] in scores and core_s.sum():
            # efficiencies of tasks are independent: their errors add up in squares
            error = scatter * float(np.linalg.norm(core_s) / core_s.sum())
            row = _work(cores, scores[each["queue"]], cpu_s / float(core_s.sum()), error)
            rows.append(row | {"queue": each["queue"]} | {name: each[of] for name, of in _METRICS.items()})
    least_gb = (memory_mb or 0.0) / 1000
    fitting = [row for row in rows if _memory(row) >= least_gb]
    table = pa.Table.from_pylist(_ranked(fitting), schema=_SCHEMA)
    line = max((scores[row["queue"]].line for row in fitting), default=0.0)
    left_out = (
        (len(jobs) - len(rows), "without a measured score or efficiency"),
        (len(rows) - len(fitting), "where no job used so much memory per core"),
    )
    notes = (
        f"measured scores: {cells.run.title}",
        "queues of one rank cannot be separated",
        f"error of the line, common to all and not in the intervals: {exact_percent(line)}",
        *(f"left out: {many(number, 'queue')} {why}" for number, why in left_out if number),
    )
    return Answer(table, notes, title=f"work of {cores:,} cores per wall hour", run=cells.run)


def _work(cores: int, score: Any, efficiency: float, error: float) -> dict[str, Any]:
    """Work per wall hour with its interval; ``error``: relative, of the efficiency."""
    work = cores * score.score * efficiency
    spread = float(np.exp(HALF_WIDTH_90 * np.hypot(score.own, error)))
    interval = {"work_h": work, "work_h_low": work / spread, "work_h_high": work * spread}
    return {"benchmark": score.benchmark, "score": score.score, "efficiency": efficiency, **interval}


def _memory(row: Mapping[str, Any]) -> float:
    # unknown: fits where nothing is demanded
    return float(row["mem_per_core_max_gb"] or 0.0)


def _ranked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def rank(row: Mapping[str, Any]) -> int:
        peers = (each for each in rows if each["benchmark"] == row["benchmark"])
        # no order where intervals overlap
        return 1 + sum(1 for each in peers if each["work_h_low"] > row["work_h_high"])

    ordered = sorted(rows, key=lambda row: (row["benchmark"], -row["work_h"]))
    return [{"rank": rank(row), **row} for row in ordered]
