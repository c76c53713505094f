"""A panel and the rows of its table, drawn as an Altair chart; the same in the report and in notebooks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from dashboards.panels.verdicts import SCATTER, SCATTER_MODEL
from dashboards.spec import EVERY_LOOK, Panel, View
from dashboards.targets.html.cells import number
from dashboards.targets.html.labels import Frame, Label, place_labels
from dashboards.targets.html.marks import (
    BAND,
    DENSE_FROM,
    DENSE_ROW_HEIGHT,
    INK,
    LINE,
    MUTED,
    ROW_HEIGHT,
    Drawing,
    bars,
    details,
    look_scales,
    points,
    span,
)
from dashboards.targets.html.scales import Axis, axis_of, ratio_axis, ratio_ticks
from dashboards.view.rows import Row, complete, records, relative_to_siblings, select
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT, Level

_HEIGHT, _MANY = 460, 120
_SIBLINGS_HEIGHT, _GROUPS = 320, 12
_FASTER = "Deviation (faster →)"

ROOMY, NARROW = Frame("roomy", 640.0, 24), Frame("narrow", 300.0, 6)
PAGE_FRAMES = (ROOMY, NARROW)
"""Names beside marks are placed once for a page and once for a telephone; the page shows what fits."""


def plot_line(
    flags: pd.DataFrame,
    lines: pd.DataFrame,
    *,
    level: Level | None = None,
    processing_type: str | None = None,
    method: str | None = None,
    benchmark: str | None = None,
    limit: float = DEVIATION_LIMIT,
    width: int = 860,
) -> alt.LayerChart:
    """The report's chart of speed factors against declared corepower, from the frames of one run.

    ``flags``, ``lines``: frames with the columns of the result tables. What is not asked for is taken from
    the frames: queues before CPU models, all types together before one of them, method and benchmark of the
    first such line. ``limit``: half-width of the band, relative to the line; ``width`` in pixels.
    Without a line the points stand alone; without points the axes are empty.
    """
    found, judged = records(complete("lines", lines)), records(complete("flags", flags))
    level = level or _first(judged, "level", "site")
    processing_type = processing_type or _first(judged, "processing_type", ALL_TYPES)
    panel = SCATTER_MODEL if level == "cpu_model" else SCATTER
    candidates = select(View("lines", level=level), found, processing_type, method)
    line = next((row for row in candidates if benchmark in {None, row["benchmark"]}), None)
    if line is not None:
        method, benchmark = line["method"], line["benchmark"]
    rows = select(panel.view, judged, processing_type, method)
    rows = [row for row in rows if benchmark in {None, row["benchmark"]}]
    return scatter_line(panel, rows, line, limit).chart(width)


def _first(rows: list[Row], column: str, preferred: Any) -> Any:
    """The preferred value if a row has it or there are no rows, else that of the first row."""
    found = [row[column] for row in rows]
    return preferred if preferred in found or not found else found[0]


def scatter_line(
    panel: Panel,
    rows: list[Row],
    line: Row | None,
    limit: float = DEVIATION_LIMIT,
    *,
    frames: Sequence[Frame] = (ROOMY,),
    legend: bool = True,
) -> Drawing:
    """One quantity with its error against another, the line through the origin and its band.

    ``rows``: those the panel selects, of one benchmark; ``line``: a row of ``lines``, or ``None``. Names of
    confirmed deviations and of rows off the scale are written beside their marks, once for each of the
    ``frames``.
    One mark and one bar per row. ``legend=False``: where a page has one of its own.
    """
    across, up = panel.entry("x"), panel.entry("y")
    slope = line["slope"] if line is not None else None
    spans = [span(row, up, panel.interval) for row in rows]
    x_axis = axis_of([(row[across.column], row[across.column]) for row in rows], 0.06)
    ends = [(slope * x, slope * x) for x in (x_axis.low, x_axis.high) if slope]
    y_axis = axis_of([*spans, *ends])
    marks = [
        {
            "x": x_axis.clip(row[across.column]),
            "y": y_axis.clip(row[up.column]),
            "lo": y_axis.clip(low),
            "hi": y_axis.clip(high),
            **details(panel, row),
        }
        for row, (low, high) in zip(rows, spans, strict=True)
    ]
    spots = [(mark["x"], mark["y"]) for mark in marks]
    named = _named(rows, up.column, y_axis)
    placed = {
        frame.name: place_labels(spots, _fitting(named, frame), x_axis, y_axis, _HEIGHT, frame.width)
        for frame in frames
    }
    order = {look.label: place for place, look in enumerate(EVERY_LOOK)}
    marks.sort(key=lambda mark: -order[mark["look"]])
    benchmark = visible(str(line["benchmark"])) if line is not None and line["benchmark"] else ""
    unit = f" ({_short(benchmark, 12)} per core)" if benchmark else ""
    x = alt.X("x:Q", scale=_scale(x_axis), title=across.title + unit, axis=alt.Axis(tickCount=10))
    y = alt.Y("y:Q", scale=_scale(y_axis), title=up.title, axis=alt.Axis(tickCount=8))
    low = alt.Y("lo:Q", scale=_scale(y_axis), title=up.title, axis=alt.Axis(tickCount=8))
    scale = look_scales(marks, legend=legend)
    ground = alt.Chart(alt.NamedData("line"))
    dash = [1, 0] if line is not None and line["status"] == "ok" else [6, 4]
    layers = [
        ground.mark_area(color=BAND, clip=True).encode(x=x, y=low, y2=alt.Y2("hi:Q")),
        ground.mark_line(color=LINE, strokeWidth=1.3, strokeDash=dash, clip=True).encode(x=x, y=y),
        alt.Chart(alt.NamedData("edges"))
        .mark_text(align="right", color=MUTED, fontSize=11, dx=-4, dy=12)
        .encode(x=x, y=y, text=alt.Text("label:N")),
        bars("points", scale, {"x": x, "y": low, "y2": alt.Y2("hi:Q")}),
        points("points", panel, scale, 75 if len(marks) <= _MANY else 42, {"x": x, "y": y}),
        *_label_layers(placed, x, y),
    ]
    datasets = {
        "points": marks,
        "line": _line_rows(slope, limit, x_axis),
        "edges": _edge_rows(slope, limit, x_axis, y_axis),
        **_label_rows(placed),
    }
    return Drawing(tuple(layers), datasets, _HEIGHT, f"{panel.title}: {len(marks)} marks with error bars.")


def _scale(axis: Axis) -> alt.Scale:
    return alt.Scale(domain=[axis.low, axis.high], zero=False, nice=False)


def _named(rows: Sequence[Row], column: str, axis: Axis) -> list[tuple[int, str]]:
    """Index and text of the rows whose name is written, the largest deviation first."""
    chosen = [n for n, row in enumerate(rows) if row["confirmed"] is True or not axis.holds(row[column])]
    chosen.sort(key=lambda n: -abs(rows[n]["deviation"] or 0.0))
    return [(n, _label(rows[n], column, axis)) for n in chosen]


def _fitting(named: Sequence[tuple[int, str]], frame: Frame) -> list[tuple[int, str]]:
    """The first of the names, none longer than half the frame."""
    return [(place, _short(text, frame.letters)) for place, text in named[: frame.most]]


def _label(row: Row, column: str, axis: Axis) -> str:
    name = _short(_name(row))
    return name if axis.holds(row[column]) else f"{name}: {number(row[column])}, off the scale"


def _name(row: Row) -> str:
    return "unnamed" if row["name"] is None else visible(str(row["name"]))


def _short(name: str, letters: int = 40) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"


def _line_rows(slope: float | None, limit: float, across: Axis) -> list[Row]:
    """The two ends of the line and of its band; what lies beyond the axis is clipped when drawn."""
    if not slope or slope <= 0:
        return []
    return [
        {"x": x, "y": slope * x, "lo": slope * x * (1 - limit), "hi": slope * x * (1 + limit)}
        for x in (across.low, across.high)
    ]


def _edge_rows(slope: float | None, limit: float, across: Axis, up: Axis) -> list[Row]:
    """Where the two edges of the band leave the frame, with what they mean."""
    if not slope or slope <= 0:
        return []
    steep = {f"+{limit:.0%}": slope * (1 + limit), f"−{limit:.0%}": slope * (1 - limit)}
    rows = []
    for label, rise in steep.items():
        x = min(across.high, up.high / rise) if rise > 0 else across.high
        if x > across.low:
            rows.append({"x": x, "y": rise * x, "label": label})
    return rows


Placed = Mapping[str, Sequence[Label]]
"""Labels by the name of the frame for which they were placed."""


def _label_rows(placed: Placed) -> dict[str, list[Row]]:
    return {
        f"{frame}_{side}": [{"x": at.x, "y": at.y, "label": at.text} for at in labels if at.side == side]
        for frame, labels in placed.items()
        for side in ("left", "right")
    }


def _label_layers(placed: Placed, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A layer for each frame and side; a style sheet knows them by the name of their frame."""
    return [
        alt.Chart(alt.NamedData(f"{frame}_{side}"), name=f"{frame}_{side}")
        .mark_text(align="right" if side == "left" else "left", dx=shift, color=INK, fontSize=11)
        .encode(x=x, y=y, text=alt.Text("label:N"))
        for frame, labels in placed.items()
        for side, shift in (("left", -9), ("right", 9))
        if any(at.side == side for at in labels)
    ]


def dots_axis(panel: Panel, rows: Sequence[Row], limit: float = DEVIATION_LIMIT) -> Axis:
    """The axis of :func:`dots_with_errors`, to be given to each chart that shows some of the rows."""
    spans = [span(row, panel.entry("x"), panel.interval) for row in rows]
    axis = axis_of(spans)
    reach = 1.25 * limit if panel.band else 0.0
    return Axis(min(axis.low, -reach), max(axis.high, reach)) if panel.band else axis


def dots_with_errors(
    panel: Panel,
    rows: list[Row],
    *,
    limit: float = DEVIATION_LIMIT,
    axis: Axis | None = None,
    legend: bool = True,
) -> Drawing:
    """Names from top to bottom in the order of the rows, each with its value and error bar.

    The height grows with the number of names. Values off the axis are drawn at its edge and written out.
    ``axis`` and ``legend=False``: for rows spread over several charts that share both.
    """
    field = panel.entry("x")
    axis = axis or dots_axis(panel, rows, limit)
    marks = []
    seen: dict[str, int] = {}
    for row in rows:
        low, high = span(row, field, panel.interval)
        name = _name(row)
        seen[name] = seen.get(name, 0) + 1
        marks.append(
            {
                "name": name if seen[name] == 1 else f"{name} ({seen[name]})",
                "x": axis.clip(row[field.column]),
                "lo": axis.clip(low),
                "hi": axis.clip(high),
                **details(panel, row),
            }
        )
    place = panel.fields.index(field)
    beyond = [
        {"name": mark["name"], "x": mark["x"], "label": mark[f"text_{place}"]}
        for row, mark in zip(rows, marks, strict=True)
        if not axis.holds(row[field.column])
    ]
    form = ".0%" if panel.band else ".2~f"
    top = alt.Axis(format=form, orient="top", tickCount=6, labelSeparation=8, domain=False, ticks=False)
    title = _FASTER if panel.band else field.title
    x = alt.X("x:Q", scale=_scale(axis), title=title, axis=top)
    low_x = alt.X("lo:Q", scale=_scale(axis), title=title, axis=top)
    names = alt.Axis(labelLimit=190, ticks=False, domain=False, labelColor=INK, labelPadding=8)
    y = alt.Y("name:N", sort=None, title=None, axis=names)
    scale = look_scales(marks, legend=legend)
    centre = 0.0 if panel.band else 1.0
    ground = alt.Chart(alt.NamedData("ground"))
    layers = [
        ground.mark_rect(color=BAND).encode(x=low_x, x2=alt.X2("hi:Q")),
        ground.mark_rule(color=LINE, strokeWidth=1).encode(x=x),
        bars("points", scale, {"x": low_x, "x2": alt.X2("hi:Q"), "y": y}),
        points("points", panel, scale, 40, {"x": x, "y": y}),
        alt.Chart(alt.NamedData("beyond"))
        .mark_text(align="right", dx=-8, dy=0, color=INK, fontSize=10)
        .encode(x=x, y=y, text=alt.Text("label:N")),
    ]
    band = (
        {"x": centre, "lo": -limit, "hi": limit} if panel.band else {"x": centre, "lo": centre, "hi": centre}
    )
    datasets = {"points": marks, "ground": [band] if axis.holds(centre) else [], "beyond": beyond}
    step = ROW_HEIGHT if len(rows) < DENSE_FROM else DENSE_ROW_HEIGHT
    height = max(step * len(marks), 2 * step)
    return Drawing(tuple(layers), datasets, height, f"{panel.title}: {len(marks)} names with error bars.")


def siblings(
    panel: Panel, rows: list[Row], *, frames: Sequence[Frame] = (ROOMY,), legend: bool = True
) -> Drawing:
    """Queues of one site joined by a line: speed against events per job, both relative to the site's mean.

    ``frames``, ``legend``: as for :func:`scatter_line`.
    """
    across, up = panel.entry("x"), panel.entry("y")
    related = relative_to_siblings(rows, panel.entry("group").column, across.column, up.column)
    x_axis, y_axis = (ratio_axis([item[n] for item in related]) for n in (1, 2))
    marks = []
    for row, right, high in related:
        error = (row[up.error] or 0.0) / row[up.column] if up.error else 0.0
        marks.append(
            {
                "x": x_axis.clip(right),
                "y": y_axis.clip(high),
                "lo": y_axis.clip(high * max(1 - error, 0.01)),
                "hi": y_axis.clip(high * (1 + error)),
                "group": visible(str(row[panel.entry("group").column])),
                **details(panel, row),
            }
        )
    x, y, low = (
        channel(
            f"{column}:Q",
            scale=alt.Scale(type="log", domain=[axis.low, axis.high], nice=False),
            axis=alt.Axis(values=ratio_ticks(axis), format=".1~f"),
            title=title,
        )
        for channel, column, axis, title in (
            (alt.X, "x", x_axis, ["Events per job,", "relative to the mean of the WLCG site"]),
            (alt.Y, "y", y_axis, "k, relative to the mean of the WLCG site"),
            (alt.Y, "lo", y_axis, "k, relative to the mean of the WLCG site"),
        )
    )
    scale = look_scales(marks, legend=legend)
    even = alt.Chart(alt.NamedData("even"))
    layers = [
        even.mark_rule(color=LINE, strokeWidth=1).encode(x=x),
        even.mark_rule(color=LINE, strokeWidth=1).encode(y=y),
        alt.Chart(alt.NamedData("points"))
        .mark_line(color=MUTED, strokeWidth=1, opacity=0.45)
        .encode(x=x, y=y, detail=alt.Detail("group:N")),
        bars("points", scale, {"x": x, "y": low, "y2": alt.Y2("hi:Q")}),
        points("points", panel, scale, 60, {"x": x, "y": y}),
    ]
    placed = {frame.name: _group_labels(marks, x_axis, y_axis, frame) for frame in frames}
    layers += _label_layers(placed, x, y)
    datasets = {"points": marks, "even": [{"x": 1.0, "y": 1.0, "lo": 1.0}], **_label_rows(placed)}
    text = f"{panel.title}: {len(marks)} queues."
    return Drawing(tuple(layers), datasets, _SIBLINGS_HEIGHT, text)


def _group_labels(marks: Sequence[Row], across: Axis, up: Axis, frame: Frame) -> list[Label]:
    """The name of each group beside its mark farthest out, while they are few; axes are logarithmic."""
    ends: dict[str, int] = {}
    for place, mark in enumerate(marks):
        best = ends.setdefault(mark["group"], place)
        if abs(math.log(mark["x"])) > abs(math.log(marks[best]["x"])):
            ends[mark["group"]] = place
    if len(ends) > _GROUPS:
        return []
    logs = [(math.log(mark["x"]), math.log(mark["y"])) for mark in marks]
    right, high = (Axis(math.log(axis.low), math.log(axis.high)) for axis in (across, up))
    named = [(place, _short(group)) for group, place in ends.items()]
    placed = place_labels(logs, _fitting(named, frame), right, high, _SIBLINGS_HEIGHT, frame.width)
    return [Label(math.exp(at.x), math.exp(at.y), at.text, at.side) for at in placed]
