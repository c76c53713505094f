"""Aggregating the visible rows of a result table in the cluster, as `aggregation` does with jobs.

The cluster groups what its index knows; rows with a value that it does not know (NaN, a very long text, a
time between two milliseconds) are read and asked again in the embedded engine. The groups must count exactly
the rows that the filters count; if they do not, or if a question cannot be put to the index at all, every row
is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.errors import PartialAnswerError
from esjobs.core.query import Count, Query
from esjobs.core.tables import Table
from esjobs.store.base import Aggregate
from esjobs.store.books import books_table
from esjobs.store.duck.compile_sql import compile_aggregate
from esjobs.store.elastic.asking import composite, cuts
from esjobs.store.elastic.asking.clauses import EVERY, Clause, Clauses, all_of
from esjobs.store.elastic.asking.days import around, is_exact
from esjobs.store.elastic.asking.row_pages import ODD
from esjobs.store.elastic.asking.scratch import scratch_of_rows
from esjobs.store.elastic.asking.sums import plan_sums
from esjobs.store.elastic.fields.live_fields import LiveField, own_fields
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.scan import PointInTime
from esjobs.store.merge import encoded, merged, one_row

_COUNT = "rows in the group"
"""A metric of its own, by which groups are held against what the filters count."""


@dataclass(frozen=True)
class VisibleRows:
    """Where the rows of a table are, and the clause of those that readers see.

    ``index``: one, or several with commas between. ``generations``: those that readers see, which were
    written one after the other.
    """

    table: Table
    index: str
    shown: Clause
    generations: Sequence[str]

    def require_there(self, at: PointInTime) -> None:
        """Raise :class:`PartialAnswerError` if an index went after it was known what readers see."""
        if at.empty and self.generations:
            at.close()
            raise PartialAnswerError(
                f"an index of {self.index} was removed while '{self.table.name}' was read; run it again"
            )

    @property
    def runs(self) -> list[Clause]:
        """The rows of each generation."""
        return [{"term": {"generation": number}} for number in self.generations]

    @property
    def live(self) -> Mapping[str, LiveField]:
        """Every column, as the index has it."""
        return own_fields(self.table.columns)


def aggregate_rows(cluster: Cluster, rows: VisibleRows, query: Query) -> Aggregate:
    """Group and sum the visible rows; rows of results have no books."""
    compile_aggregate(query)  # refuses what makes no sense before anything is asked
    with PointInTime(cluster, rows.index) as at:
        rows.require_there(at)
        table = None if at.empty else _grouped(at, rows, query)
        if table is None:
            table = _read(at, rows, query, EVERY)
    return Aggregate(table, books_table({}))


def _grouped(at: PointInTime, rows: VisibleRows, query: Query) -> pa.Table | None:
    """The answer of the cluster; None when the question cannot be put to the index."""
    if query.window is not None and not is_exact(query.window):
        return None
    counting = replace(query, metrics=(*query.metrics, Count(_COUNT)))
    base = _base(rows, query)
    clauses = Clauses(rows.live, lambda path: cuts.distinct(at, path, all_of(base)))
    sums = plan_sums(counting, rows.live, clauses)
    asked = composite.grouping(counting, rows.live, sums) if sums is not None else None
    where = clauses.filters(query.where)
    if asked is None or where is None:
        return None
    n_plain, n_odd = _counted(at, base, where)
    try:
        groups = composite.groups(at, asked, all_of([*base, *where], [ODD] if n_odd else []), n_plain)
    except composite.NotExactError:
        return None
    if (pc.sum(groups.column(_COUNT)).as_py() or 0) != n_plain:
        return None
    table = one_row(groups.drop_columns([_COUNT]), query)
    if not n_odd:
        return table
    read = encoded(_read(at, rows, query, ODD))
    return merged(pa.concat_tables([table, read.cast(table.schema)]), query.keys)


def _counted(at: PointInTime, base: Sequence[Clause], where: Sequence[Clause]) -> tuple[int, int]:
    """How many rows the cluster can judge and the filters let through, and how many it cannot judge."""
    aggs = {"plain": {"filter": all_of(where, [ODD])}, "odd": {"filter": ODD}}
    body = {"size": 0, "query": all_of(base), "aggs": aggs, "track_total_hits": False}
    answer: Any = at.search(body)["aggregations"]
    return answer["plain"]["doc_count"], answer["odd"]["doc_count"]


def _read(at: PointInTime, rows: VisibleRows, query: Query, clause: Clause) -> pa.Table:
    """Read the rows of a clause, and group them in the embedded engine."""
    with scratch_of_rows(rows.table) as scratch:
        if not at.empty:
            # no query looks into bytes
            unread = [item.name for item in rows.table.columns if item.type == "bytes"]
            asked = all_of([*_base(rows, query), clause])
            for batch in at.batches(asked, table_schema(rows.table), rows.runs, unread):
                scratch.add(batch)
        return scratch.aggregate(query).table


def _base(rows: VisibleRows, query: Query) -> list[Clause]:
    time = around(rows.table.time, query.window) if query.window is not None else []
    return [rows.shown, *time]
