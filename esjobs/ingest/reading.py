"""One file of any container to parsed pieces: the common part of every format that has a layout."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import InputError
from esjobs.ingest.base import Parsed
from esjobs.ingest.columnar import open_parquet, read_parquet
from esjobs.ingest.delimited import Way, read_csv, read_header
from esjobs.ingest.json_lines import read_json_lines
from esjobs.ingest.layout import Binding, Layout
from esjobs.ingest.lines import BLOCK, LineFeed
from esjobs.ingest.opening import ACCEPTED, opened
from esjobs.ingest.validate import Block, Context, rows_of


def parse_file(
    path: Path, layout: Layout, context: Context, way: Way = "typed", block: int = BLOCK
) -> Iterator[Parsed]:
    """Stream a file; the first piece carries the notes, a file without rows gives one empty piece."""
    filled = (*context.from_name, *context.fill)
    rows = 0
    noted = False
    with opened(path) as file:
        if file.container == "jsonl":
            known: Binding | None = None
            pieces = read_json_lines(LineFeed(file.stream, path, block), layout, way)
        elif file.container == "parquet":
            parquet, known = open_parquet(path, layout, filled)
            pieces = _with(read_parquet(parquet, known, path), known)
        else:
            feed = LineFeed(file.stream, path, block)
            first = next(iter(feed), None)
            if first is None or not first.data.strip():
                raise InputError(f"{path.name} holds nothing but blank lines; {ACCEPTED}")
            header = read_header(feed, first, layout, filled)
            known = header.binding
            pieces = _with(read_csv(feed, header, way), known)
        for piece, binding in pieces:
            parsed = rows_of(piece, binding, context, () if noted else binding.notes(path.name))
            if parsed.rows_in:
                noted = True
                rows += parsed.rows_in
                yield parsed
    if not rows:
        empty = pa.RecordBatch.from_pylist([], schema=PUT_SCHEMA)
        notes = known.notes(path.name) if known else ()
        yield Parsed(empty, (), 0, (*notes, f"{path.name}: no rows"))


def _with(blocks: Iterator[Block], binding: Binding) -> Iterator[tuple[Block, Binding]]:
    return ((block, binding) for block in blocks)
