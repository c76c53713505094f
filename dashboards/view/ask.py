"""The rows of a view asked of a store: what its language can say narrows the answer, the rest is here."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from dashboards.spec import JOBS, Mean, View, Where, table
from dashboards.view.rows import Row, plain_row, select, sort_rows
from esjobs.core.fields import Field
from esjobs.core.query import Either, Filter, In, Missing, Present, Query, Range
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES


class Answer(Protocol):
    """Result of a query: a table of groups."""

    @property
    def table(self) -> Any:
        """An Arrow table, a row per group."""


class Readable(Protocol):
    """Store operations required by a view."""

    def read(
        self, table: Table, filters: Sequence[Filter] = (), columns: Sequence[str] = ()
    ) -> Iterable[Any]:
        """Visible rows of a result table, as Arrow batches; all columns when none are named."""

    def aggregate(self, query: Query) -> Answer:
        """Rows of a result table grouped and added up."""


def filters(
    view: View, processing_type: str = ALL_TYPES, method: str | None = None
) -> tuple[tuple[Filter, ...], bool]:
    """The conditions of a view as far as the language of stores can say them, and whether that is all."""
    rows_table = table(view.table)
    fixed = {"level": view.level, "method": method}
    if view.types == "main" and view.table != JOBS.name:
        fixed["processing_type"] = processing_type
    found: list[Filter] = [
        In(column, (value,))
        for column, value in fixed.items()
        if value is not None and column in rows_table.column_names
    ]
    said = [_filter(rows_table.column(condition.column), condition) for condition in view.where]
    return (*found, *(each for each in said if each is not None)), None not in said


def _filter(column: Field, condition: Where) -> Filter | None:
    name = condition.column
    if condition.above is not None:
        return Either((Range(name, gt=condition.above), Range(name, lt=-condition.above)))
    if not condition.accepted:
        return Missing(name) if condition.negate else Present(name)
    if column.type == "boolean":
        return None  # no store is asked for truth values; the few rows more are dropped here
    values: set[str | int | None] = set(condition.accepted)
    if condition.negate:
        if not column.values:
            return None  # the language says what is accepted, and here that is not known
        values = {value for value in (*column.values, None) if value not in values}
    named = In(name, tuple(value for value in values if value is not None))
    return Either((named, Missing(name))) if None in values else named


def query_rows(
    store: Readable,
    view: View,
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    columns: Sequence[str] = (),
    window: Window | None = None,
) -> list[Row]:
    """The rows of a view, or its groups, as a store holds them now; all runs that are visible.

    ``columns``: those that are wanted of rows as they are; none named: all. What the view asks by is read
    beside them. ``window``: of jobs, those that ended in it; None: all.
    """
    conditions, complete = filters(view, processing_type, method)
    metrics = tuple(metric for metric in view.metrics if not isinstance(metric, Mean))
    if view.table == JOBS.name or (view.by and complete and metrics == view.metrics):
        return groups(store, view, processing_type, method, window=window) or []
    read = columns_read(view, columns) if columns else ()
    if view.most:
        kept: list[Row] = []
        for some in _batches(store, view, conditions, read, first=complete):
            kept = select(view, [*kept, *some], processing_type, method)
        return kept
    return select(view, list(_rows(store, view, conditions, read)), processing_type, method)


def groups(
    store: Readable,
    view: View,
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    *,
    window: Window | None = None,
    most: int | None = None,
) -> list[Row] | None:
    """The groups of a view as a store adds them up, of a day each where a view on jobs goes over time.

    None when there are more than ``most`` of them. Jobs are never read one by one; ``window``: those that
    ended in it; None: all.
    """
    conditions, complete = filters(view, processing_type, method)
    if not complete and view.table != JOBS.name:
        # a condition that stores are not asked for, such as one on truth values: grouped here
        made = select(view, list(_rows(store, view, conditions, ())), processing_type, method)
        return None if most is not None and len(made) > most else made
    metrics = tuple(metric for metric in view.metrics if not isinstance(metric, Mean))
    if view.table == JOBS.name:
        day = ("day",) if view.over else ()
        query = Query((*view.by, *day), metrics, window, where=conditions)
    else:
        query = Query(view.by, metrics, where=conditions, over=table(view.table))
    answer = store.aggregate(query).table
    if most is not None and answer.num_rows > most:
        return None
    days = view.over if view.table == JOBS.name else ""
    rows = [
        plain_row({days if name == "day" and days else name: value for name, value in row.items()})
        for row in answer.to_pylist()
    ]
    return sort_rows(rows, view.sort)


def columns_read(view: View, columns: Sequence[str]) -> tuple[str, ...]:
    """Some columns of the table of a view, and those by which its rows are chosen, grouped and sorted."""
    sorted_by = [column.lstrip("-").strip("|") for column in view.sort]
    asked_by = [condition.column for condition in (*view.where, *view.first)]
    wanted = {*columns, *_OF_ALL, *sorted_by, *asked_by, *view.by, view.over}
    return tuple(column for column in table(view.table).column_names if column in wanted)


# Columns by which the rows of every view are chosen, where its table has them
_OF_ALL = ("level", "processing_type", "method")


def _rows(store: Readable, view: View, conditions: Sequence[Filter], columns: Sequence[str]) -> Iterator[Row]:
    for some in _batches(store, view, conditions, columns):
        yield from some


def _batches(
    store: Readable,
    view: View,
    conditions: Sequence[Filter],
    columns: Sequence[str],
    *,
    first: bool = False,
) -> Iterator[list[Row]]:
    """Rows as a store gives them; ``first``: of each batch those alone that can be among the first."""
    order = [
        (column.lstrip("-"), "descending" if column.startswith("-") else "ascending") for column in view.sort
    ]
    for batch in store.read(table(view.table), conditions, columns):
        if first and batch.num_rows > view.most and not any("|" in column for column, _ in order):
            batch = batch.sort_by(order).slice(0, view.most)  # noqa: PLW2901
        yield [plain_row(row) for row in batch.to_pylist()]
