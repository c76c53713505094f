"""Values that a source gives, against the bounds that hold for every format and every writer.

The readers of files check what they read, cell by cell; here whole columns are looked at, and only one that
offends is looked at again. A row with a value out of bounds is refused.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.fields import JOB_FIELDS, Field
from esjobs.core.tables import Table
from esjobs.records.ingest.base import (
    FIRST_YEAR,
    LARGEST,
    LAST_YEAR,
    MAX_COUNT,
    MAX_INTEGER,
    MAX_NUMBER,
    RESERVED,
    RowError,
    shortened,
)
from esjobs.records.ingest.convert import bools
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import END_BEFORE_START

Mask = npt.NDArray[np.bool_]


def sound(batch: pa.RecordBatch, table: Table | None, refusals: Refusals) -> pa.RecordBatch:
    """Return the rows whose values are within bounds; the others go to ``refusals``. ``table`` None: jobs.

    Numbers are finite and bounded, texts have no NUL. Jobs: times lie in the accepted years, no value is
    reserved, none ends before it starts.
    """
    columns = JOB_FIELDS if table is None else table.given_columns
    bad = np.zeros(batch.num_rows, dtype=bool)
    for column, reason, accepted, mask in _offences(batch, columns, of_jobs=table is None):
        # a row is refused once, for its first offending column
        fresh = np.flatnonzero(mask & ~bad)
        bad |= mask
        room = refusals.room(reason, column.name)
        for row in fresh[:room].tolist():
            text = shortened(str(batch.column(column.name)[row]))
            detail = f"{column.name} contains '{text}'; accepted: {accepted}"
            job_id = batch.column("job_id")[row].as_py() if "job_id" in batch.schema.names else None
            error = RowError(reason, column.name, detail)
            refusals.refuse(error, int(_lines(batch, np.array([row]))[0]), str(job_id or ""))
        refusals.count(reason, column.name, np.sort(_lines(batch, fresh[room:])))
    return batch.filter(pa.array(~bad)) if bad.any() else batch


def _offences(
    batch: pa.RecordBatch, columns: Iterable[Field], *, of_jobs: bool
) -> Iterator[tuple[Field, str, str, Mask]]:
    # field, reason, accepted values, rows; in the order of the columns
    for column in columns:
        values = batch.column(column.name)
        if values.null_count == len(values):
            continue
        for reason, accepted, mask in _in_column(values, column, of_jobs=of_jobs):
            if mask.any():
                yield column, reason, accepted, mask
    if of_jobs:
        late = bools(pc.less(batch.column("end_time"), batch.column("start_time")))
        if late.any():
            end = next(column for column in JOB_FIELDS if column.name == "end_time")
            yield end, END_BEFORE_START, "not before start_time", late


def _in_column(values: pa.Array, column: Field, *, of_jobs: bool) -> Iterable[tuple[str, str, Mask]]:
    match column.type:
        case "map":
            return chain(_numbers(values, column, of_jobs=of_jobs), _names(values))
        case "number" | "integer" | "list":
            return _numbers(values, column, of_jobs=of_jobs)
        case "keyword" | "text":
            return _texts(values, RESERVED.get(column.name, ()) if of_jobs else ())
        case "time" if of_jobs:
            return _times(values)
    return ()


def _numbers(values: pa.Array, column: Field, *, of_jobs: bool) -> Iterator[tuple[str, str, Mask]]:
    n_rows = len(values)
    values, rows = _flat(values, column)
    integral = column.type == "integer"
    usual = MAX_INTEGER if integral else MAX_COUNT if column.type == "map" else MAX_NUMBER
    limit = LARGEST.get(column.name, usual) if of_jobs else usual
    least, most = (pc.min_max(values).as_py()[end] for end in ("min", "max"))
    # min_max skips NaN, so it is looked for apart
    finite = integral or pc.all(pc.is_finite(values), min_count=0).as_py() is not False
    low = 0 if column.bounded else -limit
    if least is None or (finite and low <= least and most <= limit):
        return
    accepted = _accepted(column, limit)
    view = values.fill_null(0).to_numpy(zero_copy_only=False)
    none = ~np.isfinite(view)
    negative = ~none & (view < 0) & column.bounded
    # compared without abs(), which the least 64-bit integer overflows
    huge = ~none & ~negative & ((view > limit) | (view < -limit))
    for reason, mask in (("not a number", none), ("negative", negative), ("out of range", huge)):
        yield reason, accepted, mask if rows is None else _by_row(rows, mask, n_rows)


def _flat(values: pa.Array, column: Field) -> tuple[pa.Array, npt.NDArray[np.int64] | None]:
    """Return the numbers inside maps and lists with the row of each; other columns as they are."""
    if column.type not in ("map", "list"):
        return values, None
    # a slice of a column keeps the numbers of all rows: only those between its ends are its own
    ends = values.offsets.to_numpy()
    rows = np.repeat(np.arange(len(values)), np.diff(ends))
    inner = values.items if column.type == "map" else values.values
    return inner.slice(ends[0], ends[-1] - ends[0]), rows


def _accepted(column: Field, limit: float) -> str:
    kind = "whole" if column.type == "integer" else "finite"
    bounds = f"from 0 to {limit:g}" if column.bounded else f"of at most {limit:g}"
    unit = f" ({column.unit})" if column.unit else ""
    return f"a {kind} number {bounds}{unit}"


def _names(values: pa.Array) -> Iterator[tuple[str, str, Mask]]:
    # no engine keeps a name twice
    ends = values.offsets.to_numpy()
    rows = np.repeat(np.arange(len(values)), np.diff(ends))
    keys = values.keys.slice(ends[0], ends[-1] - ends[0]).dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first, counts = np.unique(
        rows * (len(keys.dictionary) + 1) + codes, return_index=True, return_counts=True
    )
    repeated = _by_row(rows[first], counts > 1, len(values))
    yield "name repeated", "names that occur once", repeated
    empty = pc.equal(pc.utf8_length(keys.dictionary), 0).to_numpy(zero_copy_only=False)
    yield "bad name", "non-empty names", _by_row(rows, empty[codes], len(values))


def _by_row(rows: npt.NDArray[np.int64], mask: Mask, n_rows: int) -> Mask:
    found = np.zeros(n_rows, dtype=bool)
    found[rows[mask]] = True
    return found


def _texts(values: pa.Array, reserved: tuple[str, ...]) -> Iterator[tuple[str, str, Mask]]:
    yield "NUL in text", "text without the character NUL", bools(pc.match_substring(values, "\0"))
    if reserved:
        named = bools(pc.is_in(values, pa.array(reserved, pa.string())))
        yield "reserved value", "any other value; this one stands for all values together", named


def _times(values: pa.Array) -> Iterator[tuple[str, str, Mask]]:
    years = pc.year(values)
    outside = pc.or_(pc.less(years, FIRST_YEAR), pc.greater(years, LAST_YEAR))
    yield "bad time", f"times of the years {FIRST_YEAR} to {LAST_YEAR}", bools(outside)


def _lines(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    # 0 where the source names no line
    if "origin_line" not in batch.schema.names:
        return np.zeros(len(rows), dtype=np.int64)
    lines: npt.NDArray[np.int64] = batch.column("origin_line").fill_null(0).to_numpy()[rows]
    return lines
