"""Jobs for tests: rows as dictionaries, in and out of a store."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA, table_schema
from esjobs.core.query import Filter, Query, Select
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.store.base import JobStore

Row = dict[str, Any]
START = datetime(2018, 8, 1, tzinfo=UTC)


def hours(count: float) -> datetime:
    """A time after the first day of the tests began."""
    return START + timedelta(hours=count)


def day(number: int) -> date:
    """A day, the first being number 0."""
    return (START + timedelta(days=number)).date()


def job(job_id: object, **values: object) -> Row:
    """A job that no cleaning rule drops, with other values as supplied."""
    return {
        "source": "panda",
        "job_id": str(job_id),
        "task_id": "1001",
        "queue": "CERN",
        "cpu_raw": "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz",
        "processing_type": "simul",
        "state": "finished",
        "end_time": hours(1),
        "cores": 8,
        "events": 100,
        "cpu_s": 4000.0,
        "wall_s": 1000.0,
        **values,
    }


def batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Rows as a batch of the schema that ``put_jobs`` takes."""
    return pa.RecordBatch.from_pylist(list(rows), schema=PUT_SCHEMA)


def put(store: JobStore, load_id: str, *rows: Row) -> tuple[int, int, int]:
    """Put rows as a load; stored, updated, superseded."""
    counts = store.put_jobs([batch(rows)], load_id)
    return counts.stored, counts.updated, counts.superseded


def selected(
    store: JobStore, *names: str, window: Window | None = None, where: Sequence[Filter] = ()
) -> list[Any]:
    """Jobs that match, sorted: values of one field, or tuples of several."""
    batches = store.select(Select(names, window, tuple(where)))
    rows = [tuple(row.values()) for found in batches for row in found.to_pylist()]
    # by their text: rows come in any order, and null does not compare
    ordered = sorted(rows, key=repr)
    return [row[0] for row in ordered] if len(names) == 1 else ordered


def groups(store: JobStore, query: Query) -> dict[tuple[Any, ...], Row]:
    """An aggregate's table by its keys."""
    rows = store.aggregate(query).table.to_pylist()
    by_key = {tuple(row.pop(key) for key in query.keys): row for row in rows}
    assert len(by_key) == len(rows), "a group appears twice"
    return by_key


def books(store: JobStore, query: Query) -> dict[tuple[date, str, str], int]:
    """An aggregate's books by day, outcome and kind."""
    rows = store.aggregate(query).books.to_pylist()
    return {(row["day"], row["outcome"], row["kind"]): row["n_jobs"] for row in rows}


def table_batch(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Rows of a result table; omitted columns are null."""
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=table_schema(table))


def visible(
    store: JobStore, table: Table, where: Sequence[Filter] = (), columns: Sequence[str] = ()
) -> list[Row]:
    """The rows of a table that readers see."""
    return sorted((row for found in store.read(table, where, columns) for row in found.to_pylist()), key=repr)
