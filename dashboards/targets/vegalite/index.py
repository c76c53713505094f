"""What an index is asked for the rows of a view: those that :func:`dashboards.view.rows.select` keeps."""

from collections.abc import Sequence
from typing import Any

from dashboards.spec import View, Where
from dashboards.targets.vegalite.sources import Source
from esjobs.capabilities import kind_of, table
from esjobs.core.query import Count, Maximum, Metric, Minimum, Sum
from esjobs.core.words import ALL_TYPES

MOST_ROWS = 1000
"""A panel asks for no more rows."""
PREFIX = "esjobs"

_GROUPS = "groups"
_CONTEXT = ("must", "filter", "must_not")

Clauses = dict[str, list[Any]]


def clauses(view: View, processing_type: str = ALL_TYPES, method: str | None = None) -> Clauses:
    """The conditions of a view as clauses of a ``bool`` query: ``filter`` and ``must_not``."""
    columns = set(table(view.table).column_names)
    fixed = {"level": view.level, "method": method}
    if view.types == "main":
        fixed["processing_type"] = processing_type
    made: Clauses = {"filter": [], "must_not": []}
    for column, value in fixed.items():
        if value is not None and column in columns:
            made["filter"].append({"term": {column: value}})
    for condition in view.where:
        if condition.above is not None:
            made["filter"].append(_above(condition.column, condition.above))
        if condition.accepted or condition.above is None:
            made["must_not" if condition.negate else "filter"].append(_held(condition))
    return made


def _held(condition: Where) -> dict[str, Any]:
    present = {"exists": {"field": condition.column}}
    if not condition.accepted:
        return present
    values = {"terms": {condition.column: [value for value in condition.accepted if value is not None]}}
    if None not in condition.accepted:
        return values
    return {"bool": {"should": [values, {"bool": {"must_not": [present]}}], "minimum_should_match": 1}}


def _above(column: str, limit: float) -> dict[str, Any]:
    sides = [{"range": {column: {"gt": limit}}}, {"range": {column: {"lt": -limit}}}]
    return {"bool": {"should": sides, "minimum_should_match": 1}}


def body(
    view: View,
    columns: Sequence[str],
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    *,
    context: bool = True,
) -> dict[str, Any]:
    """The search for the rows of a view, or for its groups.

    ``context``: with the placeholders that a dashboard server replaces by its filters, its search bar and,
    where the table belongs to moments, its time picker. A request with conditions of its own needs them: a
    server that finds ``%context%`` beside a query refuses both.
    """
    made = clauses(view, processing_type, method)
    time = table(view.table).time
    query: dict[str, list[Any]] = {"filter": list(made["filter"]), "must_not": list(made["must_not"])}
    if context:
        for clause in _CONTEXT:
            query.setdefault(clause, []).append(f"%dashboard_context-{clause}_clause%")
        if time:
            query["filter"].append({"range": {time: {"%timefilter%": True}}})
    if view.by:
        return {"size": 0, "query": {"bool": query}, "aggs": {_GROUPS: _groups(view)}}
    return {
        "size": MOST_ROWS,
        "_source": list(dict.fromkeys(columns)),
        "sort": [_order(column) for column in view.sort if "|" not in column],
        "query": {"bool": query},
    }


def _groups(view: View) -> dict[str, Any]:
    """An aggregation with a bucket per group; a missing key is one of its own, as in every store."""
    sources = [{column: {"terms": {"field": column, "missing_bucket": True}}} for column in view.by]
    sums = {metric.name: _metric(metric) for metric in view.metrics if not isinstance(metric, Count)}
    return {"composite": {"size": MOST_ROWS, "sources": sources}, **({"aggs": sums} if sums else {})}


def _metric(metric: Metric) -> dict[str, Any]:
    match metric:
        case Sum(column):
            return {"sum": {"field": column}}
        case Minimum(column):
            return {"min": {"field": column}}
        case Maximum(column):
            return {"max": {"field": column}}
        case _:
            raise ValueError(f"no index adds up '{metric.name}' without a script; make it a column")


def _order(column: str) -> dict[str, Any]:
    order = "desc" if column.startswith("-") else "asc"
    return {column.removeprefix("-"): {"order": order, "missing": "_last"}}


def index_of(view: View, prefix: str = PREFIX, *, history: bool = False) -> str:
    """The name under which readers find the rows of a view: of the latest run where runs make them.

    >>> index_of(View("flags")), index_of(View("flags"), history=True), index_of(View("run_counts"))
    ('esjobs-latest-flags', 'esjobs-flags', 'esjobs-run-counts')
    """
    of_latest = not history and kind_of(table(view.table)) is not None
    return f"{prefix}-{'latest-' if of_latest else ''}{view.table.replace('_', '-')}"


def hits(
    view: View,
    columns: Sequence[str],
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    *,
    prefix: str = PREFIX,
    history: bool = False,
) -> Source:
    """The rows or groups of a view, asked of its index by the chart itself.

    ``history``: of every run rather than of the latest.
    """
    url = {
        "index": index_of(view, prefix, history=history),
        "body": body(view, columns, processing_type, method),
    }
    if not view.by:
        return Source({"url": url, "format": {"property": "hits.hits"}}, "_source")
    paths = {column: f"key.{column}" for column in view.by}
    for metric in view.metrics:
        paths[metric.name] = "doc_count" if isinstance(metric, Count) else f"{metric.name}.value"
    return Source({"url": url, "format": {"property": f"aggregations.{_GROUPS}.buckets"}}, paths=paths)
