"""Panels as visualizations of aggregations, which OpenSearch Dashboards and Kibana both draw."""

from collections.abc import Iterator, Sequence
from typing import Any

from dashboards.spec import (
    FIXED_COLOURS,
    JOBS,
    NEUTRAL,
    OWN,
    Choice,
    IndexFields,
    JobsIndex,
    Page,
    Panel,
    View,
    Where,
    table,
)
from dashboards.targets.saved_objects.conditions import all_of, condition, kuery
from dashboards.targets.saved_objects.data_views import KINDS
from dashboards.targets.saved_objects.objects import PREFIX, SavedObject, data_view_of, search_source, text_of
from dashboards.targets.vegalite.index import index_of
from esjobs.core.query import Maximum

MOST_NAMES, MOST_OF_ROWS = 500, 100  # Rows of a table at most: of names, and of rows as they are

MOST_COLUMNS = 5  # Columns of a table at most, so that it can be read in a window of 1000 pixels

Aggregation = dict[str, Any]


def visualization(panel: Panel, method: str, prefix: str = PREFIX, jobs: JobsIndex = OWN) -> SavedObject:
    """The object of a panel of numbers, a table, bars or lines."""
    kind, aggregations, params = (
        _coverage(panel, jobs) if panel.kind == "coverage" else _KINDS[panel.kind](panel)
    )
    state = {"aggs": aggregations, "params": params, "title": panel.title, "type": kind}
    data_view = data_view_of(index_of(panel.view, prefix), prefix=prefix)
    attributes = {
        "description": panel.description,
        "kibanaSavedObjectMeta": search_source(kuery(panel.view, method), data_view),
        "title": panel.title,
        "uiStateJSON": text_of(_as_opened(panel) if kind == "table" else _coloured(panel, aggregations)),
        "version": 1,
        "visState": text_of(state),
    }
    return SavedObject("visualization", panel.id, attributes, (data_view,), prefix)


# Pixels of columns whose texts or headings are cut in a table with equal ones at 1000 pixels
WIDE = {
    "name": 180,
    "site": 140,
    "sentence": 470,
    "cost_core_h": 145,
    "component": 125,
    "link": 180,
    "window_end": 118,
}


def _as_opened(panel: Panel) -> dict[str, Any]:
    """Widths of columns, and their order where days are their names, which no aggregation can turn."""
    keys, numbers = columns_of_table(panel)
    shown = [column for column, _ in (*keys, *numbers)]
    widths = [{"colIndex": place, "width": WIDE[name]} for place, name in enumerate(shown) if name in WIDE]
    wanted, direction = first_sort(panel)
    sort = (
        {"colIndex": 0, "direction": direction} if is_moment(panel, shown[0]) and wanted == shown[0] else {}
    )
    return {"vis": {"columnsWidth": widths, **({"sortColumn": sort} if sort else {})}}


def _coloured(panel: Panel, aggregations: Sequence[Aggregation]) -> dict[str, Any]:
    """Colours of bars and lines, by what a server calls them: a value with a colour, or the metric."""
    if panel.kind == "tiles":
        return {}
    fixed = fixed_values(panel)
    colours = fixed or {aggregations[0]["params"]["customLabel"]: NEUTRAL}
    return {"vis": {"colors": colours}}


def fixed_values(panel: Panel) -> dict[str, str]:
    """The values of a panel's names that have a colour of their own, in their order; none: all have one."""
    if panel.kind not in ("bars", "trend"):
        return {}
    column = panel.entry("label").column
    kept = [each for each in panel.view.where if each.column == column and each.accepted and not each.negate]
    return {
        value: colour
        for value, colour in FIXED_COLOURS.get(column, {}).items()
        if all(value in each.accepted for each in kept)
    }


def filters_of_fields(panel: Panel, jobs: JobsIndex) -> list[tuple[str, str]]:
    """All jobs, and those that record a field, as conditions with their labels; without fields of others."""
    found = [("all jobs", "")]
    for field in panel.fields:
        mapped = jobs.columns.get(field.column, IndexFields(()))
        recorded = " or ".join(condition(Where(name)) for name in mapped.names)
        if recorded and mapped.unset is not None:
            recorded = f"({recorded}) and not {mapped.names[0]}: {mapped.unset:g}"
        if recorded:
            found.append((field.title, recorded))
    return found


def offered(page: Page, jobs: JobsIndex) -> Iterator[tuple[Choice, str]]:
    """Filters with the fields they act on; one that an index of jobs does not have is left out."""
    for choice in page.choices:
        if choice.table != JOBS.name:
            yield choice, choice.column
        elif names := jobs.columns.get(choice.column, IndexFields(())).names:
            yield choice, names[0]


def choices(page: Page, jobs: JobsIndex, prefix: str = PREFIX) -> SavedObject:
    """The object with the filters of a page."""
    controls, views = [], []
    for number, (choice, field) in enumerate(offered(page, jobs)):
        reference = f"control_{number}_index_pattern"
        views.append(data_view_of(index_of(View(choice.table), prefix), reference, prefix))
        options = {"dynamicOptions": True, "multiselect": not choice.single, "order": "desc", "size": 100}
        controls.append(
            {
                "fieldName": field,
                "id": choice.column,
                "indexPatternRefName": reference,
                "label": choice.title,
                "options": {"type": "terms", **options},
                "parent": "",
                "type": "list",
            }
        )
    params = {"controls": controls, "pinFilters": False, "updateFiltersOnChange": True}
    state = {
        "aggs": [],
        "params": params | {"useTimeFilter": False},
        "title": "",
        "type": "input_control_vis",
    }
    attributes = {
        "description": "",
        "kibanaSavedObjectMeta": search_source(""),
        "title": f"Choices: {page.title}",
        "uiStateJSON": "{}",
        "version": 1,
        "visState": text_of(state),
    }
    return SavedObject("visualization", f"choices-{page.id}", attributes, tuple(views), prefix)


def _aggregation(number: int, kind: str, schema: str, **params: Any) -> Aggregation:
    return {"enabled": True, "id": str(number), "params": params, "schema": schema, "type": kind}


def _tiles(panel: Panel) -> tuple[str, list[Aggregation], dict[str, Any]]:
    """Numbers side by side: rows counted by condition."""
    found = [
        _aggregation(1, "count", "metric", customLabel=panel.entry("label").title),
        _filters(2, "group", "", [(tile.label, all_of(tile.where)) for tile in panel.tiles]),
    ]
    metric = {
        "colorSchema": "Green to Red",
        "colorsRange": [{"from": 0, "to": 10000}],
        "invertColors": False,
        "labels": {"show": True},
        "metricColorMode": "None",
        "percentageMode": False,
        "style": {"bgColor": False, "bgFill": "#000", "fontSize": 20, "labelColor": False, "subText": ""},
        "useRanges": False,
    }
    return "metric", found, {"addLegend": False, "addTooltip": True, "metric": metric, "type": "metric"}


def _table(panel: Panel) -> tuple[str, list[Aggregation], dict[str, Any]]:
    """A row per name, split further by its texts; a name has one of each, and a number or sum of each."""
    metrics: list[Aggregation] = []
    keys, numbers = columns_of_table(panel)
    for number, (column, title) in enumerate(numbers, 1):
        of_rows = "sum" if panel.view.by else "max"
        metrics.append(_aggregation(number, of_rows, "metric", field=column, customLabel=title))
    order, direction = _order(panel, [column for column, _ in numbers])
    split = []
    for number, (column, title) in enumerate(keys):
        kind = "date_histogram" if is_moment(panel, column) else "terms"
        params: dict[str, Any] = {"field": column, "interval": "d", "min_doc_count": 1}
        if kind == "terms":
            params = terms(column, "", direction, most_of_key(panel, keys, number)) | order
            # without it a name without a value in a further column loses its row
            params |= {"missingBucket": True, "missingBucketLabel": "-"} if number else {}
        name = len(metrics) + number + 1
        split.append(_aggregation(name, kind, "bucket", **params, customLabel=title))
    params = {
        "percentageCol": "",
        "perPage": 10,
        "showMetricsAtAllLevels": False,
        "showPartialRows": False,
        "showTotal": False,
        "totalFunc": "sum",
    }
    return "table", [*metrics, *split], params


def _order(panel: Panel, numbers: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return the order of a table: a displayed or hidden number, or its names."""
    wanted, direction = first_sort(panel)
    if not is_ordering(panel, wanted):
        return {"orderBy": "_key"}, direction
    if wanted in numbers:
        return {"orderBy": str(numbers.index(wanted) + 1)}, direction
    # terms order by a number that is not shown through an aggregation of its own
    least = _aggregation(0, "min" if direction == "asc" else "max", "orderAgg", field=wanted)
    return {"orderBy": "custom", "orderAgg": least | {"id": f"{len(numbers) + 1}-orderAgg"}}, direction


def first_sort(panel: Panel) -> tuple[str, str]:
    """The first column by which a panel is sorted, or none, and in which direction."""
    sort = panel.view.sort[0] if panel.view.sort else ""
    return sort.lstrip("-"), "desc" if sort.startswith("-") else "asc"


def is_ordering(panel: Panel, column: str) -> bool:
    """True if the names of a table can be ordered by a column: by a number or a time of theirs."""
    if column in ("", panel.entry("label").column):
        return False
    return KINDS[table(panel.view.table).column(column).type][0] in ("number", "date")


# Texts of one name at most: more than one only where a reader looks at several processing types at once
FURTHER = 5


def most_names(panel: Panel) -> int:
    """Rows of a table at most."""
    return panel.most[0] if panel.most else MOST_OF_ROWS if panel.view.most else MOST_NAMES


def most_of_key(panel: Panel, keys: Sequence[tuple[str, str]], number: int) -> int:
    """Groups of a key at most: many of names, few of what a name has; a day has many of each."""
    return most_names(panel) if number == 0 or is_moment(panel, keys[0][0]) else FURTHER


def is_moment(panel: Panel, column: str) -> bool:
    """True if a column is of days or times, of which a table has a row each."""
    return KINDS[table(panel.view.table).column(column).type][0] == "date"


def columns_of_table(panel: Panel) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The texts of a table, its names first, and its numbers and times, each with its heading.

    An error follows its quantity. A table that does not say which has its first columns.
    """
    rows_table = table(panel.view.table)
    label = panel.entry("label")
    every = {label.column: label.title}
    for field in panel.fields:
        every.setdefault(field.column, field.title)
        if field.error:
            every.setdefault(field.error, f"± {field.title}")
    keys: list[tuple[str, str]] = []
    numbers: list[tuple[str, str]] = []
    for column in panel.few or tuple(every)[:MOST_COLUMNS]:
        kind = KINDS[rows_table.column(column).type][0]
        is_number = column != label.column and kind in ("number", "date")
        (numbers if is_number else keys).append((column, every[column]))
    return keys, numbers


def terms(column: str, order_by: str, direction: str, size: int) -> dict[str, Any]:
    """Groups by the values of a column."""
    return {
        "field": column,
        "missingBucket": False,
        "missingBucketLabel": "Missing",
        "order": direction,
        "orderBy": order_by,
        "otherBucket": False,
        "otherBucketLabel": "Other",
        "size": size,
    }


def _filters(number: int, schema: str, title: str, conditions: Sequence[tuple[str, str]]) -> Aggregation:
    return _aggregation(number, "filters", schema, filters=listed(conditions), customLabel=title)


def listed(conditions: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Conditions with their labels, as an aggregation of filters has them."""
    return [{"input": {"language": "kuery", "query": query}, "label": label} for label, query in conditions]


def values_of(panel: Panel) -> list[tuple[str, str]]:
    """The values of a panel's names that have a colour of their own, as conditions with their labels."""
    column = panel.entry("label").column
    return [(value, condition(Where(column, (value,)))) for value in fixed_values(panel)]


def _bars(panel: Panel) -> tuple[str, list[Aggregation], dict[str, Any]]:
    """A bar per name, the largest sum first; of names with a colour of their own, in their order."""
    value, label = panel.entry("x"), panel.entry("label")
    size = panel.most[0] if panel.most else 20
    found = [_aggregation(1, "sum", "metric", field=value.column, customLabel=value.title)]
    by_name = {**terms(label.column, "1", "desc", size), "customLabel": label.title}
    if values := values_of(panel):
        found += [_filters(2, "segment", label.title, values), _aggregation(3, "terms", "group", **by_name)]
    else:
        found.append(_aggregation(2, "terms", "segment", **by_name))
    return "horizontal_bar", found, _axes(value.title, "histogram")


def _coverage(panel: Panel, jobs: JobsIndex) -> tuple[str, list[Aggregation], dict[str, Any]]:
    """A bar of all jobs, and one of those that record a field."""
    count = _aggregation(1, "count", "metric", customLabel="Jobs")
    found = [count, _filters(2, "segment", "Field", filters_of_fields(panel, jobs))]
    return "horizontal_bar", found, _axes("Jobs", "histogram")


def _lines(panel: Panel) -> tuple[str, list[Aggregation], dict[str, Any]]:
    """A line per value over days."""
    value = panel.entry("y")
    days = {"field": panel.view.over, "interval": "d", "min_doc_count": 1, "drop_partials": False}
    found = [
        _aggregation(1, summed(panel), "metric", field=value.column, customLabel=value.title),
        _aggregation(2, "date_histogram", "segment", **days, customLabel=panel.entry("x").title),
        _filters(3, "group", panel.entry("label").title, values_of(panel)),
    ]
    return "line", found, _axes(value.title, "line")


def summed(panel: Panel) -> str:
    """The aggregation of the only number of a panel over time."""
    (metric,) = panel.view.metrics
    return "max" if isinstance(metric, Maximum) else "sum"


def _axes(title: str, form: str) -> dict[str, Any]:
    """Names on the left and numbers below for bars (``histogram``), days below for a ``line``."""
    of_names, of_numbers = ("left", "bottom") if form == "histogram" else ("bottom", "left")
    shown = {"filter": True, "rotate": 0, "show": True, "truncate": 100}
    scale = {"mode": "normal", "setYExtents": False, "type": "linear"}
    return {
        "addLegend": form == "line",
        "addTimeMarker": False,
        "addTooltip": True,
        "categoryAxes": [
            {
                "id": "CategoryAxis-1",
                "labels": shown,
                "position": of_names,
                "scale": {"type": "linear"},
                "show": True,
                "style": {},
                "title": {},
                "type": "category",
            }
        ],
        "grid": {"categoryLines": False},
        "labels": {"show": False},
        "legendPosition": "right",
        "seriesParams": [
            {
                "data": {"id": "1", "label": title},
                "drawLinesBetweenPoints": True,
                "lineWidth": 2,
                "mode": "stacked" if form == "histogram" else "normal",
                "show": True,
                "showCircles": True,
                "type": form,
                "valueAxis": "ValueAxis-1",
            }
        ],
        "thresholdLine": {"color": NEUTRAL, "show": False, "style": "full", "value": 10, "width": 1},
        "times": [],
        "type": form,
        "valueAxes": [
            {
                "id": "ValueAxis-1",
                "labels": shown,
                "name": "LeftAxis-1",
                "position": of_numbers,
                "scale": scale,
                "show": True,
                "style": {},
                "title": {"text": title},
                "type": "value",
            }
        ],
    }


# Kinds of panel that are visualizations of aggregations
_KINDS = {"tiles": _tiles, "table": _table, "rows": _table, "bars": _bars, "trend": _lines}
