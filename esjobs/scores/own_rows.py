"""Rows of a large day: jobs that somebody looks at have rows of their own, the others share rows.

A shared row stands for jobs equal in every name but their own and reason, in cores, nodes and GPUs, and in
the numbers that their records have; those with a GPU load are equal in their own name, too. Hours, seconds
and bytes are sums over its jobs; ratios are means weighted by wall-clock time. Node-hours, core-hours and
GPU-hours of such jobs are proportional to it: sums and means over rows are those over jobs.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import job_keys, table_schema
from esjobs.schema.scores import SCORES
from esjobs.scores.findings import NOT_JUDGED, SCORED_AREAS
from esjobs.scores.scoring import NO_COUNTERS, NO_GPU_COUNTERS
from esjobs.scores.usage import NO_REQUEST

USUAL_REASONS = {
    **dict.fromkeys(("score_cpu", "score_mem"), NO_COUNTERS),
    **{name: NOT_JUDGED[area] for name, area in SCORED_AREAS.items()},
    **dict.fromkeys(("score_gpu", "score_gpumem"), NO_GPU_COUNTERS),
    "time_used": NO_REQUEST,
}
"""Reason of a missing value that rows of a large day leave out: nothing measured it."""

_SUMS = (
    *("node_h", "core_h", "gpu_h", "idle_core_h", "wall_s"),
    *("requested_wall_s", "requested_memory_b", "used_memory_b"),
)
_MEANS = (
    *("cpu_efficiency", "cpu_efficiency_unclipped", "cpu_efficiency_sq"),
    *("time_used_frac", "memory_used_frac", "cores_used_frac"),
    *("gpus_used_frac", "gpus_used_frac_sq"),
)
_KEYS = tuple(
    each.name
    for each in SCORES.columns
    if each.type in ("keyword", "integer", "day") and each.name not in ("job_id", "n_jobs")
)
_NUMBERS = (*_SUMS, *_MEANS)
_TOTALS = ("n_jobs", *_NUMBERS)
# Numbers that a record has or lacks: without this key a shared ratio would divide sums over different jobs
_PRESENT = "present"
# Shared rows of parts of a day are merged when they are more than this
_PARTS = 200_000


def own_and_shared(
    batches: Iterable[pa.RecordBatch], most: int, watched: Callable[[], pa.Array]
) -> Iterator[pa.RecordBatch]:
    """Yield score rows of a day: own ones of jobs with scores or series and of ``most`` others.

    These are the jobs of most idle core-hours; further ones share rows. ``watched`` returns the keys of jobs
    with series. Memory: 2 x ``most`` rows, the shared rows and a batch.
    """
    waiting = table_schema(SCORES).empty_table()
    parts: list[pa.Table] = []
    series: pa.Array | None = None

    def split() -> Iterator[pa.RecordBatch]:
        nonlocal waiting, series, parts
        waiting = _without_usual(waiting)
        # asked for only where a day is large enough to need it
        series = watched() if series is None else series
        of_series = pc.is_in(job_keys(waiting), value_set=series)
        yield from waiting.filter(of_series).to_batches()
        waiting, ordinary = _most_idle(waiting.filter(pc.invert(of_series)), most)
        parts.append(_grouped(_summable(ordinary)))
        if sum(part.num_rows for part in parts) > _PARTS:
            parts = [_grouped(pa.concat_tables(parts))]

    for batch in batches:
        scored = batch.column("score_sum").is_valid()
        if pc.any(scored).as_py():
            yield batch.filter(scored)
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch.filter(pc.invert(scored))])])
        # twice as many, so that rows are sorted once per `most` jobs
        if waiting.num_rows > 2 * most:
            yield from split()
    if waiting.num_rows > most:
        yield from split()
    # all jobs of a small day keep rows of their own, with their reasons
    yield from waiting.to_batches()
    if parts:
        yield from _rows(_grouped(pa.concat_tables(parts))).to_batches()


def _without_usual(rows: pa.Table) -> pa.Table:
    """Return rows without the usual reasons, which are a quarter of a row as a cluster stores it."""
    for value, usual in USUAL_REASONS.items():
        name = f"{value}_reason"
        reasons = pc.if_else(pc.equal(rows[name], usual), pa.scalar(None, pa.string()), rows[name])
        rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), reasons)
    return rows


def _most_idle(rows: pa.Table, most: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows of most idle core-hours, and the others."""
    order = [("idle_core_h", "descending"), ("source", "ascending"), ("job_id", "ascending")]
    places = pc.sort_indices(rows, sort_keys=order)
    return rows.take(places[:most]), rows.take(places[most:])


def _summable(rows: pa.Table) -> pa.Table:
    """Return rows whose numbers add up: means times wall-clock time, and a key for the numbers they have."""
    masks = [
        rows[name].is_valid().to_numpy().astype(np.int64) << place for place, name in enumerate(_NUMBERS)
    ]
    columns = {name: rows[name] for name in (*_KEYS, "end_time", "n_jobs", *_SUMS)}
    # names of jobs are many: they divide only the rows that are asked for by them
    of_gpus = rows["gpus_used_frac"].is_valid()
    columns["job_name"] = pc.if_else(of_gpus, rows["job_name"], pa.scalar(None, rows["job_name"].type))
    columns |= {name: pc.multiply(rows[name], rows["wall_s"]) for name in _MEANS}
    return pa.table({**columns, _PRESENT: pa.array(np.bitwise_or.reduce(masks))})


def _grouped(rows: pa.Table) -> pa.Table:
    keys = [*_KEYS, _PRESENT]
    # one thread: sums must not depend on the order in which threads end
    made = rows.group_by(keys, use_threads=False).aggregate(
        [*((name, "sum") for name in _TOTALS), ("end_time", "max")]
    )
    names = {**{f"{name}_sum": name for name in _TOTALS}, "end_time_max": "end_time"}
    renamed = made.rename_columns([names.get(name, name) for name in made.column_names])
    return renamed.select(rows.column_names).cast(rows.schema)


def _rows(sums: pa.Table) -> pa.Table:
    """Return shared rows as stored; means over no time are null."""
    wall = sums["wall_s"].to_numpy()
    columns = {name: sums[name] for name in (*_KEYS, "end_time", "n_jobs", *_SUMS)}
    for name in _MEANS:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = sums[name].to_numpy() / wall
        columns[name] = pa.array(mean, mask=~np.isfinite(mean))
    schema = table_schema(SCORES)
    return pa.Table.from_arrays(
        [
            columns[item.name].cast(item.type) if item.name in columns else pa.nulls(sums.num_rows, item.type)
            for item in schema
        ],
        schema=schema,
    )
