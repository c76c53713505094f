"""The rows of a view asked of a store: what its language can say narrows the answer, the rest is here."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from dashboards.spec import JOBS, Mean, View, Where, table
from dashboards.view.rows import Row, plain_row, select, sort_rows
from esjobs.core.fields import Field
from esjobs.core.query import Either, Filter, In, Metric, Missing, Present, Query, Range
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
        # the language has no magnitude
        return Either((Range(name, gt=condition.above), Range(name, lt=-condition.above)))
    if not condition.accepted:
        return Missing(name) if condition.negate else Present(name)
    # no store is asked for truth values, or for all but some of values that are not listed: such rows are
    # dropped here
    if column.type == "boolean" or (condition.negate and not column.values):
        return None
    accepted = condition.accepted
    if condition.negate:
        accepted = tuple({*column.values, None}.difference(accepted))
    return _one_of(name, accepted)


def _one_of(name: str, accepted: Sequence[str | int | None]) -> Filter:
    named = In(name, tuple(value for value in accepted if value is not None))
    return Either((named, Missing(name))) if None in accepted else named


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
    if view.table == JOBS.name or (view.by and complete and metrics_of(view) == view.metrics):
        return groups(store, view, processing_type, method, window=window) or []
    read = columns_read(view, columns) if columns else ()
    if not view.most:
        return select(view, list(_rows(store, view, conditions, read)), processing_type, method)
    # of a long table no more than the first rows are in memory
    kept: list[Row] = []
    for some in _batches(store, view, conditions, read, first=complete):
        kept = select(view, [*kept, *some], processing_type, method)
    return kept


def metrics_of(view: View) -> tuple[Metric, ...]:
    """The metrics that a store adds up; it knows no means of rows."""
    return tuple(metric for metric in view.metrics if not isinstance(metric, Mean))


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
    room = math.inf if most is None else most
    names: dict[str, str] = {}
    if view.table == JOBS.name:
        # charts know days by the column of times that they split
        names = {"day": view.over} if view.over else {}
        query = Query((*view.by, *names), metrics_of(view), window, where=conditions)
    elif complete:
        query = Query(view.by, metrics_of(view), where=conditions, over=table(view.table))
    else:
        # a condition that stores are not asked for, such as one on truth values: grouped here
        made = select(view, list(_rows(store, view, conditions, ())), processing_type, method)
        return made if len(made) <= room else None
    answer = store.aggregate(query).table
    if answer.num_rows > room:
        return None
    answer = answer.rename_columns([names.get(name, name) for name in answer.column_names])
    return sort_rows([plain_row(row) for row in answer.to_pylist()], view.sort)


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
        # Arrow cannot sort by a magnitude
        if first and batch.num_rows > view.most and not any("|" in column for column, _ in order):
            batch = batch.sort_by(order).slice(0, view.most)  # noqa: PLW2901
        yield [plain_row(row) for row in batch.to_pylist()]
