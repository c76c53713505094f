"""Incoming batches: checked against the schema, gathered into pieces."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import UsageError

TEXTS = tuple(item.name for item in PUT_SCHEMA if pa.types.is_string(item.type))
"""Columns of ``PUT_SCHEMA`` that hold texts."""

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
        # slices share the memory of their batch; nothing is copied until a block is joined
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


def texts_of(batch: pa.RecordBatch) -> list[tuple[str | None, ...]]:
    """Return the texts of each row of ``PUT_SCHEMA``."""
    return list(zip(*(batch.column(name).to_pylist() for name in TEXTS), strict=True))


def conformed(batch: pa.RecordBatch, schema: pa.Schema, what: str) -> pa.RecordBatch:
    """Return a batch with the columns of a schema; missing or extra columns are refused."""
    if batch.schema.equals(schema):
        return batch
    _require_columns(batch.schema.names, schema.names, what)
    try:
        # dictionaries become texts, and columns come into the order of the schema
        columns = [batch.column(item.name).cast(item.type) for item in schema]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        # Arrow's message may hold a whole value; the beginning says which type met which
        raise UsageError(f"{what} do not fit their types: {' '.join(str(error).split())[:200]}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _require_columns(names: Sequence[str], expected: Sequence[str], what: str) -> None:
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    if missing:
        difference = f"lack {', '.join(missing)}"
    elif extra:
        difference = f"have {', '.join(extra)}"
    elif len(names) != len(expected):
        difference = "have a column twice"
    else:
        return
    raise UsageError(f"{what} {difference}; the columns are {', '.join(expected)}")
