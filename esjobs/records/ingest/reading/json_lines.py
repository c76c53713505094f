"""JSON lines in blocks: one object a line, either the record itself or an Elasticsearch hit around it.

A block is parsed at once when every line is one shallow object and the types agree from line to line;
otherwise line by line. Names are lower-cased. Of a repeated key of a record the last value counts; an object
inside it that has one keeps all of them for its reader.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from esjobs.records.ingest.base import EXCERPT, MAX_INTEGER, MAX_LINE, RowError
from esjobs.records.ingest.maps import RepeatedNames, object_of
from esjobs.records.ingest.reading.delimited import Way, is_utf8
from esjobs.records.ingest.reading.layout import Binding, Layout, bind
from esjobs.records.ingest.reading.lines import (
    Index,
    LineFeed,
    Lines,
    decoded,
    excerpt,
    index_lines,
    too_long,
)
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import Block

MAX_DEPTH = 100
"""Brackets on a line up to which the columnar parser is trusted: it recurses without a limit."""


# Lines of a block that are looked at for their names.
_SAMPLE = 32


def read_json_lines(
    feed: LineFeed, layout: Layout, refusals: Refusals, way: Way = "typed"
) -> Iterator[tuple[Block, Binding]]:
    """Yield blocks of rows with the binding of their names; malformed rows go to ``refusals``."""
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
    # a line in braces that opens few brackets is one object
    view = np.frombuffer(data, dtype=np.uint8)
    last = view[index.ends - 1]
    # lines of Windows end in two bytes
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
    # the parser makes each name a column as long as the block
    lines = np.linspace(0, len(index.starts) - 1, _SAMPLE).astype(int)
    seen: set[str] = set()
    fresh = 0
    for line in np.unique(lines):
        try:
            record = json.loads(data[index.starts[line] : index.ends[line]])
        except (ValueError, RecursionError):
            return True
        names = set(_names_in(record))
        fresh += not names <= seen
        seen |= names
    return fresh > _SAMPLE // 2


def _names_in(record: Mapping[str, object]) -> Iterator[str]:
    for name, value in record.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in _names_in(value))


def _parsed(data: bytes, index: Index, probe: dict[str, object]) -> pa.Table | None:
    def strings(record: Mapping[str, object]) -> list[pa.Field]:
        return [pa.field(name, pa.string()) for name, value in record.items() if isinstance(value, str)]

    inner = probe.get("_source")
    try:
        # what is text in the first record stays text: Arrow would make times of dates
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
    if "_source" not in table.schema.names:
        return _by_lower_name(table.schema.names, table.columns)
    source = table.column("_source").combine_chunks()
    source = source.chunk(0) if isinstance(source, pa.ChunkedArray) else source
    if not pa.types.is_struct(source.type) or source.null_count:
        return None
    columns = _by_lower_name([member.name for member in source.type], source.flatten())
    if columns is not None and layout.hit_id and "_id" in table.schema.names:
        # a hit of Elasticsearch has its id beside the document
        if layout.hit_id not in columns:
            columns[layout.hit_id] = table.column("_id")
        elif columns[layout.hit_id].null_count:
            return None
    return columns


def _by_lower_name(names: Sequence[str], arrays: Sequence[pa.Array]) -> dict[str, pa.Array] | None:
    columns = {name.lower(): array for name, array in zip(names, arrays, strict=True)}
    # of names that differ in case alone the last one counts, which is decided line by line
    return columns if len(columns) == len(names) else None


def _readable(cells: pa.Array, kind: str) -> bool:
    # inference must not make times of text, nor rewrite a number that is text
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
        document = json.loads(self._raw(row), parse_int=_integer, object_pairs_hook=object_of)
        record = _record(document, self._layout)
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
        try:
            record = _read_line(line, layout, overlong=lines.overlong)
            _require_plain(record, read)
        except RowError as error:
            refusals.refuse(error, number, excerpt(line[: 8 * EXCERPT]))
            continue
        records.append(record)
        raw.append(line)
        numbers.append(number)
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


def _require_plain(record: Mapping[str, object], read: Collection[str]) -> None:
    for name, value in record.items():
        if name in read and isinstance(value, dict | list):
            detail = f"{name} holds an object or a list; accepted: text or a number"
            raise RowError("not a plain value", "", detail)


def _read_line(line: bytes, layout: Layout, *, overlong: bool) -> dict[str, object]:
    if overlong or len(line) > MAX_LINE:
        raise too_long()
    text = decoded(line)
    try:
        value = json.loads(text, parse_constant=str, parse_int=_integer, object_pairs_hook=object_of)
        # json accepts half of a surrogate pair, which no store can write as UTF-8
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RowError("bad JSON", "", "half of a surrogate pair; accepted: complete characters") from None
    except ValueError as error:
        raise RowError(
            "bad JSON", "", f"{str(error)[:EXCERPT]}; accepted: one JSON object per line"
        ) from None
    except RecursionError:
        detail = "nested too deeply; accepted: one flat JSON object per line"
        raise RowError("bad JSON", "", detail) from None
    if not isinstance(value, dict):
        raise RowError("bad JSON", "", f"a {type(value).__name__}; accepted: one JSON object per line")
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
    # integers have no negative zero
    return -0.0 if text == "-0" else int(text)


def _text(value: object) -> str | None:
    # too large numbers as 1e999; the negative zero keeps its sign: as an id it is rejected
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _text_of_number(value)
    if isinstance(value, RepeatedNames):
        return value.text()
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _text_of_number(value: float) -> str:
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    if value == 0 and math.copysign(1.0, value) < 0:
        return "-0.0"
    integral = value == int(value) and abs(value) <= MAX_INTEGER
    return str(int(value)) if integral else repr(value)
