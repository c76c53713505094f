"""Which rows the panels of a page need: read once for all panels that are about the same rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dashboards.spec import Entry, Mean, Page, Panel, View
from dashboards.targets.vegalite.charts import CHARTS
from dashboards.targets.vegalite.marks import columns_of
from dashboards.view.rows import Row, keeps
from esjobs.capabilities import table
from esjobs.core.query import Count, Maximum, Metric, Minimum, Sum, metric_fields


class Reader(Protocol):
    """Gives rows as a store holds them now: of the latest run, unless a view is about every run."""

    def rows(self, view: View, columns: Sequence[str]) -> list[Row]:
        """The rows of a view as they are, with some columns; with ``first``, those of its groups."""

    def groups(self, view: View) -> list[Row]:
        """The groups of a view."""


_ADDED_UP = (Sum, Count, Minimum, Maximum)
"""Metrics that can be made of those of smaller groups."""


@dataclass(frozen=True)
class Pool:
    """Rows that several panels share.

    ``name``: its name among the pools of a page. ``view``: what is asked. ``columns``: what is kept of each
    row. ``choices``: the columns among them by which a reader may filter. ``summed``: whether its rows are
    groups, the smallest that a reader can choose.
    """

    name: str
    view: View
    columns: tuple[str, ...]
    choices: tuple[str, ...]
    summed: bool = False

    def read(self, reader: Reader) -> list[Row]:
        """Its rows."""
        return reader.groups(self.view) if self.summed else reader.rows(self.view, self.columns)

    def kept(self, rows: list[Row]) -> list[Row]:
        """Some of its rows without groups of which a panel wants none, whatever a reader chooses of them."""
        if not self.view.first:
            return rows
        wanted = {_key(self.view, row) for row in rows if keeps(row, self.view.first)}
        return [row for row in rows if _key(self.view, row) in wanted]


def _key(view: View, row: Row) -> tuple[object, ...]:
    return tuple(row[column] for column in view.by)


def pools_of(page: Page) -> tuple[tuple[Pool, ...], dict[str, Pool]]:
    """The pools of a page, and that of each panel that is about rows, by the id of the panel."""
    alike: dict[tuple[bool, View], list[Panel]] = {}
    for placed in page.places:
        if placed.panel.view.table:
            alike.setdefault(_shape(shown_view(placed.panel)), []).append(placed.panel)
    of_panel: dict[str, Pool] = {}
    for number, (shape, panels) in enumerate(alike.items()):
        pool = _pool(f"{shape[1].table}-{number}", page, shape, panels)
        of_panel |= {panel.id: pool for panel in panels}
    return tuple(dict.fromkeys(of_panel.values())), of_panel


def shown_view(panel: Panel) -> View:
    """The rows that a panel shows; a chart that is about every level shows queues, as in every target."""
    if panel.kind in CHARTS and "level" in table(panel.view.table).column_names:
        return replace(panel.view, level=panel.view.level or "site")
    return panel.view


def _shape(view: View) -> tuple[bool, View]:
    """What two panels have in common that share their rows; first, whether rows are groups."""
    if not view.by and not view.over:
        return False, View(view.table, runs=view.runs)
    if not view.over and all(isinstance(metric, _ADDED_UP) for metric in view.metrics):
        return True, replace(view, by=(), metrics=(), sort=())
    return False, replace(view, metrics=(), sort=(), over="", by=view.by if view.first else ())


def _pool(name: str, page: Page, shape: tuple[bool, View], panels: Sequence[Panel]) -> Pool:
    summed, view = shape
    asked = table(view.table)
    choices = tuple(
        dict.fromkeys(choice.column for choice in page.choices if choice.column in asked.column_names)
    )
    views = [shown_view(panel) for panel in panels]
    wanted = [column for panel in panels for column in needed(panel)]
    if summed:
        keys = dict.fromkeys([*(column for each in views for column in each.by), *choices])
        metrics: dict[str, Metric | Mean] = {each.name: each for view in views for each in view.metrics}
        view = replace(view, by=tuple(keys), metrics=tuple(metrics.values()))
        return Pool(name, view, (*keys, *metrics), choices, summed=True)
    if not any(each.by or each.over for each in views):
        levels = {each.level for each in views}
        every = any(each.types == "every" for each in views)
        view = replace(
            view, level=levels.pop() if len(levels) == 1 else None, types="every" if every else "main"
        )
    columns = dict.fromkeys([*wanted, *choices])
    return Pool(name, view, tuple(each for each in asked.column_names if each in columns), choices)


def needed(panel: Panel) -> tuple[str, ...]:
    """The columns of its own table that a panel reads."""
    view = panel.view
    own = [field for field in panel.fields if not field.table]
    found = [column for field in own for column in columns_of_entry(field)]
    found += [tile.column for tile in panel.tiles]
    found += [
        where.column for where in (*view.where, *view.first, *(w for t in panel.tiles for w in t.where))
    ]
    found += [column.lstrip("-").strip("|") for column in view.sort]
    found += [field for metric in view.metrics for field in fields_of(metric)]
    found += [*view.by, view.over, *(join.on for join in panel.joins)]
    if panel.kind in CHARTS:
        found += columns_of(panel)
    known = table(view.table).column_names
    return tuple(dict.fromkeys(column for column in [*found, "level", "processing_type"] if column in known))


def columns_of_entry(entry: Entry) -> Iterable[str]:
    """What has to be known of a row to write one of its fields."""
    yield from (each for each in (entry.column, entry.error, entry.unit, entry.per) if each)
    if entry.fixed is not None:
        yield entry.fixed[0]
    if entry.show == "verdict":
        yield from ("standing", "origin", "confirmed")


def fields_of(metric: Metric | Mean) -> tuple[str, ...]:
    """The columns that a metric reads."""
    return (metric.field,) if isinstance(metric, Mean) else metric_fields(metric)
