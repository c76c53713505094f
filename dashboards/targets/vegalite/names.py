"""Charts with a mark per name: against the line, from top to bottom, beside siblings, one on another."""

import json
from typing import Any

from dashboards.spec import Panel
from dashboards.targets.vegalite.forms import NUMBER, PERCENT
from dashboards.targets.vegalite.index import TYPE_COLUMNS
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
    positive,
    reached,
    scaled,
    valid,
)
from dashboards.targets.vegalite.sources import ROWS, Source, Step

_FASTER = "Deviation (faster →)"
_RELATIVE = "relative to the mean of the site"


def against_line(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """One quantity with its error against another, the line through the origin and its band."""
    right, up = panel.entry("x"), panel.entry("y")
    unit = f" ({paint.unit})" if paint.unit else ""
    every = panel.view.types == "every"
    x = across(right.column, right.title + unit, scaled(paint.x), tickCount=10)
    y, low, band, expected = (
        across(column, up.title, scaled(paint.y), tickCount=8)
        for column in (up.column, "lo", "low", "expected")
    )
    columns = TYPE_COLUMNS if every else (panel.joins[0].on,)
    of_line = [{"field": column} for column in columns]
    lines = joins["line"]
    line: Spec = {
        **({"data": dict(lines.data)} if every else {}),
        "transform": _lines(panel, source, lines, paint) if every else _ends(panel, lines, paint),
        "layer": [
            {
                "name": "band",
                "mark": {"type": "area", "color": BAND, "clip": True},
                "encoding": {"x": x, "y": band, "y2": {"field": "high"}, "detail": of_line},
            },
            {
                "name": "line",
                "mark": {"type": "line", "color": LINE, "strokeWidth": 1.3, "clip": True},
                "encoding": {
                    "x": x,
                    "y": expected,
                    "detail": of_line,
                    "strokeDash": {
                        "condition": {"test": "datum.status === 'ok'", "value": [1, 0]},
                        "value": [6, 4],
                    },
                },
            },
        ],
    }
    layers: list[Spec] = [
        line,
        bars({"x": x, "y": low, "y2": {"field": "hi"}}, paint),
        points(panel, {"x": x, "y": y}, paint),
    ]
    if not paint.tooltips:
        layers += _named(panel, {"x": x, "y": y})
    steps = [
        *source.lifted(columns_of(panel)),
        valid(right.column, up.column),
        *reached(up, panel.interval),
        *clipped(paint.x, right.column),
        *clipped(paint.y, up.column, "lo", "hi"),
        *looked(panel),
    ]
    return assembled(source, steps, layers, paint)


def _ends(panel: Panel, lines: Source, paint: Paint) -> list[Step]:
    """From the marks to both ends of the line of each benchmark, and of its band."""
    column = panel.entry("x").column
    ends = ("0.95 * datum.least", "1.05 * datum.most")
    if paint.x is not None:
        ends = (repr(paint.x.low), repr(paint.x.high))
    (join,) = panel.joins
    return [
        {
            "aggregate": [
                {"op": "min", "field": column, "as": "least"},
                {"op": "max", "field": column, "as": "most"},
            ],
            "groupby": [join.on],
        },
        *lines.lookup(join.on, join.columns),
        *_between(column, *ends, paint.limit),
    ]


def _lines(panel: Panel, source: Source, lines: Source, paint: Paint) -> list[Step]:
    """From the lines of every type and benchmark to the ends of those that belong to rows of the chart.

    They are asked for on their own: a row can look up by one column only.
    """
    (join,) = panel.joins
    column = panel.entry("x").column
    seen: list[Step] = [
        {
            "lookup": name,
            "from": {"data": {"name": ROWS}, "key": source.path(name), "fields": [source.path(column)]},
            "as": [f"seen_{name}"],
        }
        for name in TYPE_COLUMNS
    ]
    reach = f"extent(pluck(data('{ROWS}'), {json.dumps(source.path(column))}))"
    return [
        *lines.lifted([*join.columns, *TYPE_COLUMNS]),
        *seen,
        valid(*(f"seen_{name}" for name in TYPE_COLUMNS)),
        {"calculate": reach, "as": "reach"},
        *_between(column, "0.95 * datum.reach[0]", "1.05 * datum.reach[1]", paint.limit),
    ]


def _between(column: str, start: str, end: str, limit: float) -> list[Step]:
    """Both ends of a line through the origin, with those of its band."""
    return [
        # a line of no or negative slope has no ends on these axes
        {"filter": "datum.slope > 0"},
        {"calculate": f"[{start}, {end}]", "as": column},
        {"flatten": [column]},
        {"calculate": f"datum.slope * datum[{json.dumps(column)}]", "as": "expected"},
        {"calculate": f"datum.expected * {1 - limit}", "as": "low"},
        {"calculate": f"datum.expected * {1 + limit}", "as": "high"},
    ]


def _named(panel: Panel, position: Spec) -> list[Spec]:
    """Names of what is confirmed beside their marks: on the inner side, so that none lies over an axis.

    In the middle third they stand in turn on either side, and in turn above and below their mark, so that few
    cover each other.
    """
    label, column = panel.entry("label").column, panel.entry("x").column
    text = {"field": label, "type": "nominal"}
    sides = [
        ("names", "left", 8, 0, "bottom", 0),
        ("names_below", "left", 8, 0, "top", 1),
        ("names_before", "right", -8, 1, "bottom", 0),
        ("names_before_below", "right", -8, 1, "top", 1),
    ]
    # one name alone has no width
    place = f"(datum[{json.dumps(column)}] - datum.least) / max(datum.widest - datum.least, 1e-9)"
    return [
        {
            "name": name,
            "transform": [
                {
                    "joinaggregate": [
                        {"op": "min", "field": column, "as": "least"},
                        {"op": "max", "field": column, "as": "widest"},
                    ]
                },
                {"filter": "datum.standing === 'confirmed'"},
                {
                    "window": [{"op": "row_number", "as": "turn"}],
                    "sort": [{"field": column, "order": "ascending"}],
                },
                {"calculate": place, "as": "across"},
                {
                    "calculate": "datum.across < 1/3 ? 0 : datum.across > 2/3 ? 1 : datum.turn % 2",
                    "as": "side",
                },
                {"filter": f"datum.side === {side}"},
                {
                    "window": [{"op": "row_number", "as": "of_side"}],
                    "sort": [{"field": panel.entry("y").column, "order": "descending"}],
                },
                {"filter": f"datum.of_side % 2 === {parity}"},
            ],
            "mark": {
                "type": "text",
                "align": align,
                "baseline": baseline,
                "dx": shift,
                "color": INK,
                "fontSize": 11,
            },
            "encoding": {**position, "text": text},
        }
        for name, align, shift, side, baseline, parity in sides
    ]


def dots(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Names from top to bottom in the order of the rows, each with its value and error bar."""
    field, label = panel.entry("x"), panel.entry("label")
    # the title says which side is which
    form, title = (PERCENT, _FASTER) if panel.band else (NUMBER, field.title)
    top = {
        "format": form,
        "orient": "top",
        "tickCount": 6,
        "labelSeparation": 8,
        "domain": False,
        "ticks": False,
    }
    x, low, at, ground_low = (
        across(column, title, scaled(paint.x), **top) for column in (field.column, "lo", "at", "low")
    )
    names = {"labelLimit": 190, "ticks": False, "domain": False, "labelColor": INK, "labelPadding": 8}
    groups = [each.column for each in panel.fields if each.role == "group"]
    row = "row" if groups else label.column
    y = {"field": row, "type": "nominal", "sort": None, "title": None, "axis": names}
    # a deviation is compared with 0, a factor with 1
    centre, reach = (0.0, paint.limit) if panel.band else (1.0, 0.0)
    inside = paint.x is None or paint.x.low <= centre <= paint.x.high
    ground = [{"at": centre, "low": centre - reach, "high": centre + reach}] if inside else []
    layers: list[Spec] = [
        {
            "data": {"values": ground},
            "layer": [
                {
                    "mark": {"type": "rect", "color": BAND},
                    "encoding": {"x": ground_low, "x2": {"field": "high"}},
                },
                {"mark": {"type": "rule", "color": LINE, "strokeWidth": 1}, "encoding": {"x": at}},
            ],
        },
        bars({"x": low, "x2": {"field": "hi"}, "y": y}, paint),
        points(panel, {"x": x, "y": y}, paint),
    ]
    steps = [
        *source.lifted(columns_of(panel)),
        *([together("row", label.column, *groups)] if groups else []),
        valid(field.column),
        *reached(field, panel.interval),
        *clipped(paint.x, field.column, "lo", "hi"),
        *looked(panel),
    ]
    return assembled(source, steps, layers, paint)


def together(name: str, *columns: str) -> Step:
    """A transform that writes several columns as one text."""
    return {"calculate": " + ' · ' + ".join(f"datum[{json.dumps(column)}]" for column in columns), "as": name}


def siblings(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Names of one group joined by a line, both quantities relative to the group's geometric mean."""
    right, up, group = panel.entry("x"), panel.entry("y"), panel.entry("group").column
    titles: tuple[Any, str] = (
        [f"{right.title.replace('/', ' per ')},", _RELATIVE],
        f"{up.title}, {_RELATIVE}",
    )
    x, even_x = (_ratio(column, titles[0], paint, "x") for column in ("x", "even"))
    y, low, even_y = (_ratio(column, titles[1], paint, "y") for column in ("y", "lo", "even"))
    layers: list[Spec] = [
        {
            "data": {"values": [{"even": 1}]},
            "layer": [
                {"mark": {"type": "rule", "color": LINE, "strokeWidth": 1}, "encoding": {"x": even_x}},
                {"mark": {"type": "rule", "color": LINE, "strokeWidth": 1}, "encoding": {"y": even_y}},
            ],
        },
        {
            "mark": {"type": "line", "color": MUTED, "strokeWidth": 1, "opacity": 0.45},
            "encoding": {"x": x, "y": y, "detail": [{"field": group}, {"field": "of"}]},
        },
        bars({"x": x, "y": low, "y2": {"field": "hi"}}, paint),
        points(panel, {"x": x, "y": y}, paint),
    ]
    # relative, as both axes are
    error = f"(datum[{json.dumps(up.error)}] || 0) / datum[{json.dumps(up.column)}]" if up.error else "0"
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        positive(right.column, up.column),
        valid(group),
        {"calculate": "isValid(datum.component) ? datum.component : -1", "as": "of"},
        *(
            {"calculate": f"log(datum[{json.dumps(c)}])", "as": a}
            for c, a in ((right.column, "lx"), (up.column, "ly"))
        ),
        {
            "joinaggregate": [
                {"op": "mean", "field": "lx", "as": "mx"},
                {"op": "mean", "field": "ly", "as": "my"},
                {"op": "count", "as": "members"},
            ],
            "groupby": [group, "of"],
        },
        {"filter": "datum.members >= 2"},
        # over the geometric mean of the group
        {"calculate": "exp(datum.lx - datum.mx)", "as": "x"},
        {"calculate": "exp(datum.ly - datum.my)", "as": "y"},
        # a logarithmic axis has no 0: an error of 100 % and more ends at a hundredth
        {"calculate": f"datum.y * max(1 - {error}, 0.01)", "as": "lo"},
        {"calculate": f"datum.y * (1 + {error})", "as": "hi"},
        *clipped(paint.x, "x"),
        *clipped(paint.y, "y", "lo", "hi"),
        *looked(panel),
    ]
    return assembled(source, steps, layers, paint)


def _ratio(column: str, title: Any, paint: Paint, side: str) -> Spec:
    scale = paint.x if side == "x" else paint.y
    ticks = {"values": list(scale.ticks)} if scale is not None and scale.ticks else {}
    return across(column, title, scaled(scale, type="log"), format=NUMBER, **ticks)
