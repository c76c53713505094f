"""CSV in blocks: columnar where a block is clean, record by record where it is not.

A block is parsed at once when every line is one record (quotes balanced on each line), is UTF-8 and not
too long, and the parser finds as many rows as there are lines. Numbers are parsed as numbers; if a cell is
none, the block is parsed again as text. Everything else goes through the careful path, which splits records
itself, refuses those that are malformed and gives the rest as text. All ways end in the same conversion.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

from esjobs.core.errors import InputError
from esjobs.ingest.base import EXCERPT, MAX_LINE, Reject
from esjobs.ingest.layout import Binding, Layout, bind, require
from esjobs.ingest.lines import Index, LineFeed, Lines, excerpt, index_lines, record_at
from esjobs.ingest.validate import Block

Way = Literal["typed", "text", "careful"]
"""The quickest way that may be taken; tests force the slower ones."""


@dataclass(frozen=True)
class Header:
    """The columns of a CSV file, matched with the layout."""

    names: tuple[str, ...]
    binding: Binding

    def position(self, name: str) -> int:
        """Index of a column that is read (its name is unique in the header)."""
        return self.names.index(name)


def read_header(feed: LineFeed, lines: Lines, layout: Layout, filled: tuple[str, ...]) -> Header:
    """Read the first line that is not blank and put the rest of the block back."""
    data, start, line = lines.data, 0, lines.first
    while data[start : start + 1] in (b"\r", b"\n"):
        line += data[start] == 0x0A
        start += 1
    record = record_at(data, start)
    name = feed.path.name
    if lines.overlong or record.open_quote or record.end - start > MAX_LINE:
        raise InputError(f"{name}, line {line}: the header is longer than {MAX_LINE} bytes or lacks a quote")
    if b"\r" in data[start : record.end].rstrip(b"\r"):
        raise InputError(f"{name}: lines end in a lone carriage return; convert them (tr '\\r' '\\n')")
    try:
        header = tuple(cell.decode("utf-8").strip() for cell in record.cells)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}, line {line}: the header is not UTF-8; convert the file (iconv)") from error
    binding = bind(layout, header, name)
    require(binding, filled, name, header)
    feed.push_back(data[record.end + 1 :])
    feed.line = line + data.count(b"\n", start, record.end) + 1
    return Header(header, binding)


def read_csv(feed: LineFeed, header: Header, way: Way = "typed") -> Iterator[Block]:
    """Yield the rows of a file whose header has been read."""
    for lines in feed:
        if lines.overlong:
            yield Block({}, 0, np.empty(0, np.int64), _no_cell, _no_excerpt, (_too_long(feed, lines, 0),))
            continue
        block = _columnar(lines, header, way) if way != "careful" else None
        yield block if block is not None else _careful(feed, lines, header)


def _columnar(lines: Lines, header: Header, way: Way) -> Block | None:
    data = lines.data
    index = index_lines(lines)
    if not index.quotes_balanced or index.longest > MAX_LINE or not is_utf8(data):
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    rows = len(index.numbers)
    if not rows:
        return Block({}, 0, index.numbers, _no_cell, _no_excerpt)
    table = _parsed(data, header, typed=True) if way == "typed" else None
    if table is None:
        table = _parsed(data, header, typed=False)
    if table is None or table.num_rows != rows:
        return None
    cells = {name: table.column(str(header.position(name))) for name in header.binding.used}
    raw = _RawRows(data, index, header)
    return Block(cells, rows, index.numbers, raw.cell, raw.excerpt)


def _parsed(data: bytes, header: Header, *, typed: bool) -> pa.Table | None:
    binding = header.binding
    names = [str(position) for position in range(len(header.names))]
    types = {}
    for name in binding.used:
        number = typed and binding.types[name] in ("number", "integer")
        types[str(header.position(name))] = pa.float64() if number else pa.string()
    try:
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
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid:
        return None


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8; quick for plain ASCII."""
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


def _no_cell(row: int, name: str) -> str:
    raise IndexError(f"row {row} of a block without rows, column {name}")


def _no_excerpt(row: int) -> str:
    raise IndexError(f"row {row} of a block without rows")


# -- the careful path ------------------------------------------------------------------------------------


def _careful(feed: LineFeed, lines: Lines, header: Header) -> Block:
    data, at, line = lines.data, 0, lines.first
    columns = len(header.names)
    rows: list[list[str]] = []
    raw: list[bytes] = []
    numbers: list[int] = []
    refused: list[Reject] = []
    while at < len(data):
        newline = data.find(b"\n", at)
        end = newline if newline >= 0 else len(data)
        physical = data[at:end]
        reject: Reject | None = None
        stop = end
        if len(physical) > MAX_LINE:
            reject = _too_long(feed, lines, at, line)
        elif not physical.rstrip(b"\r"):
            pass
        elif b'"' not in physical:
            cells = physical.rstrip(b"\r").split(b",")
            reject = _take(feed, line, physical, cells, columns, rows)
        else:
            record = record_at(data, at)
            runs_out = record.open_quote and record.end - at < MAX_LINE
            if runs_out and not lines.final:
                feed.push_back(data[at:])
                break
            if record.open_quote:
                detail = "a quoted cell is not closed; accepted: a closing quote, two quotes for one inside"
                reject = Reject("unclosed quote", feed.path.name, line, "", detail, excerpt(physical))
            elif record.end - at > MAX_LINE:
                reject, stop = _too_long(feed, lines, at, line), record.end
            else:
                whole = data[at : record.end]
                reject = _take(feed, line, whole, record.cells, columns, rows)
                stop = end if reject is not None else record.end
        if reject is not None:
            refused.append(reject)
        elif len(rows) > len(raw):
            raw.append(data[at:stop])
            numbers.append(line)
        line += data.count(b"\n", at, stop) + 1
        at = stop + 1
    return _as_text(header, rows, raw, numbers, refused)


def _take(
    feed: LineFeed, line: int, raw: bytes, cells: list[bytes], columns: int, rows: list[list[str]]
) -> Reject | None:
    """Keep the cells of a well-formed record, or say what is wrong with it."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        detail = f"byte {error.object[error.start]:#04x} at position {error.start + 1}; accepted: UTF-8"
        return Reject("not UTF-8", feed.path.name, line, "", detail, excerpt(raw))
    if len(cells) != columns:
        detail = f"{len(cells)} cells; accepted: {columns}, as in the header (a cell with a comma is quoted)"
        return Reject("wrong number of columns", feed.path.name, line, "", detail, excerpt(raw))
    rows.append([cell.decode("utf-8") for cell in cells])
    return None


def _too_long(feed: LineFeed, lines: Lines, at: int, line: int | None = None) -> Reject:
    detail = f"the row has more than {MAX_LINE} bytes; accepted: shorter ones"
    start = lines.data[at : at + 8 * EXCERPT]
    number = lines.first if line is None else line
    return Reject("line too long", feed.path.name, number, "", detail, excerpt(start))


def _as_text(
    header: Header, rows: list[list[str]], raw: list[bytes], numbers: list[int], refused: list[Reject]
) -> Block:
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
        tuple(refused),
    )
