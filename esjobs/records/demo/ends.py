"""Ends of the failed jobs of the synthetic grid: own failure, a limit, the machine, cancelled.

Shares are about those of a production grid: most failures are of the payload or its data, one in eight runs
out of time, and about as many are cancelled. Everything else of a job stays as it is.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

LONG = 0.3
"""The part of the failed jobs, those of longest wall time, among which some ran out of time."""
HEAVY = 0.3
"""The part of the failed jobs, those of most memory per core, among which some ran out of memory."""
TIMED_OUT, OUT_OF_MEMORY, CANCELLED, NODE_FAILED = 0.4, 0.3, 0.15, 0.03
"""Fractions: of the long jobs, of the heavy ones, of those that remain, and of those that then remain."""


def ended(jobs: pa.RecordBatch, rng: np.random.Generator) -> pa.RecordBatch:
    """Return the jobs with the ends of the failed ones; their number, times and memory stay.

    Requests of jobs that hit a limit are what they reached, rounded down to a minute or a megabyte.
    """
    failed = pc.equal(jobs.column("state"), "failed").fill_null(False).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(failed)
    wall = jobs.column("wall_s").to_numpy()[rows]
    cores = jobs.column("cores").fill_null(1).to_numpy()[rows]
    memory = jobs.column("max_rss_b").to_numpy()[rows] / cores
    drawn = rng.random((4, len(rows)))
    state = np.full(len(rows), "failed", object)
    left = np.ones(len(rows), bool)
    # in this order: a job that ran out of time is not drawn again for memory
    for word, of, share, numbers in (
        ("timeout", _largest(wall, LONG), TIMED_OUT, drawn[0]),
        ("out_of_memory", _largest(memory, HEAVY), OUT_OF_MEMORY, drawn[1]),
        ("cancelled", left, CANCELLED, drawn[2]),
        ("node_fail", left, NODE_FAILED, drawn[3]),
    ):
        chosen = left & of & (numbers < share)
        state[chosen] = word
        left = left & ~chosen
    changed = {"state": _replaced(jobs.column("state"), rows, state)}
    for name, word, reached in (
        ("requested_wall_s", "timeout", np.floor(wall / 60) * 60),
        ("requested_memory_b", "out_of_memory", np.floor(memory * cores / 1e6) * 1e6),
    ):
        if jobs.column(name).null_count < jobs.num_rows:
            chosen = state == word
            changed[name] = _replaced(jobs.column(name), rows[chosen], reached[chosen])
    columns = [changed.get(item.name, jobs.column(item.name)) for item in jobs.schema]
    return pa.RecordBatch.from_arrays(columns, schema=jobs.schema)


def _largest(values: NDArray[np.float64], part: float) -> NDArray[np.bool_]:
    return values >= np.quantile(values, 1 - part) if len(values) else np.zeros(0, bool)


def _replaced(column: pa.Array, rows: NDArray[np.int64], values: NDArray) -> pa.Array:  # type: ignore[type-arg]
    mask = np.zeros(len(column), bool)
    mask[rows] = True
    return pc.replace_with_mask(column, pa.array(mask), pa.array(values, column.type))
