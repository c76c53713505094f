"""Tasks whose long jobs a limit ends at a queue: what finishes there is short, and no measure of its speed.

The jobs that the limit ended are in the store as failed. A cell of task and queue is cut off where enough of
its jobs did not finish, all after the same wall time, and hardly one that finished took longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fitters
from esjobs.core.numbers import amount
from esjobs.core.query import Count, Days, Filter, In, NotIn, Quantile, Query, Range, Sum
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.tasks.sums import TaskSums
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore
from fitters.layout.arrays import Floats, Ints, Mask

LEAST_FAILED = 5  # Jobs that did not finish
LEAST_SHARE = 0.05  # of the jobs of the cell
PILED = 0.05  # Largest width of the middle 80 % of their wall times, over their median
BEYOND = 1.03  # What the longest finished jobs may take of that median
_KEY = ("task_id", "core_class", "processing_type", "queue")
_COUNTED = (Count(), Sum("wall_s", "wall_s"))
_FAILED = tuple(Quantile("wall_s", each, name) for name, each in (("q10", 0.1), ("q50", 0.5), ("q90", 0.9)))
_FINISHED = tuple(Quantile("wall_s", each, name) for name, each in (("q90", 0.9), ("q99", 0.99)))


@dataclass(frozen=True)
class _Cells:
    """Numbers of the rows that a table of cells is about, and its columns."""

    row: Ints
    table: pa.Table

    def spread(self, name: str, n_rows: int) -> Floats:
        """A column by row; NaN for rows that it is not about."""
        values = np.full(n_rows, np.nan)
        values[self.row] = self.table.column(name).to_numpy(zero_copy_only=False)
        return values


def mark_cut_off(
    store: JobStore, rows: TaskSums, window: Window, rules: CleaningRules, where: Sequence[Filter]
) -> TaskSums:
    """Mark the cells of task and queue that a limit cuts off.

    ``rows``: of queues. ``where``: conditions on jobs. Cost: one question about the jobs that did not finish;
    where some took longer than those that did, three about such cells.
    """
    failed_jobs = (*where, NotIn("state", rules.finished_states), Range("wall_s", gt=rules.min_wall_s))
    n = len(rows)
    if not n:
        return rows
    failed = _cells(store, rows, Query(_KEY, _COUNTED, window, failed_jobs, books=False))
    n_failed, wall_failed = (failed.spread(name, n) for name in ("n_jobs", "wall_s"))
    many = (n_failed >= LEAST_FAILED) & (n_failed >= LEAST_SHARE * (n_failed + rows.sums["n_jobs"]))
    if not many.any():
        return rows
    days, tasks = Days.of_window(window), _tasks(rows, many)
    binned = Query(_KEY, (Sum("wall_s", "wall_s"),), where=(days, tasks), over=BUCKETS)
    wall = _cells(store, rows, binned).spread("wall_s", n)
    longer = many & (wall_failed / n_failed > wall / rows.sums["n_jobs"])
    if not longer.any():
        return rows
    queues = np.unique(rows.name.codes[longer])
    chosen = (_tasks(rows, longer), In("queue", tuple(rows.name.names[queues].tolist())))
    ends = _cells(store, rows, Query(_KEY, _FAILED, window, (*failed_jobs, *chosen), books=False))
    finished = Query(_KEY, _FINISHED, window, (*where, *chosen), rules.drops(), books=False)
    others = _cells(store, rows, finished)
    q10, q50, q90 = (ends.spread(name, n) for name in ("q10", "q50", "q90"))
    long, longest = (others.spread(name, n) for name in ("q90", "q99"))
    cut = longer & (q50 > long) & (q90 - q10 < PILED * q50) & (longest <= BEYOND * q50)
    reason: list[str | None] = [None] * n
    for row in np.flatnonzero(cut).tolist():
        reason[row] = f"cut off at {amount(float(q50[row]))} s"
    return replace(rows, cut=fitters.factorise(reason, "cut")) if cut.any() else rows


def _tasks(rows: TaskSums, chosen: Mask) -> In:
    tasks = rows.keys.task_id[rows.task.names[np.unique(rows.task.codes[chosen])]]
    return In("task_id", tuple(sorted(set(tasks.tolist()))))


def _cells(store: JobStore, rows: TaskSums, query: Query) -> _Cells:
    table = store.aggregate(query).table
    table = table.append_column("work_kind", pa.nulls(table.num_rows, pa.string()))
    name = pc.index_in(table.column("queue"), pa.array(rows.name.names, pa.string()))
    cell = rows.keys.numbers(table).astype(np.int64) << 32 | np.asarray(pc.fill_null(name, -1), np.int64)
    own = rows.task.names[rows.task.codes].astype(np.int64) << 32 | rows.name.codes
    order = np.argsort(own)
    row = order[np.minimum(np.searchsorted(own, cell, sorter=order), len(own) - 1)]
    found = own[row] == cell
    return _Cells(row[found], table.filter(pa.array(found)))
