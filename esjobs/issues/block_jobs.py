"""The jobs of a block of series as rules and detectors take them: records, footprints, facts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.query import Count, Days, Query
from esjobs.core.window import Window
from esjobs.issues.alike import alike
from esjobs.issues.facts import Facts
from esjobs.issues.footprints import footprint_rows, footprints
from esjobs.issues.in_force import Judging
from esjobs.issues.series_jobs import with_records
from esjobs.records.series.blocks import Block, blocks
from esjobs.schema.issues import FOOTPRINTS
from esjobs.schema.series import SERIES
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class BlockJobs:
    """The jobs of a block, an entry each.

    ``jobs``: the columns that rows of all tables begin with (day, source, job_id, end_time). ``footprints``:
    their rows, batch by batch. ``lacking``: jobs without a record.
    """

    jobs: dict[str, pa.Array]
    footprints: list[pa.RecordBatch]
    facts: Facts
    lacking: int


def day_blocks(store: JobStore, judging: Judging, day: date) -> Iterator[Block]:
    """The series of a day, jobs with the same metrics together."""
    window = Window.of_days(day, day)
    asked = Query(("metric",), (Count("n"),), where=(Days("day", day, day),), over=SERIES)
    metrics = sorted(store.aggregate(asked).table.column("metric").to_pylist())
    if metrics:
        for block in blocks(store, window, metrics, most=judging.block_values):
            yield from alike(block)


def block_jobs(store: JobStore, judging: Judging, day: date, names: Sequence[str], block: Block) -> BlockJobs:
    """What is known of the jobs of a block; ``names``: the fields of the record that are wanted."""
    records, lacking = with_records(store, block.jobs, names, day)
    jobs = {
        "day": pa.array([day] * records.num_rows, pa.date32()),
        **{name: block.jobs.column(name).combine_chunks() for name in ("source", "job_id")},
        "end_time": block.jobs.column("end_time").combine_chunks().cast(pa.timestamp("us", "UTC")),
    }
    nodes = records.column("nodes").cast(pa.float64()).to_numpy()
    used = [
        footprint_rows({name: column.take(pa.array(rows)) for name, column in jobs.items()}, figures)
        for rows, figures in footprints(block, nodes)
    ]
    table = pa.Table.from_batches(used, table_schema(FOOTPRINTS))
    facts = Facts(records, judging.clusters, table, np.maximum(block.step_s * block.n_samples, 0))
    return BlockJobs(jobs, used, facts, lacking)
