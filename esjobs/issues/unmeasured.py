"""Measurement of detector variants on request, from stored series; writes nothing."""

from collections.abc import Collection
from datetime import date
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import job_keys, table_schema
from esjobs.core.errors import NoResultError
from esjobs.core.numbers import many
from esjobs.issues.block_jobs import block_jobs, day_blocks
from esjobs.issues.catalogue import USUAL
from esjobs.issues.detectors.batch import Batch
from esjobs.issues.facts import fields_needed
from esjobs.issues.in_force import Judging
from esjobs.issues.measuring import measurements
from esjobs.issues.rows import measure_rows
from esjobs.schema.issues import MEASURES
from esjobs.store.base import JobStore

Kind = tuple[str, str]
"""Detector and variant."""


def with_unmeasured(store: JobStore, judging: Judging, day: date, measures: pa.Table) -> pa.Table:
    """Return stored measures of a day, plus those of missing variants that rules need.

    A variant is missing if the default variant of its detector was measured on the day; of a foreign detector
    if it was not measured itself. Raises :class:`NoResultError` if series of such jobs are gone. Cost: the
    series of the day, if a variant is missing.
    """
    stored_kinds = set(
        zip(measures.column("detector").to_pylist(), measures.column("variant").to_pylist(), strict=True)
    )
    usual = dict(USUAL)
    # a day without the detector at all has no such series: nothing is missing
    lacking = {
        (name, variant)
        for name, variant in judging.wanted
        if (name, variant) not in stored_kinds and (name not in usual or (name, usual[name]) in stored_kinds)
    }
    if not lacking:
        return measures
    made = _measured(store, judging, day, lacking)
    for name, variant in sorted(each for each in lacking if each[0] in usual):
        _require_all(measures, made, name, usual[name], variant, day)
    return pa.concat_tables([measures, made])


def _measured(store: JobStore, judging: Judging, day: date, wanted: Collection[Kind]) -> pa.Table:
    names = fields_needed(judging.rules)
    rows: list[pa.RecordBatch] = []
    stored = day_blocks(store, judging, day)
    for of_block in chain.from_iterable(block_jobs(store, judging, day, names, block) for block in stored):
        # whether its findings count is worked out again from the rules
        eligible = np.ones(of_block.facts.n, np.bool_)
        why_not = [None] * of_block.facts.n
        batch = Batch(of_block.block, of_block.facts.column("cores_used"))
        rows += [
            measure_rows(day, of_block.jobs, of_block.block, measurement, eligible, why_not)
            for measurement in measurements(batch, wanted)
        ]
    return pa.Table.from_batches(rows, table_schema(MEASURES))


def _require_all(stored: pa.Table, made: pa.Table, name: str, usual: str, variant: str, day: date) -> None:
    """Refuse missing jobs: they would look like jobs no longer flagged."""

    def keys(table: pa.Table, of: str) -> pa.Array:
        return job_keys(table.filter((pc.field("detector") == name) & (pc.field("variant") == of)))

    missing = pc.sum(pc.invert(pc.is_in(keys(stored, usual), value_set=keys(made, variant)))).as_py() or 0
    if missing:
        raise NoResultError(
            f"variant '{variant}' of '{name}' was not measured, and the time series of "
            f"{many(missing, 'job')} of {day} are no longer stored. Load them again (esjobs ingest), or "
            f"replay with variant '{usual}'"
        )
