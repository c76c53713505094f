"""Charts of how a weight is spread over a scale."""

import json

from dashboards.spec import NEUTRAL, Panel
from dashboards.targets.vegalite.forms import AMOUNT, COUNT, PERCENT
from dashboards.targets.vegalite.marks import INK, Paint, Spec, across, assembled, columns_of
from dashboards.targets.vegalite.sources import Source, Step

# Per cent of a bar of a distribution
_WIDTH = 10


def distribution(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A sum over the tenths of a scale from 0 to 100, a bar each."""
    label, field = panel.entry("label"), panel.entry("x")
    scale = {"domain": [0, 100], "nice": False}
    x = across("low", label.title, scale, tickCount=10, grid=False)
    y = across("value", field.title, {"zero": True, "nice": True}, format=COUNT, tickCount=5)
    tooltips = [
        {"field": "span", "type": "nominal", "title": label.title},
        {"field": "value", "type": "quantitative", "title": field.title, "format": AMOUNT},
        {"field": "share", "type": "quantitative", "title": "of all", "format": PERCENT},
    ]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        {"filter": f"isValid({_datum(label.column)}) && {_datum(field.column)} > 0"},
        {"calculate": _datum(label.column), "as": "low"},
        {"calculate": f"datum.low + {_WIDTH}", "as": "high"},
        {"calculate": "datum.low + ' to ' + datum.high", "as": "span"},
        {"calculate": _datum(field.column), "as": "value"},
        {"joinaggregate": [{"op": "sum", "field": "value", "as": "all"}]},
        {"calculate": "datum.value / datum.all", "as": "share"},
    ]
    layers: list[Spec] = [
        {
            "name": "marks",
            "mark": {"type": "bar", "color": NEUTRAL, "binSpacing": 1},
            "encoding": {"x": {**x, "bin": "binned"}, "x2": {"field": "high"}, "y": y, "tooltip": tooltips},
        },
        {
            "name": "numbers",
            "transform": [{"calculate": f"datum.low + {_WIDTH / 2}", "as": "middle"}],
            "mark": {"type": "text", "baseline": "bottom", "dy": -3, "color": INK, "fontSize": 10.5},
            "encoding": {
                "x": {**x, "field": "middle"},
                "y": y,
                "text": {"field": "share", "type": "quantitative", "format": PERCENT},
            },
        },
    ]
    return assembled(source, steps, layers, paint)


def tenths(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A sum over the tenths of two scales from 0 to 100, a disc each, its area the sum."""
    right, up = panel.entry("x"), panel.entry("y")
    (size,) = (entry for entry in panel.fields if entry.role == "detail")
    scale = {"domain": [0, 100], "nice": False}
    x, y = (across(at, entry.title, scale, tickCount=10) for at, entry in (("right", right), ("up", up)))
    tooltips = [
        {"field": "span_right", "type": "nominal", "title": right.title},
        {"field": "span_up", "type": "nominal", "title": up.title},
        {"field": "value", "type": "quantitative", "title": size.title, "format": AMOUNT},
        {"field": "n_jobs", "type": "quantitative", "title": "Jobs", "format": COUNT},
    ]
    steps: list[Step] = [
        *source.lifted([*columns_of(panel), "n_jobs"]),
        {"filter": f"{_datum(size.column)} > 0"},
        {"calculate": _datum(size.column), "as": "value"},
    ]
    for name, entry in (("right", right), ("up", up)):
        low = _datum(entry.column)
        steps += [
            {"calculate": f"{low} + {_WIDTH / 2}", "as": name},
            {"calculate": f"{low} + ' to ' + ({low} + {_WIDTH})", "as": f"span_{name}"},
        ]
    area = {"field": "value", "type": "quantitative", "scale": {"range": [12, 900], "zero": True}}
    marks: Spec = {
        "name": "marks",
        "mark": {"type": "point", "filled": True, "opacity": 0.8, "color": NEUTRAL},
        "encoding": {"x": x, "y": y, "size": {**area, "legend": None}, "tooltip": tooltips},
    }
    return assembled(source, steps, [marks], paint)


def _datum(column: str) -> str:
    return f"datum[{json.dumps(column)}]"
