"""Panels as charts of a page: the specification, which rows it draws, what stands beside it.

Axes are those of all rows, so that a chart stays where it is when a reader chooses some of them. Rows stand
in the pool of the panel; a figure says which of them, in which order, and with which columns.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dashboards.spec import JOBS, Kind, Mean, Panel, View
from dashboards.targets.html.captions import line_caption
from dashboards.targets.html.charts import (
    PAGE_FRAMES,
    beyond_layer,
    dots_axis,
    dots_paint,
    rare_last,
    scatter_line,
)
from dashboards.targets.html.marks import DENSE_FROM, DENSE_ROW_HEIGHT, ROW_HEIGHT, SCHEMA, drawing, shown
from dashboards.targets.html.pages.columns import PLACE, Columns, steps
from dashboards.targets.html.pages.pools import ALL, Pool, counted, fields_of
from dashboards.targets.vegalite.charts import CHARTS, Drawn
from dashboards.targets.vegalite.jobs import MOST_GROUPS as JOBS_GROUPS
from dashboards.targets.vegalite.marks import Paint, Spec, category_of, columns_of
from dashboards.targets.vegalite.scatters import without_scores
from dashboards.targets.vegalite.sources import ROWS, dataset
from dashboards.targets.vegalite.sums import SERIES, totals
from dashboards.view.rows import Row, keeps
from esjobs.core.query import Count, Maximum, Metric, Minimum

Figure = dict[str, Any]
Joined = Callable[[View], list[Row]]  # Gives all rows of a view that a chart looks something up in

DRAWN: Mapping[Kind, Drawn] = {**CHARTS, "bars": totals}  # Kinds of panel that are charts here

# Kinds with a bar or a mark per name, from top to bottom; they are as high as they have names
BARS: tuple[Kind, ...] = (
    "shares",
    "waste",
    "weighted",
    "bars",
    "amounts",
    "ends",
    "rates",
    "coverage",
    "ranked",
    "worst",
)

# Pixels: of a bar, of a row of the grid; what stands in a panel beside its chart; the lowest chart
_BAR_HEIGHT, _GRID_ROW, _BESIDE, _LEAST = 21, 20, 100, 240


@dataclass(frozen=True)
class Drawable:
    """Input of a figure: a panel with its height in the grid, its rows and their pool.

    ``every``: rows by which axes and columns are chosen, where they are more. ``beyond``: so many rows of the
    panel are not in the pool.
    """

    panel: Panel
    height: int
    rows: list[Row]
    pool: Pool
    columns: Columns
    joined: Joined
    limit: float
    every: Sequence[Row] = ()
    beyond: int = 0

    @property
    def pixels(self) -> float:
        """The height of a chart that is as high as its panel."""
        return max(_LEAST, self.height * _GRID_ROW - _BESIDE)


def figures_of(drawable: Drawable) -> list[Figure]:
    """The charts of a panel: one, or one for each benchmark; none without rows."""
    if not drawable.rows:
        return []
    match drawable.panel.kind:
        case "scatter-line":
            return _against_lines(drawable)
        case "dots-with-errors":
            return [_dots(drawable)]
        case "coverage":
            made = _of_coverage(drawable)
        case _ if drawable.panel.view.by or drawable.panel.view.over:
            made = _of_groups(drawable)
        case _:
            made = _plain(drawable)
    return [made | {"each": _BAR_HEIGHT} if drawable.panel.kind in BARS else made]


def _against_lines(drawable: Drawable) -> list[Figure]:
    """A chart per benchmark, as in the report; where several types are shown they share one file of rows."""
    panel = replace(drawable.panel, view=replace(drawable.panel.view, types="main"))
    (join,) = panel.joins
    lines = drawable.joined(replace(join.view, types=drawable.panel.view.types))
    found = []
    for benchmark in dict.fromkeys(row["benchmark"] for row in drawable.rows):
        rows = [row for row in drawable.rows if row["benchmark"] == benchmark]
        own = {(benchmark, row["processing_type"]) for row in rows}
        mine = [row for row in lines if (row["benchmark"], row["processing_type"]) in own]
        # of several types each has a line of its own, and the chart none
        line = mine[0] if len(mine) == 1 else None
        drawn = scatter_line(panel, rows, line, drawable.limit, frames=PAGE_FRAMES)
        figure = _marked(drawable, drawn.spec, rare_last(panel, rows), drawn.datasets)
        found.append(figure | {"caption": line_caption(line, benchmark, panel.view.level)})
    return found


def _dots(drawable: Drawable) -> Figure:
    """Names from top to bottom; what lies beyond the axis is written at its end."""
    panel = drawable.panel
    axis = dots_axis(panel, drawable.every or drawable.rows, drawable.limit)
    row = "row" if any(field.role == "group" for field in panel.fields) else panel.entry("label").column
    drawn = drawing(
        panel, [], dots_paint(panel, 1, axis, drawable.limit), {"beyond": []}, [beyond_layer(row)]
    )
    field = panel.entry("x")
    keys = [panel.entry("label").column, *(each.column for each in panel.fields if each.role == "group")]
    beyond = {
        "value": field.column,
        "low": axis.low,
        "high": axis.high,
        "text": f"text_{panel.fields.index(field)}",
        "row": row,
        "keys": keys,
    }
    figure = _marked(drawable, drawn.spec, drawable.rows, {})
    return figure | {
        "beyond": beyond,
        "step": {"row": ROW_HEIGHT, "dense": DENSE_ROW_HEIGHT, "from": DENSE_FROM},
        "per": row,
        "keys": keys,
    }


def _marked(drawable: Drawable, spec: Spec, rows: Sequence[Row], more: Mapping[str, list[Row]]) -> Figure:
    """A chart with a mark per row, whose tooltips are texts of the pool."""
    panel, columns = drawable.panel, drawable.columns
    own = [field for field in panel.fields if not field.table]
    return {
        "spec": spec,
        "data": {name: records for name, records in more.items() if name != ROWS},
        "rows": places(rows),
        "columns": {name: columns.value(name) for name in columns_of(panel, tooltips=True)},
        "texts": [columns.text(field) if field in own else None for field in panel.fields],
        "look": columns.look(panel) if category_of(panel) else None,
    }


def _of_groups(drawable: Drawable) -> Figure:
    """A chart of what is added up over the rows that a reader chose."""
    panel = drawable.panel
    spec = _spec(drawable)
    figure: Figure = {
        "spec": spec,
        "data": {},
        "rows": places(drawable.rows),
        "groups": _grouping(drawable),
    }
    if panel.joins:  # the same of everything, whatever is chosen
        figure["every"] = [join.name for join in panel.joins]
    if panel.kind == "trend":
        figure["series"] = {"column": panel.entry("label").column, "colours": list(SERIES)}
        spec["layer"] = [_without_legend(layer) for layer in spec["layer"]]
    return figure


def _grouping(drawable: Drawable) -> dict[str, Any]:
    """Keys, sums and order by which the script groups rows."""
    panel, view = drawable.panel, drawable.panel.view
    named = {each.name: each.name for each in view.metrics}
    weight = next((field.per for field in panel.fields if field.role == "x"), "")
    # a mean counts by its weight: a name without any has none, and must not take the place of one that has
    order = (weight,) if panel.kind == "weighted" else view.sort
    grouping: dict[str, Any] = {
        "by": {name: drawable.columns.value(name) for name in view.by},
        "metrics": [_metric(each, drawable) for each in view.metrics],
        "largest": named.get(order[0].lstrip("-")) if order else None,
        "weight": named.get(weight),
        "most": _most_groups(panel),
    }
    if view.over:
        grouping["over"] = [view.over, drawable.columns.value(view.over)]
    if view.first:
        said = f"first of {panel.id}"
        grouping["first"] = drawable.columns.made(said, lambda row: int(keeps(row, view.first)))
    return grouping


def _most_groups(panel: Panel) -> int | None:
    if panel.view.table == JOBS.name:
        return JOBS_GROUPS
    return panel.most[0] if panel.most else None


def _spec(drawable: Drawable) -> Spec:
    """The chart of a panel as a notebook would draw it."""
    panel = drawable.panel
    paint = Paint(limit=drawable.limit, height=drawable.pixels, description=panel.title)
    joins = {join.name: dataset(join.name) for join in panel.joins}
    return {**DRAWN[panel.kind](panel, dataset(ROWS), joins, paint), "$schema": SCHEMA}


def _of_coverage(drawable: Drawable) -> Figure:
    """Of how many jobs each field is known: all of them first, then a row per field."""
    counts = [
        drawable.columns.value(name)
        for name in (ALL, *(counted(field.column) for field in drawable.panel.fields))
    ]
    return {"spec": _spec(drawable), "data": {}, "rows": places(drawable.rows), "counts": counts}


def _metric(metric: Metric | Mean, drawable: Drawable) -> dict[str, str]:
    """Return a metric over rows; groups of a store are added up."""
    if drawable.pool.summed:
        source, how = metric.name, {Maximum: "max", Minimum: "min"}.get(type(metric), "sum")
    else:
        (source,) = fields_of(metric) or ("",)
        how = {Mean: "mean", Maximum: "max", Minimum: "min", Count: "count"}.get(type(metric), "sum")
    return {"name": metric.name, "how": how, "from": drawable.columns.value(source) if source else ""}


def _without_legend(layer: Spec) -> Spec:
    """A layer whose colours a legend of the page explains."""
    encoding = layer["encoding"]
    if "legend" not in encoding.get("color", {}):
        return layer
    return {**layer, "encoding": {**encoding, "color": {**encoding["color"], "legend": None}}}


def _plain(drawable: Drawable) -> Figure:
    """Any other chart, as a notebook would draw it."""
    panel = drawable.panel
    more = {
        join.name: [shown(row, (join.on, *join.columns)) for row in drawable.joined(join.view)]
        for join in panel.joins
    }
    beside: dict[str, Any] = {}
    if panel.kind == "against-scores":  # without any there is nothing to draw, and an axis of nothing
        (join,) = panel.joins
        joined_names = sorted({str(row[join.on]) for row in more[join.name] if row[join.on] is not None})
        beside["needs"] = {"names": joined_names, "told": without_scores(panel)}
        beside["label"] = drawable.columns.value(panel.entry("label").column)
    return {
        **beside,
        "spec": _spec(drawable),
        # times and decimals become texts, as in the rows
        "data": json.loads(json.dumps(more, default=str)),
        "rows": places(drawable.rows),
        "columns": {name: drawable.columns.value(name) for name in columns_of(panel)},
        "texts": [],
        "look": None,
    }


def places(rows: Sequence[Row]) -> Any:
    """Return the positions of rows in their pool, packed."""
    return steps([row[PLACE] for row in rows])
