"""Incoming batches: checked against the schema, gathered into pieces."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from esjobs.core.errors import UsageError

# Rows of a DuckDB row group: whole ones are compressed once and written at once, on every processor
_BLOCK_ROWS = 122_880

_BLOCKS = 2
_BYTES = 128 * 1024 * 1024


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema, what: str) -> Iterator[pa.Table]:
    """Cast batches and join them into tables of 2 blocks of 122 880 rows, or of about 128 MB.

    Columns match by name. Raises :class:`UsageError`, naming ``what``, if they do not fit.
    """
    waiting: list[pa.RecordBatch] = []
    for block in blocks(batches, schema, what):
        waiting.append(block)
        if len(waiting) == _BLOCKS or sum(batch.nbytes for batch in waiting) >= _BYTES:
            yield pa.Table.from_batches(waiting, schema)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def blocks(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    what: str,
    longest: int = _BLOCK_ROWS,
    largest: int = _BYTES,
) -> Iterator[pa.RecordBatch]:
    """Cast batches and cut or join them into ``longest`` rows or about ``largest`` bytes."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        left = conformed(batch, schema, what)
        while left.num_rows:
            part = left.slice(0, longest - rows)
            left = left.slice(part.num_rows)
            waiting.append(part)
            rows += part.num_rows
            size += part.nbytes
            if rows == longest or size >= largest:
                yield pa.concat_batches(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def conformed(batch: pa.RecordBatch, schema: pa.Schema, what: str) -> pa.RecordBatch:
    """Return a batch with the columns of a schema; missing or extra columns are refused."""
    if batch.schema.equals(schema):
        return batch
    missing = [name for name in schema.names if name not in batch.schema.names]
    extra = [name for name in batch.schema.names if name not in schema.names]
    if missing or extra or len(batch.schema.names) != len(schema.names):
        difference = (
            f"lack {', '.join(missing)}" if missing else f"have {', '.join(extra) or 'a repeated column'}"
        )
        raise UsageError(f"{what} {difference}; the columns must be {', '.join(schema.names)}")
    try:
        columns = [batch.column(item.name).cast(item.type) for item in schema]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UsageError(f"{what} do not fit their types: {' '.join(str(error).split())[:200]}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
