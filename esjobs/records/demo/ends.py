"""How the jobs of the made-up grid that fail end: by themselves, at a limit, with their machine, cancelled.

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
"""How many: of the long ones, of the heavy ones, of those that are left, and of those left then."""


def ended(jobs: pa.RecordBatch, rng: np.random.Generator) -> pa.RecordBatch:
    """The jobs with how the failed ones ended; their number, times and memory stay.

    ``rng``: numbers of their own, so that nothing else moves. Where requests are known, those of jobs that a
    limit ended are what they had reached: wall time rounded down to a minute, memory to a megabyte.
    """
    failed = pc.equal(jobs.column("state"), "failed").fill_null(False).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(failed)
    wall = jobs.column("wall_s").to_numpy()[places]
    cores = jobs.column("cores").fill_null(1).to_numpy()[places]
    memory = jobs.column("max_rss_b").to_numpy()[places] / cores
    drawn = rng.random((4, len(places)))
    state = np.full(len(places), "failed", object)
    left = np.ones(len(places), bool)
    for word, of, share, numbers in (
        ("timeout", _largest(wall, LONG), TIMED_OUT, drawn[0]),
        ("out_of_memory", _largest(memory, HEAVY), OUT_OF_MEMORY, drawn[1]),
        ("cancelled", left, CANCELLED, drawn[2]),
        ("node_fail", left, NODE_FAILED, drawn[3]),
    ):
        chosen = left & of & (numbers < share)
        state[chosen] = word
        left = left & ~chosen
    changed = {"state": _replaced(jobs.column("state"), places, state)}
    for name, word, reached in (
        ("requested_wall_s", "timeout", np.floor(wall / 60) * 60),
        ("requested_memory_b", "out_of_memory", np.floor(memory * cores / 1e6) * 1e6),
    ):
        if jobs.column(name).null_count < jobs.num_rows:
            chosen = state == word
            changed[name] = _replaced(jobs.column(name), places[chosen], reached[chosen])
    columns = [changed.get(item.name, jobs.column(item.name)) for item in jobs.schema]
    return pa.RecordBatch.from_arrays(columns, schema=jobs.schema)


def _largest(values: NDArray[np.float64], part: float) -> NDArray[np.bool_]:
    """True of the largest values, so large a part of all."""
    return values >= np.quantile(values, 1 - part) if len(values) else np.zeros(0, bool)


def _replaced(column: pa.Array, places: NDArray[np.int64], values: NDArray) -> pa.Array:  # type: ignore[type-arg]
    mask = np.zeros(len(column), bool)
    mask[places] = True
    return pc.replace_with_mask(column, pa.array(mask), pa.array(values, column.type))
