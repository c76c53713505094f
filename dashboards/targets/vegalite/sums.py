"""Charts of what an index adds up: shares of sums per name, quantities over time; quantities over sizes."""

import json
from typing import Any

from dashboards.spec import JOBS, NEUTRAL, Entry, Panel
from dashboards.targets.vegalite.forms import AMOUNT, COUNT, NUMBER, PERCENT, SIGNED
from dashboards.targets.vegalite.index import MOST_ROWS
from dashboards.targets.vegalite.jobs import MOST_GROUPS
from dashboards.targets.vegalite.marks import (
    BAND,
    INK,
    LINE,
    MUTED,
    Paint,
    Spec,
    across,
    assembled,
    columns_of,
    over_time,
    reached,
    tooltips,
    valid,
)
from dashboards.targets.vegalite.sources import Source, Step
from esjobs.core.words import FAIR, GOOD

HOUR_S = 3600

# Colours of names over time, none of them near that of a verdict; they stay apart for every common kind of
# colour blindness
SERIES = ("#6e64c8", "#78961e", "#be4696", "#3c7864", "#aa82d2", "#6e6e32", "#c87896", "#32a064")


def waste(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Bars of the difference of two sums, in hours, per name, largest first."""
    field = panel.entry("x")
    left = f"({_datum(field.per)} - {_datum(field.column)}) / {HOUR_S}"
    steps = [
        *source.lifted([*columns_of(panel), field.per]),
        valid(field.column, field.per),
        {"calculate": left, "as": "value"},
        *largest("value", panel.most[0]),
    ]
    layers = [*named_bars(panel, field.title, AMOUNT, by="value"), cut(panel)]
    return assembled(source, steps, layers, paint)


def largest(column: str, most: int) -> list[Step]:
    """Transforms that keep the rows with the largest values of a column; ``names``: how many there are."""
    order = [{"field": column, "order": "descending"}]
    return [
        {"joinaggregate": [{"op": "count", "as": "names"}]},
        {"window": [{"op": "row_number", "as": "place"}], "sort": order},
        {"filter": f"datum.place <= {most}"},
    ]


def first_rows(most: int) -> list[Step]:
    """Transforms that keep the first rows in their order; ``names``: how many there are."""
    return [
        {"joinaggregate": [{"op": "count", "as": "names"}]},
        {"window": [{"op": "row_number", "as": "place"}]},
        {"filter": f"datum.place <= {most}"},
    ]


def drawn_of(panel: Panel) -> str:
    """An expression: so many of how many names are drawn.

    An index gives no more names than were asked of it.
    """
    limit = MOST_GROUPS if panel.view.table == JOBS.name else MOST_ROWS
    more = f"(datum.names >= {limit} ? ' or more' : '')"
    return f"'{panel.most[0]} of ' + format(datum.names, ',d') + {more} + ' are drawn'"


def cut(panel: Panel) -> Spec:
    """A line where not all names are drawn: below bars, above lines, whose axis is below."""
    above = panel.kind == "trend"
    return {
        "name": "cut",
        "transform": [
            {"aggregate": [{"op": "max", "field": "names", "as": "names"}]},
            {"filter": f"datum.names > {panel.most[0]}"},
            {"calculate": drawn_of(panel), "as": "told"},
        ],
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "bottom" if above else "top",
            "color": MUTED,
            "fontSize": 11,
        },
        "encoding": {
            "x": {"value": 0},
            "y": {"value": -4} if above else {"value": {"expr": "height + 6"}},
            "text": {"field": "told", "type": "nominal"},
        },
    }


def totals(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A sum, a bar per name in the order of the groups.

    Bundles have their servers draw these bars; only where there is none, Vega-Lite does.
    """
    field = panel.entry("x")
    steps = [
        *source.lifted(columns_of(panel)),
        valid(field.column),
        {"calculate": _datum(field.column), "as": "value"},
    ]
    return assembled(source, steps, named_bars(panel, field.title, AMOUNT), paint)


def names_axis(column: str) -> Spec:
    """Names from top to bottom, in the order of the rows."""
    axis = {"labelLimit": 210, "ticks": False, "domain": False, "labelColor": INK, "labelPadding": 8}
    return {"field": column, "type": "nominal", "sort": None, "title": None, "axis": axis}


def named_bars(panel: Panel, title: str, form: str, *, by: str = "", most: float | None = None) -> list[Spec]:
    """A bar per name, with its number behind it.

    ``by``: the column that orders them, the largest first; none: as the rows come. ``most``: the end of the
    axis.
    """
    label = panel.entry("label")
    y = names_axis(label.column)
    if by:
        y["sort"] = {"field": by, "op": "max", "order": "descending"}
    x = amount("value", title, form)
    if most is not None:
        x["scale"] |= {"domainMax": most}
    tooltips = [
        {"field": label.column, "type": "nominal", "title": label.title},
        {"field": "value", "type": "quantitative", "title": title, "format": form},
    ]
    number = {"field": "value", "type": "quantitative", "format": form}
    return [
        {
            "name": "marks",
            "mark": {"type": "bar", "color": NEUTRAL, "height": {"band": 0.7}},
            "encoding": {"x": x, "y": y, "tooltip": tooltips},
        },
        {
            "name": "numbers",
            "mark": {"type": "text", "align": "left", "dx": 4, "color": INK, "fontSize": 10.5},
            "encoding": {"x": x, "y": dict(y), "text": number},
        },
    ]


def amount(column: str, title: str, form: str, room: int = 0, *, zero: bool = True) -> Spec:
    """The axis of bars that begin at 0; ``room``: pixels behind the longest bar, else those of its number."""
    room = room or (40 if form == PERCENT else 56)
    scale = {"zero": zero, "range": [0, {"expr": f"max(width - {room}, 60)"}]}
    return across(column, title, scale, format=form, tickCount=6, orient="top")


def trend(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A quantity with its error over time, a line per name."""
    time, up = panel.entry("x"), panel.entry("y")
    names = [field for field in panel.fields if field.role == "label"]
    form = {"percent": SIGNED, "shift": SIGNED, "fraction": PERCENT}.get(up.show, NUMBER)
    x = over_time("at")
    y, low = (
        across(column, up.title, {"zero": False}, format=form, tickCount=6) for column in (up.column, "lo")
    )
    ground: list[Spec] = []
    if panel.band:
        ends = {"low": -paint.limit, "high": paint.limit}
        at = across("low", up.title, {"zero": False}, format=form)
        shade = {"mark": {"type": "rect", "color": BAND}, "encoding": {"y": at, "y2": {"field": "high"}}}
        ground = [{"data": {"values": [ends]}, **shade}]
    colour: Spec = {"value": NEUTRAL}
    if names:
        scale = {"range": list(SERIES)}
        colour = {"field": names[0].column, "type": "nominal", "scale": scale, "title": None}
        colour["legend"] = {"orient": "right", "columns": 1, "labelLimit": 200, "symbolType": "circle"}
    layers = [
        *ground,
        {
            "name": "line",
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "name": "bars",
            "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
            "encoding": {"x": x, "y": low, "y2": {"field": "hi"}, "color": colour},
        },
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": _tooltip(panel, time, paint)},
        },
    ]
    steps = [
        *source.lifted(columns_of(panel)),
        valid(up.column),
        {"calculate": f"toDate({_datum(time.column)})", "as": "at"},
        {"calculate": "utcFormat(datum.at, '%Y-%m-%d')", "as": "day"},
        *reached(up, panel.interval),
    ]
    return assembled(source, steps, layers, paint)


def sizes(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """An efficiency over the number of CPUs, a line per name, those of most sizes first; dashed: the limits.

    A name that is known at one size has no line, and is left out.
    """
    name, right, up = (panel.entry(role).column for role in ("label", "x", "y"))
    title = panel.entry("y").title
    x = across(right, panel.entry("x").title, {"type": "log", "base": 2, "nice": False, "padding": 12})
    x["axis"] = {"format": COUNT, "grid": False, "labelOverlap": True, "tickCount": 5}
    y = across(up, title, {"nice": False}, format=PERCENT, tickCount=6)
    colour: Spec = {"field": name, "type": "nominal", "scale": {"range": list(SERIES)}, "title": None}
    colour["legend"] = {"orient": "right", "columns": 1, "labelLimit": 200, "symbolType": "circle"}
    position = {"x": x, "y": y, "color": colour}
    detail = [{"field": each, "type": "nominal"} for each in ("source", "region")]
    layers: list[Spec] = [
        {
            # the axis reaches from nothing to all, whatever is shown
            "name": "ends",
            "data": {"values": [{"limit": 0}, {"limit": 1}]},
            "mark": {"type": "rule", "opacity": 0},
            "encoding": {"y": across("limit", title, {})},
        },
        {
            "name": "limits",
            "data": {"values": [{"limit": FAIR}, {"limit": GOOD}]},
            "mark": {"type": "rule", "color": LINE, "strokeWidth": 1.2, "strokeDash": [5, 4]},
            "encoding": {"y": across("limit", title, {})},
        },
        {
            "name": "line",
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {**position, "detail": detail},
        },
        {
            "name": "marks",
            "mark": {"type": "point", "filled": True, "size": 44, "opacity": 1},
            "encoding": {**position, "tooltip": tooltips(panel, paint)},
        },
    ]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        valid(up),
        {"filter": f"{_datum(right)} > 0"},
        {
            "joinaggregate": [{"op": "distinct", "field": right, "as": "n_sizes"}],
            "groupby": [name, "source", "region"],
        },
        # names of one size have no line
        {"filter": "datum.n_sizes > 1"},
        {
            "window": [{"op": "dense_rank", "as": "place"}],
            "sort": [{"field": "n_sizes", "order": "descending"}, {"field": name, "order": "ascending"}],
        },
        {"filter": f"datum.place <= {len(SERIES)}"},
    ]
    return assembled(source, steps, layers, paint)


def _tooltip(panel: Panel, time: Entry, paint: Paint) -> list[dict[str, Any]]:
    moment = {"field": "day", "type": "nominal", "title": time.title}
    return [moment, *(line for line in tooltips(panel, paint) if line["field"] != time.column)]


def _datum(column: str) -> str:
    return f"datum[{json.dumps(column)}]"
