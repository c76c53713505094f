"""Batches on their way into a store: checked against the schema, gathered into pieces worth writing."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from esjobs.core.errors import UsageError

_ROWS = 250_000
_BYTES = 128 * 1024 * 1024


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema, what: str) -> Iterator[pa.Table]:
    """Cast batches to a schema and join them into tables of about 250 000 rows or 128 MB.

    Columns are matched by name. Raises :class:`UsageError` when names or types do not fit the schema;
    ``what`` names the rows in the message.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(conformed(batch, schema, what))
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield pa.Table.from_batches(held, schema)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held, schema)


def conformed(batch: pa.RecordBatch, schema: pa.Schema, what: str) -> pa.RecordBatch:
    """A batch with the columns of a schema, in its order; missing or extra columns are refused."""
    if batch.schema.equals(schema):
        return batch
    missing = [name for name in schema.names if name not in batch.schema.names]
    extra = [name for name in batch.schema.names if name not in schema.names]
    if missing or extra or len(batch.schema.names) != len(schema.names):
        found = f"lack {', '.join(missing)}" if missing else f"have {', '.join(extra) or 'a column twice'}"
        raise UsageError(f"{what} {found}; the columns are {', '.join(schema.names)}")
    try:
        columns = [batch.column(item.name).cast(item.type) for item in schema]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{what} do not fit their types: {' '.join(str(error).split())[:200]}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
