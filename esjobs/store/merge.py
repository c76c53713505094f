"""Merging of equal groups."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.query import Query, is_count

Integers = npt.NDArray[np.int64]
# codes of several keys are combined in one int64; above this they are numbered anew
_MOST_GROUPS = 2**62

ENCODED = pa.dictionary(pa.int32(), pa.string())
"""Type of texts that repeat: a million groups take half the memory."""


def encoded(table: pa.Table) -> pa.Table:
    """Return the table with texts as :data:`ENCODED`, one dictionary per column."""
    columns = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column for column in table.columns
    ]
    return pa.table(columns, names=table.column_names).unify_dictionaries()


def coded(table: pa.Table, name: str) -> tuple[Integers, list[str | None]]:
    """Return the number of each row's text in an :func:`encoded` table, and the texts; 0 is a missing one."""
    column = table.column(name).combine_chunks()
    numbers = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return numbers, [None, *column.dictionary.to_pylist()]


def floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Return a column of numbers, NaN where one is missing."""
    return np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def total(table: pa.Table, name: str) -> int:
    """Return the sum of a column of counts."""
    return int(pc.sum(table.column(name)).as_py() or 0)


def plain(table: pa.Table) -> pa.Table:
    """Return the table with plain texts."""
    kinds = [
        item.with_type(pa.string()) if pa.types.is_dictionary(item.type) else item for item in table.schema
    ]
    return table.cast(pa.schema(kinds))


def merged(parts: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Add up rows of equal keys; null only if all are. Order: first appearance.

    Sorts integers: Arrow's own grouping would load 50 MB of libraries.
    """
    if not parts.num_rows:
        return parts
    group, first = numbered([parts.column(key) for key in keys], parts.num_rows)
    columns = [
        parts.column(item.name).take(first) if item.name in keys else _added(parts.column(item.name), group)
        for item in parts.schema
    ]
    return pa.Table.from_arrays(columns, schema=parts.schema)


def one_row(table: pa.Table, query: Query) -> pa.Table:
    """Return the table; a query without keys has one row even without matches."""
    if query.keys or table.num_rows:
        return table
    nothing = [0 if is_count(metric) else None for metric in query.metrics]
    return pa.Table.from_arrays(
        [pa.array([value], item.type) for value, item in zip(nothing, table.schema, strict=True)],
        schema=table.schema,
    )


def numbered(keys: Sequence[pa.ChunkedArray], rows: int) -> tuple[Integers, pa.Array]:
    """Return the group of each row, numbered by first appearance, and the first row of each group."""
    combined = np.zeros(rows, np.int64)
    size = 1
    for key in keys:
        codes = key.unify_dictionaries().dictionary_encode().combine_chunks()
        # null is a group of its own, number 0
        mine = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        if size * (len(codes.dictionary) + 1) >= _MOST_GROUPS:
            uniques, combined = np.unique(combined, return_inverse=True)
            size = len(uniques)
        size *= len(codes.dictionary) + 1
        combined = combined * (len(codes.dictionary) + 1) + mine
    _, first, group = np.unique(combined, return_index=True, return_inverse=True)
    if not keys:
        return group, pa.array(first, pa.int64())
    # np.unique numbers groups by value; renumbered by first row, the answer keeps the order of its parts
    order = np.argsort(first)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position[group], pa.array(first[order], pa.int64())


def _added(column: pa.ChunkedArray, group: Integers) -> pa.Array:
    count = int(group.max()) + 1 if len(group) else 0
    valid = column.is_valid().to_numpy()
    values = column.fill_null(0).to_numpy()
    if pa.types.is_integer(column.type):
        totals = np.zeros(count, np.int64)
        # exact beyond 2**53, where bincount, which adds doubles, is not
        np.add.at(totals, group, values)
    else:
        totals = np.bincount(group, values, count)
    null = np.bincount(group, valid, count) == 0
    return pa.array(totals, column.type, mask=null)
