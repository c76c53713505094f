"""Foreign SQL on the embedded store: one SELECT, read-only, bounded in time.

Four independent fences: only SELECT runs; the transaction is read-only; files, network, extensions and
variables are disabled; the configuration is locked.
"""

import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import reader_of
from esjobs.core.errors import StoreError, UsageError
from esjobs.core.text import visible
from esjobs.store.duck.connection import DuckConnection, stop
from esjobs.store.files.sharing import mask_like, masked

# small, for a timeout is noticed between two batches
_BATCH_ROWS = 10_000
_PLAIN = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_binary,
)
# unsigned 64-bit integers: half of them fit no signed one
_AS_DOUBLES = (pa.types.is_uint64, pa.types.is_float32, pa.types.is_float16)


def rows_of(connection: DuckConnection, text: str, timeout_s: float) -> pa.RecordBatchReader:
    """Return the rows of one SELECT as a stream of common types.

    Times are UTC; decimals become doubles or integers; other types become text. The connection stays fenced.
    Raises :class:`UsageError` for refused statements, :class:`StoreError` after ``timeout_s`` seconds,
    reading included.
    """
    lent = connection.fenced_cursor()
    cursor = lent.duckdb
    spilling = mask_like(Path(connection.location))
    # DuckDB has no timeout of its own
    clock = threading.Timer(timeout_s, cursor.interrupt)
    clock.daemon = True
    try:
        _require_one_select(cursor, text)
        clock.start()
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        with masked(spilling):
            reader: pa.RecordBatchReader = cursor.sql(text).to_arrow_reader(_BATCH_ROWS)
    except duckdb.Error as error:
        stop(clock)
        lent.close()
        raise _translated(error, timeout_s) from error
    except BaseException:
        stop(clock)
        lent.close()
        raise
    names = _distinct(reader.schema.names)
    schema = pa.schema([(name, _type(item.type)) for name, item in zip(names, reader.schema, strict=True)])

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                with masked(spilling):
                    batch = next(reader, None)
                if batch is None:
                    break
                columns = [_cast(column, item) for column, item in zip(batch.columns, schema, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise _translated(error, timeout_s) from error
        finally:
            stop(clock)
            lent.close()

    return reader_of(schema, batches())


def _require_one_select(cursor: duckdb.DuckDBPyConnection, text: str) -> None:
    statements = cursor.extract_statements(text)
    if len(statements) != 1:
        raise UsageError(f"SQL: expected one SELECT, got {len(statements)} statements")
    # DuckDB's own parser decides: no list of words to get round
    if statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            f"SQL: only SELECT is answered, not {statements[0].type.name}; nothing here changes the store"
        )


def _translated(error: Exception, timeout_s: float) -> UsageError | StoreError:
    line = " ".join(str(error).split("\n\n")[0].split())
    # read through Arrow, an interrupt arrives as text
    if isinstance(error, duckdb.InterruptException) or "Interrupt" in line:
        return StoreError(f"SQL: not finished after {timeout_s:g} s; simplify the query, or raise --timeout")
    if isinstance(error, duckdb.OutOfMemoryException) and "max_temp_directory_size" in line:
        return StoreError(
            "SQL: more than memory and half of the free disk would be needed for what comes in between; ask "
            "for less: fewer jobs by WHERE, fewer columns, no ORDER BY over all of them"
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return StoreError(f"SQL: {line}; simplify the query, or raise memory in the settings")
    return UsageError(f"SQL: {line}")


def _distinct(names: list[str]) -> list[str]:
    """Return column names with repeated ones numbered."""
    taken: set[str] = set()
    distinct = []
    for name in names:
        unique, number = name, 1
        # a later column may already have the numbered name
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        distinct.append(unique)
    return distinct


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_decimal(kind):
        # sums of integers are HUGEINT, which Arrow gets as decimals
        return pa.int64() if kind.scale == 0 and kind.precision <= _INTEGER_DIGITS else pa.float64()
    if any(wide(kind) for wide in _AS_DOUBLES):
        return pa.float64()
    if pa.types.is_integer(kind):
        return pa.int64()
    if any(plain(kind) for plain in _PLAIN):
        return kind
    return pa.string()


# the largest number of digits that every 64-bit integer can hold
_INTEGER_DIGITS = 18


# days since 1970 of the first day that Python knows, and how many it knows
_FIRST_DAY, _DAYS = date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal()
_PER_DAY = {unit: 86_400 * per_s for unit, per_s in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items()}


def _cast(column: pa.Array, item: pa.Field) -> pa.Array:
    """Cast a column to its output type. Raises :class:`UsageError` for unrepresentable times."""
    kind = item.type
    _require_years(column, item.name)
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        return pc.cast(column.dictionary_decode(), kind)
    if kind == pa.string():
        try:
            values = column.to_pylist()
        # intervals and times that Python cannot represent
        except (OverflowError, ValueError) as error:
            raise _out_of_years(item.name) from error
        return pa.array([None if value is None else str(value) for value in values], kind)
    if pa.types.is_timestamp(kind) and column.type.tz is None:
        return pc.cast(column, pa.timestamp("us"), safe=False).cast(kind)
    return pc.cast(column, kind, safe=False)


def _require_years(column: pa.Array, name: str) -> None:
    """Refuse times outside the years 1 to 9999, which other types cannot hold."""
    if pa.types.is_date32(column.type):
        numbers, per_day = column.cast(pa.int32()), 1
    elif pa.types.is_timestamp(column.type):
        numbers, per_day = column.cast(pa.int64()), _PER_DAY[column.type.unit]
    else:
        return
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None:
        return
    if ends["min"] < _FIRST_DAY * per_day or ends["max"] >= (_FIRST_DAY + _DAYS) * per_day:
        raise _out_of_years(name)


def _out_of_years(name: str) -> UsageError:
    return UsageError(
        f"SQL: {visible(name)[:60]} has a day or time that is infinite or not of years 1 to 9999; ask for "
        "its text: CAST(... AS VARCHAR)"
    )
