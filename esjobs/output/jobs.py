"""Jobs to a stream in the format ``jobs``, so that reading it again gives the same rows.

CSV: a header always, missing empty, floats with every digit they need, ISO times with Z. JSON lines: one
object a line without the missing fields. Parquet: the catalogue's types.
"""

import json
from collections.abc import Iterable
from typing import BinaryIO, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from esjobs.core.arrow import JOB_SCHEMA
from esjobs.core.errors import UsageError
from esjobs.core.text import spreadsheet_cell

ExportFormat = Literal["csv", "jsonl", "parquet"]
"""What jobs can be written as."""


def write_jobs(
    batches: Iterable[pa.RecordBatch],
    stream: BinaryIO,
    form: ExportFormat,
    schema: pa.Schema = JOB_SCHEMA,
    *,
    spreadsheet: bool = False,
) -> int:
    """Write batches that share ``schema`` (all of the catalogue, or some fields of it); the number of rows.

    ``spreadsheet``: in CSV, text that a spreadsheet would take for a formula is made text for it; what is
    read back is then not always the same. The stream is left open. Memory: one batch.

    Raises :class:`UsageError` for an unknown form.
    """
    if form not in get_args(ExportFormat):
        raise UsageError(f"jobs cannot be written as '{form}'; there are {', '.join(get_args(ExportFormat))}")
    if form == "csv":
        return _csv(batches, stream, schema, spreadsheet=spreadsheet)
    if form == "jsonl":
        return _json_lines(batches, stream, schema)
    return _parquet(batches, stream, schema)


def _csv(batches: Iterable[pa.RecordBatch], stream: BinaryIO, schema: pa.Schema, *, spreadsheet: bool) -> int:
    rows = 0
    texts = pa.schema([pa.field(each.name, _written(each.type)) for each in schema])
    stream.write((",".join(schema.names) + "\n").encode())
    options = pyarrow.csv.WriteOptions(include_header=False)
    for batch in batches:
        written = _iso_times(batch.select(schema.names), texts)
        if spreadsheet:
            written = pa.RecordBatch.from_arrays([_as_cells(each) for each in written.columns], schema=texts)
        pyarrow.csv.write_csv(written, stream, options)
        rows += batch.num_rows
    return rows


def _as_cells(column: pa.Array) -> pa.Array:
    """Texts as cells of a spreadsheet; every different one is looked at once."""
    if not pa.types.is_string(column.type):
        return column
    distinct = column.dictionary_encode()
    cells = [spreadsheet_cell(text) for text in distinct.dictionary.to_pylist()]
    return pa.array(cells, pa.string()).take(distinct.indices)


def _json_lines(batches: Iterable[pa.RecordBatch], stream: BinaryIO, schema: pa.Schema) -> int:
    rows = 0
    texts = pa.schema([pa.field(each.name, _written(each.type)) for each in schema])
    for batch in batches:
        for row in _iso_times(batch.select(schema.names), texts).to_pylist():
            present = {name: value for name, value in row.items() if value is not None}
            stream.write(json.dumps(present, ensure_ascii=False).encode() + b"\n")
        rows += batch.num_rows
    return rows


def _parquet(batches: Iterable[pa.RecordBatch], stream: BinaryIO, schema: pa.Schema) -> int:
    rows = 0
    with pyarrow.parquet.ParquetWriter(
        stream, schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for batch in batches:
            writer.write_batch(batch.select(schema.names).cast(schema))
            rows += batch.num_rows
    return rows


def _written(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(kind) else kind


def _iso_times(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [iso_text(column) if pa.types.is_timestamp(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names).cast(schema)


def iso_text(times: pa.Array) -> pa.Array:
    """Times as ISO 8601 text with Z; a fraction only where there is one.

    >>> iso_text(pa.array([0, 1_500_000], pa.timestamp("us", "UTC"))).to_pylist()
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z']
    """
    text = times.cast(pa.timestamp("us", "UTC")).view(pa.timestamp("us")).cast(pa.string())
    text = pc.replace_substring_regex(text, r" ", "T")
    return pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.0+$", ""), "Z", "")
