"""What all charts share: colours, configuration, scales of verdicts, tooltips.

Data enters a chart as data only: values are never pasted into expressions, and no channel turns a value into
a link or an address. Positions, labels and tooltip texts are computed in Python, so that the Vega side needs
no expression of ours. Every chart carries its rows as named datasets of the top level.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt

from dashboards.spec import EVERY_LOOK, GROUPS, LOOKS, STATES, Entry, Look, Panel, look_of
from dashboards.targets.html.cells import read
from dashboards.view.rows import Row

PAPER, INK, MUTED, GRID, BAND, LINE = "#fefefe", "#1c2127", "#5b6470", "#e3e6e9", "#e9eef2", "#3a424c"
"""Ground, text, lesser text, grid, accepted band, fitted line. Each colour has one use, so that a style sheet
can replace it on a dark ground."""

ROW_HEIGHT, DENSE_ROW_HEIGHT, DENSE_FROM = 18, 15, 60
"""Pixels per name in a chart of names, and from how many names on the denser height is taken."""

_CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "symbolSize": 75,
        "symbolStrokeWidth": 1.4,
        "orient": "top",
        "offset": 12,
        "columnPadding": 20,
        "labelLimit": 300,
    },
}


@dataclass(frozen=True)
class Drawing:
    """A chart and its rows, apart: layers refer to datasets by name, and a page stores rows its own way."""

    layers: tuple[Any, ...]
    datasets: dict[str, list[Row]]
    height: float
    description: str

    def chart(self, width: int) -> alt.LayerChart:
        """The complete Altair chart, so many pixels wide; Altair checks it when it is shown."""
        return self._assemble(width, datasets=self.datasets)

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification without its rows, as wide as the element that holds it.

        It is not checked against the schema, which would take most of the time of a page.
        """
        found: dict[str, Any] = self._assemble("container").to_dict(validate=False)
        return found

    def _assemble(self, width: int | str, **more: Any) -> alt.LayerChart:
        size = alt.AutoSizeParams(type="fit-x", contains="padding")
        return (
            alt.layer(*self.layers, **more)
            .properties(width=width, height=self.height, autosize=size, description=self.description)
            .configure(**_CONFIG)
        )


def look(panel: Panel, row: Row) -> Look:
    """How a row is drawn: by its verdict, or by its component or status where the panel asks for that."""
    column = panel.entry("category").column
    if column == "component":
        return GROUPS["other" if row["component"] else "largest"]
    if column == "status":
        return STATES[row["status"] if row["status"] in STATES else "other"]
    return LOOKS[look_of(row.get("verdict"), row.get("origin"), row.get("confirmed"))]


def details(panel: Panel, row: Row) -> Row:
    """What a mark carries besides its position: its look and the texts of its tooltip."""
    texts = {f"text_{place}": read(row, field) for place, field in enumerate(panel.fields)}
    drawn = look(panel, row)
    return {"look": drawn.label, "colour": drawn.light, **texts}


def span(row: Row, field: Entry, interval: float) -> tuple[float, float]:
    """A value with its error bar; without an error both ends are the value."""
    value = float(row[field.column])
    error = row.get(field.error) if field.error else None
    reach = interval * error if error is not None else 0.0
    return value - reach, value + reach


def bars(data: str, scale: dict[str, Any], position: Mapping[str, Any]) -> Any:
    """Error bars, one rule per row of the dataset; ``position`` holds the channels.

    The colour comes with the row rather than from the scale of the marks: a second legend for that scale,
    even a suppressed one, would take the clicks from the first.
    """
    colour = alt.Color("colour:N", scale=None, legend=None)
    return (
        alt.Chart(alt.NamedData(data), name="bars")
        .mark_rule(strokeWidth=1.2)
        .encode(color=colour, opacity=_opacity(scale), **position)
    )


def points(data: str, panel: Panel, scale: dict[str, Any], size: int, position: Mapping[str, Any]) -> Any:
    """Marks with tooltip, one per row; a click on the legend, where there is one, brings one look forward.

    ``size`` is an area in pixels; a channel ``size`` among ``position`` takes its place.
    """
    legend = _legend(scale)
    chart = (
        alt.Chart(alt.NamedData(data), name="marks")
        .mark_point(size=size, strokeWidth=1.4)
        .encode(
            stroke=alt.Stroke("look:N", scale=scale["stroke"], legend=legend),
            fill=alt.Fill("look:N", scale=scale["fill"], legend=legend),
            shape=alt.Shape("look:N", scale=scale["shape"], legend=legend),
            opacity=_opacity(scale),
            tooltip=tooltips(panel),
            **position,
        )
    )
    return chart.add_params(_chosen()) if scale["legend"] else chart


def tooltips(panel: Panel) -> list[Any]:
    """A line per field of the panel, of the texts that :func:`details` makes."""
    return [
        alt.Tooltip(f"text_{place}:N", title=f"{field.title} ± error" if _bare(field) else field.title)
        for place, field in enumerate(panel.fields)
    ]


def _bare(field: Entry) -> bool:
    return field.error is not None and "±" not in field.title


def _chosen() -> Any:
    return alt.selection_point(name="chosen", fields=["look"], bind="legend")


def _legend(scale: dict[str, Any]) -> Any:
    return alt.Legend(title=None) if scale["legend"] else None


def _opacity(scale: dict[str, Any]) -> Any:
    if not scale["legend"]:
        return alt.OpacityValue(1)
    return alt.OpacityValue(value=0.12, condition={"param": "chosen", "value": 1})


def looks_present(rows: Iterable[Row]) -> list[Look]:
    """The looks of drawn rows, in their fixed order."""
    labels = {row["look"] for row in rows}
    return [item for item in EVERY_LOOK if item.label in labels]


def look_scales(rows: Iterable[Row], *, legend: bool = True) -> dict[str, Any]:
    """Scales over the looks that occur; a single component needs no legend, verdicts always have one.

    Without a legend the scales cover every look, so that charts of one figure share one specification.
    """
    present = looks_present(rows) if legend else EVERY_LOOK
    domain = [item.label for item in present]
    return {
        "stroke": alt.Scale(domain=domain, range=[item.light for item in present]),
        "fill": alt.Scale(domain=domain, range=[item.light if item.filled else PAPER for item in present]),
        "shape": alt.Scale(domain=domain, range=[item.shape for item in present]),
        "legend": legend and (len(present) > 1 or any(item in LOOKS.values() for item in present)),
    }
