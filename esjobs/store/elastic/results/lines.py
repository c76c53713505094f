"""Arrow rows as lines of bulk requests, column by column, without a Python object per value.

Times are text, with microseconds where one of a column has them, days text, bytes base64. NaN and infinities
are text in a hidden object, or in place inside maps and lists. Nulls are omitted. Documents with values
unknown to the index are flagged.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.store.elastic.layout import LONGEST_TERM, NOT_FINITE, SCAN_ONLY

PIECE_ROWS, PIECE_BYTES = 4096, 850_000
"""Rows, and bytes of Arrow data, turned into text at a time: most of a request, as JSON is longer."""

Parts = list[pa.Array | str]
"""Texts of all rows and constants, which joined row by row make a text; null where one of them is."""

# Bytes that a JSON string must escape
_ESCAPED = bytes(range(32)) + b'"\\'


def create_lines(
    index: str,
    names: pa.Array,
    rows: pa.RecordBatch,
    common: Mapping[str, int | str],
    *,
    milliseconds: bool = False,
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield creating lines for each row, as (first row, lines).

    ``index`` empty: the request names it. ``names``: document ids. ``common``: members of every document, at
    least one. ``milliseconds``: precision of the index. Memory: about twenty times 0.85 MB, or the largest
    row.
    """
    action = f'{{"create":{{"_index":{_json(index)},"_id":' if index else '{"create":{"_id":'
    # ends the action line and begins the document, whose closing brace comes last
    shared = f"}}}}\n{_json(common)[:-1]}"
    # rows per piece, as if all were equally long
    size = max(1, int(PIECE_BYTES * rows.num_rows / max(rows.nbytes, 1)))
    for start in range(0, rows.num_rows, size):
        piece = rows.slice(start, size)
        name = _parts(names.slice(start, size))
        # one join over all: each part of a line is copied once
        members = _members(piece, milliseconds=milliseconds)
        yield start, _cut(_joined(_merged([action, *name, shared, *members, "}\n"]), ""))


def documents(rows: pa.RecordBatch, common: Mapping[str, int | str]) -> list[dict[str, Any]]:
    """Return the documents as readers see them; for few rows."""
    names = pa.repeat(pa.scalar(""), rows.num_rows)
    lines = (line for _, some in create_lines("", names, rows, common) for line in some)
    return [orjson.loads(line.partition(b"\n")[2]) for line in lines]


def _members(rows: pa.RecordBatch, *, milliseconds: bool) -> Parts:
    """Return the parts of ``,"name":value`` of each column; nothing for null."""
    members: Parts = []
    strange = []
    unknown = pa.array(np.zeros(rows.num_rows, np.bool_))
    for item in rows.schema:
        column = rows.column(item.name)
        if column.null_count == len(column):
            continue
        if pa.types.is_string(item.type) and column.nbytes > LONGEST_TERM // 2:
            # an index counts a letter beyond the first plane twice
            long = pc.greater(pc.utf8_length(column), LONGEST_TERM // 2)
            unknown = pc.or_(unknown, pc.fill_null(long, False))
        if milliseconds and pa.types.is_timestamp(item.type):
            finer = pc.not_equal(column, pc.floor_temporal(column, unit="millisecond"))
            unknown = pc.or_(unknown, pc.fill_null(finer, False))
        if pa.types.is_floating(item.type):
            finite = pc.is_finite(column)
            if not pc.all(finite).as_py():
                strange.append((item.name, pc.if_else(finite, None, column)))
                unknown = pc.or_(unknown, pc.fill_null(pc.invert(finite), False))
                # in the hidden object instead
                column = pc.if_else(finite, column, None)
        members += _member(item.name, _parts(column))
    if strange:
        members += _member(NOT_FINITE, [_not_finite(strange, rows.num_rows)])
    if pc.any(unknown).as_py():
        members.append(pc.if_else(unknown, f",{_json(SCAN_ONLY)}:true", ""))
    return members


def _member(name: str, value: Parts) -> Parts:
    """Return the parts of one member, none of them null."""
    parts = [f",{_json(name)}:", *value]
    if any(isinstance(part, pa.Array) and part.null_count for part in parts):
        return [pc.fill_null(_joined(_merged(parts), ""), "")]
    return parts


def _merged(parts: Parts) -> Parts:
    merged: Parts = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged


def _parts(column: pa.Array) -> Parts:
    kind = column.type
    if pa.types.is_string(kind):
        return [_quoted(column)] if _has_escaped(column) else ['"', column, '"']
    if pa.types.is_timestamp(kind):
        moment = column.cast(pa.timestamp("us"))
        seconds = moment.cast(pa.timestamp("s"), safe=False)
        if pc.all(pc.equal(seconds.cast(moment.type), moment)).as_py():
            moment = seconds
        # cast, not strftime: eight times as fast
        text = moment.cast(pa.string())
        return ['"', pc.replace_substring(text, " ", "T", max_replacements=1), 'Z"']
    if pa.types.is_date(kind):
        return ['"', column.cast(pa.string()), '"']
    if pa.types.is_map(kind):
        entries = column.cast(pa.list_(kind.field(0).type))
        names, numbers = entries.flatten().flatten()
        members = _joined([_quoted(names), _numbers(numbers)], ":")
        return ["{", _row_by_row(entries, members), "}"]
    if pa.types.is_list(kind):
        return ["[", _row_by_row(column, _numbers(column.flatten())), "]"]
    if pa.types.is_binary(kind):
        encoded = (None if value is None else b64encode(value) for value in column.to_pylist())
        return ['"', pa.array(encoded, pa.binary()).cast(pa.string()), '"']
    text = column.cast(pa.string())
    return [_signed_zero(text) if pa.types.is_floating(kind) else text]


def _signed_zero(text: pa.Array) -> pa.Array:
    """Restore the sign of negative zero, which Arrow writes as an integer."""
    return pc.if_else(pc.equal(text, "-0"), "-0.0", text)


def _numbers(values: pa.Array) -> pa.Array:
    """Return numbers inside maps and lists: null in place, NaN and infinities as text."""
    text = _signed_zero(values.cast(pa.string()))
    text = pc.if_else(pc.is_finite(values), text, _joined(['"', text, '"'], ""))
    return pc.fill_null(text, "null")


def _row_by_row(lists: pa.ListArray, texts: pa.Array) -> pa.Array:
    """Join the elements of each list by commas; null lists stay null."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    return pc.if_else(lists.is_valid(), joined, None)


def _quoted(strings: pa.Array) -> pa.Array:
    """Return strings as JSON; repeated ones are encoded once."""
    encoded = strings.dictionary_encode()
    if 2 * len(encoded.dictionary) < len(strings):
        return _quoted_each(encoded.dictionary).take(encoded.indices)
    return _quoted_each(strings)


def _quoted_each(strings: pa.Array) -> pa.Array:
    if _has_escaped(strings):
        texts = (None if value is None else _json(value) for value in strings.to_pylist())
        return pa.array(texts, pa.string())
    return _joined(['"', strings, '"'], "")


def _has_escaped(strings: pa.Array) -> bool:
    data = strings.buffers()[2]
    if data is None or not len(strings):
        return False
    ends = _ends(strings)
    # the texts of all rows in one piece of memory
    text = data.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()
    return len(text.translate(None, _ESCAPED)) < len(text)


def _not_finite(columns: list[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """Return the hidden object of rows with non-finite numbers; null for others."""
    objects: list[dict[str, str]] = [{} for _ in range(rows)]
    for name, column in columns:
        for row in pc.indices_nonzero(column.is_valid()).to_pylist():
            objects[row][name] = repr(column[row].as_py())
    texts = (_json(of_row) if of_row else None for of_row in objects)
    return pa.array(texts, pa.string())


def _joined(parts: Parts, between: str) -> pa.Array:
    """Join text by row. Without separator a null makes the row null; else nulls are skipped."""
    how = "skip" if between else "emit_null"
    return pc.binary_join_element_wise(*parts, between, null_handling=how)


def _cut(text: pa.Array) -> list[bytes]:
    data = memoryview(text.buffers()[2])
    return [bytes(data[start:end]) for start, end in pairwise(_ends(text).tolist())]


def _ends(strings: pa.Array) -> npt.NDArray[np.int32]:
    first = strings.offset
    return np.frombuffer(strings.buffers()[1], np.int32)[first : first + len(strings) + 1]


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
