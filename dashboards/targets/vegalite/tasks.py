"""Charts of tasks and buckets: curves of a start-up time, names against tasks, pulls."""

import json
from typing import Any

from dashboards.spec import NEUTRAL, Entry, Panel
from dashboards.targets.vegalite.forms import COUNT, NUMBER, PERCENT, ticks_of
from dashboards.targets.vegalite.marks import (
    GRID,
    INK,
    LINE,
    Paint,
    Scale,
    Spec,
    across,
    assembled,
    columns_of,
    looked,
    points,
    positive,
    scaled,
    tooltips,
    valid,
)
from dashboards.targets.vegalite.sources import Source, Step

COOL, EVEN, WARM = "#1f6fae", "#f4f3f0", "#d2590e"
_ON_PALE, _ON_STRONG = "#14181d", "#fdfdfd"
_STRONG, _STEPS, _REACH = 0.85, 40, 5
_MISSING = "–"


def task_curves(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """Tasks on logarithmic axes, larger marks with more jobs, and the curve of each one's start-up time."""
    right, up = panel.entry("x"), panel.entry("y")
    x, y = (_log(field, scale) for field, scale in ((right, paint.x), (up, paint.y)))
    curve: Spec = {
        "name": "curve",
        "transform": _curve(panel, paint),
        "mark": {"type": "line", "color": LINE, "strokeWidth": 1.3, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "detail": {"field": "task"},
            "strokeDash": {
                "condition": {
                    "test": "datum.decision === 'corrected' || datum.decision === 'split'",
                    "value": [1, 0],
                },
                "value": [5, 4],
            },
        },
    }
    size = {"field": "area", "type": "quantitative", "scale": None, "legend": None}
    layers: list[Spec] = [curve, points(panel, {"x": x, "y": y, "size": size}, paint)]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        positive(right.column, up.column),
        {"calculate": _task(panel), "as": "task"},
        {"joinaggregate": [{"op": "max", "field": "n_jobs", "as": "largest"}], "groupby": ["task"]},
        {"calculate": "26 + 260 * (datum.n_jobs || 0) / (datum.largest || 1)", "as": "area"},
        *looked(panel),
    ]
    return assembled(source, steps, layers, paint)


def _log(field: Entry, scale: Scale | None) -> Spec:
    ticks = {"values": list(scale.ticks)} if scale is not None and scale.ticks else {}
    return across(field.column, field.title, scaled(scale, type="log"), format=NUMBER, **ticks)


def _curve(panel: Panel, paint: Paint) -> list[Step]:
    """From the marks of a task to points on its curve, through the queue of median CPU time per event."""
    right, up = (json.dumps(panel.entry(role).column) for role in ("x", "y"))
    ends = ("0.9 * datum.least", "1.1 * datum.most")
    if paint.x is not None:
        ends = (repr(paint.x.low), repr(paint.x.high))
    return [
        {"filter": f"isValid(datum.rho) && 1 + datum.rho / datum[{right}] > 0"},
        # a curve is y = scale * (1 + rho / x); each mark of a task says on which scale it lies
        {"calculate": f"datum[{up}] / (1 + datum.rho / datum[{right}])", "as": "scale"},
        {
            "aggregate": [
                {"op": "median", "field": "scale", "as": "scale"},
                {"op": "min", "field": panel.entry("x").column, "as": "least"},
                {"op": "max", "field": panel.entry("x").column, "as": "most"},
            ],
            "groupby": ["task", "rho", "decision"],
        },
        # a row a step, of equal length on a logarithmic axis
        {"calculate": f"sequence(0, {_STEPS + 1})", "as": "step"},
        {"flatten": ["step"]},
        {
            "calculate": f"exp(log({ends[0]}) + (log({ends[1]}) - log({ends[0]})) * datum.step / {_STEPS})",
            "as": panel.entry("x").column,
        },
        {"calculate": f"datum.scale * (1 + datum.rho / datum[{right}])", "as": panel.entry("y").column},
        {"filter": f"datum[{up}] > 0"},
    ]


def _task(panel: Panel) -> str:
    columns = [json.dumps(field.column) for field in panel.fields if field.column in TASK]
    first, *others = columns
    return f"datum[{first}]" + "".join(
        f" + (isValid(datum[{column}]) ? ' · ' + datum[{column}] : '')" for column in others
    )


TASK = ("task_id", "core_class", "task_type", "work_kind")  # Columns that identify a task


def matrix(panel: Panel, source: Source, joins: dict[str, Source], paint: Paint) -> Spec:
    """Names x tasks: the value as colour and number; without a value a grey cell, without a bucket none.

    The colours run from orange over white to blue, even about 0.
    """
    value, label = panel.entry("x").column, panel.entry("label").column
    plain = {"ticks": False, "domain": False, "labelOverlap": False}
    by_jobs = {"field": "n_jobs", "op": "sum", "order": "descending"}
    by_speed = {"field": panel.entry("y").column, "op": "max", "order": "descending"}
    x = {
        "field": "column",
        "type": "nominal",
        "title": None,
        "sort": None if paint.tooltips else by_jobs,
        "axis": {"orient": "top", "labelAngle": -55, "labelLimit": 150, "labelAlign": "left", **plain},
    }
    y = {
        "field": "row",
        "type": "nominal",
        "title": None,
        "sort": None if paint.tooltips else by_speed,
        "axis": {"labelLimit": 250, "labelPadding": 8, "labelColor": INK, **plain},
    }
    present = f"isValid(datum[{json.dumps(value)}])"
    strong = f"abs(datum[{json.dumps(value)}]) > {_STRONG * paint.full}"
    colour = {
        "condition": {
            "test": present,
            "field": value,
            "type": "quantitative",
            "scale": {
                "domain": [-paint.full, 0, paint.full],
                "range": [WARM, EVEN, COOL],
                "clamp": True,
                "interpolate": "lab",
            },
            "legend": _gradient(paint),
        },
        "value": GRID,
    }
    texts = tooltips(panel, paint)
    layers: list[Spec] = [
        {
            "name": "marks",
            # by itself Vega-Lite leaves out what has no value
            "mark": {"type": "rect", "strokeWidth": 1.6, "invalid": None},
            "encoding": {
                "x": x,
                "y": y,
                "fill": colour,
                "stroke": {
                    "condition": {"test": "datum.status === 'rejected'", "value": INK},
                    "value": "transparent",
                },
                "tooltip": texts,
            },
        },
        {
            "mark": {"type": "text", "fontSize": 10},
            "encoding": {
                "x": x,
                "y": y,
                "text": {"field": "percent", "type": "nominal"},
                "color": {"condition": {"test": strong, "value": _ON_STRONG}, "value": _ON_PALE},
                "tooltip": texts,
            },
        },
    ]
    steps: list[Step] = [*source.lifted(columns_of(panel))]
    if not paint.tooltips:
        (join,) = panel.joins
        steps += [
            *joins["speed"].lookup(join.on, join.columns),
            {"calculate": f"datum[{json.dumps(label)}]", "as": "row"},
            {"calculate": _task(panel), "as": "column"},
        ]
    shown = f"format(100 * datum[{json.dumps(value)}], ',.0f')"
    steps.append({"calculate": f"{present} ? {shown} : {json.dumps(_MISSING)}", "as": "percent"})
    made = assembled(source, steps, layers, paint)
    # newer versions have a colour of their own for what has no value, whatever the condition says
    return {**made, "config": {**made["config"], "scale": {"invalid": {"fill": {"value": GRID}}}}}


def _gradient(paint: Paint) -> dict[str, Any]:
    return {
        "title": "Speed against what k promises",
        "labelExpr": ticks_of(PERCENT),
        "gradientLength": 260,
        "gradientThickness": 9,
        "titleLimit": 400,
        "titleFontWeight": "normal",
        "titleColor": INK,
        "values": [-paint.full, 0, paint.full],
        "orient": "bottom",
    }


def pulls(panel: Panel, source: Source, _joins: dict[str, Source], paint: Paint) -> Spec:
    """A histogram of pulls, and a normal of width 1 and the same area."""
    ends = {"values": list(range(-_REACH, _REACH + 1)), "grid": False, "format": COUNT}
    scale = {"domain": [-_REACH, _REACH], "nice": False}
    x, z = (
        across(column, "Pull (above 0: faster than k promises)", scale, **ends) for column in ("left", "z")
    )
    count = panel.entry("y")
    y, normal = (
        across(column, count.title, {"zero": True}, tickCount=5) for column in (count.column, "normal")
    )
    layers: list[Spec] = [
        {
            "name": "marks",
            "mark": {"type": "rect", "color": NEUTRAL, "opacity": 0.55},
            "encoding": {
                "x": x,
                "x2": {"field": "right"},
                "y": y,
                "y2": {"datum": 0},
                "tooltip": [
                    {"field": "range", "type": "nominal", "title": "Pull"},
                    {"field": count.column, "type": "quantitative", "title": "Buckets", "format": COUNT},
                ],
            },
        },
        {
            "name": "normal",
            "transform": [
                {
                    "aggregate": [
                        {"op": "sum", "field": count.column, "as": "total"},
                        {"op": "mean", "field": "wide", "as": "wide"},
                    ]
                },
                {"calculate": f"sequence(-{_REACH}, {_REACH}.05, 0.1)", "as": "z"},
                {"flatten": ["z"]},
                {
                    # width times total is the area of the bars
                    "calculate": "datum.wide * datum.total * exp(-datum.z * datum.z / 2) / sqrt(2 * PI)",
                    "as": "normal",
                },
            ],
            "mark": {"type": "line", "color": LINE, "strokeWidth": 1.4},
            "encoding": {"x": z, "y": normal},
        },
    ]
    steps: list[Step] = [
        *source.lifted(columns_of(panel)),
        valid("low", "high", count.column),
        {"calculate": "datum.high - datum.low", "as": "wide"},
        # bars do not touch
        {"calculate": "datum.low + 0.06 * datum.wide", "as": "left"},
        {"calculate": "datum.high - 0.06 * datum.wide", "as": "right"},
        {
            "calculate": f"datum.low <= -{_REACH} ? 'below ' + format(datum.high, '~g') : "
            f"datum.high >= {_REACH} ? 'above ' + format(datum.low, '~g') : "
            "format(datum.low, '~g') + ' to ' + format(datum.high, '~g')",
            "as": "range",
        },
    ]
    return assembled(source, steps, layers, paint)
