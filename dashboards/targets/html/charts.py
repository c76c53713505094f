"""Charts of names as the page draws them: no absurd value stretches an axis, names stand beside marks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dashboards.panels.verdicts import SCATTER, SCATTER_MODEL
from dashboards.spec import EVERY_LOOK, Panel, View
from dashboards.targets.html.cells import short
from dashboards.targets.html.labels import Frame, Label, place_labels
from dashboards.targets.html.marks import (
    DENSE_FROM,
    DENSE_ROW_HEIGHT,
    ROW_HEIGHT,
    Drawing,
    drawing,
    look,
    looks_present,
    mark_of,
    scale_of,
    shown,
    span,
)
from dashboards.targets.html.scales import Axis, axis_of, ratio_axis, ratio_ticks
from dashboards.targets.vegalite.marks import INK, MUTED, Paint, Spec
from dashboards.view.rows import Row, Tabular, relative_to_siblings, rows_of, select
from esjobs.core.numbers import number, signed_percent
from esjobs.core.text import visible
from esjobs.core.verdict_order import verdict_order
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT

_WIDTH, _HEIGHT, _MANY = 860, 400, 120
_LETTERS = 40  # Of a name beside its mark
_SIBLINGS_HEIGHT, _GROUPS = 320, 12
_SCATTER_HEIGHT = 340

# Names beside marks are placed once for a page and once for a telephone; the page shows what fits
ROOMY, NARROW = Frame("roomy", 440.0, 18), Frame("narrow", 300.0, 6)
PAGE_FRAMES = (ROOMY, NARROW)


def line_chart(
    flags: Tabular,
    lines: Tabular,
    *,
    processing_type: str | None = None,
    benchmark: str | None = None,
    limit: float = DEVIATION_LIMIT,
) -> Spec:
    """The report's chart of speed factors against declared corepower, as Vega-Lite, from the rows of one run.

    ``flags``, ``lines``: tables with the columns of the result tables. What is not asked for is taken from
    them: queues before CPU models, all types together before one of them, method and benchmark of the
    first such line. ``limit``: half-width of the band, relative to the line.
    Without a line the points stand alone; without points the axes are empty.
    """
    tables = {"flags": rows_of("flags", flags), "lines": rows_of("lines", lines)}
    judged = tables["flags"]
    level = _first(judged, "level", "queue")
    processing_type = processing_type or _first(judged, "processing_type", ALL_TYPES)
    panel = SCATTER_MODEL if level == "cpu_model" else SCATTER
    candidates = select(View("lines", level=level), tables["lines"], processing_type)
    line = next((row for row in candidates if benchmark in {None, row["benchmark"]}), None)
    method = None
    if line is not None:
        method, benchmark = line["method"], line["benchmark"]
    rows = select(panel.view, judged, processing_type, method)
    rows = [row for row in rows if benchmark in {None, row["benchmark"]}]
    return scatter_line(panel, rows, line, limit, legend=True).complete(_WIDTH)


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
    legend: bool = False,
) -> Drawing:
    """One quantity with its error against another, the line through the origin and its band.

    ``rows``: those the panel selects, of one benchmark; ``line``: a row of ``lines``, or ``None``. Names of
    confirmed deviations and of rows off the scale are written beside their marks, once for each of the
    ``frames``. ``legend``: for a chart that stands alone.
    """
    across, up = panel.entry("x"), panel.entry("y")
    slope = line["slope"] if line is not None else None
    x_axis, y_axis = _axes(panel, rows, slope)
    spots = [(x_axis.clip(row[across.column]), y_axis.clip(row[up.column])) for row in rows]
    named = _named(rows, up.column, y_axis)
    placed = {
        frame.name: place_labels(spots, _fitting(named, frame), x_axis, y_axis, _HEIGHT, frame.width)
        for frame in frames
    }
    marks = [mark_of(panel, row, {"name": _name(row)}) for row in rare_last(panel, rows)]
    paint = replace(
        _marks_paint(panel, x_axis, y_axis, len(rows), (75, 42)),
        limit=limit,
        legend=legend,
        looks=looks_present(panel, rows) if legend else (),
        height=_HEIGHT,
        unit=_per_core(line),
    )
    (join,) = panel.joins
    joined = [shown(line, (join.on, *join.columns))] if line is not None else []
    labels = _label_rows(placed, [_name(row) for row in rows])
    more = {join.name: joined, "edges": _edge_rows(slope, limit, x_axis, y_axis), **labels}
    edges = _texts("edges", {"align": "right", "color": MUTED, "fontSize": 11, "dx": -4, "dy": 12})
    return drawing(panel, marks, paint, more, [edges, *_label_layers(placed)])


def _per_core(line: Row | None) -> str:
    """The unit of the declared axis: the benchmark of the line."""
    benchmark = visible(str(line["benchmark"])) if line is not None and line["benchmark"] else ""
    return f"{short(benchmark, 12)} per core" if benchmark else ""


def rare_last(panel: Panel, rows: Sequence[Row]) -> list[Row]:
    """Rows in the order in which they are painted: looks that matter most lie on top."""
    order = {item: place for place, item in enumerate(EVERY_LOOK)}
    return sorted(rows, key=lambda row: -order[look(panel, row)])


def _texts(data: str, mark: Spec, fields: tuple[str, str] = ("x", "y"), name: str = "") -> Spec:
    """A layer of texts from a dataset, at positions on the axes of the marks."""
    encoding: Spec = {"x": {"field": fields[0]}, "y": {"field": fields[1]}}
    encoding["text"] = {"field": "label", "type": "nominal"}
    named = {"name": name} if name else {}
    return {**named, "data": {"name": data}, "mark": {"type": "text", **mark}, "encoding": encoding}


def _named(rows: Sequence[Row], column: str, axis: Axis) -> list[tuple[int, str]]:
    """Index and text of the rows whose name is written, the largest deviation first."""
    chosen = [n for n, row in enumerate(rows) if row["confirmed"] is True or not axis.holds(row[column])]
    chosen.sort(key=lambda n: verdict_order(rows[n]))
    return [(n, _label(rows[n], column, axis)) for n in chosen]


def _fitting(named: Sequence[tuple[int, str]], frame: Frame) -> list[tuple[int, str]]:
    """The first of the names, none longer than half the frame."""
    return [(place, short(text, frame.letters)) for place, text in named[: frame.most]]


def _label(row: Row, column: str, axis: Axis) -> str:
    name = short(_name(row), _LETTERS)
    return name if axis.holds(row[column]) else f"{name}: {number(row[column])}, off the scale"


def _name(row: Row) -> str:
    return "unnamed" if row["name"] is None else visible(str(row["name"]))


def _edge_rows(slope: float | None, limit: float, across: Axis, up: Axis) -> list[Row]:
    """Labels at the points where the edges of the band leave the frame."""
    # a band of a falling line would leave the frame at its origin
    if not slope or slope <= 0:
        return []
    steep = {signed_percent(side): slope * (1 + side) for side in (limit, -limit)}
    rows = []
    for label, rise in steep.items():
        x = min(across.high, up.high / rise) if rise > 0 else across.high
        if x > across.low:
            rows.append({"x": x, "y": rise * x, "label": label})
    return rows


Placed = Mapping[str, Sequence[Label]]  # Labels by the name of the frame for which they were placed


def _label_rows(placed: Placed, names: Sequence[str]) -> dict[str, list[Row]]:
    """The texts by frame and side, each with the name of its mark."""
    return {
        f"{frame}_{side}": [
            {"x": at.x, "y": at.y, "label": at.text, "name": names[at.mark]}
            for at in labels
            if at.side == side
        ]
        for frame, labels in placed.items()
        for side in ("left", "right")
    }


def _label_layers(placed: Placed) -> list[Spec]:
    """A layer for each frame and side; a style sheet knows them by the name of their frame."""
    return [
        _texts(
            f"{frame}_{side}",
            {"align": "right" if side == "left" else "left", "dx": shift, "color": INK, "fontSize": 11},
            name=f"{frame}_{side}",
        )
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
) -> Drawing:
    """Names from top to bottom in the order of the rows, each with its value and error bar.

    The height grows with the number of names. Values off the axis are drawn at its edge and written out.
    ``axis``: for rows spread over several charts that share it.
    """
    field = panel.entry("x")
    axis = axis or dots_axis(panel, rows, limit)
    names = distinct([_name(row) for row in rows])
    marks = [mark_of(panel, row, {"name": name}) for row, name in zip(rows, names, strict=True)]
    text = f"text_{panel.fields.index(field)}"
    beyond = [
        {"name": mark["name"], "x": axis.clip(mark[field.column]), "label": mark[text]}
        for mark in marks
        if not axis.holds(mark[field.column])
    ]
    paint = dots_paint(panel, len(marks), axis, limit)
    return drawing(panel, marks, paint, {"beyond": beyond}, [beyond_layer("name")])


def dots_paint(panel: Panel, names: int, axis: Axis, limit: float) -> Paint:
    """Return the style of a chart with many names."""
    step = ROW_HEIGHT if names < DENSE_FROM else DENSE_ROW_HEIGHT
    return Paint(
        x=scale_of(axis),
        limit=limit,
        tooltips=True,
        legend=False,
        size=40,
        height=max(step * names, 2 * step),
        description=f"{panel.title}: {names} names with error bars.",
    )


def beyond_layer(row: str) -> Spec:
    """The texts of values that lie beyond the axis; ``row``: the column that names the rows of the chart."""
    return _texts("beyond", {"align": "right", "dx": -8, "color": INK, "fontSize": 10}, ("x", row))


def distinct(labels: Sequence[str]) -> list[str]:
    """The labels, equal ones numbered.

    >>> distinct(["A", "B", "A"])
    ['A', 'B', 'A (2)']
    """
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found


def siblings(panel: Panel, rows: list[Row], *, frames: Sequence[Frame] = (ROOMY,)) -> Drawing:
    """Queues of one site joined by a line: speed against events per job, both relative to the site's mean.

    ``frames``: as for :func:`scatter_line`.
    """
    across, up, group = panel.entry("x"), panel.entry("y"), panel.entry("group").column
    related = relative_to_siblings(rows, group, across.column, up.column)
    x_axis, y_axis = (ratio_axis([item[n] for item in related]) for n in (1, 2))
    spots = [(visible(str(row[group])), x_axis.clip(x), y_axis.clip(y)) for row, x, y in related]
    placed = {frame.name: _group_labels(spots, x_axis, y_axis, frame) for frame in frames}
    names = [spot[0] for spot in spots]
    marks = [mark_of(panel, row) for row, _, _ in related]
    paint = Paint(
        x=scale_of(x_axis, ratio_ticks(x_axis)),
        y=scale_of(y_axis, ratio_ticks(y_axis)),
        tooltips=True,
        legend=False,
        height=_SIBLINGS_HEIGHT,
        description=f"{panel.title}: {len(marks)} queues.",
    )
    return drawing(panel, marks, paint, _label_rows(placed, names), _label_layers(placed))


def _group_labels(
    spots: Sequence[tuple[str, float, float]], across: Axis, up: Axis, frame: Frame
) -> list[Label]:
    """The name of each group beside its mark farthest out, while they are few; axes are logarithmic."""
    ends: dict[str, int] = {}
    # the mark farthest from the middle has room beside it
    for place, (group, x, _) in enumerate(spots):
        best = ends.setdefault(group, place)
        if abs(math.log(x)) > abs(math.log(spots[best][1])):
            ends[group] = place
    if len(ends) > _GROUPS:
        return []
    logs = [(math.log(x), math.log(y)) for _, x, y in spots]
    right, high = (Axis(math.log(axis.low), math.log(axis.high)) for axis in (across, up))
    named = [(place, short(group, _LETTERS)) for group, place in ends.items()]
    placed = place_labels(logs, _fitting(named, frame), right, high, _SIBLINGS_HEIGHT, frame.width)
    return [Label(math.exp(at.x), math.exp(at.y), at.text, at.side, at.mark) for at in placed]


def scatter(panel: Panel, rows: Sequence[Row]) -> Drawing:
    """Two quantities of a name, with error bars on the upright one."""
    paint = _marks_paint(panel, *_axes(panel, rows), len(rows), (60, 36))
    return drawing(panel, [mark_of(panel, row) for row in rows], paint)


def _axes(panel: Panel, rows: Sequence[Row], slope: float | None = None) -> tuple[Axis, Axis]:
    across, up = panel.entry("x").column, panel.entry("y")
    x_axis = axis_of([(row[across],) * 2 for row in rows], 0.06)
    # the line is seen over all of the axis
    ends = [(slope * x,) * 2 for x in (x_axis.low, x_axis.high)] if slope else []
    return x_axis, axis_of([*(span(row, up, panel.interval) for row in rows), *ends])


def _marks_paint(panel: Panel, x_axis: Axis, y_axis: Axis, marks: int, sizes: tuple[int, int]) -> Paint:
    """Return the style of marks with error bars; ``sizes``: square pixels of a mark, of few and of many."""
    return Paint(
        x=scale_of(x_axis),
        y=scale_of(y_axis),
        tooltips=True,
        legend=False,
        size=sizes[0] if marks <= _MANY else sizes[1],
        height=_SCATTER_HEIGHT,
        description=f"{panel.title}: {marks} marks with error bars.",
    )
