"""From a table of results to the rows that a panel wants, as plain Python values.

Missing is ``None`` from here on, whatever kind of null the frame held.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from statistics import fmean
from typing import Any

from dashboards.spec import Entry, Mean, View, Where, table
from esjobs.core.query import Count, Maximum, Metric, Minimum, Moment, SumProduct, metric_fields
from esjobs.core.words import ALL_TYPES

Row = dict[str, Any]


Tabular = Any  # A table of results in memory: a pandas frame, an Arrow table or batch


def rows_of(name: str, frame: Tabular | None, method: str | None = None) -> list[Row]:
    """The rows of a result table with exactly its columns; what a row lacks is ``None``.

    ``method``: those of one method only, where the table has such a column.
    """
    if frame is None:
        return []
    columns, frame = table(name).column_names, _of_method(frame, method)
    if hasattr(frame, "to_pylist"):
        present = {column for column in columns if column in frame.schema.names}
        lacking = [None] * frame.num_rows
        return _as_rows(
            {column: _plain_column(frame, column) if column in present else lacking for column in columns}
        )
    return [{column: row.get(column) for column in columns} for row in records(frame)]


def _of_method(frame: Tabular, method: str | None) -> Tabular:
    if method is None or "method" not in _names(frame):
        return frame
    wanted = [value == method for value in values(frame, "method")]
    return frame.filter(wanted) if hasattr(frame, "to_pylist") else frame[wanted]


def _names(frame: Tabular) -> list[str]:
    return list(frame.schema.names if hasattr(frame, "to_pylist") else frame.columns)


def values(frame: Tabular | None, column: str) -> list[Any]:
    """A column of a table in memory as a list, empty where there is none.

    >>> import pandas as pd
    >>> values(pd.DataFrame({"k": [1.5]}), "k"), values(None, "k")
    ([1.5], [])
    """
    if frame is None or column not in _names(frame):
        return []
    found: list[Any] = (
        frame.column(column).to_pylist() if hasattr(frame, "to_pylist") else frame[column].tolist()
    )
    return found


def records(frame: Tabular) -> list[Row]:
    """Rows as dictionaries of plain values: ``int``, ``float``, ``str``, ``bool``, a time or ``None``.

    >>> import pandas as pd
    >>> records(pd.DataFrame({"k": [1.5, float("nan")], "name": ["A", None]}))
    [{'k': 1.5, 'name': 'A'}, {'k': None, 'name': None}]
    """
    if not hasattr(frame, "to_pylist"):
        return [plain_row(row) for row in _of_frame(frame)]
    return _as_rows({name: _plain_column(frame, name) for name in frame.schema.names})


def _as_rows(columns: Mapping[str, list[Any]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain_column(frame: Tabular, name: str) -> list[Any]:
    """A column of an Arrow table."""
    column = frame.column(name)
    listed: list[Any] = column.to_pylist()
    kind = str(column.type)
    # the type of a column is tested once, not that of each value
    if kind in {"halffloat", "float", "double"}:
        return [value if value is None or math.isfinite(value) else None for value in listed]
    return [plain(value) for value in listed] if kind.startswith("decimal") else listed


def _of_frame(frame: Any) -> list[Row]:
    """The rows of a pandas frame; every kind of null it knows is ``None``."""
    columns = {
        str(name): [
            None if null else value
            for value, null in zip(frame[name].astype(object), frame[name].isna(), strict=True)
        ]
        for name in frame.columns
    }
    return _as_rows(columns)


def plain_row(row: Mapping[str, Any]) -> Row:
    """A row of plain values."""
    return {name: plain(value) for name, value in row.items()}


def plain(value: Any) -> Any:
    """A value without NumPy or decimals in it; an infinite number says nothing and becomes ``None``."""
    # most values are floats: the quickest test first
    if value is None or type(value) is float:
        return value if value is None or math.isfinite(value) else None
    # sums of whole numbers are decimals in DuckDB
    if isinstance(value, Decimal):
        value = float(value)
    item = getattr(value, "item", None)
    if callable(item) and not isinstance(value, datetime):
        value = item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def keeps(row: Row, conditions: Iterable[Where]) -> bool:
    """True if a row meets every condition.

    >>> keeps({"verdict": "ok"}, [Where("verdict", ("ok",))]), keeps({"k": None}, [Where("k")])
    (True, False)
    """
    for condition in conditions:
        value = row.get(condition.column)
        if condition.above is not None and not (value is not None and abs(value) > condition.above):
            return False
        met = value in condition.accepted if condition.accepted else value is not None
        if met == condition.negate:
            return False
    return True


def sort_rows(rows: list[Row], columns: tuple[str, ...]) -> list[Row]:
    """Sort by several columns: ``c``, ``-c`` descending, ``|c|`` or ``-|c|`` by the magnitude of numbers.

    Ties keep their order; missing values come last either way.

    >>> sort_rows([{"k": 1.0}, {"k": None}, {"k": -3.0}, {"k": 2.0}], ("-|k|",))
    [{'k': -3.0}, {'k': 2.0}, {'k': 1.0}, {'k': None}]
    """
    result = rows
    for column in reversed(columns):
        name = column.strip("-|")
        key = (lambda row, n=name: abs(row[n])) if "|" in column else (lambda row, n=name: row[n])
        present = [row for row in result if row.get(name) is not None]
        missing = [row for row in result if row.get(name) is None]
        result = [*sorted(present, key=key, reverse=column.startswith("-")), *missing]
    return result


def select(
    view: View, rows: list[Row], processing_type: str = ALL_TYPES, method: str | None = None
) -> list[Row]:
    """The rows of its table that a view holds, in its order.

    ``processing_type`` and ``method`` apply as far as the view follows them and the table has such columns.
    """
    follows = {"level": view.level, "method": method}
    if view.types == "main":
        follows["processing_type"] = processing_type
    wanted = [(column, value) for column, value in follows.items() if value is not None]
    chosen = [
        row
        for row in rows
        if all(row.get(column, value) == value for column, value in wanted) and keeps(row, view.where)
    ]
    found = sort_rows(grouped(view, chosen) if view.by else chosen, view.sort)
    return found[: view.most] if view.most else found


def grouped(view: View, rows: Iterable[Row]) -> list[Row]:
    """The groups of a view with what is added up over each: as a store would answer its query.

    >>> from esjobs.core.query import Sum
    >>> of_kind = View("day_books", by=("kind",), metrics=(Sum("n_jobs", "n"),))
    >>> grouped(of_kind, [{"kind": "binned", "n_jobs": 3}])
    [{'kind': 'binned', 'n': 3.0}]
    """
    groups = apart(rows, lambda row: tuple(row[column] for column in view.by))
    return [
        dict(zip(view.by, key, strict=True)) | {each.name: _measured(each, members) for each in view.metrics}
        for key, members in groups.items()
    ]


def _measured(metric: Metric | Mean, rows: Sequence[Row]) -> Any:
    """One metric over the rows of a group; null where no row has a value."""
    if isinstance(metric, Count):
        return len(rows)
    wanted = (metric.field,) if isinstance(metric, Mean) else metric_fields(metric)
    values = ([row[field] for field in wanted] for row in rows)
    present = [each for each in values if None not in each]
    if not present:
        return None
    # the other fields are only required
    width = len(metric.factors) if isinstance(metric, Moment) else 1 + isinstance(metric, SumProduct)
    reduce = _REDUCED.get(type(metric), sum)
    return float(reduce([math.prod(each[:width]) for each in present]))


# How a metric makes one number of several; those that are not here add up
_REDUCED: Mapping[type, Callable[[Sequence[Any]], float]] = {Minimum: min, Maximum: max, Mean: fmean}


# Columns that identify rows of names
_OF_NAMES = ("level", "name", "processing_type", "method")


def joined(
    rows: list[Row],
    fields: Iterable[Entry],
    tables: Mapping[str, list[Row]],
    processing_type: str = ALL_TYPES,
    method: str | None = None,
) -> list[Row]:
    """The rows with the columns that fields take from other tables of names; missing where there is no row.

    A row without a processing type or method of its own belongs to those that are given; a table without
    methods says the same beside each of them. Of a table with several rows of a name, such as the parts of
    its deviation, it is the ``largest``.
    """
    result = rows
    for name, columns in _borrowed(fields).items():
        keys = [key for key in _OF_NAMES if key in table(name).column_names]
        # the largest comes last, and replaces the others of its name
        last = sorted(tables[name], key=lambda row: row.get("largest") is True)
        existing = {tuple(row.get(key) for key in keys): row for row in last}
        defaults = {"processing_type": processing_type, "method": method}
        extended = []
        for row in result:
            other = existing.get(tuple(row.get(key, defaults.get(key)) for key in keys), {})
            extended.append({**row, **{column: other.get(column) for column in columns}})
        result = extended
    return result


def _borrowed(fields: Iterable[Entry]) -> dict[str, list[str]]:
    """Columns, with those of errors and units, by the table that holds them."""
    found: dict[str, list[str]] = {}
    for field in fields:
        if field.table:
            named = (field.column, field.error, field.unit)
            found.setdefault(field.table, []).extend(column for column in named if column)
    return found


def apart(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by a key, in their order.

    >>> apart([{"k": 1, "n": 2}, {"k": 1, "n": 3}], lambda row: row["k"])
    {1: [{'k': 1, 'n': 2}, {'k': 1, 'n': 3}]}
    """
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def task_of(row: Row) -> tuple[Any, ...]:
    """Return the key of a task: id, core class, type and, if split, kind of work."""
    return row["task_id"], row["core_class"], row["task_type"], row["work_kind"]


def siblings_of(rows: list[Row], group: str) -> list[Row]:
    """Rows whose group, within one component, has at least two members; in their order."""
    sizes = Counter((row[group], row.get("component")) for row in rows if row[group] is not None)
    return [row for row in rows if sizes[row[group], row.get("component")] >= 2]


def relative_to_siblings(rows: list[Row], group: str, *columns: str) -> list[tuple[Any, ...]]:
    """Each row with its values divided by the geometric mean of its group (within one component).

    Rows in which a value is missing or not positive are left out before groups are formed.
    """
    usable = siblings_of(positive(rows, *columns), group)
    families = apart(usable, lambda row: (row[group], row.get("component")))
    means = {key: [_mean_log(members, column) for column in columns] for key, members in families.items()}
    related = []
    for row in usable:
        own = zip(columns, means[row[group], row.get("component")], strict=True)
        related.append((row, *(math.exp(math.log(row[column]) - mean) for column, mean in own)))
    return related


def positive(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Rows that logarithmic axes can hold: all of these columns are above 0."""
    return [row for row in rows if all((row[column] or 0) > 0 for column in columns)]


def _mean_log(rows: Sequence[Row], column: str) -> float:
    return math.fsum(math.log(row[column]) for row in rows) / len(rows)
