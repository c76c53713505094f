"""One file of any container to parsed pieces: the common part of every format that has a layout."""

from collections.abc import Iterator

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.core.errors import InputError
from esjobs.records.ingest.base import Parsed
from esjobs.records.ingest.reading.columnar import open_parquet, read_parquet
from esjobs.records.ingest.reading.delimited import Way, read_csv, read_header
from esjobs.records.ingest.reading.inputs import Input
from esjobs.records.ingest.reading.json_lines import read_json_lines
from esjobs.records.ingest.reading.layout import Binding, Layout
from esjobs.records.ingest.reading.lines import BLOCK, LineFeed
from esjobs.records.ingest.reading.opening import ACCEPTED, opened
from esjobs.records.ingest.refusals import LISTED, Refusals
from esjobs.records.ingest.validate import Block, Context, rows_of


def parse_file(
    file: Input,
    layout: Layout,
    context: Context,
    way: Way = "typed",
    block: int = BLOCK,
    listed: int = LISTED,
) -> Iterator[Parsed]:
    """Stream a file; the first piece carries the notes, a file without rows gives one empty piece.

    ``listed``: how many refused rows of one kind are listed one by one; the last piece counts the others.
    """
    refusals = Refusals(file.name, listed)
    filled = (*context.from_name, *context.fill)
    rows = 0
    noted = False
    with opened(file) as source:
        if source.container == "jsonl":
            known: Binding | None = None
            pieces = read_json_lines(LineFeed(source.stream, file, block), layout, refusals, way)
        elif source.container == "parquet":
            parquet, known = open_parquet(file, layout, filled)
            pieces = _with(read_parquet(parquet, known, refusals), known)
        else:
            feed = LineFeed(source.stream, file, block)
            first = next(iter(feed), None)
            if first is None or not first.data.strip():
                raise InputError(f"{file.name} holds nothing but blank lines; {ACCEPTED}")
            header = read_header(feed, first, layout, filled)
            known = header.binding
            pieces = _with(read_csv(feed, header, refusals, way), known)
        for piece, binding in pieces:
            parsed = rows_of(piece, binding, context, refusals, () if noted else binding.notes(file.name))
            if parsed.rows_in:
                noted = True
                rows += parsed.rows_in
                yield parsed
    empty = pa.RecordBatch.from_pylist([], schema=PUT_SCHEMA)
    left = (*refusals.take(), *refusals.rest())
    if left:
        rows += sum(reject.n_rows for reject in left)
        notes = () if noted or known is None else known.notes(file.name)
        yield Parsed(empty, left, sum(reject.n_rows for reject in left), notes)
    if not rows:
        notes = known.notes(file.name) if known else ()
        yield Parsed(empty, (), 0, (*notes, f"{file.name}: no rows"))


def _with(blocks: Iterator[Block], binding: Binding) -> Iterator[tuple[Block, Binding]]:
    return ((block, binding) for block in blocks)
