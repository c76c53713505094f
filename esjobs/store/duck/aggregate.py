"""Aggregates in the embedded store: table and books of one snapshot."""

from collections import Counter
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import arrow_type
from esjobs.core.query import Query
from esjobs.store.base import Aggregate
from esjobs.store.books import Kind, Outcome, books_table
from esjobs.store.duck.compile_sql import JOBS, compile_aggregate, compile_books, metric_type, noted_rules
from esjobs.store.duck.connection import DuckConnection


def aggregate(connection: DuckConnection, query: Query, jobs: str = JOBS) -> Aggregate:
    """Answer a query with one scan for the groups and one for the books, if it has any."""
    compiled = compile_aggregate(query, jobs)
    schema = pa.schema(
        [(key, arrow_type(query.key_field(key).type)) for key in query.keys]
        + [(metric.name, arrow_type(metric_type(query, metric))) for metric in query.metrics]
    )
    if not query.metrics and not query.books:
        # distinct names: a small answer that is asked for again and again until the file changes
        names = connection.lookup(compiled.sql, schema, compiled.params)
        return Aggregate(pa.Table.from_batches(names, schema), books_table({}))
    if query.over is not None or not query.books:
        return Aggregate(connection.table(compiled.sql, schema, compiled.params), books_table({}))
    books = compile_books(query, jobs)
    # one snapshot: a load between the two scans would make the books disagree with the table
    with connection.transaction():
        table = connection.table(compiled.sql, schema, compiled.params)
        counted = connection.rows(books.sql, books.params)
    return Aggregate(table, _books(query, counted))


def _books(query: Query, counted: list[tuple[Any, ...]]) -> pa.Table:
    """Return the books from rows of (day, number of the rule, jobs, notes...)."""
    reasons: list[tuple[str, Kind]] = [
        ("binned", "binned"),
        *((rule.reason, "dropped") for rule in query.drops),
    ]
    notes = [str(rule.unknown) for rule in noted_rules(query)]
    books: Counter[Outcome] = Counter()
    for day, rule, jobs, *noted in counted:
        name, kind = reasons[rule]
        books[Outcome(day, name, kind)] += jobs
        for note, jobs_noted in zip(notes, noted, strict=True):
            books[Outcome(day, note, "note")] += jobs_noted
    return books_table(books)
