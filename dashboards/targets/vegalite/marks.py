"""Shared parts of charts: configuration, styles, error bars, marks, tooltips."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.spec import GROUPS, LOOKS, STATES, Entry, Kind, Look, Panel
from dashboards.targets.vegalite.forms import COUNT, DECLARED, ESTIMATE, NUMBER, PERCENT, SIGNED, written
from dashboards.targets.vegalite.sources import Source, Step
from esjobs.core.words import DEVIATION_LIMIT

Spec = dict[str, Any]

# The oldest version that every server draws; what is written here is in it
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

# Ground, text, lesser text, grid, accepted band, fitted line. Each colour has one use, so that a style sheet
# can replace it on a dark ground.
PAPER, INK, MUTED, GRID, BAND, LINE = "#fefefe", "#1c2127", "#5b6470", "#e3e6e9", "#e9eef2", "#3a424c"

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "symbolSize": 75,
        "symbolStrokeWidth": 1.4,
        "orient": "top",
        "offset": 12,
        "columnPadding": 20,
        "labelLimit": 300,
    },
}


@dataclass(frozen=True)
class Scale:
    """The interval of an axis, at whose ends stands what lies beyond, and its ticks where they are chosen."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Paint:
    """Settings of a target for a chart.

    ``x``, ``y``: scales; None: as wide as the data. ``tooltips``: rows carry the texts of their tooltips, in
    ``text_0`` and on, and names fit to be read; else values are shown as they are. ``legend``: False where a
    page has one of its own. ``looks``: those that occur, for a legend without idle entries. ``full``: the
    magnitude at which a colour is full.
    """

    x: Scale | None = None
    y: Scale | None = None
    limit: float = DEVIATION_LIMIT
    tooltips: bool = False
    legend: bool = True
    looks: tuple[Look, ...] = ()
    full: float = 0.5
    size: int = 60
    height: float = 340
    unit: str = ""
    description: str = ""


PLAIN = Paint()  # As the chart is when nobody prepared anything for it


def assembled(source: Source, steps: Sequence[Step], layers: Sequence[Spec], paint: Paint) -> Spec:
    """The specification of a chart, as wide as what holds it."""
    made: Spec = {
        "$schema": SCHEMA,
        "description": paint.description,
        "width": "container",
        "height": paint.height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": dict(source.data),
        "transform": list(steps),
        "layer": [written(layer) for layer in layers],
        "config": CONFIG,
    }
    return made


def over_time(field: str) -> Spec:
    """Return an axis of days in UTC."""
    axis = {"format": "%Y-%m-%d", "labelOverlap": True, "tickCount": 7, "grid": False}
    return {"field": field, "type": "temporal", "scale": {"type": "utc"}, "title": None, "axis": axis}


PLAIN_LOOK = GROUPS["largest"]  # Style of rows in panels without styles


def columns_of(panel: Panel, *, tooltips: bool = False) -> list[str]:
    """The columns of its own table that the chart of a panel reads.

    ``tooltips``: without those that only a tooltip would show.
    """
    own = [field for field in panel.fields if not field.table and not (tooltips and field.role == "detail")]
    named = [column for field in own for column in (field.column, field.error, field.unit) if column]
    return list(dict.fromkeys([*named, *_look_columns(panel), *_ALSO.get(panel.kind, ())]))


# Columns of charts besides the fields of their panel, by kind
_ALSO: dict[Kind, tuple[str, ...]] = {
    "statement": ("window_end",),
    "task-curves": ("n_jobs", "rho", "decision"),
    "matrix": ("n_jobs",),
    "pulls": ("low", "high"),
    "siblings": ("component",),
    "worst": ("source", "job_id", "user"),
    "sizes": ("source", "region"),
}


def _look_columns(panel: Panel) -> tuple[str, ...]:
    column = category_of(panel)
    return ("status_shown", "origin") if column == "verdict" else (column,) if column else ()


def category_of(panel: Panel) -> str:
    """The column by which a panel tells its rows apart; empty where it does not."""
    return next((field.column for field in panel.fields if field.role == "category"), "")


def family(panel: Panel) -> tuple[Look, ...]:
    """Every look in which rows of a panel can be drawn."""
    column = category_of(panel)
    if not column:
        return (PLAIN_LOOK,)
    kinds = {"component": GROUPS, "status": STATES}
    return tuple(kinds.get(column, LOOKS).values())


def looked(panel: Panel) -> list[Step]:
    """Transforms that give each row the label and the colour of its look."""
    cases, otherwise = _cases(category_of(panel))
    labels, colours = ([(test, getattr(look, part)) for test, look in cases] for part in ("label", "light"))
    return [
        {"calculate": _chosen(labels, otherwise.label), "as": "look"},
        {"calculate": _chosen(colours, otherwise.light), "as": "colour"},
    ]


def _cases(column: str) -> tuple[list[tuple[str, Look]], Look]:
    """The looks of the values of a column, each with its condition, and that of all other rows."""
    if not column:
        return [], PLAIN_LOOK
    if column == "component":
        return [("datum.component > 0", GROUPS["other"])], GROUPS["largest"]
    if column == "status":
        return [(_is("status", key), look) for key, look in STATES.items() if key != "other"], STATES["other"]
    default = f"{_is('status_shown', 'undeclared')} && {_is('origin', 'default')}"
    words = [key for key in LOOKS if key not in {"default", "other"}]
    cases = [(default, LOOKS["default"]), *((_is("status_shown", key), LOOKS[key]) for key in words)]
    return cases, LOOKS["other"]


def _is(column: str, value: str) -> str:
    return f"datum[{json.dumps(column)}] === {json.dumps(value)}"


def _chosen(cases: Iterable[tuple[str, str]], otherwise: str) -> str:
    return "".join(f"{test} ? {json.dumps(text)} : " for test, text in cases) + json.dumps(otherwise)


def reached(field: Entry, interval: float) -> list[Step]:
    """Transforms that give each row both ends of its error bar; without an error both are the value."""
    value = f"datum[{json.dumps(field.column)}]"
    error = f"datum[{json.dumps(field.error)}]"
    reach = f"(isValid({error}) ? {interval} * {error} : 0)" if field.error else "0"
    return [
        {"calculate": f"{value} - {reach}", "as": "lo"},
        {"calculate": f"{value} + {reach}", "as": "hi"},
    ]


def valid(*columns: str) -> Step:
    """A transform that keeps rows in which every column has a value."""
    return {"filter": " && ".join(f"isValid(datum[{json.dumps(column)}])" for column in columns)}


def positive(*columns: str) -> Step:
    """A transform that keeps rows that logarithmic axes can hold."""
    return {"filter": " && ".join(f"datum[{json.dumps(column)}] > 0" for column in columns)}


def scaled(scale: Scale | None, **more: Any) -> Spec:
    """A quantitative scale."""
    found: Spec = {"zero": False, **more} if more.get("type") != "log" else dict(more)
    if scale is not None:
        found |= {"domain": [scale.low, scale.high], "nice": False}
    return found


def clipped(scale: Scale | None, *columns: str) -> list[Step]:
    """Transforms that set values beyond a scale on its nearer end, where a clamped scale would bend lines."""
    if scale is None:
        return []
    return [
        {"calculate": f"clamp(datum[{json.dumps(column)}], {scale.low!r}, {scale.high!r})", "as": column}
        for column in columns
    ]


def across(column: str, title: Any, scale: Spec, **axis: Any) -> Spec:
    """A position channel of numbers."""
    return {"field": column, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def bars(position: Mapping[str, Any], paint: Paint) -> Spec:
    """Error bars, one rule per row.

    The colour comes with the row rather than from the scale of the marks: a second legend for that scale,
    even a suppressed one, would take the clicks from the first.
    """
    colour = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    return {
        "name": "bars",
        "mark": {"type": "rule", "strokeWidth": 1.2},
        "encoding": {"color": colour, "opacity": _opacity(paint), **position},
    }


def points(panel: Panel, position: Mapping[str, Any], paint: Paint) -> Spec:
    """Marks with tooltip, one per row; a click on the legend, where there is one, brings one look forward."""
    looks = paint.looks or family(panel)
    domain = [look.label for look in looks]
    fills = [look.light if look.filled else PAPER for look in looks]
    ranges = {
        "stroke": [look.light for look in looks],
        "fill": fills,
        "shape": [look.shape for look in looks],
    }
    legend = {"title": None} if paint.legend else None
    channels = {
        channel: {
            "field": "look",
            "type": "nominal",
            "scale": {"domain": domain, "range": values},
            "legend": legend,
        }
        for channel, values in ranges.items()
    }
    layer: Spec = {
        "name": "marks",
        "mark": {"type": "point", "size": paint.size, "strokeWidth": 1.4},
        "encoding": {
            **channels,
            "opacity": _opacity(paint),
            "tooltip": tooltips(panel, paint),
            **position,
        },
    }
    if paint.legend:
        layer["params"] = [
            {"name": "chosen", "select": {"type": "point", "fields": ["look"]}, "bind": "legend"}
        ]
    return layer


def _opacity(paint: Paint) -> Spec:
    if not paint.legend:
        return {"value": 1}
    return {"condition": {"param": "chosen", "value": 1}, "value": 0.12}


# Number formats by kind
_FORMS = {
    "count": COUNT,
    "number": NUMBER,
    "declared": DECLARED,
    "estimate": ESTIMATE,
    "percent": SIGNED,
    "fraction": PERCENT,
    "sure": PERCENT,
    "shift": SIGNED,
    "size": PERCENT,
}


def tooltips(panel: Panel, paint: Paint) -> list[Spec]:
    """A line per field of the panel that the rows have."""
    if paint.tooltips:
        return [
            {"field": f"text_{place}", "type": "nominal", "title": _titled(field)}
            for place, field in enumerate(panel.fields)
        ]
    shown = []
    for field in panel.fields:
        if field.table or field.per:
            continue
        form = _FORMS.get(field.show)
        kind = {"type": "quantitative", "format": form} if form else {"type": "nominal"}
        shown.append({"field": field.column, "title": field.title, **kind})
        if field.error and form:
            shown.append({"field": field.error, "title": f"{field.title}, standard error", **kind})
    return shown


def _titled(field: Entry) -> str:
    bare = field.error is not None and "±" not in field.title
    return f"{field.title} ± error" if bare else field.title
