"""What the panels of a bundle ask, read from its lines alone, as a server reads the shapes that we write."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]
Line = dict[str, Any]

MISSING = "__missing__"
"""What a group without a value is called."""


@dataclass(frozen=True)
class Question:
    """A search of a panel, and how its answer becomes rows: value by field."""

    page: str
    panel: str
    index: str
    body: dict[str, Any]
    rows: Callable[[dict[str, Any]], Rows]


@dataclass(frozen=True)
class Chart:
    """A panel that Vega-Lite draws."""

    page: str
    panel: str
    spec: dict[str, Any]


def asked(text: str) -> Iterator[Question | Chart]:
    """Everything that the dashboards of a bundle ask."""
    lines = [json.loads(line) for line in text.splitlines()]
    known = {(line["type"], line["id"]): line for line in lines}
    for line in lines:
        if line["type"] == "dashboard":
            pills = _pills(line)
            for panel in json.loads(line["attributes"]["panelsJSON"]):
                yield from _of_panel(panel, line, known, pills)


def _pills(line: Line) -> list[Any]:
    """What is chosen when a dashboard is opened."""
    source = json.loads(line["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
    pills = [pill["query"] for pill in source["filter"]]
    controls = json.loads(line["attributes"].get("controlGroupInput", {}).get("panelsJSON", "{}"))
    for control in controls.values():
        given = control["explicitInput"]
        if given["selectedOptions"]:
            pills.append({"terms": {given["fieldName"]: given["selectedOptions"]}})
    return pills


def _of_panel(
    panel: dict[str, Any], line: Line, known: dict[tuple[str, str], Line], pills: list[Any]
) -> Iterator[Question | Chart]:
    page, name, config = line["id"], panel["panelIndex"], panel["embeddableConfig"]
    references = {each["name"]: (each["type"], each["id"]) for each in line["references"]}
    if "savedVis" in config:
        if config["savedVis"]["type"] == "vega":
            spec = json.loads(config["savedVis"]["params"]["spec"])
            yield Chart(page, name, _with(without_calls(spec), pills))
    elif panel["type"] == "lens":
        (reference,) = config["attributes"]["references"]
        index = _title(known, references[f"{name}:{reference['name']}"])
        yield _of_lens(page, name, index, config["attributes"], pills)
    elif "panelRefName" in panel:
        shown = known[references[panel["panelRefName"]]]
        assert references[f"{name}:{panel['panelRefName']}"] == (shown["type"], shown["id"])
        state = json.loads(shown["attributes"]["visState"])
        if state["type"] == "input_control_vis":
            return
        (reference,) = shown["references"]
        index = _title(known, (reference["type"], reference["id"]))
        source = json.loads(shown["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
        query = {"bool": {"filter": [query_of(source["query"]["query"]), *pills]}}
        yield _of_aggregations(page, name, index, state, query)


def without_calls(spec: dict[str, Any]) -> dict[str, Any]:
    """A chart without the functions of a server that a click calls, which no other Vega has."""
    kept = [each for each in spec.get("params", ()) if not each["name"].startswith("sent")]
    return {**spec, "params": kept}


def _title(known: dict[tuple[str, str], Line], key: tuple[str, str]) -> str:
    return str(known[key]["attributes"]["title"])


def _with(found: Any, pills: list[Any]) -> Any:
    """The placeholder of a dashboard's filters replaced by them."""
    if isinstance(found, dict):
        return {key: _with(value, pills) for key, value in found.items()}
    if isinstance(found, list):
        listed = [
            [*pills] if each == "%dashboard_context-filter_clause%" else [_with(each, pills)]
            for each in found
        ]
        return [each for some in listed for each in some]
    return found


def _of_aggregations(page: str, name: str, index: str, state: Line, query: Any) -> Question:
    """A metric, a table or bars of aggregations."""
    metrics, keys, filters = [], [], []
    for each in state["aggs"]:
        if each["schema"] == "metric":
            metrics.append((each["id"], each["type"], each["params"].get("field")))
        elif each["type"] == "date_histogram":
            keys.append((each["params"]["field"], 0, "", "", False))
        elif each["type"] == "filters":
            filters = [(one["label"], one["input"]["query"]) for one in each["params"]["filters"]]
        else:
            params = each["params"]
            order = params["orderBy"]
            if order == "custom":
                least = params["orderAgg"]
                order = least["id"]
                assert least["schema"] == "orderAgg"
                metrics.append((order, least["type"], least["params"]["field"]))
            keys.append((params["field"], params["size"], order, params["order"], params["missingBucket"]))
    if filters:
        return _counts(page, name, index, query, filters)
    return _groups(page, name, index, query, keys, metrics)


def _counts(page: str, name: str, index: str, query: Any, filters: list[tuple[str, str]]) -> Question:
    """Rows counted by condition."""
    named = {label: query_of(text) for label, text in filters}
    body = {"size": 0, "query": query, "aggs": {"counts": {"filters": {"filters": named}}}}

    def rows(answer: dict[str, Any]) -> Rows:
        buckets = answer["aggregations"]["counts"]["buckets"]
        return [{label: bucket["doc_count"] for label, bucket in buckets.items()}]

    return Question(page, name, index, body, rows)


def _groups(
    page: str,
    name: str,
    index: str,
    query: Any,
    keys: list[tuple[str, int, str, str, bool]],
    metrics: list[tuple[str, str, str]],
) -> Question:
    """Groups inside groups, with the numbers of each."""
    numbers = {identity: {kind: {"field": field}} for identity, kind, field in metrics}
    inner: dict[str, Any] = dict(numbers)
    for field, size, order, direction, missing in reversed(keys):
        if not size:
            days = {"field": field, "calendar_interval": "1d", "min_doc_count": 1}
            inner = {**numbers, "inner": {"date_histogram": days, "aggs": inner}}
            continue
        terms: dict[str, Any] = {"field": field, "size": size, "order": {order: direction}}
        if missing:
            terms["missing"] = MISSING
        inner = {**numbers, "inner": {"terms": terms, "aggs": inner}}
    body = {"size": 0, "query": query, "aggs": inner}

    def rows(answer: dict[str, Any]) -> Rows:
        return list(_unfolded(answer["aggregations"], [key[0] for key in keys], metrics, {}))

    return Question(page, name, index, body, rows)


def _unfolded(
    level: dict[str, Any], keys: list[str], metrics: list[tuple[str, str, str]], row: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    if not keys:
        yield row | {field: _moment_or_number(level[identity]) for identity, _, field in metrics}
        return
    for bucket in level["inner"]["buckets"]:
        key = bucket.get("key_as_string", bucket["key"])
        key = None if key == MISSING else key
        yield from _unfolded(bucket, keys[1:], metrics, {**row, keys[0]: key})


def _moment_or_number(found: dict[str, Any]) -> Any:
    return found.get("value_as_string", found["value"])


def _of_lens(page: str, name: str, index: str, attributes: Line, pills: list[Any]) -> Question:
    state = attributes["state"]
    (layer,) = state["datasourceStates"]["formBased"]["layers"].values()
    query = {"bool": {"filter": [query_of(state["query"]["query"]), *pills]}}
    columns = layer["columns"]
    assert set(layer["columnOrder"]) == set(columns)
    conditions = [
        (column["label"], column["filter"]["query"])
        for column in columns.values()
        if column["operationType"] == "count" and "filter" in column
    ]
    if conditions:
        return _counts(page, name, index, query, conditions)
    keys, metrics = [], []
    for identity in layer["columnOrder"]:
        column = columns[identity]
        if column["operationType"] == "date_histogram":
            keys.append((column["sourceField"], 0, "", "", False))
        elif column["operationType"] == "filters":
            filters = [(each["label"], each["input"]["query"]) for each in column["params"]["filters"]]
            return _counts(page, name, index, query, filters)
        elif column["operationType"] == "terms":
            params = column["params"]
            order = params["orderBy"].get("columnId", "_key")
            assert order == "_key" or order in columns
            keys.append(
                (
                    column["sourceField"],
                    params["size"],
                    order,
                    params["orderDirection"],
                    params["missingBucket"],
                )
            )
        else:
            metrics.append((identity, column["operationType"], column["sourceField"]))
    return _groups(page, name, index, query, keys, metrics)


def query_of(text: str) -> dict[str, Any]:
    """A query of the search bar, of the shapes that we write, as a search.

    >>> query_of('level: "queue" and not (k > 1 or k < -1)')["bool"]["filter"][0]
    {'term': {'level': 'queue'}}
    """
    if not text:
        return {"match_all": {}}
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[()]|[<>]|[^\s()<>:]+|:', text)
    found, rest = _either(tokens)
    assert rest == [], rest
    return found


def _either(tokens: list[str]) -> tuple[dict[str, Any], list[str]]:
    found, rest = _both(tokens)
    choices = [found]
    while rest and rest[0] == "or":
        found, rest = _both(rest[1:])
        choices.append(found)
    if len(choices) == 1:
        return choices[0], rest
    return {"bool": {"should": choices, "minimum_should_match": 1}}, rest


def _both(tokens: list[str]) -> tuple[dict[str, Any], list[str]]:
    found, rest = _one(tokens)
    needed = [found]
    while rest and rest[0] == "and":
        found, rest = _one(rest[1:])
        needed.append(found)
    return (needed[0] if len(needed) == 1 else {"bool": {"filter": needed}}), rest


def _one(tokens: list[str]) -> tuple[dict[str, Any], list[str]]:
    if tokens[0] == "not":
        found, rest = _one(tokens[1:])
        return {"bool": {"must_not": [found]}}, rest
    if tokens[0] == "(":
        found, rest = _either(tokens[1:])
        assert rest[0] == ")"
        return found, rest[1:]
    field, sign, *rest = tokens
    if sign in "<>":
        return {"range": {field: {"gt" if sign == ">" else "lt": float(rest[0])}}}, rest[1:]
    assert sign == ":"
    if rest[0] == "*":
        return {"exists": {"field": field}}, rest[1:]
    if rest[0] == "(":
        end = rest.index(")")
        values = [_value(each) for each in rest[1:end] if each != "or"]
        return {"terms": {field: values}}, rest[end + 1 :]
    return {"term": {field: _value(rest[0])}}, rest[1:]


def _value(token: str) -> Any:
    return json.loads(token)
