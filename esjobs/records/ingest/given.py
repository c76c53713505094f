"""Values that a source gives, against the bounds that hold for every format: whoever wrote the source.

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
    EXCERPT,
    FIRST_YEAR,
    LAST_YEAR,
    MAX_COUNT,
    MAX_INTEGER,
    MAX_NUMBER,
    RESERVED,
    Reject,
)
from esjobs.records.ingest.refusals import Refusals
from esjobs.records.ingest.validate import END_BEFORE_START

Mask = npt.NDArray[np.bool_]

_SHOWN = 60


def sound(batch: pa.RecordBatch, table: Table | None, refusals: Refusals) -> pa.RecordBatch:
    """The rows whose values are within bounds; the others go to ``refusals``.

    ``table``: whose rows they are, None for jobs. Numbers are finite and at most ``MAX_NUMBER``, whole
    numbers at most ``MAX_INTEGER``, texts without NUL; what is bounded is not negative. Of jobs, times lie
    in the years that the formats accept, no value is a reserved one, and none ends before it started.
    """
    columns = JOB_FIELDS if table is None else table.given_columns
    bad = np.zeros(batch.num_rows, dtype=bool)
    for known, reason, accepted, mask in _offences(batch, columns, of_jobs=table is None):
        fresh = np.flatnonzero(mask & ~bad)
        bad |= mask
        room = refusals.room(reason, known.name)
        for row in fresh[:room].tolist():
            refusals.add(_refused(batch, row, known.name, reason, accepted, refusals.file))
        refusals.count(reason, known.name, np.sort(_lines(batch, fresh[room:])))
    return batch.filter(pa.array(~bad)) if bad.any() else batch


def _offences(
    batch: pa.RecordBatch, columns: Iterable[Field], *, of_jobs: bool
) -> Iterator[tuple[Field, str, str, Mask]]:
    """Field, reason, what is accepted, and the rows; in the order of the columns."""
    for known in columns:
        values = batch.column(known.name)
        if values.null_count == len(values):
            continue
        found: Iterator[tuple[str, str, Mask]]
        match known.type:
            case "map":
                found = chain(_numbers(values, known), _names(values))
            case "number" | "integer" | "list":
                found = _numbers(values, known)
            case "keyword" | "text":
                found = _texts(values, RESERVED.get(known.name, ()) if of_jobs else ())
            case "time" if of_jobs:
                found = _times(values)
            case _:
                continue
        for reason, accepted, mask in found:
            if mask.any():
                yield known, reason, accepted, mask
    if of_jobs:
        late = _bools(pc.less(batch.column("end_time"), batch.column("start_time")))
        if late.any():
            end = next(known for known in JOB_FIELDS if known.name == "end_time")
            yield end, END_BEFORE_START, "not before start_time", late


def _numbers(values: pa.Array, known: Field) -> Iterator[tuple[str, str, Mask]]:
    """Rows with numbers that are none, or too large, or negative where that has no meaning."""
    rows: npt.NDArray[np.int64] | None = None
    n_rows = len(values)
    if known.type in ("map", "list"):
        ends = values.offsets.to_numpy()
        rows = np.repeat(np.arange(n_rows), np.diff(ends))
        inner = values.items if known.type == "map" else values.values
        values = inner.slice(ends[0], ends[-1] - ends[0])
    whole = known.type == "integer"
    limit = MAX_INTEGER if whole else MAX_COUNT if known.type == "map" else MAX_NUMBER
    least, most = (pc.min_max(values).as_py()[end] for end in ("min", "max"))
    finite = whole or pc.all(pc.is_finite(values), min_count=0).as_py() is not False
    low = 0 if known.bounded else -limit
    if least is None or (finite and low <= least and most <= limit):
        return
    accepted = f"a {'whole' if whole else 'finite'} number" + (
        f" from 0 to {limit:g}" if known.bounded else f" of at most {limit:g}"
    )
    accepted += f" ({known.unit})" if known.unit else ""
    view = values.fill_null(0).to_numpy(zero_copy_only=False)
    none = ~np.isfinite(view)
    negative = ~none & (view < 0) & known.bounded
    # compared without abs(), which the least 64-bit integer overflows
    huge = ~none & ~negative & ((view > limit) | (view < -limit))
    for reason, mask in (("not a number", none), ("negative", negative), ("out of range", huge)):
        yield reason, accepted, mask if rows is None else _by_row(rows, mask, n_rows)


def _names(values: pa.Array) -> Iterator[tuple[str, str, Mask]]:
    """Rows whose map names something twice, which no engine keeps, or by nothing."""
    ends = values.offsets.to_numpy()
    rows = np.repeat(np.arange(len(values)), np.diff(ends))
    keys = values.keys.slice(ends[0], ends[-1] - ends[0]).dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first, counts = np.unique(
        rows * (len(keys.dictionary) + 1) + codes, return_index=True, return_counts=True
    )
    repeated = _by_row(rows[first], counts > 1, len(values))
    yield "name repeated", "names of which none is there twice", repeated
    empty = pc.equal(pc.utf8_length(keys.dictionary), 0).to_numpy(zero_copy_only=False)
    yield "bad name", "names that are not empty", _by_row(rows, empty[codes], len(values))


def _by_row(rows: npt.NDArray[np.int64], mask: Mask, n_rows: int) -> Mask:
    found = np.zeros(n_rows, dtype=bool)
    found[rows[mask]] = True
    return found


def _texts(values: pa.Array, reserved: tuple[str, ...]) -> Iterator[tuple[str, str, Mask]]:
    yield "NUL in text", "text without the character NUL", _bools(pc.match_substring(values, "\0"))
    if reserved:
        named = _bools(pc.is_in(values, pa.array(reserved, pa.string())))
        yield "reserved value", "any other value, this one stands for all values together", named


def _times(values: pa.Array) -> Iterator[tuple[str, str, Mask]]:
    years = pc.year(values)
    outside = pc.or_(pc.less(years, FIRST_YEAR), pc.greater(years, LAST_YEAR))
    yield "bad time", f"times of the years {FIRST_YEAR} to {LAST_YEAR}", _bools(outside)


def _bools(mask: pa.Array) -> Mask:
    """A mask as NumPy, null counting as false."""
    bools: Mask = mask.fill_null(False).to_numpy(zero_copy_only=False)
    return bools


def _lines(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The lines that rows come from; 0 where the source does not say."""
    if "origin_line" not in batch.schema.names:
        return np.zeros(len(rows), dtype=np.int64)
    lines: npt.NDArray[np.int64] = batch.column("origin_line").fill_null(0).to_numpy()[rows]
    return lines


def _refused(batch: pa.RecordBatch, row: int, name: str, reason: str, accepted: str, file: str) -> Reject:
    (line,) = _lines(batch, np.array([row])).tolist()
    held = str(batch.column(name)[row])
    shown = held if len(held) <= _SHOWN else held[:_SHOWN] + "…"
    which = batch.column("job_id")[row].as_py() if "job_id" in batch.schema.names else None
    detail = f"{name} holds '{shown}'; accepted: {accepted}"
    return Reject(reason, file, line, name, detail, str(which or "")[:EXCERPT])
