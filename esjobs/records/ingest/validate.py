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
from esjobs.records.ingest.base import (
    FIRST_YEAR,
    LARGEST,
    LAST_YEAR,
    MAX_COUNT,
    MAX_NUMBER,
    Parsed,
    RowError,
    shortened,
)
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

_Codes = npt.NDArray[np.uint8]
# Beyond the codes of `REASONS`: a required field without a value.
MISSING = 100
END_BEFORE_START = "end before start"


@dataclass(frozen=True)
class Block:
    """Rows of a file as columns; ``cells`` by the file's column names.

    ``cell(i, name)``, ``excerpt(i)``: the original text, for messages about rejected rows.
    """

    cells: Mapping[str, pa.Array]
    rows: int
    numbers: npt.NDArray[np.int64]
    cell: Callable[[int, str], str]
    excerpt: Callable[[int], str]


@dataclass(frozen=True)
class Context:
    """Properties that hold for every row of a file."""

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
    for number, spec in enumerate(JOB_FIELDS):
        converted = values.get(spec.name)
        array = pa.nulls(block.rows, arrow_type(spec.type)) if converted is None else converted.values
        problems = None if converted is None else converted.problems
        if array.null_count:
            array = _filled(array, spec, problems, context)
        arrays.append(array)
        # the first offending field decides: later ones of the same row are not looked at
        if problems is not None:
            fresh = (problems > 0) & (code == 0)
            first[fresh], code[fresh] = number, problems[fresh]
        if spec.required and array.null_count:
            fresh = _nulls(array) & (code == 0)
            first[fresh], code[fresh] = number, MISSING
    late = _end_before_start(arrays) & (code == 0)
    arrays += [pa.repeat(pa.scalar(context.file), block.rows), pa.array(block.numbers)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=PUT_SCHEMA)
    bad = (code > 0) | late
    if bad.any():
        _tell_words_from_numbers(block, binding, first, code)
        _refuse(block, binding, batch, refusals, first, code, late)
        batch = batch.filter(pa.array(~bad))
    refused = refusals.take()
    return Parsed(batch, refused, batch.num_rows + len(refused), notes)


def _refuse(
    block: Block,
    binding: Binding,
    batch: pa.RecordBatch,
    refusals: Refusals,
    first: _Codes,
    code: _Codes,
    late: npt.NDArray[np.bool_],
) -> None:
    """List the refused rows, ``first``: number of the offending field; beyond the room they are counted."""
    for (reason, field_name), rows in _by_kind(first, code, late).items():
        room = refusals.room(reason, field_name)
        for row in rows[:room].tolist():
            spec, why = JOB_FIELDS[first[row]], int(code[row])
            error = _late(row, batch) if late[row] else _wrong(block, binding, row, spec, why)
            refusals.refuse(error, int(block.numbers[row]), block.excerpt(row))
        refusals.count(reason, field_name, block.numbers[rows[room:]])


def _tell_words_from_numbers(block: Block, binding: Binding, first: _Codes, code: _Codes) -> None:
    # the parser reads inf and 1e400 alike: one is no number, the other is out of range
    for row in np.flatnonzero(code == INFINITE):
        names = binding.sources[JOB_FIELDS[first[row]].name]
        if not is_numeric(_offending_cell(block, binding, int(row), names)[1]):
            code[row] = NOT_NUMBER


def _by_kind(
    first: _Codes, code: _Codes, late: npt.NDArray[np.bool_]
) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    kinds: dict[tuple[str, str], npt.NDArray[np.int64]] = {}
    if late.any():
        kinds[END_BEFORE_START, "end_time"] = np.flatnonzero(late)
    refused = np.flatnonzero(code)
    # field and code as one number; both are bytes
    pairs = first[refused].astype(np.int64) * 256 + code[refused]
    for pair in np.unique(pairs):
        spec = JOB_FIELDS[pair // 256]
        key = _reason(spec, int(pair % 256)), spec.name
        # several codes share a reason
        rows = np.append(kinds.get(key, refused[:0]), refused[pairs == pair])
        kinds[key] = np.sort(rows)
    return kinds


def _reason(spec: Field, code: int) -> str:
    return f"missing {spec.name}" if code == MISSING else REASONS[code]


def _column(block: Block, binding: Binding, index: int) -> Values:
    # the first column that has a value, or a problem, wins
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
            _fill(best, converted)
    if best is None:
        return convert(pa.nulls(block.rows), column, binding.layout)
    return best


def _fill(best: Values, other: Values) -> None:
    # a cell that was rejected is not missing: another column does not stand in for it
    missing = _nulls(best.values)
    if best.problems is not None:
        missing &= best.problems == 0
    best.values = pc.if_else(pa.array(missing), other.values, best.values)
    if other.problems is not None and (missing & (other.problems > 0)).any():
        base = np.zeros(len(missing), dtype=np.uint8) if best.problems is None else best.problems
        best.problems = np.where(missing, other.problems, base)
        best.column = other.column


def _map(block: Block, binding: Binding, column: Column) -> Values:
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


def _filled(array: pa.Array, spec: Field, problems: _Codes | None, context: Context) -> pa.Array:
    value = context.from_name.get(spec.name, context.fill.get(spec.name))
    if value is None and spec.name == "source":
        value = context.default_source
    if value is None:
        return array
    scalar = pa.scalar(value, arrow_type(spec.type))
    if array.null_count == len(array) and problems is None:
        return pa.repeat(scalar, len(array))
    return pc.fill_null(array, scalar)


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


_NAMES = [spec.name for spec in JOB_FIELDS]
_START, _END = _NAMES.index("start_time"), _NAMES.index("end_time")


def _end_before_start(arrays: list[pa.Array]) -> npt.NDArray[np.bool_]:
    start, end = arrays[_START], arrays[_END]
    if start.null_count == len(start):
        return np.zeros(len(start), dtype=bool)
    late: npt.NDArray[np.bool_] = pc.less(end, start).fill_null(False).to_numpy(zero_copy_only=False)
    return late


# -- messages --------------------------------------------------------------------------------------------


def _wrong(block: Block, binding: Binding, row: int, spec: Field, code: int) -> RowError:
    names = binding.sources.get(spec.name, ())
    if spec.type == "map":
        names = _suspects(block, row, names, _layout_column(binding, spec))
    if code == MISSING:
        wanted = " or ".join(_layout_column(binding, spec).names)
        fix = "" if spec.name == "job_id" else f", or --set {spec.name}=VALUE"
        detail = f"{spec.name} is missing or empty; accepted: a value in {wanted}{fix}"
        return RowError(_reason(spec, code), spec.name, detail)
    name, text = _offending_cell(block, binding, row, names)
    column = f"column {name}" if name != spec.name else spec.name
    detail = f"{column} contains '{shortened(text)}'; accepted: {_accepted(binding, spec, code)}"
    return RowError(_reason(spec, code), spec.name, detail)


def _offending_cell(block: Block, binding: Binding, row: int, names: Sequence[str]) -> tuple[str, str]:
    text, name = "", names[0]
    for name in names:
        text = block.cell(row, name)
        if text.strip() and text.strip() not in binding.layout.nulls:
            break
    return name, text


def _suspects(block: Block, row: int, names: Sequence[str], column: Column) -> tuple[str, ...]:
    # columns of a map that may be wrong in a row; objects as one
    offending = [
        name for name in names if not (_is_member(name, column) and _is_count(block.cell(row, name)))
    ]
    return tuple(offending or names)


def _is_count(text: str) -> bool:
    try:
        return not text.strip() or 0 <= float(text) <= MAX_COUNT
    except ValueError:
        return False


def _layout_column(binding: Binding, spec: Field) -> Column:
    return next(column for column in binding.layout.columns if column.target == spec.name)


def _accepted(binding: Binding, spec: Field, code: int) -> str:
    column = _layout_column(binding, spec)
    if code == NUL:
        return "text without the character NUL"
    if code == RESERVED_VALUE:
        return "any other value; this one stands for all values together"
    integral = spec.type == "integer" or code == NOT_WHOLE
    if column.whole_number:
        return "a whole number without a sign"
    unit = f" ({spec.unit})" if spec.unit else ""
    accepted = {
        "time": f"ISO 8601 (default zone: UTC), or seconds or milliseconds since 1970, years {FIRST_YEAR} to "
        f"{LAST_YEAR}",
        "boolean": "true or false",
        "map": f"numbers from 0 to {MAX_COUNT:g} with different names",
        "number": f"a finite number from 0 to {LARGEST.get(spec.name, MAX_NUMBER):g}{unit}",
    }
    if integral and spec.name in LARGEST:
        return f"a whole number from 0 to {LARGEST[spec.name]:g}"
    other = "a whole number from 0, below 2^53" if integral else "text, or a whole number below 2^53"
    return accepted.get(spec.type, other)


def is_numeric(text: str) -> bool:
    """True if a text that is no finite double is written as a number: 1e400, not inf.

    >>> is_numeric("1e400"), is_numeric("inf")
    (True, False)
    """
    digits = text.strip().lstrip("+-").lower()
    return digits[:1].isdigit() or (digits[:1] == "." and digits[1:2].isdigit())


def _late(row: int, batch: pa.RecordBatch) -> RowError:
    start, end = batch.column(_START)[row].as_py(), batch.column(_END)[row].as_py()
    detail = (
        f"end_time {end.isoformat()} is before start_time {start.isoformat()}; accepted: an end after the "
        "start"
    )
    return RowError(END_BEFORE_START, "end_time", detail)
