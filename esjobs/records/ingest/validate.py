"""Rows from converted columns: fills what is missing, refuses what is impossible, keeps the books.

The first offending field, in the catalogue's order, decides the reason; then come rules over several fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import PUT_SCHEMA, arrow_type
from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.records.ingest.base import EXCERPT, FIRST_YEAR, LAST_YEAR, MAX_COUNT, MAX_NUMBER, Parsed, Reject
from esjobs.records.ingest.convert import (
    INFINITE,
    NOT_NUMBER,
    NOT_WHOLE,
    NUL,
    REASONS,
    RESERVED_VALUE,
    convert,
)
from esjobs.records.ingest.maps import map_of
from esjobs.records.ingest.reading.layout import Binding, Column, Values, member_of
from esjobs.records.ingest.refusals import Refusals

MISSING = 100
END_BEFORE_START = "end before start"
_SHOWN = 60


@dataclass(frozen=True)
class Block:
    """Some rows of a file as columns.

    ``cells``: by the file's column names, all of length ``rows``. ``cell(i, name)`` and ``excerpt(i)``: what
    stood in the file, for messages; called for refused rows only.
    """

    cells: Mapping[str, pa.Array]
    rows: int
    numbers: npt.NDArray[np.int64]
    cell: Callable[[int, str], str]
    excerpt: Callable[[int], str]


@dataclass(frozen=True)
class Context:
    """What holds for every row of a file."""

    file: str
    default_source: str
    fill: Mapping[str, object]
    from_name: Mapping[str, object] = field(default_factory=dict)


def rows_of(
    block: Block, binding: Binding, context: Context, refusals: Refusals, notes: tuple[str, ...] = ()
) -> Parsed:
    """Turn a block into good rows and rejects, those that ``refusals`` lists."""
    values = {
        column.target: _column(block, binding, index)
        for index, column in enumerate(binding.layout.columns)
        if column.target in binding.sources
    }
    binding.layout.derive(values)
    first = np.zeros(block.rows, dtype=np.uint8)
    code = np.zeros(block.rows, dtype=np.uint8)
    arrays: list[pa.Array] = []
    for number, known in enumerate(JOB_FIELDS):
        converted = values.get(known.name)
        array = pa.nulls(block.rows, arrow_type(known.type)) if converted is None else converted.values
        problems = None if converted is None else converted.problems
        if array.null_count:
            array = _filled(array, known, problems, context)
        arrays.append(array)
        if problems is not None:
            fresh = (problems > 0) & (code == 0)
            first[fresh], code[fresh] = number, problems[fresh]
        if known.required and array.null_count:
            fresh = _nulls(array) & (code == 0)
            first[fresh], code[fresh] = number, MISSING
    late = _end_before_start(arrays) & (code == 0)
    arrays += [pa.repeat(pa.scalar(context.file), block.rows), pa.array(block.numbers)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA)
    bad = (code > 0) | late
    if bad.any():
        for row in np.flatnonzero(code == INFINITE):
            names = binding.sources[JOB_FIELDS[first[row]].name]
            if not is_numeric(_offending_cell(block, binding, int(row), names)[1]):
                code[row] = NOT_NUMBER
        for (reason, field_name), rows in _by_kind(first, code, late).items():
            room = refusals.room(reason, field_name)
            for row in rows[:room].tolist():
                if late[row]:
                    refusals.add(_late(block, context, row, batch))
                else:
                    known = JOB_FIELDS[first[row]]
                    refusals.add(_refuse(block, binding, context, row, known, int(code[row])))
            refusals.count(reason, field_name, block.numbers[rows[room:]])
        batch = batch.filter(pa.array(~bad))
    refused = refusals.take()
    return Parsed(batch, refused, batch.num_rows + len(refused), notes)


def _by_kind(
    first: npt.NDArray[np.uint8], code: npt.NDArray[np.uint8], late: npt.NDArray[np.bool_]
) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    """The refused rows by reason and field, in ascending order."""
    kinds: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
    if late.any():
        kinds[END_BEFORE_START, "end_time"] = np.flatnonzero(late)
    refused = np.flatnonzero(code)
    pairs = first[refused].astype(np.int64) * 256 + code[refused]
    for pair in np.unique(pairs):
        known = JOB_FIELDS[pair // 256]
        key = _reason(known, int(pair % 256)), known.name
        # several codes share a reason
        rows = np.append(kinds.get(key, refused[:0]), refused[pairs == pair])
        kinds[key] = np.sort(rows)
    return kinds


def _reason(known: Field, code: int) -> str:
    return f"missing {known.name}" if code == MISSING else REASONS[code]


def _column(block: Block, binding: Binding, index: int) -> Values:
    """Convert the columns that a target is read from; the first that has a value (or a problem) wins."""
    column = binding.layout.columns[index]
    names = binding.sources[column.target]
    if column.type == "map":
        return _map(block, binding, column)
    best: Values | None = None
    for name in names:
        cells = block.cells.get(name)
        if cells is None:
            continue
        converted = convert(cells, column, binding.layout)
        converted.column = name
        if best is None:
            best = converted
        elif best.values.null_count:
            missing = _nulls(best.values)
            if best.problems is not None:
                missing &= best.problems == 0
            best.values = pc.if_else(pa.array(missing), converted.values, best.values)
            if converted.problems is not None and (missing & (converted.problems > 0)).any():
                base = np.zeros(block.rows, dtype=np.uint8) if best.problems is None else best.problems
                best.problems = np.where(missing, converted.problems, base)
                best.column = name
    if best is None:
        return convert(pa.nulls(block.rows), column, binding.layout)
    return best


def _map(block: Block, binding: Binding, column: Column) -> Values:
    """All columns that a map is read from, together."""
    objects, members = [], {}
    for name in binding.sources[column.target]:
        cells = block.cells.get(name)
        if cells is None:
            continue
        if _is_member(name, column):
            members[member_of(name, column.members)] = cells
        else:
            objects.append(cells)
    return map_of(block.rows, objects, members, column, binding.layout)


def _is_member(name: str, column: Column) -> bool:
    return bool(column.members) and name.strip().lower().startswith(column.members)


def _filled(
    array: pa.Array, known: Field, problems: npt.NDArray[np.uint8] | None, context: Context
) -> pa.Array:
    value = context.from_name.get(known.name, context.fill.get(known.name))
    if value is None and known.name == "source":
        value = context.default_source
    if value is None:
        return array
    scalar = pa.scalar(value, arrow_type(known.type))
    if array.null_count == len(array) and problems is None:
        return pa.repeat(scalar, len(array))
    return pc.fill_null(array, scalar)


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


_NAMES = [known.name for known in JOB_FIELDS]
_START, _END = _NAMES.index("start_time"), _NAMES.index("end_time")


def _end_before_start(arrays: list[pa.Array]) -> npt.NDArray[np.bool_]:
    start, end = arrays[_START], arrays[_END]
    if start.null_count == len(start):
        return np.zeros(len(start), dtype=bool)
    late: npt.NDArray[np.bool_] = pc.less(end, start).fill_null(False).to_numpy(zero_copy_only=False)
    return late


# -- messages --------------------------------------------------------------------------------------------


def _refuse(block: Block, binding: Binding, context: Context, row: int, known: Field, code: int) -> Reject:
    names = binding.sources.get(known.name, ())
    if known.type == "map":
        names = _suspects(block, row, names, _layout_column(binding, known))
    excerpt = block.excerpt(row)[:EXCERPT]
    line = int(block.numbers[row])
    if code == MISSING:
        wanted = " or ".join(_layout_column(binding, known).names)
        fix = "" if known.name == "job_id" else f", or --set {known.name}=VALUE"
        detail = f"{known.name} is missing or empty; accepted: a value in {wanted}{fix}"
        return Reject(_reason(known, code), context.file, line, known.name, detail, excerpt)
    name, text = _offending_cell(block, binding, row, names)
    column = f"column {name}" if name != known.name else known.name
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    detail = f"{column} holds '{shown}'; accepted: {_accepted(binding, known, code)}"
    return Reject(_reason(known, code), context.file, line, known.name, detail, excerpt)


def _offending_cell(block: Block, binding: Binding, row: int, names: Sequence[str]) -> tuple[str, str]:
    """The first of some columns that has a value in a row, and the value."""
    text, name = "", names[0]
    for name in names:
        text = block.cell(row, name)
        if text.strip() and text.strip() not in binding.layout.nulls:
            break
    return name, text


def _suspects(block: Block, row: int, names: Sequence[str], column: Column) -> tuple[str, ...]:
    """Of the columns that a map is read from, those that may offend in a row; objects as a whole."""
    offending = [
        name for name in names if not (_is_member(name, column) and _is_count(block.cell(row, name)))
    ]
    return tuple(offending or names)


def _is_count(text: str) -> bool:
    try:
        return not text.strip() or 0 <= float(text) <= MAX_COUNT
    except ValueError:
        return False


def _layout_column(binding: Binding, known: Field) -> Column:
    return next(column for column in binding.layout.columns if column.target == known.name)


def _accepted(binding: Binding, known: Field, code: int) -> str:
    column = _layout_column(binding, known)
    if code == NUL:
        return "text without the character NUL"
    if code == RESERVED_VALUE:
        return "any other value, this one stands for all values together"
    if known.type == "time":
        return (
            "ISO 8601 (UTC unless it names an offset), or seconds or milliseconds since 1970, "
            f"years {FIRST_YEAR} to {LAST_YEAR}"
        )
    if known.type == "boolean":
        return "true or false"
    if known.type == "map":
        return f"numbers from 0 to {MAX_COUNT:g} by names of which none is there twice"
    if known.type == "integer" or column.whole_number or code == NOT_WHOLE:
        return (
            "a whole number from 0, below 2^53"
            if not column.whole_number
            else "a whole number without a sign"
        )
    if known.type == "number":
        unit = f" ({known.unit})" if known.unit else ""
        return f"a finite number from 0 to {MAX_NUMBER:g}{unit}"
    return "text, or a whole number below 2^53"


def is_numeric(text: str) -> bool:
    """Whether a text that is no finite double is written as a number all the same: 1e400, not inf.

    >>> is_numeric("1e400"), is_numeric("inf")
    (True, False)
    """
    digits = text.strip().lstrip("+-").lower()
    return digits[:1].isdigit() or (digits[:1] == "." and digits[1:2].isdigit())


def _late(block: Block, context: Context, row: int, batch: pa.RecordBatch) -> Reject:
    start, end = batch.column(_START)[row].as_py(), batch.column(_END)[row].as_py()
    detail = f"end_time {end.isoformat()} lies before start_time {start.isoformat()}; accepted: not before it"
    excerpt = block.excerpt(row)[:EXCERPT]
    return Reject(END_BEFORE_START, context.file, int(block.numbers[row]), "end_time", detail, excerpt)
