"""Marks as a page draws them: tooltips, styles in use, ends of error bars."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dashboards.spec import EVERY_LOOK, GROUPS, LOOKS, STATES, Entry, Look, Panel, look_of
from dashboards.targets.html.cells import read
from dashboards.targets.html.scales import Axis
from dashboards.targets.vegalite.charts import from_rows
from dashboards.targets.vegalite.marks import PLAIN_LOOK, Paint, Scale, Spec, category_of, columns_of
from dashboards.view.rows import Row
from esjobs.core.text import visible

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # Schema of the bundled library

# Pixels per name in a chart of names, and from how many names on the denser height is taken
ROW_HEIGHT, DENSE_ROW_HEIGHT, DENSE_FROM = 18, 15, 60


@dataclass(frozen=True)
class Drawing:
    """A chart and its rows, apart: layers refer to datasets by name, and a page stores rows its own way."""

    spec: Spec
    datasets: dict[str, list[Row]]

    def complete(self, width: int) -> Spec:
        """The chart with its rows, so many pixels wide."""
        return {**self.spec, "width": width, "datasets": self.datasets}


def drawing(
    panel: Panel,
    rows: Sequence[Row],
    paint: Paint,
    more: Mapping[str, list[Row]] | None = None,
    layers: Iterable[Spec] = (),
) -> Drawing:
    """The chart of a panel from its rows, prepared as :func:`told` does.

    ``more``: other datasets, those of the panel's joins among them. ``layers``: drawn over the others;
    positions without a scale take those of the marks.
    """
    spec = {**from_rows(panel, paint), "$schema": SCHEMA}
    marks = next(layer for layer in spec["layer"] if layer.get("name") == "marks")
    spec["layer"] = [*spec["layer"], *(_placed(layer, marks["encoding"]) for layer in layers)]
    datasets = {"rows": rows, **(more or {})}
    return Drawing(spec, {name: [_written(row) for row in records] for name, records in datasets.items()})


def _written(row: Row) -> Row:
    """A row as JSON takes it: days and times as ISO texts, which Vega-Lite reads as times."""
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}


def _placed(layer: Spec, like: Mapping[str, Any]) -> Spec:
    position = {channel: {**like[channel], **layer["encoding"][channel]} for channel in ("x", "y")}
    return {**layer, "encoding": {**layer["encoding"], **position}}


def mark_of(panel: Panel, row: Row, more: Mapping[str, Any] | None = None) -> Row:
    """Return a mark: values of the chart, texts of its tooltip, further values."""
    values = shown(row, columns_of(panel, tooltips=True))
    texts = {f"text_{place}": read(row, field) for place, field in enumerate(panel.fields)}
    return {**values, **texts, **(more or {})}


def shown(row: Row, columns: Iterable[str]) -> Row:
    """Some columns of a row, texts so that every character in them can be seen."""
    values = {column: row.get(column) for column in columns}
    return {name: visible(value) if isinstance(value, str) else value for name, value in values.items()}


def look(panel: Panel, row: Row) -> Look:
    """Return the style of a row, by its verdict, or by component or status if the panel asks for it."""
    column = category_of(panel)
    if not column:
        return PLAIN_LOOK
    if column == "component":
        return GROUPS["other" if row["component"] else "largest"]
    if column == "status":
        return STATES[row["status"] if row["status"] in STATES else "other"]
    return LOOKS[look_of(row.get("verdict"), row.get("origin"), row.get("confirmed"))]


def looks_present(panel: Panel, rows: Iterable[Row]) -> tuple[Look, ...]:
    """The looks of rows, in their fixed order."""
    drawn = {look(panel, row) for row in rows}
    return tuple(item for item in EVERY_LOOK if item in drawn)


def looks_of(panel: Panel, rows: Iterable[Row]) -> tuple[Look, ...]:
    """The same as a legend needs them: none of a single component, but a verdict even if it is alone."""
    present = looks_present(panel, rows)
    return present if len(present) > 1 or any(item in LOOKS.values() for item in present) else ()


def span(row: Row, field: Entry, interval: float) -> tuple[float, float]:
    """A value with its error bar; without an error both ends are the value."""
    value = float(row[field.column])
    error = row.get(field.error) if field.error else None
    reach = interval * error if error is not None else 0.0
    return value - reach, value + reach


def scale_of(axis: Axis, ticks: Sequence[float] = ()) -> Scale:
    """An axis as a chart takes it."""
    return Scale(axis.low, axis.high, tuple(ticks))
