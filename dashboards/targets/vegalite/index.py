"""Requests to an index for the rows of a view, equal to :func:`dashboards.view.rows.select`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dashboards.spec import Mean, View, Where, table
from dashboards.targets.vegalite.sources import ANSWER, GROUPS, Source, Step
from esjobs.core.query import Count, Maximum, Metric, Minimum, Moment, Sum, SumProduct, SumWhere
from esjobs.core.words import ALL_TYPES
from esjobs.schema.catalogue import kind_of

MOST_ROWS = 1000  # A panel asks for no more rows
PREFIX = "esjobs"
RANK = "rank"  # The column of verdicts in the order in which people read them
NAMES = "names"  # Number of names, of which a chart draws the first

_MOMENTS, _FIRST = "moments", "first"
_MEAN, _WEIGHTS = "mean", "weights"
_CONTEXT = ("must", "filter", "must_not")

Clauses = dict[str, list[Any]]


def clauses(view: View, processing_type: str = ALL_TYPES, method: str | None = None) -> Clauses:
    """The conditions of a view as clauses of a ``bool`` query: ``filter`` and ``must_not``."""
    columns = set(table(view.table).column_names)
    fixed = {"level": view.level, "method": method}
    if view.types == "main":
        fixed["processing_type"] = processing_type
    made = _conditions(view.where)
    terms = [
        {"term": {name: value}} for name, value in fixed.items() if value is not None and name in columns
    ]
    return {**made, "filter": [*terms, *made["filter"]]}


def _conditions(where: Sequence[Where]) -> Clauses:
    made: Clauses = {"filter": [], "must_not": []}
    for condition in where:
        if condition.above is not None:
            made["filter"].append(_above(condition.column, condition.above))
        if condition.accepted or condition.above is None:
            made["must_not" if condition.negate else "filter"].append(_clause(condition))
    return made


def _clause(condition: Where) -> dict[str, Any]:
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
    most: int = MOST_ROWS,
) -> dict[str, Any]:
    """The search for the rows of a view, or for its groups; ``most``: of them at most.

    ``context``: with the placeholders that a dashboard server replaces by its filters, its search bar and,
    where the table belongs to moments, its time picker. A request with conditions of its own needs them: a
    server that finds ``%context%`` beside a query refuses both.
    """
    made = clauses(view, processing_type, method)
    time = None if is_latest(view) else table(view.table).time
    query: dict[str, list[Any]] = {"filter": list(made["filter"]), "must_not": list(made["must_not"])}
    if context:
        for clause in _CONTEXT:
            query.setdefault(clause, []).append(f"%dashboard_context-{clause}_clause%")
        if time:
            query["filter"].append({"range": {time: {"%timefilter%": True}}})
    if view.by:
        groupings = {GROUPS: _groups(view, min(most, MOST_ROWS))}
        if view.over:
            groupings[NAMES] = _names(view)
        return {"size": 0, "query": {"bool": query}, "aggs": groupings}
    return {
        "size": min(most, MOST_ROWS),
        "_source": list(dict.fromkeys(columns)),
        "sort": [_order(column) for column in view.sort if "|" not in column],
        "query": {"bool": query},
    }


def _groups(view: View, most: int) -> dict[str, Any]:
    """An aggregation with a bucket per group.

    Without an order of its own every group, a missing key being one of its own, as in every store. The
    first of an order are asked of terms, which leave out what has no key.
    """
    sums = {metric.name: _metric(metric) for metric in view.metrics if not isinstance(metric, Count)}
    if view.over:
        every = {"field": view.over, "calendar_interval": "day", "min_doc_count": 1}
        moments = {"date_histogram": every, "aggs": sums}
        return _over_time(view, moments, most) if view.by else moments
    largest = _largest(view)
    if largest is not None:
        (column,) = view.by
        return {"terms": {"field": column, "size": most, "order": {largest: "desc"}}, "aggs": sums}
    # composite gives every group; terms would drop the smallest in silence
    sources = [{column: {"terms": {"field": column, "missing_bucket": True}}} for column in view.by]
    return {"composite": {"size": most, "sources": sources}, **({"aggs": sums} if sums else {})}


def _over_time(view: View, moments: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The first names of a view, each with its moments."""
    (column,) = view.by
    order: list[dict[str, str]] = []
    aggs: dict[str, Any] = {_MOMENTS: moments}
    if view.first:
        order.append({_FIRST: "desc"})
        aggs[_FIRST] = {"filter": {"bool": _conditions(view.first)}}
    if RANK in table(view.table).column_names:
        order.append({RANK: "asc"})
        aggs[RANK] = {"min": {"field": RANK}}
    elif Maximum("n_jobs", "n_jobs") in view.metrics:
        order.append({"n_jobs": "desc"})
        aggs["n_jobs"] = {"max": {"field": "n_jobs"}}
    order.append({"_count": "desc"})
    # breadth first: moments of the names alone that are kept
    names = {"field": column, "size": most, "collect_mode": "breadth_first", "order": order}
    return {"terms": names, "aggs": aggs}


def _names(view: View) -> dict[str, Any]:
    """An aggregation that counts the groups of a view over time, of which few are asked for."""
    (column,) = view.by
    counted = {"cardinality": {"field": column}}
    return {"filter": {"bool": _conditions(view.first)}, "aggs": {NAMES: counted}}


def _largest(view: View) -> str | None:
    """The metric whose largest groups are asked for, where a view of one key is sorted by one."""
    if len(view.by) != 1 or not view.sort or not view.sort[0].startswith("-"):
        return None
    name = view.sort[0].removeprefix("-")
    named = {metric.name: metric for metric in view.metrics}
    if name not in named:
        return None
    return "_count" if isinstance(named[name], Count) else name


def _metric(metric: Metric | Mean) -> dict[str, Any]:
    match metric:
        case Mean(column):
            return {"avg": {"field": column}}
        case Sum(column):
            return {"sum": {"field": column}}
        case Minimum(column):
            return {"min": {"field": column}}
        case Maximum(column):
            return {"max": {"field": column}}
        case SumProduct(left, right):
            return _product(left, right, ())
        case Moment((left, right), _, having):
            return _product(left, right, having)
        case Moment((), _, having):
            return {"filter": _present(having)}
        case SumWhere(column, having):
            return {"filter": _present(having), "aggs": {_WEIGHTS: {"sum": {"field": column}}}}
        case _:
            raise ValueError(f"no index can sum '{metric.name}' without a script; make it a column")


def _product(left: str, right: str, having: Sequence[str]) -> dict[str, Any]:
    """The sum of a product: a mean weighted by one of the factors, and the sum of the weights."""
    mean = {"weighted_avg": {"value": {"field": left}, "weight": {"field": right}}}
    # the weights must be summed over the documents of which the mean is taken
    present = _present((left, right, *having))
    return {"filter": present, "aggs": {_MEAN: mean, _WEIGHTS: {"sum": {"field": right}}}}


def _present(names: Sequence[str]) -> dict[str, Any]:
    return {"bool": {"filter": [{"exists": {"field": name}} for name in names]}}


def _order(column: str) -> dict[str, Any]:
    order = "desc" if column.startswith("-") else "asc"
    return {column.removeprefix("-"): {"order": order, "missing": "_last"}}


def index_of(view: View, prefix: str = PREFIX) -> str:
    """The name under which readers find the rows of a view: of the latest run where runs make them.

    >>> index_of(View("flags")), index_of(View("flags", runs="every")), index_of(View("run_counts"))
    ('esjobs-latest-flags', 'esjobs-flags', 'esjobs-run-counts')
    """
    of_latest = view.runs == "latest" and kind_of(table(view.table)) is not None
    return f"{prefix}-{'latest-' if of_latest else ''}{view.table.replace('_', '-')}"


def is_latest(view: View) -> bool:
    """True if the rows of a view are those of latest runs, which no range of time cuts."""
    return index_of(view).startswith(f"{PREFIX}-latest-")


def hits(
    view: View,
    columns: Sequence[str],
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    *,
    prefix: str = PREFIX,
    most: int = MOST_ROWS,
    name: str = "",
    context: bool = True,
) -> Source:
    """The rows or groups of a view, asked of its index by the chart itself.

    ``most``: so many of them. ``name``: what expressions call them. ``context``: with the filters of the
    dashboard.
    """
    called = {"name": name} if name else {}
    url = {
        "index": index_of(view, prefix),
        "body": body(view, columns, processing_type, method, most=most, context=context),
    }
    if not view.by and not view.over:
        return Source({**called, "url": url, "format": {"property": "hits.hits"}}, "_source")
    data = {**called, "url": url, "format": ANSWER}
    paths = _paths(view)
    if view.over and view.by:
        return _unfolded(view, data, paths)
    parts = ("key", "doc_count", *(each.name for each in view.metrics if not isinstance(each, Count)))
    if view.over:
        return Source(data, paths=paths | {view.over: "key"}, grouped=parts)
    return Source(data, paths=paths, unfolded=tuple(_products(view)), grouped=parts)


def _paths(view: View) -> dict[str, str]:
    """Paths of keys and metrics in a group; products are computed from two of them."""
    # of terms and of a histogram the key is a value, of a composite an object
    single = len(view.by) == 1 and (view.over or _largest(view) is not None)
    paths = {column: "key" if single else f"key.{column}" for column in view.by}
    for metric in view.metrics:
        match metric:
            case Count():
                paths[metric.name] = "doc_count"
            case SumWhere():
                paths[metric.name] = f"{metric.name}.{_WEIGHTS}.value"
            case Moment(()):
                paths[metric.name] = f"{metric.name}.doc_count"
            case SumProduct() | Moment():
                pass
            case _:
                paths[metric.name] = f"{metric.name}.value"
    return paths


def _products(view: View) -> Iterator[Step]:
    for metric in view.metrics:
        if isinstance(metric, SumProduct) or (isinstance(metric, Moment) and metric.factors):
            group = f"datum[{json.dumps(metric.name)}]"
            product = f"{group}.{_MEAN}.value * {group}.{_WEIGHTS}.value"
            yield {"calculate": product, "as": metric.name}


def _unfolded(view: View, data: Mapping[str, Any], paths: Mapping[str, str]) -> Source:
    """The moments of names as rows of their own, each with its name."""
    all_names = f"datum.aggregations.{NAMES} ? datum.aggregations.{NAMES}.{NAMES}.value : 0"
    inner = {name: path if name in view.by else f"{_MOMENT}.{path}" for name, path in paths.items()}
    unfolded = (
        {"calculate": all_names, "as": NAMES},
        *([{"filter": f"datum.{_FIRST}.doc_count > 0"}] if view.first else ()),
        {"calculate": f"datum.{_MOMENTS}.buckets", "as": _MOMENT},
        {"flatten": [_MOMENT]},
    )
    parts = ("key", _MOMENTS, *([_FIRST] if view.first else []))
    return Source(data, paths={**inner, view.over: f"{_MOMENT}.key"}, unfolded=unfolded, grouped=parts)


_MOMENT = "moment"


def count_of(
    view: View,
    processing_type: str = ALL_TYPES,
    method: str | None = None,
    *,
    prefix: str = PREFIX,
    name: str = "",
) -> Source:
    """Return the request for the number of rows of a view, as one row with ``doc_count``."""
    search = body(view, (), processing_type, method)
    search = {
        "size": 0,
        "query": search["query"],
        "aggs": {GROUPS: {"filters": {"filters": [{"match_all": {}}]}}},
    }
    called = {"name": name} if name else {}
    url = {"index": index_of(view, prefix), "body": search}
    return Source({**called, "url": url, "format": ANSWER}, grouped=("doc_count",))


def lines_of_types(view: View, columns: Sequence[str], method: str | None, prefix: str = PREFIX) -> Source:
    """The lines of every processing type.

    The filters of a dashboard are about names and would leave no line; of its conditions only those of the
    view and the time picker hold.
    """
    rows_table = table(view.table)
    view = replace(view, types="every")
    search = body(view, [*columns, *TYPE_COLUMNS], method=method, context=False)
    search["query"]["bool"]["filter"].append({"range": {rows_table.time: {"%timefilter%": True}}})
    url = {"index": index_of(view, prefix), "body": search}
    return Source({"url": url, "format": {"property": "hits.hits"}}, "_source")


TYPE_COLUMNS = ("processing_type", "benchmark")  # Columns that distinguish lines of processing types
