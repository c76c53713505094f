"""CSV in blocks: columnar where a block is clean, record by record where it is not.

A block is parsed at once when every line is one record (quotes balanced on each line), is UTF-8 and not
too long, and the parser finds as many rows as there are lines. Numbers are parsed as numbers; if a cell is
none, the block is parsed again as text. A block that cannot be parsed at once is tried again in pieces, and
the piece that offends goes through the careful path, which splits records itself, refuses those that are
malformed and gives the rest as text. All ways end in the same conversion. Of a malformed record that spans
lines only the first line is refused, so that a stray quote costs one row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

from esjobs.core.errors import InputError
from esjobs.records.ingest.base import MAX_LINE, RowError
from esjobs.records.ingest.reading.layout import Binding, Layout, bind, require
from esjobs.records.ingest.reading.lines import (
    Index,
    LineFeed,
    Lines,
    decoded,
    excerpt,
    index_lines,
    record_at,
    too_long,
)
from esjobs.records.ingest.reading.opening import BOM
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block

Way = Literal["typed", "text", "careful"]
"""The quickest way that may be taken; tests force the slower ones."""


@dataclass(frozen=True)
class Header:
    """The columns of a CSV file, matched with the layout."""

    names: tuple[str, ...]
    binding: Binding

    def position(self, name: str) -> int:
        """Index of a column that is read (its name is unique in the header)."""
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}


_QUOTED_CELL = re.compile(rb'(?:^|(?<=,))"(?:[^"]|"")*"')  # where a line end is data


def read_header(feed: LineFeed, lines: Lines, layout: Layout, filled: tuple[str, ...]) -> Header:
    """Read the first line that is not blank and put the rest of the block back."""
    data, start, line = lines.data, 0, lines.first
    while data[start : start + 1] in (b"\r", b"\n"):
        line += data[start] == 0x0A
        start += 1
    record = record_at(data, start)
    name = feed.file.name
    if lines.overlong or record.open_quote or record.end - start > MAX_LINE:
        raise InputError(
            f"{name}, line {line}: the header is longer than {MAX_LINE} bytes, or a quote is not closed"
        )
    if b"\r" in _QUOTED_CELL.sub(b"", data[start : record.end]).rstrip(b"\r"):
        raise InputError(f"{name}: lines end in a single carriage return; convert them (tr '\\r' '\\n')")
    try:
        header = tuple(cell.decode("utf-8").strip() for cell in record.cells)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}, line {line}: the header is not UTF-8; convert the file (iconv)") from error
    binding = bind(layout, header, name)
    require(binding, filled, name, header)
    feed.push_back(data[record.end + 1 :])
    feed.line = line + data.count(b"\n", start, record.end) + 1
    return Header(header, binding)


def read_csv(feed: LineFeed, header: Header, refusals: Refusals, way: Way = "typed") -> Iterator[Block]:
    """Yield the rows of a file whose header has been read; ``refusals``: of those that are malformed."""
    for lines in feed:
        if lines.overlong:
            refusals.refuse(too_long(), lines.first, excerpt(lines.data))
            continue
        block = _columnar(lines, header, way, refusals) if way != "careful" else None
        if block is not None:
            yield block
        elif way == "careful" or not feed.split(lines):
            yield _careful(feed, lines, header, refusals)


def _columnar(lines: Lines, header: Header, way: Way, refusals: Refusals) -> Block | None:
    data = lines.data
    index = index_lines(lines)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    if not index.quotes_balanced:
        return None
    table = None
    if index.longest <= MAX_LINE and is_utf8(data):
        table = _table(data, len(index.numbers), header, way)
    if table is None and b'"' not in data:
        data, index = _sieve(lines, index, header, refusals)
        table = _table(data, len(index.numbers), header, way)
    if table is None:
        return None
    cells = {name: table.column(str(header.position(name))) for name in header.binding.used}
    raw = _RawRows(data, index, header)
    return Block(cells, len(index.numbers), index.numbers, raw.cell, raw.excerpt)


def _sieve(lines: Lines, index: Index, header: Header, refusals: Refusals) -> tuple[bytes, Index]:
    # rejects the malformed lines of a block without quotes and joins the others again
    view = np.frombuffer(lines.data, dtype=np.uint8)
    commas = np.flatnonzero(view == 0x2C)
    counts = np.searchsorted(commas, index.ends) - np.searchsorted(commas, index.starts)
    suspect = (counts != len(header.names) - 1) | (index.ends - index.starts > MAX_LINE)
    # lines with bytes beyond ASCII may be no UTF-8
    suspect[np.searchsorted(index.ends, np.flatnonzero(view >= 0x80))] = True
    for row in np.flatnonzero(suspect):
        raw = lines.data[index.starts[row] : index.ends[row]]
        suspect[row] = False
        try:
            _split(raw, len(header.names))
        except RowError as error:
            suspect[row] = True
            refusals.refuse(error, int(index.numbers[row]), excerpt(raw))
    starts, ends = index.starts[~suspect], index.ends[~suspect]
    kept = [lines.data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    joined = Lines(b"\n".join(kept), 0, final=True)
    again = index_lines(joined)
    return joined.data, Index(again.starts, again.ends, index.numbers[~suspect], True)


def _table(data: bytes, rows: int, header: Header, way: Way) -> pa.Table | None:
    # None if the parser does not find just these records
    if not rows:
        return _parsed(b"," * (len(header.names) - 1) + b"\n", header, typed=False).slice(0, 0)
    table = None
    for typed in (True, False) if way == "typed" else (False,):
        try:
            table = _parsed(data, header, typed=typed)
            break
        except pa.ArrowInvalid as error:
            # Arrow has no class of its own for a cell that is no number
            if "conversion error" not in str(error):
                return None
    return table if table is not None and table.num_rows == rows else None


def _parsed(data: bytes, header: Header, *, typed: bool) -> pa.Table:
    binding = header.binding
    names = [str(position) for position in range(len(header.names))]
    types = {}
    for name in binding.used:
        number = typed and binding.types[name] in ("number", "integer")
        types[str(header.position(name))] = pa.float64() if number else pa.string()
    if data.startswith(BOM):  # inside a file it is data; the parser would take it for the mark of a new one
        data = b"\n" + data
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(
            column_names=names, block_size=max(len(data) // 2, 1 << 18), use_threads=True
        ),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=["", *binding.layout.nulls],
            strings_can_be_null=True,
            check_utf8=False,  # the caller has looked
        ),
    )


def is_utf8(data: bytes) -> bool:
    """True if the bytes are UTF-8; quick for plain ASCII."""
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class _RawRows:
    data: bytes
    index: Index
    header: Header

    def cell(self, row: int, name: str) -> str:
        cells = record_at(self.data, int(self.index.starts[row])).cells
        return cells[self.header.position(name)].decode("utf-8", "replace")

    def excerpt(self, row: int) -> str:
        return excerpt(self.data[self.index.starts[row] : self.index.ends[row]])


# -- the careful path ------------------------------------------------------------------------------------


def _careful(feed: LineFeed, lines: Lines, header: Header, refusals: Refusals) -> Block:
    data, at, line = lines.data, 0, lines.first
    columns = len(header.names)
    rows: list[list[str]] = []
    raw: list[bytes] = []
    numbers: list[int] = []
    while at < len(data):
        newline = data.find(b"\n", at)
        stop = newline if newline >= 0 else len(data)
        physical = data[at:stop]
        cells: list[str] = []
        try:
            if b'"' not in physical or len(physical) > MAX_LINE:
                if physical.rstrip(b"\r"):
                    cells = _split(physical, columns)
            else:
                record = record_at(data, at)
                if record.open_quote and record.end - at < MAX_LINE and not lines.final:
                    # the record may end in the next block
                    feed.push_back(data[at:])
                    break
                if record.open_quote or record.end - at > MAX_LINE:
                    detail = f"a quoted cell is not closed within {MAX_LINE} bytes; accepted: a closing quote"
                    raise RowError("unclosed quote", "", detail)
                cells = _split(data[at : record.end], columns, record.cells)
                stop = record.end
        except RowError as error:
            refusals.refuse(error, line, excerpt(physical))
        if cells:
            rows.append(cells)
            raw.append(data[at:stop])
            numbers.append(line)
        line += data.count(b"\n", at, stop) + 1
        at = stop + 1
    return _as_text(header, rows, raw, numbers)


def _split(raw: bytes, columns: int, quoted: list[bytes] | None = None) -> list[str]:
    if len(raw) > MAX_LINE:
        raise too_long()
    text = decoded(raw)
    cells = text.rstrip("\r").split(",") if quoted is None else [cell.decode("utf-8") for cell in quoted]
    if len(cells) != columns:
        detail = (
            f"{len(cells)} cells; accepted: {columns}, as in the header (quote cells that contain a comma)"
        )
        raise RowError("wrong number of columns", "", detail)
    return cells


def _as_text(header: Header, rows: list[list[str]], raw: list[bytes], numbers: list[int]) -> Block:
    cells = {}
    for name in header.binding.used:
        position = header.position(name)
        cells[name] = pa.array([row[position] or None for row in rows], pa.string())
    positions = {name: header.position(name) for name in header.binding.used}
    return Block(
        cells,
        len(rows),
        np.array(numbers, dtype=np.int64),
        lambda row, name: rows[row][positions[name]],
        lambda row: excerpt(raw[row]),
    )
