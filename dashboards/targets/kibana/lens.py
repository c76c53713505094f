"""Panels as Lens visualizations, by value."""

from collections.abc import Sequence, Set
from typing import Any

from dashboards.spec import NEUTRAL, OWN, JobsIndex, Panel, table
from dashboards.targets.portable.visualizations import (
    WIDE,
    columns_of_table,
    filters_of_fields,
    first_sort,
    fixed_values,
    is_moment,
    is_ordering,
    listed,
    most_of_key,
    summed,
    values_of,
)
from dashboards.targets.saved_objects.charts import NAMES, on_both
from dashboards.targets.saved_objects.conditions import all_of, kuery
from dashboards.targets.saved_objects.data_views import KINDS
from dashboards.targets.saved_objects.objects import PREFIX, Attributes, Reference, data_view_of
from dashboards.targets.vegalite.index import index_of

LAYER = "rows"
LAYER_REFERENCE = f"indexpattern-datasource-layer-{LAYER}"

Column = dict[str, Any]


def lens(
    panel: Panel,
    title: str,
    kind: str,
    columns: dict[str, Column],
    shown: dict[str, Any],
    method: str,
    prefix: str,
) -> Attributes:
    """The attributes of a visualization with one layer; ``shown``: what its kind says of the columns."""
    reference = data_view_of(index_of(panel.view, prefix), LAYER_REFERENCE, prefix)
    bucketed = [name for name, column in columns.items() if column["isBucketed"]]
    layer = {
        "columnOrder": [*bucketed, *(name for name in columns if name not in bucketed)],
        "columns": columns,
        "incompleteColumns": {},
        "sampling": 1,
    }
    return {
        "description": panel.description,
        "references": [reference.written()],
        "state": {
            "adHocDataViews": {},
            "datasourceStates": {"formBased": {"layers": {LAYER: layer}}, "textBased": {"layers": {}}},
            "filters": [],
            "internalReferences": [],
            "query": {"language": "kuery", "query": kuery(panel.view, method)},
            "visualization": shown,
        },
        "title": title,
        "type": "lens",
        "visualizationType": kind,
    }


def references(name: str, attributes: Attributes) -> list[Reference]:
    """References of a panel's content, as its dashboard repeats them."""
    return [
        Reference(f"{name}:{each['name']}", each["type"], each["id"]) for each in attributes["references"]
    ]


def _measure(label: str, operation: str, source: str, **more: Any) -> Column:
    return {
        "customLabel": True,
        "dataType": "number",
        "isBucketed": False,
        "label": label,
        "operationType": operation,
        "params": {},
        "scale": "ratio",
        "sourceField": source,
        **more,
    }


def counts(panel: Panel, method: str, prefix: str = PREFIX) -> Attributes:
    """Rows counted by condition, a number each, side by side: nothing that a click could choose."""
    columns, shown = {}, []
    for number, tile in enumerate(panel.tiles, 1):
        name = f"count-{number}"
        filtered = {"language": "kuery", "query": all_of(tile.where)}
        columns[name] = _counted(tile.label, filter=filtered)
        shown.append({"alignment": "center", "columnId": name, "isTransposed": False})
    table_of = {"columns": shown, "headerRowHeight": "auto", "layerId": LAYER, "layerType": "data"}
    return lens(panel, panel.title, "lnsDatatable", columns, table_of, method, prefix)


def _counted(label: str, **more: Any) -> Column:
    # Lens' own name for all documents
    return _measure(label, "count", "___records___", params={"emptyAsNull": False}, **more)


def datatable(panel: Panel, method: str, prefix: str = PREFIX, clicks: Set[str] = frozenset()) -> Attributes:
    """A row per name, with its numbers, or their sums, and words.

    ``clicks``: columns whose cells a click chooses.
    """
    wanted, direction = first_sort(panel)
    named = _table_columns(panel)
    # there to sort by
    hidden = is_ordering(panel, wanted) and wanted not in named
    if hidden:
        least = "min" if direction == "asc" else "max"
        named[wanted] = _measure(wanted, least, wanted, **_date(panel, wanted))
    rows_table = table(panel.view.table)
    texts = any(not KINDS[rows_table.column(name).type][2] for name in named)
    shown: dict[str, Any] = {
        "columns": [
            _shown_column(name, hidden=hidden and name == wanted, is_name=name in clicks) for name in named
        ],
        "layerId": LAYER,
        "layerType": "data",
        "paging": {"enabled": True, "size": 10},
        # a sentence is read whole
        "rowHeight": "auto" if texts else "single",
        "headerRowHeight": "auto",
    }
    if wanted in named and not hidden:
        shown["sorting"] = {"columnId": wanted, "direction": direction}
    return lens(panel, panel.title, "lnsDatatable", named, shown, method, prefix)


def _table_columns(panel: Panel) -> dict[str, Column]:
    """The columns of a table by name: groups of its texts, and numbers or their sums in each."""
    wanted, direction = first_sort(panel)
    keys, numbers = columns_of_table(panel)
    by = {"type": "alphabetical"}
    if is_ordering(panel, wanted):
        by = {"columnId": wanted, "type": "column"}
    rows_table = table(panel.view.table)
    named: dict[str, Column] = {}
    for number, (name, title) in enumerate(keys):
        size = most_of_key(panel, keys, number)
        made = _terms(name, title, by, direction, size, missing=bool(named))
        named[name] = made | _KEYS.get(KINDS[rows_table.column(name).type][0], {})
    # written as the data view says
    operation, more = ("sum", {"params": {"emptyAsNull": True}}) if panel.view.by else ("max", {})
    for name, title in numbers:
        named[name] = _measure(title, operation, name, **_date(panel, name), **more)
    return named


def _date(panel: Panel, name: str) -> dict[str, str]:
    return {"dataType": "date"} if is_moment(panel, name) else {}


def named(panel: Panel) -> set[str]:
    """Columns of a panel whose names are clicked: that of bars, those of a table that are of names."""
    if panel.kind == "bars":
        return {panel.entry("label").column}
    return (
        {name for name, _ in columns_of_table(panel)[0] if name in NAMES} if panel.kind in _TABLES else set()
    )


_TABLES = ("rows", "table")

# What a key of another type than text has in place of what a text has
_KEYS: dict[str, dict[str, Any]] = {
    "number": {"dataType": "number"},
    "boolean": {"dataType": "boolean"},
    "date": {
        "dataType": "date",
        "operationType": "date_histogram",
        "params": {"dropPartials": False, "includeEmptyRows": False, "interval": "1d"},
        "scale": "interval",
    },
}


def _shown_column(name: str, *, hidden: bool, is_name: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"columnId": name, "isTransposed": False, "oneClickFilter": is_name}
    if name in WIDE:
        shown["width"] = WIDE[name]
    if hidden:
        shown["hidden"] = True
    return shown


def _terms(
    column: str, title: str, order_by: dict[str, Any], direction: str, size: int, *, missing: bool = False
) -> Column:
    return {
        "customLabel": True,
        "dataType": "string",
        "isBucketed": True,
        "label": title,
        "operationType": "terms",
        "params": {
            "exclude": [],
            "excludeIsRegex": False,
            "include": [],
            "includeIsRegex": False,
            "missingBucket": missing,
            "orderBy": order_by,
            "orderDirection": direction,
            # without it Lens leaves missing values out, and with them their rows
            "otherBucket": missing,
            "parentFormat": {"id": "terms"},
            "size": size,
        },
        "scale": "ordinal",
        "sourceField": column,
    }


# Format of sums of jobs or hours beside bars
INTEGER: dict[str, Any] = {"id": "number", "params": {"decimals": 0}}


def bars(panel: Panel, method: str, prefix: str = PREFIX) -> Attributes:
    """A bar per name, the largest sum first; of names with a colour of their own, in their order."""
    value, label = panel.entry("x"), panel.entry("label")
    more = {"params": {"emptyAsNull": True, "format": INTEGER}}
    if values := values_of(panel):
        columns = {"name": _filters(label.title, values)} | _amounts(panel, "sum", value.column, **more)
        return _chart(
            panel, columns, value.title, fixed_values(panel), "bar_horizontal_stacked", method, prefix
        )
    size = panel.most[0] if panel.most else 20
    columns = {
        "name": _terms(label.column, label.title, {"columnId": "amount", "type": "column"}, "desc", size),
        "amount": _measure(value.title, "sum", value.column, **more),
    }
    return _chart(panel, columns, value.title, {"amount": NEUTRAL}, "bar_horizontal", method, prefix)


def lines(panel: Panel, method: str, prefix: str = PREFIX) -> Attributes:
    """A line per value over days."""
    value, values = panel.entry("y"), values_of(panel)
    over = _terms(panel.view.over, panel.entry("x").title, {}, "asc", 0) | _KEYS["date"]
    more = {"params": {"emptyAsNull": True, "format": INTEGER}}
    columns = {"name": over} | _amounts(panel, summed(panel), value.column, **more)
    return _chart(
        panel, columns, value.title, fixed_values(panel), "line", method, prefix, legend=len(values) > 1
    )


def coverage(panel: Panel, method: str, prefix: str = PREFIX, jobs: JobsIndex = OWN) -> Attributes:
    """A bar of all jobs, and one of those that record a field."""
    columns = {"name": _filters("Field", filters_of_fields(panel, jobs)), "amount": _counted("Jobs")}
    return _chart(panel, columns, "Jobs", {"amount": NEUTRAL}, "bar_horizontal", method, prefix)


def _amounts(panel: Panel, operation: str, source: str, **more: Any) -> dict[str, Column]:
    """A number for each value that has a colour of its own, under the name of the value."""
    return {
        value: _measure(value, operation, source, filter={"language": "kuery", "query": query}, **more)
        for value, query in values_of(panel)
    }


def _filters(title: str, conditions: Sequence[tuple[str, str]]) -> Column:
    return {
        "customLabel": True,
        "dataType": "string",
        "isBucketed": True,
        "label": title,
        "operationType": "filters",
        "params": {"filters": listed(conditions)},
        "scale": "ordinal",
    }


def _chart(
    panel: Panel,
    columns: dict[str, Column],
    title: str,
    colours: dict[str, str],
    form: str,
    method: str,
    prefix: str,
    *,
    legend: bool = False,
) -> Attributes:
    """Bars or lines over the column ``name``, a colour for each number; ``title``: of the numbers."""
    layer = {
        "accessors": list(colours),
        "layerId": LAYER,
        "layerType": "data",
        "seriesType": form,
        "xAccessor": "name",
        "yConfig": [
            {"axisMode": "auto", "color": on_both(colour), "forAccessor": name}
            for name, colour in colours.items()
        ],
    }
    shown = {
        "fittingFunction": "None",
        "layers": [layer],
        # the title of the panel names what stands on the other axis
        "axisTitlesVisibilitySettings": {"x": False, "yLeft": True, "yRight": False},
        "legend": {"isVisible": legend, "position": "right"},
        "preferredSeriesType": form,
        "valueLabels": "hide",
        "yTitle": title,
    }
    return lens(panel, panel.title, "lnsXY", columns, shown, method, prefix)
