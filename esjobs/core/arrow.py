"""Catalogue and tables as Arrow schemas. The only module of this package that imports pyarrow."""

import atexit
import contextlib
import weakref
from collections.abc import Generator, Iterable

import pyarrow as pa

from esjobs.core.fields import JOB_FIELDS, Field, FieldType
from esjobs.core.tables import Table

_TYPES: dict[FieldType, pa.DataType] = {
    "keyword": pa.string(),
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    # microseconds, which every engine holds; nanoseconds end in the year 2262
    "time": pa.timestamp("us", tz="UTC"),
    "day": pa.date32(),
    "map": pa.map_(pa.string(), pa.float64()),
    "list": pa.list_(pa.float64()),
    "bytes": pa.binary(),
}


def arrow_type(kind: FieldType) -> pa.DataType:
    """Return the Arrow type of a type of the catalogue."""
    return _TYPES[kind]


def schema_of(columns: Iterable[Field]) -> pa.Schema:
    """Return the Arrow schema of some fields."""
    return pa.schema([pa.field(column.name, _TYPES[column.type]) for column in columns])


def table_schema(table: Table) -> pa.Schema:
    """Arrow schema of a result table, as written and as read."""
    return schema_of(table.columns)


def given_schema(table: Table) -> pa.Schema:
    """Arrow schema of the rows of a result table that a source supplies."""
    return schema_of(table.given_columns)


def job_keys(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """Return a unique text per row of jobs, from ``source`` and ``job_id``."""
    import pyarrow.compute as pc

    source, job_id = (rows.column(name).cast(pa.string()) for name in ("source", "job_id"))
    keys = pc.binary_join_element_wise(source, job_id, "\0")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def reader_of(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Return batches as a reader.

    A reader left half read is closed at exit: DuckDB's binding complains about objects that outlive it.
    """

    def batches_once() -> Generator[pa.RecordBatch]:
        yield from batches

    stream = batches_once()
    # weakly: a stream that nobody reads any more may go
    _STREAMS.add(stream)
    return pa.RecordBatchReader.from_batches(schema, stream)


_STREAMS: weakref.WeakSet[Generator[pa.RecordBatch]] = weakref.WeakSet()


@atexit.register
def _end_streams() -> None:
    # a copy: streams leave the set while they are closed
    for stream in list(_STREAMS):
        with contextlib.suppress(Exception):
            stream.close()


ORIGIN_SCHEMA = pa.schema([pa.field("origin_file", pa.string()), pa.field("origin_line", pa.int64())])
"""Origin of a row: file name without its folder, line (or row) number counted from 1."""

JOB_SCHEMA = schema_of(JOB_FIELDS)
"""Schema of ``select``: the catalogue's stored fields in their order."""

PUT_SCHEMA = pa.schema([*JOB_SCHEMA, *ORIGIN_SCHEMA])
"""Schema of ``put_jobs``: a job and its origin."""
