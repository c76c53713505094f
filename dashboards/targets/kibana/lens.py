"""Panels as Lens visualizations, by value."""

from typing import Any

from dashboards.spec import Panel, Tile
from dashboards.targets.portable.visualizations import (
    WIDE,
    columns_of_table,
    first_sort,
    is_moment,
    is_ordering,
    most_of_key,
)
from dashboards.targets.saved_objects.charts import NAMES
from dashboards.targets.saved_objects.conditions import all_of, kuery
from dashboards.targets.saved_objects.data_views import KINDS
from dashboards.targets.saved_objects.objects import PREFIX, Attributes, Reference, data_view_of
from dashboards.targets.vegalite.index import index_of
from dashboards.targets.vegalite.sums import BAR
from esjobs.schema.catalogue import table

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


def tile(panel: Panel, shown: Tile, method: str, prefix: str = PREFIX) -> Attributes:
    """One number."""
    if shown.column:
        column = _measure(shown.label, "max", shown.column)
    else:
        column = _measure(shown.label, "count", "___records___", params={"emptyAsNull": False})
        if shown.where:
            column["filter"] = {"language": "kuery", "query": all_of(shown.where)}
    visualization = {"layerId": LAYER, "layerType": "data", "metricAccessor": "number"}
    if shown.verdict in _GROUND:
        visualization["color"] = _GROUND[shown.verdict]
    return lens(panel, shown.label, "lnsMetric", {"number": column}, visualization, method, prefix)


# The ground of numbers that a verdict has a colour for, as pale as a page is calm
_GROUND = {"confirmed": "#f6d9cb", "ok": "#d6e6f2"}


def datatable(panel: Panel, method: str, prefix: str = PREFIX) -> Attributes:
    """A row per name, with its numbers and words."""
    wanted, direction = first_sort(panel)
    keys, numbers = columns_of_table(panel)
    rows_table = table(panel.view.table)
    ordering = is_ordering(panel, wanted)
    by = {"columnId": wanted, "type": "column"} if ordering else {"type": "alphabetical"}
    named: dict[str, Column] = {}
    for number, (name, title) in enumerate(keys):
        size = most_of_key(panel, keys, number)
        made = _terms(name, title, by, direction, size, missing=bool(named))
        named[name] = made | _KEYS.get(KINDS[rows_table.column(name).type][0], {})
    for name, title in numbers:
        kind = {"dataType": "date"} if is_moment(panel, name) else {}
        named[name] = _measure(title, "max", name, **kind)  # written as the data view says
    hidden = ordering and wanted not in named
    if hidden:
        kind = {"dataType": "date"} if is_moment(panel, wanted) else {}
        named[wanted] = _measure(wanted, "min" if direction == "asc" else "max", wanted, **kind)
    texts = any(not KINDS[rows_table.column(name).type][2] for name in named)
    shown: dict[str, Any] = {
        "columns": [
            _shown_column(name, hidden=hidden and name == wanted, is_name=name in NAMES) for name in named
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
        # there to sort by
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


INTEGER: dict[str, Any] = {"id": "number", "params": {"decimals": 0}}
"""Format of sums of jobs or hours beside bars."""


def bars(panel: Panel, method: str, prefix: str = PREFIX) -> Attributes:
    """A bar per name, the largest sum first."""
    value, label = panel.entry("x"), panel.entry("label")
    size = panel.most[0] if panel.most else 20
    columns = {
        "name": _terms(label.column, label.title, {"columnId": "amount", "type": "column"}, "desc", size),
        "amount": _measure(value.title, "sum", value.column, params={"emptyAsNull": True, "format": INTEGER}),
    }
    layer = {
        "accessors": ["amount"],
        "layerId": LAYER,
        "layerType": "data",
        "seriesType": "bar_horizontal",
        "xAccessor": "name",
        "yConfig": [{"axisMode": "auto", "color": BAR, "forAccessor": "amount"}],
    }
    shown = {
        "fittingFunction": "None",
        "layers": [layer],
        "legend": {"isVisible": False, "position": "right"},
        "preferredSeriesType": "bar_horizontal",
        "valueLabels": "hide",
    }
    return lens(panel, panel.title, "lnsXY", columns, shown, method, prefix)
