"""Variants of detectors that nobody has measured, measured when they are asked for; nothing is written."""

from collections.abc import Collection
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.errors import NoResultError
from esjobs.issues.block_jobs import block_jobs, day_blocks
from esjobs.issues.catalogue import USUAL
from esjobs.issues.facts import fields_needed, job_keys
from esjobs.issues.in_force import Judging
from esjobs.issues.measuring import Batch, measurements
from esjobs.issues.rows import measure_rows
from esjobs.schema.issues import MEASURES
from esjobs.store.base import JobStore

Kind = tuple[str, str]
"""Detector and variant."""


def with_unmeasured(store: JobStore, judging: Judging, day: date, measures: pa.Table) -> pa.Table:
    """The stored measures of a day, and those of variants that its rules need and nobody has measured.

    A variant is lacking where the usual one of its detector was measured on the day; that of a detector of
    another package where it was not measured itself. Raises
    :class:`NoResultError` where the series of such a job are not stored any more. Cost: where one is lacking
    the series of the day are read.
    """
    there = set(
        zip(measures.column("detector").to_pylist(), measures.column("variant").to_pylist(), strict=True)
    )
    usual = dict(USUAL)
    lacking = {
        (name, variant)
        for name, variant in judging.wanted
        if (name, variant) not in there and (name not in usual or (name, usual[name]) in there)
    }
    if not lacking:
        return measures
    made = _measured(store, judging, day, lacking)
    for name, variant in sorted(each for each in lacking if each[0] in usual):
        _require_all(measures, made, name, usual[name], variant, day)
    return pa.concat_tables([measures, made])


def _measured(store: JobStore, judging: Judging, day: date, wanted: Collection[Kind]) -> pa.Table:
    """Rows of ``measures`` of some variants, from the series of a day."""
    names = fields_needed(judging.rules)
    rows: list[pa.RecordBatch] = []
    for block in day_blocks(store, judging, day):
        known = block_jobs(store, judging, day, names, block)
        # whether its findings count is worked out again from the rules
        eligible = np.ones(known.facts.n, np.bool_)
        why_not = [None] * known.facts.n
        batch = Batch(block, known.facts.column("cores_used"))
        rows += [
            measure_rows(day, known.jobs, block, measurement, eligible, why_not)
            for measurement in measurements(batch, wanted)
        ]
    return pa.Table.from_batches(rows, table_schema(MEASURES))


def _require_all(stored: pa.Table, made: pa.Table, name: str, usual: str, variant: str, day: date) -> None:
    """Refuse a comparison in which jobs are missing: they would read as no longer flagged."""

    def keys(table: pa.Table, of: str) -> pa.Array:
        rows = table.filter(
            pc.and_(pc.equal(table.column("detector"), name), pc.equal(table.column("variant"), of))
        )
        return job_keys(rows.column("source"), rows.column("job_id"))

    missing = pc.sum(pc.invert(pc.is_in(keys(stored, usual), value_set=keys(made, variant)))).as_py() or 0
    if missing:
        raise NoResultError(
            f"'{name}' was not measured in its variant '{variant}', and the time series of {missing:,} jobs "
            f"of {day} that it needs are not stored any more; read them in again (esjobs ingest), or replay "
            f"with the variant '{usual}'"
        )
