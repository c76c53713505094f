"""Jobs to a stream in the format ``jobs``, so that reading it again gives the same rows.

CSV: a header always, missing empty, floats with every digit they need, ISO times with Z; of a map a column a
member, ``counter.EVENT``. JSON lines: one object a line without the missing fields, maps as objects. Parquet:
the catalogue's types.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from esjobs.core.arrow import JOB_SCHEMA
from esjobs.core.errors import UsageError
from esjobs.core.text import spreadsheet_cell
from esjobs.core.words import COUNTER_COLUMN

_SPOOLED = pa.ipc.IpcWriteOptions(compression="lz4")
# Bytes of a line that ``esjobs ingest`` reads.
_LONGEST_HEADER = 1 << 20

# Cells of members that are written at a time.
_CELLS = 1 << 22

ExportFormat = Literal["csv", "jsonl", "parquet"]
"""Formats of exported jobs."""


def write_jobs(
    batches: Iterable[pa.RecordBatch],
    stream: BinaryIO,
    form: ExportFormat,
    schema: pa.Schema = JOB_SCHEMA,
    *,
    spreadsheet: bool = False,
) -> int:
    """Write batches of ``schema`` and return the number of rows; the stream is left open.

    ``spreadsheet``: formulas in CSV cells become text. Memory: one batch; CSV with counters waits in a
    temporary file, because the header names every event. Raises :class:`UsageError` for an unknown form, or
    too many events for a header.
    """
    if form not in get_args(ExportFormat):
        raise UsageError(f"unknown format '{form}' for jobs; use one of: {', '.join(get_args(ExportFormat))}")
    if form == "csv":
        return _csv(batches, stream, schema, spreadsheet=spreadsheet)
    if form == "jsonl":
        return _json_lines(batches, stream, schema)
    return _parquet(batches, stream, schema)


def _csv(batches: Iterable[pa.RecordBatch], stream: BinaryIO, schema: pa.Schema, *, spreadsheet: bool) -> int:
    rows = 0
    options = pyarrow.csv.WriteOptions(include_header=False)
    plain = pa.schema([each for each in schema if not pa.types.is_map(each.type)])
    texts = pa.schema([pa.field(each.name, _written(each.type)) for each in plain])
    maps = [each.name for each in schema if pa.types.is_map(each.type)]
    with _unrolled(batches, maps) as (events, stored):
        stream.write(_header(plain.names, events))
        for batch in stored:
            written = _iso_times(batch.select(plain.names), texts)
            if spreadsheet:
                columns = [_as_cells(each) for each in written.columns]
                written = pa.RecordBatch.from_arrays(columns, schema=texts)
            for part in _pieces(written, batch, maps, events):
                pyarrow.csv.write_csv(part, stream, options)
            rows += batch.num_rows
    return rows


def _header(names: Sequence[str], events: Sequence[str]) -> bytes:
    every = [*names, *(COUNTER_COLUMN + event for event in events)]
    # names of counters are free text; pyarrow.csv would quote every name of a header
    quoted = ('"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name for name in every)
    header = (",".join(quoted) + "\n").encode()
    if len(header) > _LONGEST_HEADER:
        raise UsageError(
            f"the jobs have {len(events):,} different counters, too many for one CSV column each; use "
            "--format jsonl or parquet"
        )
    return header


@contextmanager
def _unrolled(
    batches: Iterable[pa.RecordBatch], maps: Sequence[str]
) -> Iterator[tuple[list[str], Iterable[pa.RecordBatch]]]:
    # a header names all members before the first row: the batches wait in a temporary file
    if not maps:
        yield [], batches
        return
    names: set[str] = set()
    with tempfile.TemporaryFile() as file:
        writer = None
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_stream(file, batch.schema, options=_SPOOLED)
            for name in maps:
                names.update(pc.unique(batch.column(name).keys).to_pylist())
            writer.write_batch(batch)
        if writer is None:
            yield [], ()
            return
        writer.close()
        file.seek(0)
        yield sorted(names), pa.ipc.open_stream(file)


def _pieces(
    written: pa.RecordBatch, batch: pa.RecordBatch, maps: Sequence[str], events: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    # few rows at a time, so that thousands of columns stay small
    if not events:
        yield written
        return
    size = max(1, _CELLS // len(events))
    order = pa.array(events)
    for start in range(0, batch.num_rows, size):
        part = batch.slice(start, size)
        cells = np.full((len(events), part.num_rows), np.nan)
        for name in maps:
            column = part.column(name)
            ends = column.offsets.to_numpy()
            rows = np.repeat(np.arange(part.num_rows), np.diff(ends))
            within = slice(int(ends[0]), int(ends[-1]))
            at = pc.index_in(column.keys[within], order).to_numpy(zero_copy_only=False)
            cells[at, rows] = column.items[within].to_numpy(zero_copy_only=False)
        columns = [pa.array(values, from_pandas=True) for values in cells]
        names = [*written.schema.names, *map(str, range(len(events)))]
        shown = written.slice(start, size)
        yield pa.RecordBatch.from_arrays([*shown.columns, *columns], names)


def _as_cells(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    distinct = column.dictionary_encode()
    cells = [spreadsheet_cell(text) for text in distinct.dictionary.to_pylist()]
    # each distinct text is looked at once
    return pa.array(cells, pa.string()).take(distinct.indices)


def _json_lines(batches: Iterable[pa.RecordBatch], stream: BinaryIO, schema: pa.Schema) -> int:
    rows = 0
    texts = pa.schema([pa.field(each.name, _written(each.type)) for each in schema])
    for batch in batches:
        for row in _iso_times(batch.select(schema.names), texts).to_pylist(maps_as_pydicts="strict"):
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
            # batches of an index may have their columns in another order
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
    # viewed without a zone: Arrow would write the offset, and needs its database of zones for it
    text = times.cast(pa.timestamp("us", "UTC")).view(pa.timestamp("us")).cast(pa.string())
    text = pc.replace_substring_regex(text, r" ", "T")
    return pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.0+$", ""), "Z", "")
