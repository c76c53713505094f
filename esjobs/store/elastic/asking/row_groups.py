"""Aggregation of visible result rows in the cluster, like `aggregation` for jobs.

Rows with values unknown to the index are read into the embedded engine; if groups and counts disagree, all
rows are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.errors import PartialAnswerError
from esjobs.core.query import Count, Query
from esjobs.core.tables import Table
from esjobs.store.base import Aggregate
from esjobs.store.books import books_table
from esjobs.store.duck.compile_sql import compile_aggregate
from esjobs.store.elastic.asking import composite, partitions
from esjobs.store.elastic.asking.clauses import EVERY, Clause, Clauses, all_of
from esjobs.store.elastic.asking.days import around, is_exact
from esjobs.store.elastic.asking.row_pages import UNJUDGED
from esjobs.store.elastic.asking.scratch import scratch_of_rows
from esjobs.store.elastic.fields.live_fields import LiveField, own_fields
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime, only_aggregations
from esjobs.store.merge import encoded, merged, one_row, total

# A metric of its own, by which groups are held against what the filters count
_COUNT = "rows in the group"


@dataclass(frozen=True)
class VisibleRows:
    """Location and clause of the visible rows of a table.

    ``index``: one, or several with commas. ``generations``: each written contiguously.
    """

    table: Table
    index: str
    shown: Clause
    generations: Sequence[str]

    def require_there(self, at: PointInTime) -> None:
        """Raise :class:`PartialAnswerError` if an index has been removed since."""
        if at.empty and self.generations:
            at.close()
            raise PartialAnswerError(
                f"an index of {self.index} was removed while '{self.table.name}' was read; run it again"
            )

    @property
    def runs(self) -> list[Clause]:
        """Clauses of the rows of each generation."""
        return [{"term": {"generation": number}} for number in self.generations]

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Columns as the index has them."""
        return own_fields(self.table.columns)


def aggregate_rows(cluster: Cluster, rows: VisibleRows, query: Query) -> Aggregate:
    """Group and sum the visible rows; result rows have no books."""
    compile_aggregate(query)  # refuses what makes no sense before anything is asked
    if not rows.generations:
        # no rows at all: the embedded engine knows what the answer looks like
        return Aggregate(_read(None, rows, query, EVERY), books_table({}))
    with PointInTime(cluster, rows.index) as at:
        rows.require_there(at)
        table = None if at.empty else _grouped(at, rows, query)
        if table is None:
            table = _read(at, rows, query, EVERY)
    return Aggregate(table, books_table({}))


def _grouped(at: PointInTime, rows: VisibleRows, query: Query) -> pa.Table | None:
    """Return the answer of the cluster; None if the index cannot express the question."""
    # result rows know milliseconds only: a finer window is left to the embedded engine
    if query.window is not None and not is_exact(query.window):
        return None
    counting = replace(query, metrics=(*query.metrics, Count(_COUNT)))
    base = _base(rows, query)
    clauses = Clauses(rows.live, lambda path: partitions.distinct(at, path, all_of(base)))
    requested = composite.grouping(counting, rows.live, clauses)
    where = clauses.filters(query.where)
    if requested is None or where is None:
        return None
    n_plain, n_odd = _counted(at, base, where)
    try:
        groups = composite.groups(
            at, requested, all_of([*base, *where], [UNJUDGED] if n_odd else []), n_plain
        )
    except composite.NotExactError:
        return None
    if total(groups, _COUNT) != n_plain:
        return None
    table = one_row(groups.drop_columns([_COUNT]), query)
    if not n_odd:
        return table
    read = encoded(_read(at, rows, query, UNJUDGED))
    return merged(pa.concat_tables([table, read.cast(table.schema)]), query.keys)


def _counted(at: PointInTime, base: Sequence[Clause], where: Sequence[Clause]) -> tuple[int, int]:
    aggs = {"plain": {"filter": all_of(where, [UNJUDGED])}, "unjudged": {"filter": UNJUDGED}}
    answer: Any = at.search(only_aggregations(all_of(base), aggs))["aggregations"]
    return answer["plain"]["doc_count"], answer["unjudged"]["doc_count"]


def _read(at: PointInTime | None, rows: VisibleRows, query: Query, clause: Clause) -> pa.Table:
    """Read the rows of a clause and group them in the embedded engine; no rows without a snapshot."""
    with scratch_of_rows(rows.table) as scratch:
        if at is not None and not at.empty:
            # no query looks into bytes
            unread = [item.name for item in rows.table.columns if item.type == "bytes"]
            requested = all_of([*_base(rows, query), clause])
            for batch in at.batches(requested, table_schema(rows.table), rows.runs, unread):
                scratch.add(batch)
        return scratch.aggregate(query).table


def _base(rows: VisibleRows, query: Query) -> list[Clause]:
    time = around(rows.table.time, query.window) if query.window is not None else []
    return [rows.shown, *time]
