"""Aggregates in the embedded store: the table and the books of one snapshot."""

from collections import Counter
from datetime import date
from typing import Any

import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import arrow_type
from esjobs.core.query import Query
from esjobs.store.base import Aggregate
from esjobs.store.compile_sql import compile_aggregate, compile_books, metric_type, noted_rules
from esjobs.store.sql import SqlSession

_BOOKS = pa.schema(
    [("day", pa.date32()), ("outcome", pa.string()), ("kind", pa.string()), ("n_jobs", pa.int64())]
)


def aggregate(session: SqlSession, query: Query) -> Aggregate:
    """Two scans of the columns that the query names, in one transaction: one for the groups, one to count."""
    compiled, books = compile_aggregate(query), compile_books(query)
    schema = pa.schema(
        [(key, arrow_type(fields.field(key).type)) for key in query.keys]
        + [(metric.name, arrow_type(metric_type(metric))) for metric in query.metrics]
    )
    with session.transaction():
        table = session.table(compiled.sql, schema, compiled.params)
        counted = session.rows(books.sql, books.params)
    return Aggregate(table, _books(query, counted))


def _books(query: Query, counted: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of (day, number of the rule, jobs, notes...) as the books that readers know."""
    reasons = [("binned", "binned"), *((rule.reason, "dropped") for rule in query.drops)]
    notes = [str(rule.unknown) for rule in noted_rules(query)]
    books: Counter[tuple[date, str, str]] = Counter()
    for day, rule, jobs, *noted in counted:
        books[(day, *reasons[rule])] += jobs
        for note, jobs_noted in zip(notes, noted, strict=True):
            if jobs_noted:
                books[(day, note, "note")] += jobs_noted
    rows = sorted(books.items(), key=lambda item: (item[0][0], item[0][2], item[0][1]))
    columns = [[key[n] for key, _ in rows] for n in range(3)] + [[jobs for _, jobs in rows]]
    return pa.Table.from_arrays(
        [pa.array(c, t) for c, t in zip(columns, _BOOKS.types, strict=True)], schema=_BOOKS
    )
