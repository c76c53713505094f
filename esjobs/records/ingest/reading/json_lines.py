"""JSON lines in blocks: one object a line, either the record itself or an Elasticsearch hit around it.

A block is parsed at once when every line is one shallow object and the types agree from line to line;
otherwise line by line. Names are lower-cased. Of a repeated key of a record the last value counts; an object
inside it that has one keeps all of them for whoever reads it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from esjobs.records.ingest.base import EXCERPT, MAX_INTEGER, MAX_LINE, Reject
from esjobs.records.ingest.maps import RepeatedNames, object_of
from esjobs.records.ingest.reading.delimited import Way, is_utf8
from esjobs.records.ingest.reading.layout import Binding, Layout, bind
from esjobs.records.ingest.reading.lines import Index, LineFeed, Lines, excerpt, index_lines
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block

MAX_DEPTH = 100
"""Brackets on a line up to which the columnar parser is trusted: it recurses without a limit."""


_SAMPLE = 32
"""Lines of a block that are looked at for their names."""


def read_json_lines(
    feed: LineFeed, layout: Layout, refusals: Refusals, way: Way = "typed"
) -> Iterator[tuple[Block, Binding]]:
    """Yield the rows of a file, each block with the binding of the names that occur in it.

    Rows that are refused for their form go to ``refusals``.
    """
    for lines in feed:
        block_and_binding = None
        if way == "typed" and not lines.overlong:
            block_and_binding = _columnar(feed, lines, layout)
        if block_and_binding is not None:
            yield block_and_binding
        elif way != "typed" or lines.overlong or not feed.split(lines):
            yield _careful(feed, lines, layout, refusals)


def _columnar(feed: LineFeed, lines: Lines, layout: Layout) -> tuple[Block, Binding] | None:
    data = lines.data
    index = index_lines(lines)
    if not len(index.numbers) or index.longest > MAX_LINE or not is_utf8(data) or not _flat(data, index):
        return None
    probe = _first_record(data, index)
    if probe is None or _names_keep_changing(data, index):
        return None
    table = _parsed(data, index, probe)
    if table is None or table.num_rows != len(index.numbers):
        return None
    columns = _columns(table, layout)
    if columns is None:
        return None
    binding = bind(layout, list(columns), feed.file.name)
    if not all(_readable(columns[name], binding.types[name]) for name in binding.used):
        return None
    raw = _RawRows(data, index, layout)
    return Block(columns, table.num_rows, index.numbers, raw.cell, raw.excerpt), binding


def _flat(data: bytes, index: Index) -> bool:
    """Whether each line begins with ``{``, ends with ``}`` and opens few brackets: then it is one object."""
    view = np.frombuffer(data, dtype=np.uint8)
    last = view[index.ends - 1]
    last = np.where(last == 0x0D, view[index.ends - 2], last)
    if not ((view[index.starts] == 0x7B).all() and (last == 0x7D).all()):
        return False
    opening = np.flatnonzero((view == 0x7B) | (view == 0x5B))
    counts = np.diff(np.searchsorted(opening, np.append(index.starts, len(view))))
    return int(counts.max()) <= MAX_DEPTH


def _first_record(data: bytes, index: Index) -> dict[str, object] | None:
    try:
        record = json.loads(data[index.starts[0] : index.ends[0]])
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", record)


def _names_keep_changing(data: bytes, index: Index) -> bool:
    """Whether most lines have names of their own: the parser makes each a column as long as the block."""
    lines = np.linspace(0, len(index.starts) - 1, _SAMPLE).astype(int)
    known: set[str] = set()
    fresh = 0
    for line in np.unique(lines):
        try:
            record = json.loads(data[index.starts[line] : index.ends[line]])
        except (ValueError, RecursionError):
            return True
        names = set(_names_in(record))
        fresh += not names <= known
        known |= names
    return fresh > _SAMPLE // 2


def _names_in(record: Mapping[str, object]) -> Iterator[str]:
    """Every name of a record, at any depth: each is a column of the parser's."""
    for name, value in record.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in _names_in(value))


def _parsed(data: bytes, index: Index, probe: dict[str, object]) -> pa.Table | None:
    def strings(record: Mapping[str, object]) -> list[pa.Field]:
        return [pa.field(name, pa.string()) for name, value in record.items() if isinstance(value, str)]

    inner = probe.get("_source")
    try:
        fields = strings(probe)
        if isinstance(inner, dict):
            fields.append(pa.field("_source", pa.struct(strings(inner))))
        return pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(
                block_size=max(len(data) // 2, index.longest + 2, 1 << 18), use_threads=True
            ),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=pa.schema(fields), newlines_in_values=False, unexpected_field_behavior="infer"
            ),
        )
    except (pa.ArrowInvalid, UnicodeError):
        # of text that is none, half a surrogate as a name among it, the careful way says which line has it
        return None


def _columns(table: pa.Table, layout: Layout) -> dict[str, pa.Array] | None:
    """Columns by lower-case name, hits opened; None when names collide or only some lines are hits."""
    columns: dict[str, pa.Array] = {}
    names = table.schema.names
    if "_source" in names:
        source = table.column("_source").combine_chunks()
        source = source.chunk(0) if isinstance(source, pa.ChunkedArray) else source
        if not pa.types.is_struct(source.type) or source.null_count:
            return None
        for number, member in enumerate(source.type):
            if member.name.lower() in columns:
                return None
            columns[member.name.lower()] = source.field(number)
        if layout.hit_id and "_id" in names:
            if layout.hit_id not in columns:
                columns[layout.hit_id] = table.column("_id")
            elif columns[layout.hit_id].null_count:
                return None
        return columns
    for name in names:
        if name.lower() in columns:
            return None
        columns[name.lower()] = table.column(name)
    return columns


def _readable(cells: pa.Array, kind: str) -> bool:
    """Whether inference kept what the cells say: no times made of text, no number rewritten that is text."""
    inferred = cells.type
    if kind == "map":
        return bool(
            pa.types.is_struct(inferred) and all(_is_plain_number(member.type) for member in inferred)
        )
    if kind == "boolean" and pa.types.is_boolean(inferred):
        return True
    if pa.types.is_string(inferred) or pa.types.is_null(inferred):
        return True
    number = kind in ("number", "integer", "time")
    if pa.types.is_integer(inferred):
        # a zero may have been written -0, which only the text of the line tells
        return number or not pc.any(pc.equal(cells, 0), min_count=0).as_py()
    if not pa.types.is_floating(inferred):
        return False
    if not pc.all(pc.is_finite(cells), min_count=0).as_py():
        return False
    if number:
        return True
    numbers = np.asarray(cells.drop_null())
    integral = (np.abs(numbers) <= MAX_INTEGER) & (numbers == np.floor(numbers)) & (numbers != 0)
    return bool(integral.all())


def _is_plain_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind))


class _RawRows:
    def __init__(self, data: bytes, index: Index, layout: Layout) -> None:
        self._data, self._index, self._layout = data, index, layout

    def _raw(self, row: int) -> bytes:
        return self._data[self._index.starts[row] : self._index.ends[row]]

    def cell(self, row: int, name: str) -> str:
        given = json.loads(self._raw(row), parse_int=_integer, object_pairs_hook=object_of)
        record = _record(given, self._layout)
        return _text(record.get(name)) or ""

    def excerpt(self, row: int) -> str:
        return excerpt(self._raw(row))


# -- line by line ----------------------------------------------------------------------------------------


def _careful(feed: LineFeed, lines: Lines, layout: Layout, refusals: Refusals) -> tuple[Block, Binding]:
    records: list[dict[str, object]] = []
    raw: list[bytes] = []
    numbers: list[int] = []
    read = {alias for column in layout.columns if column.type != "map" for alias in column.names}
    physical = [lines.data] if lines.overlong else lines.data.split(b"\n")
    for number, line in enumerate(physical, lines.first):
        if not line.strip():
            continue
        record_or_reason = _read_line(line, layout, overlong=lines.overlong)
        if isinstance(record_or_reason, dict):
            nested = next(
                (
                    name
                    for name in record_or_reason
                    if name in read and isinstance(record_or_reason[name], dict | list)
                ),
                None,
            )
            if nested is not None:
                record_or_reason = (
                    "not a plain value",
                    f"{nested} holds an object or a list; accepted: text or a number",
                )
        if isinstance(record_or_reason, dict):
            records.append(record_or_reason)
            raw.append(line)
            numbers.append(number)
        else:
            reason, detail = record_or_reason
            refusals.add(Reject(reason, feed.file.name, number, "", detail, excerpt(line[: 8 * EXCERPT])))
    names = dict.fromkeys(name for record in records for name in record)
    binding = bind(layout, list(names), feed.file.name)
    cells = {}
    for name in binding.used:
        cells[name] = pa.array([_text(record.get(name)) for record in records], pa.string())
    block = Block(
        cells,
        len(records),
        np.array(numbers, dtype=np.int64),
        lambda row, name: _text(records[row].get(name)) or "",
        lambda row: excerpt(raw[row]),
    )
    return block, binding


def _read_line(line: bytes, layout: Layout, *, overlong: bool) -> dict[str, object] | tuple[str, str]:
    """The record on a line, or the reason and the detail why there is none."""
    if overlong or len(line) > MAX_LINE:
        return "line too long", f"the row has more than {MAX_LINE} bytes; accepted: shorter ones"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return "not UTF-8", f"byte {line[error.start]:#04x} at position {error.start + 1}; accepted: UTF-8"
    try:
        value = json.loads(text, parse_constant=str, parse_int=_integer, object_pairs_hook=object_of)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "bad JSON", "half of a surrogate pair; accepted: whole characters"
    except ValueError as error:
        return "bad JSON", f"{str(error)[:EXCERPT]}; accepted: one JSON object a line"
    except RecursionError:
        return "bad JSON", "nested too deeply; accepted: one plain JSON object a line"
    if not isinstance(value, dict):
        return "bad JSON", f"a {type(value).__name__}; accepted: one JSON object a line"
    return _record(value, layout)


def _record(parsed: dict[str, object], layout: Layout) -> dict[str, object]:
    inner = parsed.get("_source")
    if not isinstance(inner, dict):
        return {name.lower(): value for name, value in parsed.items()}
    record: dict[str, object] = {name.lower(): value for name, value in inner.items()}
    if layout.hit_id and record.get(layout.hit_id) is None and "_id" in parsed:
        record[layout.hit_id] = parsed["_id"]
    return record


def _integer(text: str) -> int | float:
    """A whole number of JSON; the negative zero, which integers lack, as a double."""
    return -0.0 if text == "-0" else int(text)


def _text(value: object) -> str | None:
    """A JSON value as the text of a cell; whole numbers without a fraction, too large ones as 1e999.

    The negative zero keeps its sign: as an id it is refused.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isinf(value):
            return "1e999" if value > 0 else "-1e999"
        if value == 0 and math.copysign(1.0, value) < 0:
            return "-0.0"
        integral = value == int(value) and abs(value) <= MAX_INTEGER
        return str(int(value)) if integral else repr(value)
    if isinstance(value, RepeatedNames):
        return value.text()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
