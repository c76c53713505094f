"""Requests to an index of jobs for the groups of a view, with any field names and without scripts.

A number by which another one is multiplied (cores) is a group of its own, in which the product of a sum is
exact; the chart adds up what becomes one group. A field for which several names stand is a group of each.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.spec import IndexFields, JobsIndex, Mean, View, Where, factors_of, multipliers
from dashboards.targets.vegalite.sources import ANSWER, GROUPS, Source, Step
from esjobs.core.fields import field
from esjobs.core.query import Count, Metric

MOST_GROUPS = 200  # Names that are asked for, those of most jobs; charts show fewer of them, the largest
MOST_INNER = 50  # Groups inside each name: numbers of cores, ways to end


@dataclass(frozen=True)
class _Level:
    """One aggregation inside another: a column of the view, or a name that stands for it."""

    column: str
    place: str
    body: dict[str, Any]


def job_groups(
    view: View,
    index: JobsIndex,
    prefix: str,
    *,
    name: str = "",
    context: bool = True,
) -> Source:
    """The groups of a view on jobs, asked of their index by the chart itself.

    ``context``: with the filters of the dashboard; without them, only its time picker holds.
    """
    called = {"name": name} if name else {}
    levels = list(_levels(view, index))
    aggs = sums = _sums(view, index)
    for level in reversed(levels):
        aggs = {GROUPS: {**level.body, **({"aggs": aggs} if aggs else {})}}
    body = {"size": 0, "query": {"bool": _query(view, index, context=context)}, "aggs": aggs}
    data = {**called, "url": {"index": index.name(prefix), "body": body}, "format": ANSWER}
    steps = [*_unfolded(levels), *_worded(view, index, levels)]
    at, parts = ("datum.inner", (GROUPS,)) if len(levels) > 1 else ("datum", tuple(sums))
    steps += [{"calculate": _value(each, at, view, index), "as": each.name} for each in view.metrics]
    columns = _columns(view)
    if {level.column for level in levels} - set(columns):
        added = [{"op": "sum", "field": each.name, "as": each.name} for each in view.metrics]
        steps.append({"aggregate": added, "groupby": columns})
    # the columns are the row's own after these steps
    return Source(data, unfolded=tuple(steps), grouped=("key", "doc_count", *parts))


def _sums(view: View, index: JobsIndex) -> dict[str, Any]:
    summed = (metric for metric in view.metrics if not isinstance(metric, Count))
    return {metric.name: _added_up(_measured(metric, view), index) for metric in summed}


def _columns(view: View) -> list[str]:
    """The columns of a row."""
    return [*view.by, *([view.over] if view.over else [])]


def _query(view: View, index: JobsIndex, *, context: bool) -> dict[str, list[Any]]:
    query: dict[str, list[Any]] = {"filter": [], "must_not": []}
    for condition in view.where:
        made = _condition(condition, _mapped(index, condition.column))
        query["must_not" if condition.negate else "filter"].append(made)
    for name in dict.fromkeys(name for metric in view.metrics for name in _measured(metric, view)):
        mapped = _mapped(index, name)
        if mapped.unset is not None:
            query["must_not"].append({"term": {mapped.names[0]: mapped.unset}})
    query["filter"].append({"range": {index.time: {"%timefilter%": True}}})
    if context:
        for clause in ("must", "filter", "must_not"):
            query.setdefault(clause, []).append(f"%dashboard_context-{clause}_clause%")
    return query


def _condition(condition: Where, mapped: IndexFields) -> dict[str, Any]:
    each = [_of_name(condition, mapped, name) for name in mapped.names]
    return each[0] if len(each) == 1 else {"bool": {"should": each, "minimum_should_match": 1}}


def _of_name(condition: Where, mapped: IndexFields, name: str) -> dict[str, Any]:
    if condition.above is not None:
        return {"range": {name: {"gt": condition.above / mapped.factor}}}
    if not condition.accepted:
        return {"exists": {"field": name}}
    return {"terms": {name: stored_values(mapped, condition.accepted)}}


def stored_values(mapped: IndexFields, accepted: Sequence[object]) -> list[object]:
    """Return the values in the index for values of the catalogue."""
    written = [mine for mine, ours in mapped.values.items() if ours in accepted]
    return [*written, *(value for value in accepted if value is not None and value not in mapped.values)]


def _levels(view: View, index: JobsIndex) -> Iterator[_Level]:
    sizes = {column: MOST_GROUPS if place == 0 else MOST_INNER for place, column in enumerate(view.by)}
    for column in (*view.by, *multipliers(view)):
        mapped = _mapped(index, column)
        absent: object = -1 if field(column).type == "integer" else ""
        for name in mapped.names:
            terms: dict[str, Any] = {"field": name, "size": sizes.get(column, MOST_INNER)}
            if len(mapped.names) > 1:
                # a document without the first field is a group of its own, whose second field then counts
                terms["missing"] = absent
            yield _Level(column, name, {"terms": terms})
    if view.over:
        every = {"field": index.time, "calendar_interval": "day", "min_doc_count": 1}
        yield _Level(view.over, index.time, {"date_histogram": every})


def _unfolded(levels: Sequence[_Level]) -> Iterator[Step]:
    """Each inner group as a row of its own, with the keys of those around it."""
    yield {"calculate": "datum.key", "as": "key_0"}
    at = "datum"
    for number in range(1, len(levels)):
        yield {"calculate": f"{at}.{GROUPS}.buckets", "as": "inner"}
        yield {"flatten": ["inner"]}
        at = "datum.inner"
        yield {"calculate": f"{at}.key", "as": f"key_{number}"}


def _worded(view: View, index: JobsIndex, levels: Sequence[_Level]) -> Iterator[Step]:
    """The columns of the view from the keys, in the words and units of the catalogue."""
    for column in (*view.by, *multipliers(view)):
        absent = "-1" if field(column).type == "integer" else "''"
        yield from _of_keys(column, levels, _mapped(index, column), absent)
    if view.over:
        yield from _of_keys(view.over, levels, IndexFields(()), "''")


def _of_keys(column: str, levels: Sequence[_Level], mapped: IndexFields, absent: str) -> Iterator[Step]:
    """A column from its keys, the first that is not ``absent``."""
    keys = [f"datum.key_{place}" for place, level in enumerate(levels) if level.column == column]
    chosen = " : ".join([*(f"{key} !== {absent} ? {key}" for key in keys[:-1]), keys[-1]])
    words = "".join(
        f"({chosen}) === {json.dumps(mine)} ? {json.dumps(ours)} : "
        for mine, ours in sorted(mapped.values.items())
    )
    scaled = f"({chosen}) * {mapped.factor!r}" if mapped.factor != 1 else chosen
    yield {"calculate": f"{words}{scaled}", "as": column}
    if len(keys) > 1:
        yield {"filter": f"datum[{json.dumps(column)}] !== {absent}"}


def _measured(metric: Metric | Mean, view: View) -> tuple[str, ...]:
    """The numbers whose product is added up inside a group; what multiplies them there is its key."""
    if isinstance(metric, Mean):
        raise ValueError(f"jobs support counts and sums, not '{metric.name}'")
    factors = factors_of(metric)
    if len(set(factors)) == 1:
        return factors
    return tuple(name for name in factors if name not in (*view.by, *multipliers(view)))


def _added_up(factors: tuple[str, ...], index: JobsIndex) -> dict[str, Any]:
    """The aggregation of a sum, of a sum of squares, or of a sum of products."""
    first, *others = (_mapped(index, name).names[0] for name in factors)
    if not others:
        return {"sum": {"field": first}}
    (other,) = others
    if first == other:
        return {"extended_stats": {"field": first}}
    both = {"bool": {"filter": [{"exists": {"field": name}} for name in (first, other)]}}
    mean = {"weighted_avg": {"value": {"field": first}, "weight": {"field": other}}}
    return {"filter": both, "aggs": {_MEAN: mean, _WEIGHTS: {"sum": {"field": other}}}}


_MEAN, _WEIGHTS = "mean", "weights"


def _value(metric: Metric | Mean, group: str, view: View, index: JobsIndex) -> str:
    if isinstance(metric, Count):
        return f"{group}.doc_count"
    factors = _measured(metric, view)
    answer = f"{group}[{json.dumps(metric.name)}]"
    if len(factors) == 1:
        value = f"{answer}.value"
    elif len(set(factors)) == 1:
        value = f"{answer}.sum_of_squares"
    else:
        value = f"{answer}.{_MEAN}.value * {answer}.{_WEIGHTS}.value"
    # sums of products carry the product of both units
    unit = math.prod(_mapped(index, name).factor for name in factors)
    if unit != 1:
        value = f"{value} * {unit!r}"
    keys = list(factors_of(metric))  # type: ignore[arg-type]
    for name in factors:
        keys.remove(name)
    return " * ".join([value, *(f"datum[{json.dumps(name)}]" for name in keys)])


def _mapped(index: JobsIndex, column: str) -> IndexFields:
    return index.columns[column]
