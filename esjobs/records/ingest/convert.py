"""Cells to typed values: Arrow arrays of whatever type a file has become the catalogue's types, column-wise.

A cell that cannot be converted becomes null and gets a code (an index into ``REASONS``); nothing raises.
Clean columns cost a few passes over memory; only a column that offends is looked at cell by cell.
"""

import re
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import arrow_type
from esjobs.records.ingest.base import (
    FALSE,
    FIRST_YEAR,
    LARGEST,
    LAST_YEAR,
    MAX_INTEGER,
    MAX_NUMBER,
    RESERVED,
    TRUE,
)
from esjobs.records.ingest.reading.layout import Codes, Column, Layout, Values

REASONS = (
    "",
    "not a number",
    "not a whole number",
    "negative",
    "out of range",
    "bad time",
    "reserved value",
    "out of range",
    "NUL in text",
    "signed id",
    "neither true nor false",
    "not an object of numbers",
    "bad name",
    "name repeated",
)
NOT_NUMBER, NOT_WHOLE, NEGATIVE, OUT_OF_RANGE, BAD_TIME, RESERVED_VALUE, INFINITE, NUL, SIGNED = range(1, 10)
NOT_BOOLEAN, NOT_MAP, BAD_NAME, REPEATED = range(10, 14)

UTC_TIME = pa.timestamp("us", tz="UTC")
_NAIVE = pa.timestamp("us")
_FIRST_US = int(datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()) * 10**6
_END_US = int(datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()) * 10**6
# Epoch numbers from here on are milliseconds: as seconds they would lie beyond the year 5000.
_MILLISECONDS_FROM = 1e11

# bytes up to here are blanks or controls, in every encoding that a file may have
_SPACE = 0x20
# seconds since 1970; a time with an offset; more digits of a second than microseconds
_EPOCH = r"^[+-]?\d+(\.\d*)?$"
_ZONED = r"[T ]\d\d.*[+-]\d\d(:?\d\d)?$"
_LONG_FRACTION = r"(\.\d{6})\d+"


def convert(cells: pa.Array, column: Column, layout: Layout) -> Values:
    """Convert one column; the result has the Arrow type of the column's catalogue type."""
    cells = _plain(cells)
    if pa.types.is_null(cells.type):
        return Values(pa.nulls(len(cells), arrow_type(column.type)))
    match column.type:
        case "number":
            converted = _number(cells, column, layout)
        case "integer":
            converted = _integer(cells, column, layout)
        case "time":
            converted = _time(cells, layout)
        case "boolean":
            converted = _boolean(cells, layout)
        case _:
            converted = _text(cells, column, layout)
    if converted.problems is not None and (column.lenient or not converted.problems.any()):
        converted.problems = None
    return converted


_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
# Kinds of Parquet columns that convert to a type of the catalogue; of other types also truth values.
_ACCEPTED = {
    "map": (pa.types.is_map, pa.types.is_struct),
    "time": (*_NUMERIC, pa.types.is_timestamp, pa.types.is_date),
    **dict.fromkeys(("number", "integer"), _NUMERIC),
}


def acceptable(kind: pa.DataType, column: Column) -> bool:
    """True if a Parquet column of this type converts to the column's type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind) or _is_text(kind):
        return True
    other = _NUMERIC if column.whole_number else (*_NUMERIC, pa.types.is_boolean)
    return any(accepts(kind) for accepts in _ACCEPTED.get(column.type, other))


def _is_text(kind: pa.DataType) -> bool:
    string = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return bool(string or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def decode(cells: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """Text that a file gives no warrant for: as strings, cells that are not UTF-8 null and marked."""
    if pa.types.is_dictionary(cells.type) and _is_text(cells.type.value_type):
        cells = cells.dictionary_decode()
    if not _is_text(cells.type):
        return cells, None
    # offsets of 64 bits do not fit those of 32
    binary = pa.large_binary() if "large" in str(cells.type) else pa.binary()
    return cast_where_possible(cells.cast(binary), pa.string())


def _plain(cells: pa.Array) -> pa.Array:
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks() if cells.num_chunks != 1 else cells.chunk(0)
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if _is_text(cells.type) and not pa.types.is_string(cells.type):
        cells = cells.cast(pa.string())
    # Arrow has no kernels for some of these types; a double holds what the catalogue accepts
    if pa.types.is_decimal(cells.type) or pa.types.is_float16(cells.type) or pa.types.is_float32(cells.type):
        cells = cells.cast(pa.float64())
    return cells


# -- text ------------------------------------------------------------------------------------------------


def _text(cells: pa.Array, column: Column, layout: Layout) -> Values:
    negative_zero = _negative_zeros(cells) if column.whole_number else None
    cells, problems = _as_text(cells)
    if negative_zero is not None:
        problems = _mark(problems, negative_zero, SIGNED)
        cells = _null_out(cells, negative_zero)
    cells = clean_text(cells, layout, layout.text_nulls)
    if _holds_nul(cells):
        hit = bools(pc.match_substring(cells, "\0"))
        problems = _mark(problems, hit, NUL)
        cells = _null_out(cells, hit)
    if column.lower:
        cells = pc.utf8_lower(cells)
    if column.whole_number and not pc.all(pc.ascii_is_decimal(cells), min_count=0).as_py():
        return _whole_text(cells, problems)
    reserved = RESERVED.get(column.target)
    if reserved:
        hit = pc.is_in(cells, pa.array(reserved, pa.string()))
        if pc.any(hit, min_count=0).as_py():
            problems = _mark(problems, bools(hit), RESERVED_VALUE)
            cells = _null_out(cells, bools(hit))
    return Values(cells, problems)


def _as_text(cells: pa.Array) -> tuple[pa.Array, Codes | None]:
    # doubles without a fraction become whole numbers, NaN is missing
    kind = cells.type
    if pa.types.is_string(kind):
        return cells, None
    if not pa.types.is_floating(kind):
        return cells.cast(pa.string()), None
    numbers = cells.to_numpy(zero_copy_only=False)
    valid = ~np.isnan(numbers)
    huge = valid & (np.abs(np.where(valid, numbers, 0.0)) > MAX_INTEGER)
    # NaN and large numbers cannot be cast to integers
    usable = np.where(valid & ~huge, numbers, 0.0)
    integral = usable == np.floor(usable)
    as_double = pa.array(usable).cast(pa.string())
    as_whole = pa.array(usable.astype(np.int64)).cast(pa.string())
    # pandas turns a column of ids with a gap into doubles: 123.0 is the id 123
    text = pc.if_else(pa.array(integral), as_whole, as_double)
    text = _null_out(text, ~valid | huge)
    return text, _mark(None, huge, OUT_OF_RANGE) if huge.any() else None


def _negative_zeros(cells: pa.Array) -> npt.NDArray[np.bool_] | None:
    # -0.0 would lose its sign as a whole number
    if not pa.types.is_floating(cells.type):
        return None
    numbers = cells.to_numpy(zero_copy_only=False)
    negative: npt.NDArray[np.bool_] = (numbers == 0) & np.signbit(numbers)
    return negative if negative.any() else None


def clean_text(cells: pa.Array, layout: Layout, more_nulls: tuple[str, ...] = ()) -> pa.Array:
    """Blank cells and the layout's spellings of a missing one become null; blanks around text may go."""
    n = len(cells)
    if cells.null_count == n:
        return cells
    # the first and last byte of each cell are looked at, not its text: a clean column costs no copy
    offsets = np.frombuffer(cells.buffers()[1], dtype=np.int32)[cells.offset : cells.offset + n + 1]
    begins, ends = offsets[:-1], offsets[1:]
    filled = ends > begins
    if not filled.all():
        begins, ends = begins[filled], ends[filled]
    data = np.frombuffer(cells.buffers()[2] or b"", dtype=np.uint8)
    blank_first = _any_blank(data, begins)
    blank_last = layout.trim and _any_blank(data, ends - 1)
    trimmed = blank_first or blank_last
    if layout.trim and trimmed:
        cells = pc.ascii_trim_whitespace(cells)
    elif blank_first:
        cells = _null_out(cells, bools(pc.ascii_is_space(cells)))
    if n - int(filled.sum()) > cells.null_count or blank_first:
        cells = _null_out(cells, bools(pc.equal(pc.binary_length(cells), 0)))
    nulls = layout.nulls + more_nulls
    # no cell is as short as a spelling of a missing one: nothing to look for
    if nulls and len(begins) and (trimmed or int((ends - begins).min()) <= max(map(len, nulls))):
        cells = _null_out(cells, bools(pc.is_in(cells, pa.array(nulls, pa.string()))))
    return cells


def _any_blank(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int32]) -> bool:
    return bool(len(at)) and bool((data[at] <= _SPACE).any())


def _holds_nul(cells: pa.Array) -> bool:
    # C strings end at a NUL: two names would become one
    if cells.null_count == len(cells):
        return False
    _, offsets, data = cells.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    first, last = ends[cells.offset], ends[cells.offset + len(cells)]
    return data is not None and 0 in np.frombuffer(data, dtype=np.uint8)[first:last]


def _whole_text(cells: pa.Array, problems: Codes | None) -> Values:
    # no sign: +7 and 7 would be two jobs
    unsigned = bools(pc.match_substring_regex(cells, r"^\d+(\.0*)?$"))
    refused = ~unsigned & bools(cells.is_valid())
    # the first pattern that matches gives the reason
    for pattern, code in (
        (r"^-0*[1-9]\d*(\.0*)?$", NEGATIVE),
        (r"^[+-]\d+(\.0*)?$", SIGNED),
        ("", NOT_WHOLE),
    ):
        hit = refused & bools(pc.match_substring_regex(cells, pattern))
        if hit.any():
            problems = _mark(problems, hit, code)
    cells = pc.replace_substring_regex(cells, r"^(\d+)\.0*$", r"\1")
    return Values(_null_out(cells, refused), problems)


def _boolean(cells: pa.Array, layout: Layout) -> Values:
    if pa.types.is_boolean(cells.type):
        return Values(cells)
    text, _ = _as_text(cells)
    cells = pc.utf8_lower(clean_text(pc.utf8_trim(text, " \t"), layout))
    true, false = (bools(pc.is_in(cells, pa.array(words))) for words in (TRUE, FALSE))
    refused = bools(cells.is_valid()) & ~true & ~false
    truths = pa.array(true, mask=~true & ~false)
    return Values(truths, _mark(None, refused, NOT_BOOLEAN) if refused.any() else None)


# -- numbers ---------------------------------------------------------------------------------------------


def _number(cells: pa.Array, column: Column, layout: Layout) -> Values:
    values, problems = as_double(cells, layout)
    largest = LARGEST.get(column.target, MAX_NUMBER)
    values, problems = _bounded(values, problems, column, largest / column.scale)
    if column.scale != 1.0:
        values = pc.multiply(values, column.scale)
    return Values(values, problems)


def _integer(cells: pa.Array, column: Column, layout: Layout) -> Values:
    high = LARGEST.get(column.target, MAX_INTEGER)
    if pa.types.is_integer(cells.type):
        view = _view(cells)
        low = 0 if column.bounded else -high
        # the quick way: within bounds without a look at nulls, whose slots may hold anything
        if not len(view) or (view.min() >= low and view.max() <= high):
            return Values(cells.cast(pa.int64()))
    values, problems = as_double(cells, layout)
    values, problems = _bounded(values, problems, column, float(high))
    view = _view(values)
    fraction = view != np.floor(view)
    if fraction.any():
        fraction &= bools(values.is_valid())
        if fraction.any():
            problems = _mark(problems, fraction, NOT_WHOLE)
            values = _null_out(values, fraction)
    return Values(values.cast(pa.int64()), problems)


def as_double(cells: pa.Array, layout: Layout) -> tuple[pa.Array, Codes | None]:
    """Cells as doubles; what is no number is null and marked."""
    if pa.types.is_float64(cells.type):
        return cells, None
    if not pa.types.is_string(cells.type):
        if pa.types.is_boolean(cells.type) or pa.types.is_temporal(cells.type):
            return pa.nulls(len(cells), pa.float64()), _mark(None, bools(cells.is_valid()), NOT_NUMBER)
        return cells.cast(pa.float64(), safe=False), None
    cells = clean_text(pc.utf8_trim(cells, " \t"), layout)
    values, failed = cast_where_possible(cells, pa.float64())
    return values, _mark(None, failed, NOT_NUMBER) if failed is not None else None


def _bounded(
    values: pa.Array, problems: Codes | None, column: Column, limit: float
) -> tuple[pa.Array, Codes | None]:
    view = _view(values)
    low = 0.0 if column.bounded else -limit
    # below the bound it would be found anyway
    unset = column.unset is not None and column.unset >= low and bool((view == column.unset).any())
    if not len(view) or (view.min() >= low and view.max() <= limit and not unset):
        return values, problems
    valid = bools(values.is_valid())
    if column.unset is not None:
        valid &= view != column.unset
    infinite = valid & ~np.isfinite(view)
    negative = valid & ~infinite & (view < 0) & column.bounded
    huge = valid & ~infinite & ~negative & (np.abs(view) > limit)
    for mask, code in ((infinite, INFINITE), (negative, NEGATIVE), (huge, OUT_OF_RANGE)):
        if mask.any():
            problems = _mark(problems, mask, code)
    return _null_out(values, ~valid | infinite | negative | huge), problems


# -- times -----------------------------------------------------------------------------------------------


def _time(cells: pa.Array, layout: Layout) -> Values:
    kind = cells.type
    failed: npt.NDArray[np.bool_] | None
    if pa.types.is_string(kind):
        times, failed = _time_from_text(clean_text(pc.utf8_trim(cells, " \t"), layout))
    elif pa.types.is_timestamp(kind):
        times, failed = _time_from_timestamp(cells)
    elif pa.types.is_date(kind):
        times, failed = cast_where_possible(cells, _NAIVE)
    elif pa.types.is_boolean(kind):
        times, failed = pa.nulls(len(cells), _NAIVE), bools(cells.is_valid())
    else:
        times, failed = _time_from_epoch(cells.cast(pa.float64(), safe=False))
    problems = _mark(None, failed, BAD_TIME) if failed is not None else None
    view = _view(times.view(pa.int64()))
    if len(view) and not (view.min() >= _FIRST_US and view.max() < _END_US):
        outside = bools(times.is_valid()) & ((view < _FIRST_US) | (view >= _END_US))
        if outside.any():
            problems = _mark(problems, outside, BAD_TIME)
            times = _null_out(times, outside)
    return Values(times.view(UTC_TIME), problems)


def _time_from_timestamp(cells: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    # viewed, not cast: a time with a zone is stored as UTC already
    naive = cells.view(pa.timestamp(cells.type.unit))
    if cells.type.unit == "ns":
        # nanoseconds are cut off; all other units fit
        return naive.cast(_NAIVE, safe=False), None
    return cast_where_possible(naive, _NAIVE)


def _time_from_text(cells: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    marked = bools(pc.ends_with(cells, "Z"))
    if marked.any():
        cells = pc.if_else(pa.array(marked), pc.utf8_slice_codeunits(cells, 0, -1), cells)
    if _looks_plain(cells):
        try:
            return cells.cast(_NAIVE), None
        except pa.ArrowInvalid:
            pass
    cells = pc.replace_substring_regex(cells, _LONG_FRACTION, r"\1")
    # three forms may stand in one column: each is cast by its own rule
    epoch = ~marked & bools(pc.match_substring_regex(cells, _EPOCH))
    zoned = ~marked & ~epoch & bools(pc.match_substring_regex(cells, _ZONED))
    naive = ~epoch & ~zoned
    total = np.zeros(len(cells), dtype=np.int64)
    failed = np.zeros(len(cells), dtype=bool)
    for mask, kind in ((naive, _NAIVE), (zoned, UTC_TIME), (epoch, pa.float64())):
        part = cells.filter(pa.array(mask))
        if not len(part):
            continue
        times, bad = cast_where_possible(part, kind)
        if kind == pa.float64():
            times, bad = _time_from_epoch(times)
        total[mask] = times.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        if bad is not None:
            failed[mask] = bad
    missing = ~bools(cells.is_valid()) | failed
    return pa.array(total, mask=missing).view(_NAIVE), failed if failed.any() else None


def _looks_plain(cells: pa.Array) -> bool:
    # a cast that fails at every cell is slow, so the first cell decides
    valid = bools(cells.is_valid())
    if not valid.any():
        return True
    first = cells[int(valid.argmax())].as_py()
    return not (re.search(_EPOCH, first) or re.search(_ZONED, first))


def _time_from_epoch(seconds: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    valid = bools(seconds.is_valid())
    view = np.where(valid, _view(seconds), 0.0)
    # beyond this, milliseconds times 1000 would not fit 64 bits of microseconds
    far = ~np.isfinite(view) | (np.abs(view) > 1e15)
    view = np.where(far, 0.0, view)
    scale = np.where(np.abs(view) >= _MILLISECONDS_FROM, 1e3, 1e6)
    times = pa.array(np.rint(view * scale).astype(np.int64), mask=~valid | far).view(_NAIVE)
    return times, far if far.any() else None


# -- arrays ----------------------------------------------------------------------------------------------


def cast_where_possible(cells: pa.Array, kind: pa.DataType) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """Cast; cells that cannot be cast become null and are marked. Found by halving: k log n casts."""
    try:
        return cells.cast(kind), None
    except pa.ArrowInvalid:
        if len(cells) == 1:
            return pa.nulls(1, kind), np.ones(1, dtype=bool)
    half = len(cells) // 2
    parts = [cast_where_possible(part, kind) for part in (cells.slice(0, half), cells.slice(half))]
    failed = [np.zeros(len(part), dtype=bool) if bad is None else bad for part, bad in parts]
    return pa.concat_arrays([part for part, _ in parts]), np.concatenate(failed)


def _view(values: pa.Array) -> npt.NDArray[np.float64]:
    # values in null slots are undefined
    kind = np.dtype(values.type.to_pandas_dtype())
    if not len(values):
        return np.empty(0, dtype=kind)
    view: npt.NDArray[np.float64] = np.frombuffer(values.buffers()[1], dtype=kind)
    return view[values.offset : values.offset + len(values)]


def bools(mask: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a mask as NumPy has it; null counts as false."""
    filled = mask.fill_null(False) if mask.null_count else mask
    found: npt.NDArray[np.bool_] = filled.to_numpy(zero_copy_only=False)
    return found


def _null_out(values: pa.Array, where: npt.NDArray[np.bool_]) -> pa.Array:
    if not where.any():
        return values
    return pc.if_else(pa.array(where), pa.scalar(None, values.type), values)


def _mark(problems: Codes | None, where: npt.NDArray[np.bool_], code: int) -> Codes:
    marked = np.zeros(len(where), dtype=np.uint8) if problems is None else problems
    marked[where & (marked == 0)] = code
    return marked
