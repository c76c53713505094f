"""Visible result rows: the index narrows and sorts, the embedded engine does the rest."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.query import Filter
from esjobs.core.tables import Table
from esjobs.store.batches import blocks
from esjobs.store.elastic.asking.clauses import Clause, all_of
from esjobs.store.elastic.asking.scratch import scratch_of_rows
from esjobs.store.elastic.layout import SCAN_ONLY, row_type
from esjobs.store.elastic.transport.scan import PointInTime

UNJUDGED: Clause = {"term": {SCAN_ONLY: True}}
"""Rows with a value that the index does not know: NaN, an infinity, a very long text, a very fine time."""


def row_pages(
    at: PointInTime,
    table: Table,
    query: Clause,
    left: Sequence[Filter],
    names: Sequence[str],
    order: Sequence[str],
    limit: int | None,
    runs: Sequence[Clause] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a query that pass the remaining filters ``left``; close the snapshot.

    Memory: pages, or all rows of the query if the index cannot sort them.
    """
    schema = table_schema(table)
    requested = pa.schema([schema.field(name) for name in names]) if names else schema
    # columns of bytes that nobody asked for: they are most of a document
    unasked = [
        item.name for item in table.columns if item.type == "bytes" and item.name not in requested.names
    ]
    is_bounded = bool(order) or limit is not None
    with at:
        # an index sorts NaN and long texts as missing: the first rows could be wrong ones
        if is_bounded and (left or (order and _has_odd(at, query))):
            with scratch_of_rows(table) as scratch:
                for batch in at.batches(query, schema, runs):
                    scratch.add(batch)
                yield from scratch.read(table, left, names, order, limit)
        elif is_bounded:
            yield from at.first(query, requested, [_sorted_by(table, item) for item in order], limit, unasked)
        elif left:
            yield from _passing(at.batches(query, schema, runs), table, left, names)
        else:
            yield from at.batches(query, requested, runs, unasked)


def _passing(
    batches: Iterator[pa.RecordBatch], table: Table, left: Sequence[Filter], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with scratch_of_rows(table) as scratch:
        for batch in blocks(batches, table_schema(table), f"rows of '{table.name}'"):
            # block by block: memory does not grow with the answer
            scratch.clear()
            scratch.add(batch)
            yield from scratch.read(table, left, names)


def _has_odd(at: PointInTime, query: Clause) -> bool:
    body = {"size": 0, "query": all_of([query, UNJUDGED]), "track_total_hits": 1}
    answer = at.search(body)
    return bool(answer and answer["hits"]["total"]["value"])


def _sorted_by(table: Table, item: str) -> dict[str, Any]:
    column = table.column(item.removeprefix("-"))
    how = {"order": "desc" if item.startswith("-") else "asc", "missing": "_last"}
    # an index of an earlier version may lack the column; without a type the search would fail
    return {column.name: how | {"unmapped_type": row_type(column.type)}}
