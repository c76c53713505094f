"""What the expert's panels draw: tasks one by one, queues against tasks, pulls, two quantities of a name."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

import altair as alt

from dashboards.spec import STATES, Entry, Panel
from dashboards.targets.html.cells import MISSING, number, percent
from dashboards.targets.html.marks import (
    BAND,
    GRID,
    INK,
    LINE,
    Drawing,
    bars,
    details,
    look_scales,
    points,
    span,
    tooltips,
)
from dashboards.targets.html.scales import Axis, axis_of, log_axis, log_ticks
from dashboards.view.rows import Row, task_of
from esjobs.core.text import visible

_CURVE_HEIGHT, _CELL_HEIGHT, _PULLS_HEIGHT, _SCATTER_HEIGHT = 230, 17, 200, 340
_STEPS, _BINS, _REACH = 40, 20, 5.0
_ON_PALE, _ON_STRONG = "#14181d", "#fdfdfd"
_COOL, _EVEN, _WARM = "#1f6fae", "#f4f3f0", "#d2590e"
_STRONG = 0.85
_LETTERS = 26


Taken = dict[tuple[Any, ...], Row]
"""Rows of ``tasks`` by what tells tasks apart."""


def by_jobs(rows: Sequence[Row], key: Callable[[Row], Any], most: int) -> list[Any]:
    """The keys of the rows with most jobs together, at most so many, most jobs first; ties by their text."""
    jobs: Counter[Any] = Counter()
    for row in rows:
        jobs[key(row)] += row["n_jobs"] or 0
    return sorted(jobs, key=lambda each: (-jobs[each], str(each)))[:most]


def task_label(task: Iterable[Any]) -> str:
    """A task in a line: its id, and what else tells it from others.

    >>> task_label(("15350577", "multi", None, "merge"))
    '15350577 · multi · merge'
    """
    return " · ".join(visible(str(part)) for part in task if part is not None) or MISSING


def short(name: str, letters: int = _LETTERS) -> str:
    """A name cut to so many letters."""
    return name if len(name) <= letters else name[: letters - 1] + "…"


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels, equal ones numbered."""
    seen: Counter[str] = Counter()
    found = []
    for label in labels:
        seen[label] += 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found


def scale_of(rows: Sequence[Row], across: str, up: str, rho: float) -> float | None:
    """CPU time per event of the median queue, a fixed cost of ``rho`` events taken out; all count alike."""
    factors = [(row[up], 1 + rho / row[across]) for row in rows]
    found = [value / factor for value, factor in factors if factor > 0]
    return median(found) if found else None


def task_curve(panel: Panel, rows: Sequence[Row], task: Row | None) -> Drawing:
    """One task: its queues on logarithmic axes, larger with more jobs, and the curve of its fixed cost.

    ``rows``: with positive values of both quantities. ``task``: its row of ``tasks``; the curve is dashed
    unless the fixed cost was taken out, and left out when none is known.
    """
    across, up = panel.entry("x"), panel.entry("y")
    x_axis, y_axis = (log_axis([row[field.column] for row in rows]) for field in (across, up))
    largest = max((row["n_jobs"] or 0 for row in rows), default=0) or 1
    marks = [
        {
            "x": row[across.column],
            "y": row[up.column],
            "size": 26 + 260 * (row["n_jobs"] or 0) / largest,
            **details(panel, row),
        }
        for row in sorted(rows, key=lambda row: -(row["n_jobs"] or 0))
    ]
    x, y = (
        channel(
            f"{name}:Q",
            title=field.title,
            scale=alt.Scale(type="log", domain=[axis.low, axis.high], nice=False),
            axis=alt.Axis(values=log_ticks(axis), format="~r" if axis.high < 10_000 else "~s"),
        )
        for channel, name, field, axis in ((alt.X, "x", across, x_axis), (alt.Y, "y", up, y_axis))
    )
    dash = [1, 0] if task is not None and task["decision"] in {"corrected", "split"} else [5, 4]
    size = alt.Size("size:Q", scale=None, legend=None)
    layers = (
        alt.Chart(alt.NamedData("curve"))
        .mark_line(color=LINE, strokeWidth=1.3, strokeDash=dash, clip=True)
        .encode(x=x, y=y),
        points("points", panel, look_scales(marks, legend=False), 60, {"x": x, "y": y, "size": size}),
    )
    datasets = {"points": marks, "curve": _curve(rows, task, across.column, up.column, x_axis)}
    return Drawing(layers, datasets, _CURVE_HEIGHT, f"{panel.title}: {len(marks)} queues of one task.")


def _curve(rows: Sequence[Row], task: Row | None, across: str, up: str, axis: Axis) -> list[Row]:
    rho = task["rho"] if task is not None else None
    scale = scale_of(rows, across, up, rho) if rho is not None else None
    if rho is None or scale is None:
        return []
    ends = math.log(axis.low), math.log(axis.high)
    events = [math.exp(ends[0] + (ends[1] - ends[0]) * step / _STEPS) for step in range(_STEPS + 1)]
    return [{"x": n, "y": scale * (1 + rho / n)} for n in events if 1 + rho / n > 0]


def task_words(task: Row | None) -> str:
    """What was found about a task, in a line.

    >>> task_words({"rho": 12.0, "rho_err": 3.0, "slope": -0.2, "slope_err": 0.04, "decision": "corrected"})
    'ρ 12.0 ± 3.0 events, slope −0.200 ± 0.040: corrected'
    """
    if task is None:
        return "no account of it"
    if task["rho"] is None and task["slope"] is None:
        return f"ρ not estimated: {visible(str(task['decision'] or 'no decision'))}"
    rho = f"{number(task['rho'], task['rho_err'])} events" if task["rho"] is not None else "unknown"
    slope = number(task["slope"], task["slope_err"]) if task["slope"] is not None else "unknown"
    return f"ρ {rho}, slope {slope}: {visible(str(task['decision'] or 'no decision'))}"


def matrix_rows(panel: Panel, rows: Sequence[Row]) -> tuple[list[Row], list[str], list[str]]:
    """The cells of a matrix with the labels of its rows and columns, in their order.

    Kept are the names, and then their tasks, with most jobs. Names with the largest ``y`` come first; those
    without stand last.
    """
    label, order = panel.entry("label").column, panel.entry("y").column
    most_names, most_tasks = panel.most
    names = set(by_jobs(rows, lambda row: row[label], most_names))
    kept = [row for row in rows if row[label] in names]
    tasks = by_jobs(kept, task_of, most_tasks)
    chosen = set(tasks)
    kept = [row for row in kept if task_of(row) in chosen]
    speed = {row[label]: row[order] for row in kept}
    ranked = sorted(speed, key=lambda name: (speed[name] is None, -(speed[name] or 0.0), str(name)))
    shown = _distinct([_named(name, speed[name]) for name in ranked])
    heads = _distinct([short(task_label(task)) for task in tasks])
    row_of, column_of = dict(zip(ranked, shown, strict=True)), dict(zip(tasks, heads, strict=True))
    cells = [{**row, "row": row_of[row[label]], "column": column_of[task_of(row)]} for row in kept]
    return cells, shown, heads


def _named(name: Any, speed: float | None) -> str:
    """The label of a name, with its factor where it has one."""
    text = short(MISSING if name is None else visible(str(name)))
    return text if speed is None else f"{text}  {speed:.2f}"


def matrix(panel: Panel, rows: Sequence[Row]) -> Drawing:
    """Names x tasks: the value as colour and number; without a value a grey cell, without a bucket none.

    The colours run from orange over white to blue, even about 0, and are full at the 95th percentile. Framed
    cells are drawn last, so that no neighbour covers their frame.
    """
    value = panel.entry("x")
    cells, names, tasks = matrix_rows(panel, rows)
    sizes = sorted(abs(row[value.column]) for row in cells if row[value.column] is not None)
    full = max(sizes[int(0.95 * (len(sizes) - 1))], 0.1) if sizes else 0.1
    marks, blanks = [], []
    for row in cells:
        found = row[value.column]
        texts = {key: text for key, text in details(panel, row).items() if key.startswith("text_")}
        place = {"row": row["row"], "column": row["column"], **texts}
        if found is None:
            blanks.append({**place, "label": MISSING})
            continue
        ink = _ON_STRONG if abs(found) > _STRONG * full else _ON_PALE
        label = percent(found).removesuffix("\u202f%").lstrip("+")
        frame = INK if row["status"] == "rejected" else "transparent"
        marks.append({**place, "value": found, "label": label, "ink": ink, "frame": frame})
    marks.sort(key=lambda mark: mark["frame"] != "transparent")
    x = alt.X(
        "column:N",
        title=None,
        sort=None,
        axis=alt.Axis(orient="top", labelAngle=-55, labelLimit=150, labelAlign="left", **_PLAIN),
    )
    y = alt.Y(
        "row:N",
        title=None,
        sort=None,
        axis=alt.Axis(labelLimit=250, labelPadding=8, labelColor=INK, **_PLAIN),
    )
    colour = alt.Fill(
        "value:Q",
        scale=alt.Scale(domain=[-full, 0, full], range=[_WARM, _EVEN, _COOL], clamp=True, interpolate="lab"),
        legend=alt.Legend(
            title="Speed against what k promises",
            format=".0%",
            gradientLength=260,
            gradientThickness=9,
            titleLimit=400,
            titleFontWeight="normal",
            titleColor=INK,
            values=[-full, 0, full],
            orient="bottom",
        ),
    )
    shown = tooltips(panel)
    layers = (
        alt.Chart(alt.NamedData("order")).mark_point(opacity=0).encode(x=x, y=y),
        alt.Chart(alt.NamedData("blanks"), name="blanks")
        .mark_rect(color=GRID)
        .encode(x=x, y=y, tooltip=shown),
        alt.Chart(alt.NamedData("cells"), name="marks")
        .mark_rect(strokeWidth=1.6)
        .encode(x=x, y=y, fill=colour, stroke=alt.Stroke("frame:N", scale=None, legend=None), tooltip=shown),
        alt.Chart(alt.NamedData("cells"))
        .mark_text(fontSize=10)
        .encode(
            x=x,
            y=y,
            text=alt.Text("label:N"),
            color=alt.Color("ink:N", scale=None, legend=None),
            tooltip=shown,
        ),
    )
    text = f"{panel.title}: {len(names)} names and {len(tasks)} tasks."
    order = [
        {"row": names[min(n, len(names) - 1)], "column": tasks[min(n, len(tasks) - 1)]}
        for n in range(max(len(names), len(tasks)))
    ]
    datasets = {"order": order, "cells": marks, "blanks": blanks}
    return Drawing(layers, datasets, _CELL_HEIGHT * max(len(names), 2), text)


_PLAIN: dict[str, Any] = {"ticks": False, "domain": False, "labelOverlap": False}


def counts_of(text: Any) -> list[float]:
    """The counts of a stored histogram of pulls; none when the text holds anything else.

    >>> len(counts_of(str([1] * 20))), counts_of("[1, 2]"), counts_of("nothing")
    (20, [], [])
    """
    try:
        found = json.loads(str(text))
    except ValueError:
        return []
    if not isinstance(found, list) or len(found) != _BINS:
        return []
    if not all(isinstance(n, int | float) and math.isfinite(n) and n >= 0 for n in found):
        return []
    return [float(n) for n in found] if sum(found) > 0 else []


def pulls(panel: Panel, counts: Sequence[float]) -> Drawing:
    """A histogram of pulls from −5 to 5, and a normal of width 1 and the same area."""
    step = 2 * _REACH / _BINS
    area = step * math.fsum(counts)
    peak = area / math.sqrt(2 * math.pi)
    bins: list[Row] = [
        {"lo": (low := -_REACH + step * place) + 0.03, "hi": low + step - 0.03, "n": n, "base": 0}
        | {"range": _range(low, step, place), "count": number(n) if n % 1 else f"{n:.0f}"}
        for place, n in enumerate(counts)
    ]
    grid = [-_REACH + place / 10 for place in range(round(20 * _REACH) + 1)]
    normal = [{"lo": z, "n": peak * math.exp(-z * z / 2)} for z in grid]
    top = 1.06 * max(*counts, peak)
    ticks = alt.Axis(values=[-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5], grid=False, format="d")
    x = alt.X(
        "lo:Q",
        title="Pull (above 0: faster than k promises)",
        scale=alt.Scale(domain=[-_REACH, _REACH], nice=False),
        axis=ticks,
    )
    y_scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("n:Q", title="Number of buckets", scale=y_scale, axis=alt.Axis(tickCount=5))
    told = [alt.Tooltip("range:N", title="Pull"), alt.Tooltip("count:N", title="Buckets")]
    layers = (
        alt.Chart(alt.NamedData("bins"), name="marks")
        .mark_rect(color=STATES["used"].light, opacity=0.55)
        .encode(x=x, x2=alt.X2("hi:Q"), y=y, y2=alt.Y2("base:Q"), tooltip=told),
        alt.Chart(alt.NamedData("normal")).mark_line(color=LINE, strokeWidth=1.4).encode(x=x, y=y),
    )
    text = f"{panel.title}: histogram of {math.fsum(counts):.0f} buckets."
    return Drawing(layers, {"bins": bins, "normal": normal}, _PULLS_HEIGHT, text)


def _range(low: float, step: float, place: int) -> str:
    if place == 0:
        return f"below {low + step:g}".replace("-", "−")
    if place == _BINS - 1:
        return f"above {low:g}"
    return f"{low:g} to {low + step:g}".replace("-", "−")


def scatter(panel: Panel, rows: Sequence[Row], *, legend: bool = True) -> Drawing:
    """Two quantities of a name, with error bars on the upright one."""
    across, up = panel.entry("x"), panel.entry("y")
    spans = [span(row, up, panel.interval) for row in rows]
    x_axis = axis_of([(row[across.column], row[across.column]) for row in rows], 0.06)
    y_axis = axis_of(spans)
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
    x_scale, y_scale = (
        alt.Scale(domain=[axis.low, axis.high], zero=False, nice=False) for axis in (x_axis, y_axis)
    )
    ticks = alt.Axis(tickCount=8, format=_form(across))
    x = alt.X("x:Q", title=across.title, scale=x_scale, axis=ticks)
    y, low_y = (
        alt.Y(f"{name}:Q", title=up.title, scale=y_scale, axis=alt.Axis(tickCount=7, format=_form(up)))
        for name in ("y", "lo")
    )
    scale = look_scales(marks, legend=legend)
    even = [{"y": 1.0}] if up.column == "k" and y_axis.holds(1.0) else []
    layers = (
        alt.Chart(alt.NamedData("even")).mark_rule(color=BAND, strokeWidth=2).encode(y=y),
        bars("points", scale, {"x": x, "y": low_y, "y2": alt.Y2("hi:Q")}),
        points("points", panel, scale, 60 if len(marks) <= 120 else 36, {"x": x, "y": y}),
    )
    text = f"{panel.title}: {len(marks)} marks with error bars."
    return Drawing(layers, {"points": marks, "even": even}, _SCATTER_HEIGHT, text)


def _form(field: Entry) -> str:
    return ".0%" if field.show == "fraction" else "~g"


def positive(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Rows that a logarithmic axis can hold."""
    return [row for row in rows if all((row[column] or 0) > 0 for column in columns)]
