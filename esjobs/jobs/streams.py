"""Large answers piece by piece: jobs and rows of tables as Arrow streams."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import schema_of
from esjobs.core.query import Filter
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.jobs.conditions import job_filters
from esjobs.jobs.resolution import select
from esjobs.store.base import JobStore


def streamed_jobs(
    store: JobStore, where: Sequence[str], window: Window | None, columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Jobs of a window under conditions, in the fields asked for (none: all that are stored)."""
    names = columns or tuple(item.name for item in fields.JOB_FIELDS)
    return select(store, names, window, where=job_filters(store, where, window))


def streamed_rows(
    store: JobStore, table: Table, where: Sequence[Filter], columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Visible rows of a result table, in the columns asked for (none: all)."""
    schema = schema_of(table.column(name) for name in columns or table.column_names)
    return pa.RecordBatchReader.from_batches(schema, store.read(table, where, columns))
