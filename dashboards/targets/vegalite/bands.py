"""Charts of days: of one site, observed beside what was expected before; of names, night by night."""

import json

from dashboards.spec import LOOKS, NEUTRAL, Panel
from dashboards.targets.vegalite.forms import NUMBER, PERCENT, SIGNED
from dashboards.targets.vegalite.marks import (
    BAND,
    GRID,
    MUTED,
    PAPER,
    Paint,
    Spec,
    across,
    assembled,
    columns_of,
    over_time,
    valid,
)
from dashboards.targets.vegalite.sources import Source
from dashboards.targets.vegalite.sums import names_axis

DAYS = 60  # Last days that are drawn
DAY_MS = 86_400_000


def days(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A value per day over its expected range; incident days are shaded, partial days hollow, marks upright.

    Of several sites the first is drawn.
    """
    time, up, name = panel.entry("x"), panel.entry("y"), panel.entry("label")
    form = PERCENT if up.show == "fraction" else NUMBER
    x = {**over_time("at"), "axis": {"format": "%d %b", "labelOverlap": True, "tickCount": 7, "grid": False}}
    y, low, expected = (
        across(column, up.title, {"zero": False}, format=form, tickCount=5)
        for column in (up.column, "low", "expected")
    )
    band = {"y": low, "y2": {"field": "high"}}
    shown = [each for each in panel.fields if each.show == up.show]
    tooltips = [
        *({"field": column, "type": "nominal", "title": column.title()} for column in (name.column, "day")),
        *({"field": e.column, "type": "quantitative", "title": e.title, "format": form} for e in shown),
    ]
    dashes = {"type": "line", "color": MUTED, "strokeWidth": 1, "strokeDash": [4, 3]}
    fill = {"condition": {"test": "datum.partial", "value": PAPER}, "value": NEUTRAL}
    begin, end = ({"calculate": f"datum.at {sign} {DAY_MS // 2}", "as": sign} for sign in "-+")
    shaded = {"condition": {"test": "datum.in_incident", "value": 0.16}, "value": 0}
    marked = {"condition": {"test": "isValid(datum.mark)", "value": 1}, "value": 0}
    noted = [{"field": "mark", "type": "nominal", "title": "Mark"}]
    layers: list[Spec] = [
        {
            "name": "incident",
            # not filtered: a scale of no days at all is a warning
            "transform": [begin, end],
            "mark": {"type": "rect", "color": LOOKS["confirmed"].light},
            "encoding": {"x": {**x, "field": "-"}, "x2": {"field": "+"}, "opacity": shaded},
        },
        {
            "name": "mark",
            "mark": {"type": "rule", "color": MUTED, "strokeWidth": 2},
            "encoding": {"x": x, "opacity": marked, "tooltip": tooltips[:2] + noted},
        },
        {"name": "band", "mark": {"type": "area", "color": BAND}, "encoding": {"x": x, **band}},
        {"name": "expected", "mark": dashes, "encoding": {"x": x, "y": expected}},
        {"name": "line", "mark": {"type": "line", "color": NEUTRAL}, "encoding": {"x": x, "y": y}},
        {
            "name": "marks",
            "mark": {"type": "point", "stroke": NEUTRAL, "size": 34, "opacity": 1},
            "encoding": {"x": x, "y": y, "fill": fill, "tooltip": tooltips},
        },
    ]
    layers.append(
        {
            "name": "site",
            "transform": [{"aggregate": [], "groupby": ["drawn"]}],
            "mark": {"type": "text", "align": "right", "baseline": "bottom", "color": MUTED, "fontSize": 11},
            "encoding": {
                "x": {"value": {"expr": "width"}},
                "y": {"value": -4},
                "text": {"field": "drawn", "type": "nominal"},
            },
        }
    )
    first = {"op": "first_value", "field": name.column, "as": "drawn"}
    steps = [
        *source.lifted(columns_of(panel)),
        valid(up.column, "low", "high"),
        {"calculate": f"+toDate(datum[{json.dumps(time.column)}])", "as": "at"},
        {"calculate": "utcFormat(datum.at, '%Y-%m-%d')", "as": "day"},
        # a window without an end: of all rows, not of those before
        {"window": [first], "sort": [{"field": name.column}], "frame": [None, None]},
        {"filter": f"datum[{json.dumps(name.column)}] === datum.drawn"},
        {"joinaggregate": [{"op": "max", "field": "at", "as": "last"}]},
        {"filter": f"datum.at > datum.last - {DAYS * DAY_MS}"},
    ]
    return assembled(source, steps, layers, paint)


# Colours of deviations from slow to fast; each is told from its neighbours in every kind of sight
STEPS = ("#8c2d04", "#ec7a3c", "#f4f4f2", "#74a9d8", "#0b4a8f")


def nights(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A cell per name and night, those of the largest newest magnitude first; hollow: not confirmed."""
    time, value, name = panel.entry("x"), panel.entry("y"), panel.entry("label")
    where = {
        "x": {"field": "day", "type": "ordinal", "axis": None},
        "y": {**names_axis(name.column), "sort": {"field": "place", "op": "min"}},
    }
    # four limits, five colours
    limits = [-paint.limit, -paint.limit / 2, paint.limit / 2, paint.limit]
    scale = {"type": "threshold", "domain": limits, "range": list(STEPS)}
    colour = {"field": value.column, "type": "quantitative", "scale": scale, "legend": None}
    shown = [
        {"field": each.column, "type": "quantitative", "title": each.title, "format": SIGNED}
        for each in panel.fields
        if each.show == "percent"
    ]
    texts = [(name.column, name.title), ("day", time.title), ("state", "State")]
    tooltips = [*({"field": column, "type": "nominal", "title": title} for column, title in texts), *shown]
    hollow = {"condition": {"test": "datum.confirmed !== true", "value": 1}, "value": 0}
    layers: list[Spec] = [
        {
            "name": "marks",
            "mark": {"type": "rect", "stroke": GRID},
            "encoding": {**where, "color": colour, "tooltip": tooltips},
        },
        {
            "name": "hollow",
            "mark": {"type": "point", "shape": "square", "filled": True, "color": STEPS[2], "size": 40},
            "encoding": {**where, "opacity": hollow},
        },
        {
            # a click on one chooses the night alone
            "name": "when",
            "transform": [
                {"aggregate": [{"op": "max", "field": "at", "as": "at"}], "groupby": ["day"]},
                {"calculate": "utcFormat(datum.at, '%m-%d')", "as": "written"},
                {
                    "window": [{"op": "row_number", "as": "back"}],
                    "sort": [{"field": "day", "order": "descending"}],
                },
                {"joinaggregate": [{"op": "count", "as": "n_days"}]},
                # as many as there is room for, the newest one always
                {"filter": "(datum.back - 1) % max(1, ceil(datum.n_days * 34 / width)) === 0"},
            ],
            "mark": {"type": "text", "baseline": "top", "fontSize": 10, "color": MUTED},
            "encoding": {
                "x": where["x"],
                "y": {"value": {"expr": "height + 4"}},
                "text": {"field": "written", "type": "nominal"},
            },
        },
    ]
    newest = {"op": "last_value", "field": value.column, "as": "newest"}
    order = [{"field": "reach", "order": "descending"}, {"field": name.column, "order": "ascending"}]
    steps = [
        *source.lifted(columns_of(panel)),
        valid(value.column),
        {"calculate": f"+toDate(datum[{json.dumps(time.column)}])", "as": "at"},
        {"calculate": "utcFormat(datum.at, '%Y-%m-%d')", "as": "day"},
        {"window": [newest], "groupby": [name.column], "sort": [{"field": "at"}], "frame": [None, None]},
        {"calculate": "abs(datum.newest)", "as": "reach"},
        {"window": [{"op": "dense_rank", "as": "place"}], "sort": order},
        {"filter": f"datum.place <= {panel.most[0]}"},
    ]
    return assembled(source, steps, layers, paint)
