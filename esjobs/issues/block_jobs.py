"""Jobs of a block of series as rules and detectors take them: records, footprints, facts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import pyarrow as pa

from esjobs.core.arrays import Ints, Mask
from esjobs.core.arrow import table_schema
from esjobs.core.query import Count, Days, Query
from esjobs.core.window import Window
from esjobs.issues.facts import Facts
from esjobs.issues.finest_load import user_is_finer, with_finest_load
from esjobs.issues.footprints import footprint_rows, footprints
from esjobs.issues.in_force import Judging
from esjobs.issues.series_jobs import with_records
from esjobs.records.series.blocks import Block, blocks
from esjobs.records.series.energy import POWERS
from esjobs.schema.issues import FOOTPRINTS
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class BlockJobs:
    """Jobs of a block. ``block``: its series, the load from the finest metric.

    ``jobs``: leading columns of all tables (day, source, job_id, end_time); ``footprints``: their rows;
    ``lacking``: number of jobs without a record.
    """

    block: Block
    jobs: dict[str, pa.Array]
    footprints: list[pa.RecordBatch]
    facts: Facts
    lacking: int


def day_blocks(store: JobStore, judging: Judging, day: date) -> Iterator[Block]:
    """Yield the series of a day, in blocks of jobs with the same metrics."""
    query = Query(("metric",), (Count("n"),), where=(Days("day", day, day),), over=SERIES)
    metrics = sorted(store.aggregate(query).table.column("metric").to_pylist())
    if metrics:
        for block in blocks(store, Window.of_days(day, day), metrics, most=judging.block_values):
            yield from split_by_metrics(block)


def split_by_metrics(block: Block) -> Iterator[Block]:
    """Yield blocks of jobs that have the same metrics, with as many units as these need.

    Jobs whose load follows from a finer metric stand in blocks of their own.
    """
    metrics = tuple(block.values)
    n_units = np.array([[len(units) for units in block.units[metric]] for metric in metrics], np.int64)
    # detectors take arrays without absent metrics: jobs are told apart by which metrics they have
    traits = np.vstack([n_units > 0, user_is_finer(block)])
    kinds, kind = np.unique(traits.T, axis=0, return_inverse=True)
    for number, has_metric in enumerate(kinds):
        rows = np.flatnonzero(kind.reshape(-1) == number)
        present = [metric for metric, has in zip(metrics, has_metric, strict=False) if has]
        if present:
            yield _part(block, rows, present)


def _part(block: Block, rows: Ints, metrics: list[str]) -> Block:
    units = {metric: tuple(block.units[metric][row] for row in rows) for metric in metrics}
    # all jobs alike, the usual case: views in place of copies
    complete = len(rows) == len(block.step_s)
    values = {}
    for metric in metrics:
        # the block is as wide as its job of most units, which may be in another part
        most = max(map(len, units[metric]))
        array = block.values[metric][:, :most]
        values[metric] = array if complete else array[rows]
    return Block(
        jobs=block.jobs.take(pa.array(rows)),
        start_time=block.start_time[rows],
        step_s=block.step_s[rows],
        values=values,
        units=units,
        scopes={metric: tuple(block.scopes[metric][row] for row in rows) for metric in metrics},
        resampled=block.resampled[rows],
    )


def block_jobs(
    store: JobStore, judging: Judging, day: date, names: Sequence[str], block: Block
) -> Iterator[BlockJobs]:
    """Yield records, footprints and facts of the jobs of a block; ``names``: record fields.

    Samples before a job began or after it ended are of other jobs, or of none: they are left out, and jobs
    with fewer samples stand in blocks of their own.
    """
    records, lacking = with_records(store, block.jobs, names, day)
    for piece, rows in while_running(block, records):
        yield _block_jobs(judging, day, piece, records.take(pa.array(rows)), lacking)
        lacking = 0


def while_running(block: Block, records: pa.Table) -> Iterator[tuple[Block, Ints]]:
    """Yield the series of jobs while they ran, with the rows of these in ``records``.

    A job whose samples cover less than half of its time keeps them all: its clocks disagree.
    """
    started, ended = (
        records.column(name).cast(pa.timestamp("us")).to_numpy().astype("datetime64[us]")
        for name in ("start_time", "end_time")
    )
    n, step_s = block.n_samples, block.step_s
    with np.errstate(invalid="ignore", divide="ignore"):
        from_start, to_end = (
            (moment - block.start_time.astype("datetime64[us]")) / np.timedelta64(1, "s") / step_s
            for moment in (started, ended)
        )
        first, last = np.maximum(np.ceil(from_start), 0), np.minimum(np.floor(to_end) + 1, n)
        outside = (last - first < n) & (2 * (last - first) >= to_end - from_start) & (last > first)
    # times of jobs without a record are NaT, and compare as false
    first = np.where(outside, first, 0).astype(np.int64)
    length = np.where(outside, last - first, n).astype(np.int64)
    for kept in np.unique(length).tolist():
        rows = np.flatnonzero(length == kept)
        yield (block if len(rows) == len(length) and kept == n else _cut(block, rows, first, kept)), rows


def _cut(block: Block, rows: Ints, first: Ints, length: int) -> Block:
    part = _part(block, rows, list(block.values))
    at = first[rows][:, None, None] + np.arange(length)
    # steps are not whole seconds everywhere
    shifted = (first[rows] * block.step_s[rows] * 1e6).astype("timedelta64[us]")
    return replace(
        part,
        start_time=part.start_time + shifted,
        values={name: np.take_along_axis(array, at, axis=2) for name, array in part.values.items()},
    )


def _of_all_jobs(facts: Facts, scopes: Sequence[str]) -> Mask:
    """Return true where power is that of sockets or nodes of which a job had a part of the cores."""
    cores, nodes, per_node = (facts.column(name) for name in ("cores", "nodes", "node.cores"))
    with np.errstate(invalid="ignore"):
        # a job without a number of nodes has at least one
        shared: Mask = cores < np.fmax(nodes, 1) * per_node
    return shared & np.isin(scopes, ("socket", "node"))


def _block_jobs(judging: Judging, day: date, block: Block, records: pa.Table, lacking: int) -> BlockJobs:
    block = with_finest_load(block, records.column("cores").cast(pa.float64()).to_numpy())
    jobs = {
        "day": pa.array([day] * records.num_rows, pa.date32()),
        **{name: block.jobs.column(name).combine_chunks() for name in ("source", "job_id")},
        # of the series, so that a job without a record has an end, too
        "end_time": block.jobs.column("end_time").combine_chunks().cast(pa.timestamp("us", "UTC")),
    }
    nodes = records.column("nodes").cast(pa.float64()).to_numpy()
    used = []
    for rows, figures in footprints(block, nodes):
        taken = {name: column.take(pa.array(rows)) for name, column in jobs.items()}
        if figures["metric"][0] in POWERS:
            facts = Facts(records.take(pa.array(rows)), judging.clusters)
            figures["total"] = np.where(_of_all_jobs(facts, figures["scope"]), np.nan, figures["total"])
        used.append(footprint_rows(taken, figures))
    table = pa.Table.from_batches(used, table_schema(FOOTPRINTS))
    facts = Facts(records, judging.clusters, table, np.maximum(block.step_s * block.n_samples, 0))
    return BlockJobs(block, jobs, used, facts, lacking)
