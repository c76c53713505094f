"""Charts of one quantity of a name on another, and of the names where one is largest."""

import json

from dashboards.spec import NEUTRAL, Entry, Panel
from dashboards.targets.vegalite.forms import NUMBER, PERCENT, SHIFT
from dashboards.targets.vegalite.marks import (
    BAND,
    INK,
    LINE,
    MUTED,
    Paint,
    Spec,
    across,
    assembled,
    bars,
    clipped,
    columns_of,
    looked,
    points,
    reached,
    scaled,
    valid,
)
from dashboards.targets.vegalite.sources import Source, Step
from dashboards.targets.vegalite.words import wrapped


def scatter(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Two quantities of a name, with error bars on the upright one."""
    right, up = panel.entry("x"), panel.entry("y")
    x = across(right.column, right.title, scaled(paint.x), tickCount=8, format=_form(right))
    y, low, even = (
        across(column, up.title, scaled(paint.y), tickCount=7, format=_form(up))
        for column in (up.column, "lo", "even")
    )
    same_quantity = {right.column, up.column} == {"k", "mix_k"}
    is_factor = (
        not same_quantity and up.column == "k" and (paint.y is None or paint.y.low <= 1 <= paint.y.high)
    )
    ground: Spec = {
        "data": {"values": [{"even": 1}]},
        "mark": {"type": "rule", "color": BAND, "strokeWidth": 2},
        "encoding": {"y": even},
    }
    layers: list[Spec] = [
        *([ground] if is_factor else []),
        *([_diagonal(panel, x, up.title, paint)] if same_quantity else []),
        bars({"x": x, "y": low, "y2": {"field": "hi"}}, paint),
        points(panel, {"x": x, "y": y}, paint),
    ]
    steps = [
        *source.lifted(columns_of(panel)),
        valid(right.column, up.column),
        *reached(up, panel.interval),
        *clipped(paint.x, right.column),
        *clipped(paint.y, up.column, "lo", "hi"),
        *looked(panel),
    ]
    return assembled(source, steps, layers, paint)


def against_scores(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """The factor of each CPU model over the range of its published scores, and the line of all of them."""
    label, right, up = panel.entry("label"), panel.entry("x"), panel.entry("y")
    (join,) = panel.joins
    x, at_low = (across(column, right.title, scaled(paint.x), tickCount=8) for column in ("middle", "low"))
    y, bottom, expected = (
        across(column, up.title, scaled(paint.y), tickCount=7) for column in (up.column, "lo", "expected")
    )
    tooltips = [
        {"field": label.column, "type": "nominal", "title": label.title},
        {"field": "low", "type": "quantitative", "title": "lowest", "format": NUMBER},
        {"field": "high", "type": "quantitative", "title": "highest", "format": NUMBER},
        {"field": up.column, "type": "quantitative", "title": up.title, "format": NUMBER},
        {"field": up.error, "type": "quantitative", "title": "standard error", "format": NUMBER},
    ]
    layers: list[Spec] = [
        {
            "name": "line",
            "transform": [
                {
                    "aggregate": [
                        {"op": "max", "field": "middle", "as": "most"},
                        {"op": "median", "field": "slope", "as": "slope"},
                    ]
                },
                # the ends of the line, each as a row
                {"calculate": "[0, 1.03 * datum.most]", "as": "middle"},
                {"flatten": ["middle"]},
                {"calculate": "datum.middle * datum.slope", "as": "expected"},
            ],
            "mark": {"type": "line", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4]},
            "encoding": {"x": x, "y": expected},
        },
        {
            "name": "ranges",
            "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1},
            "encoding": {"x": at_low, "x2": {"field": "high"}, "y": y},
        },
        {
            "name": "bars",
            "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1},
            "encoding": {"x": x, "y": bottom, "y2": {"field": "hi"}},
        },
        {
            "name": "marks",
            "mark": {
                "type": "point",
                "filled": True,
                "size": 46,
                "opacity": 1,
                "color": NEUTRAL,
            },
            "encoding": {"x": x, "y": y, "tooltip": tooltips},
        },
    ]
    has_interval = "isValid(datum.low) && isValid(datum.high)"
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"calculate": f"datum[{json.dumps(label.column)}]", "as": join.on},
        *joins[join.name].lookup(join.on, join.columns),
        {"joinaggregate": [{"op": "valid", "field": "high", "as": "n_known"}]},
        # without any score all marks stay, unseen: an axis wants a range
        {"filter": f"isValid(datum[{json.dumps(up.column)}]) && (datum.n_known === 0 || {has_interval})"},
        {"calculate": "datum.n_known ? (datum.low + datum.high) / 2 : 0", "as": "middle"},
        {"calculate": "datum.n_known ? datum.low : 0", "as": "low"},
        {"calculate": "datum.n_known ? datum.high : 0", "as": "high"},
        {"calculate": f"datum.n_known ? datum[{json.dumps(up.column)}] / datum.middle : 0", "as": "slope"},
        *reached(up, panel.interval),
    ]
    unseen = {"condition": {"test": "datum.n_known > 0", "value": 1}, "value": 0}
    for layer in layers[1:]:
        layer["encoding"]["opacity"] = unseen
    return assembled(source, steps, [*layers, _unknown(without_scores(panel))], paint)


def without_scores(panel: Panel) -> str:
    """Return the reason for an empty chart if no CPU model has a score."""
    return (
        f"No CPU model here has an imported {panel.entry('x').title}: "
        "esjobs reference import brings published ones."
    )


def _unknown(said: str) -> Spec:
    """A sentence in the place of a chart without scores."""
    return {
        "name": "unknown",
        "transform": [
            {"aggregate": [{"op": "max", "field": "n_known", "as": "n_known"}]},
            {"filter": "datum.n_known === 0"},
            {"calculate": wrapped(json.dumps(said), 13), "as": "said"},
        ],
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "top",
            "color": INK,
            "fontSize": 13,
            "lineBreak": "\n",
        },
        "encoding": {
            "x": {"value": 8},
            "y": {"value": 8},
            "text": {"field": "said", "type": "nominal"},
        },
    }


def _diagonal(panel: Panel, x: Spec, title: str, paint: Paint) -> Spec:
    """Layer with the line of equal values."""
    column = panel.entry("x").column
    return {
        "name": "line",
        "transform": [
            {
                "aggregate": [
                    {"op": "min", "field": column, "as": "least"},
                    {"op": "max", "field": column, "as": "most"},
                ]
            },
            # the ends of the line, each as a row
            {"calculate": "[0.97 * datum.least, 1.03 * datum.most]", "as": column},
            {"flatten": [column]},
        ],
        "mark": {"type": "line", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4], "clip": True},
        "encoding": {"x": x, "y": across(column, title, scaled(paint.y), tickCount=7)},
    }


def _form(field: Entry) -> str:
    return PERCENT if field.show == "fraction" else NUMBER


def ranked(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """The names with the largest magnitudes, in the order of their signed values; 0 is marked."""
    field, label = panel.entry("x"), panel.entry("label")
    value = f"datum[{json.dumps(field.column)}]"
    x, at = (
        across(column, field.title, scaled(paint.x), format=SHIFT, orient="top", tickCount=6)
        for column in (field.column, "at")
    )
    axis = {"labelLimit": 190, "ticks": False, "domain": False, "labelColor": INK, "labelPadding": 8}
    y = {
        "field": label.column,
        "type": "nominal",
        "title": None,
        "axis": axis,
        "sort": {"field": field.column, "op": "max", "order": "descending"},
    }
    layers: list[Spec] = [
        {
            "data": {"values": [{"at": 0}]},
            "mark": {"type": "rule", "color": LINE, "strokeWidth": 1},
            "encoding": {"x": at},
        },
        {
            "name": "bars",
            "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1.2},
            "encoding": {"x": x, "x2": {"datum": 0}, "y": y},
        },
        points(panel, {"x": x, "y": y}, paint),
    ]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        valid(field.column),
        {"calculate": f"abs({value})", "as": "size"},
        {
            "window": [{"op": "row_number", "as": "place"}],
            "sort": [{"field": "size", "order": "descending"}],
        },
        {"filter": f"datum.place <= {panel.most[0]}"},
        *looked(panel),
    ]
    return assembled(source, steps, layers, paint)
