"""Large answers piece by piece: jobs and rows of tables as Arrow streams."""

from collections.abc import Sequence

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import reader_of, schema_of
from esjobs.core.errors import UsageError
from esjobs.core.query import Filter
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.resolution import select, source_of
from esjobs.store.base import JobStore


def streamed_jobs(
    store: JobStore, where: Sequence[str], window: Window | None, columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Jobs of a window under conditions, in the fields asked for (none: all that are stored)."""
    names = columns or tuple(item.name for item in fields.JOB_FIELDS)
    return select(store, names, window, where=job_filters(store, where, window))


def listed_jobs(
    store: JobStore,
    where: Sequence[str],
    window: Window | None,
    columns: Sequence[str],
    order: str = "",
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Jobs under conditions, with these fields.

    ``order``: a field, ``-`` for the largest first; missing last, ties by source and job_id. Memory: a batch;
    with an order the matching jobs, beyond a limit on disk. Raises :class:`UsageError` for an unsortable
    field.
    """
    names = tuple(dict.fromkeys(fields.field(name).name for name in columns))
    by = order.removeprefix("-")
    if by:
        sort = fields.field(by)
        if source := source_of(sort.name):
            raise UsageError(f"jobs cannot be sorted by '{by}', which is resolved; sort by {source}")
        order = f"-{sort.name}" if order.startswith("-") else sort.name
    if limit is not None and limit < 0:
        raise UsageError(f"a list has 0 jobs or more; got {limit}")
    filters = job_filters(store, where, window)
    return select(store, names, window, where=filters, order=order, limit=limit)


def streamed_rows(
    store: JobStore, table: Table, where: Sequence[Filter], columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Visible rows of a result table, in the columns asked for (none: all)."""
    schema = schema_of(table.column(name) for name in columns or table.column_names)
    return reader_of(schema, store.read(table, where, columns))
