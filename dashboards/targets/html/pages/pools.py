"""Rows of a page, read once for all panels that share them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dashboards.spec import JOBS, Entry, JobsIndex, Mean, Page, Panel, View, Where, has_levels, lacking, table
from dashboards.targets.vegalite.charts import CHARTS
from dashboards.targets.vegalite.marks import columns_of
from dashboards.view.rows import Row, keeps
from esjobs.core.query import (
    Count,
    Maximum,
    Metric,
    Minimum,
    Moment,
    Sum,
    SumProduct,
    SumWhere,
    metric_fields,
)

# Groups that are kept for the panels of a page that are about the same rows; see ``pools_of``
MOST_GROUPS = 60_000

# Metrics that can be made of those of smaller groups
_ADDED_UP = (Sum, SumProduct, SumWhere, Count, Moment, Minimum, Maximum)

ALL = "n_all"  # The number of jobs of a group, whatever is known of them


def counted(column: str) -> str:
    """The name of the number of jobs of which a column is known."""
    return f"n_{column}"


class Reader(Protocol):
    """Gives rows as a store holds them now: of the latest run, unless a view is about every run."""

    def rows(self, view: View, columns: Sequence[str]) -> list[Row]:
        """The rows of a view as they are, with some columns; with ``first``, those of its groups."""

    def groups(self, view: View, most: int | None = None) -> list[Row] | None:
        """The groups of a view; None when there are more than ``most``."""


@dataclass(frozen=True)
class Pool:
    """Rows that several panels share.

    ``name``: its name among the pools of a page. ``view``: what is asked. ``columns``: what is kept of each
    row. ``choices``: the columns by which a reader may filter, each with the one that holds it here.
    ``summed``: whether the rows are groups, the smallest that a reader can choose. ``unchosen``: so many of
    the rows, the last, do not meet the choices on which a page opens.
    """

    name: str
    view: View
    columns: tuple[str, ...]
    choices: tuple[tuple[str, str], ...]
    summed: bool = False
    unchosen: int = 0
    rows: list[Row] = field(default_factory=list, compare=False, repr=False)

    def kept(self, rows: list[Row]) -> list[Row]:
        """Some of its rows without groups of which a panel wants none, whatever a reader chooses of them."""
        if not self.view.first:
            return rows
        wanted = {_key(self.view, row) for row in rows if keeps(row, self.view.first)}
        return [row for row in rows if _key(self.view, row) in wanted]


def _key(view: View, row: Row) -> tuple[object, ...]:
    return tuple(row[column] for column in view.by)


def pools_of(page: Page, reader: Reader, jobs: JobsIndex) -> tuple[tuple[Pool, ...], dict[str, Pool]]:
    """The pools of a page with their rows, and that of each panel that is about rows, by its id.

    Groups that are too many together are made for each panel alone; of those that are too many still, the
    last filters of the page are given up, one by one, which the page then says. A panel on jobs that their
    index cannot answer has no pool.
    """
    by_shape: dict[tuple[object, ...], list[Panel]] = {}
    for placed in page.places:
        panel = placed.panel
        if panel.view.table and not (panel.view.table == JOBS.name and lacking(panel, jobs)):
            by_shape.setdefault(_shape(panel), []).append(panel)
    found: list[Pool] = []
    of_panel: dict[str, Pool] = {}
    for panels in by_shape.values():
        for part in _read(page, panels, reader, jobs):
            pool = part[1]
            named = replace(pool, name=f"{pool.view.table}-{len(found)}", rows=in_order(pool.rows))
            found.append(named)
            of_panel |= {panel.id: named for panel in part[0]}
    return tuple(found), of_panel


def in_order(rows: list[Row]) -> list[Row]:
    """Rows in an order of their own: a store gives them in any, and the same rows are the same files."""
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row.values()])


def shown_view(panel: Panel) -> View:
    """The rows that a panel shows; a chart that is about every level shows queues, as in every target."""
    if panel.kind in CHARTS and has_levels(panel.view.table):
        return replace(panel.view, level=panel.view.level or "queue")
    return panel.view


def _is_summed(view: View) -> bool:
    """True if the rows of a view are groups; jobs always are."""
    if view.table == JOBS.name:
        return True
    return bool(view.by) and not view.over and all(isinstance(each, _ADDED_UP) for each in view.metrics)


def _shape(panel: Panel) -> tuple[object, ...]:
    """Return the key of panels that share rows."""
    view = shown_view(panel)
    if panel.kind == "coverage":
        return ("coverage", panel.id)
    if _is_summed(view):
        return ("groups", replace(view, by=(), metrics=(), sort=()))
    if view.by or view.over:
        bare = replace(view, metrics=(), sort=(), over="", by=view.by if view.first else ())
        return ("history", bare)
    return ("first", view) if view.most else ("rows", View(view.table, runs=view.runs))


def _read(
    page: Page, panels: Sequence[Panel], reader: Reader, jobs: JobsIndex
) -> Iterator[tuple[Sequence[Panel], Pool]]:
    """The pool of panels of one shape, or several where their groups are too many."""
    views = [shown_view(panel) for panel in panels]
    choices = chosen_by(page, views[0], jobs)
    if panels[0].kind == "coverage":
        yield panels, _covered(panels[0], choices, reader)
    elif not _is_summed(views[0]):
        pool = _plain(panels, views, choices)
        yield panels, replace(pool, rows=reader.rows(pool.view, pool.columns))
    elif (together := _summed(views, choices, reader, MOST_GROUPS)) is not None:
        yield panels, together
    else:
        for panel, view in zip(panels, views, strict=True):
            yield [panel], _fewer(view, choices, reader)


def _fewer(view: View, choices: tuple[tuple[str, str], ...], reader: Reader) -> Pool:
    """The groups of one panel by as many filters as there is room for."""
    for some in range(len(choices), -1, -1):
        most = MOST_GROUPS if some else None
        if (pool := _summed([view], choices[:some], reader, most)) is not None:
            return pool
    raise LookupError(f"the groups of '{view.table}' are missing")


def _summed(
    views: Sequence[View], choices: tuple[tuple[str, str], ...], reader: Reader, most: int | None
) -> Pool | None:
    keys = dict.fromkeys([*(column for view in views for column in view.by), *(own for _, own in choices)])
    metrics: dict[str, Metric | Mean] = {}
    for each in (each for view in views for each in view.metrics):
        # one column of a pool cannot be two sums
        if metrics.setdefault(each.name, each) != each:
            raise ValueError(
                f"panels that share their rows have two metrics '{each.name}'; use different names"
            )
    query = replace(views[0], by=tuple(keys), metrics=tuple(metrics.values()), sort=())
    rows = reader.groups(query, most)
    if rows is None:
        return None
    over = [query.over] if query.over else []
    return Pool("", query, (*keys, *over, *metrics), choices, summed=True, rows=rows)


def _covered(panel: Panel, choices: tuple[tuple[str, str], ...], reader: Reader) -> Pool:
    """Return the number of jobs per smallest group, and of those with each field."""
    for some in range(len(choices), -1, -1):
        kept = choices[:some]
        keys = tuple(dict.fromkeys(own for _, own in kept))
        view = replace(panel.view, by=keys, metrics=(Count(ALL),), sort=())
        every = reader.groups(view, MOST_GROUPS if kept else None)
        if every is not None:
            rows = _with_counts(panel, view, every, reader)
            return Pool("", view, (*keys, ALL), kept, summed=True, rows=rows)
    raise LookupError(f"the groups of '{panel.id}' are missing")


def _with_counts(panel: Panel, view: View, every: Sequence[Row], reader: Reader) -> list[Row]:
    """The groups with the number of jobs that have each field of the panel."""
    rows = {_key(view, row): row for row in every}
    for entry in panel.fields:
        name = counted(entry.column)
        present = replace(view, where=(*view.where, Where(entry.column)), metrics=(Count(name),))
        found = {_key(view, row): row for row in reader.groups(present) or []}
        for group, row in rows.items():
            # no job of the group has it
            row[name] = found.get(group, {}).get(name, 0)
    return list(rows.values())


def _plain(panels: Sequence[Panel], views: Sequence[View], choices: tuple[tuple[str, str], ...]) -> Pool:
    """Rows as they are; of history those of one panel, of the latest run those of several."""
    wanted = [column for panel in panels for column in needed(panel)]
    columns = dict.fromkeys([*wanted, *(own for _, own in choices)])
    names = table(views[0].table).column_names
    return Pool("", _together(views), tuple(each for each in names if each in columns), choices)


def _together(views: Sequence[View]) -> View:
    """The view whose rows serve all of some views of one table."""
    view = views[0]
    if view.most:
        # as it is: what is not among the first is nowhere
        return view
    if any(each.by or each.over for each in views):
        return replace(view, metrics=(), sort=(), over="", by=view.by if view.first else ())
    levels = {each.level for each in views}
    every = any(each.types == "every" for each in views)
    level = levels.pop() if len(levels) == 1 else None
    return View(view.table, runs=view.runs, level=level, types="every" if every else "main")


def chosen_by(page: Page, view: View, jobs: JobsIndex) -> tuple[tuple[str, str], ...]:
    """The columns of the choices of a page that rows of a view have, each with its name there.

    What most results call ``name``, jobs call ``queue``; an index of jobs may lack some.
    """
    found: dict[str, str] = {}
    rows = table(view.table)
    names = rows.column_names
    for choice in page.choices:
        column = rows.named if choice.column == "name" else choice.column
        if view.table == JOBS.name and not (jobs.columns.get(column) and jobs.columns[column].names):
            continue
        if column in names:
            found[choice.column] = column
    return tuple(found.items())


def needed(panel: Panel) -> tuple[str, ...]:
    """The columns of its own table that a panel reads."""
    found = {*_named_in(panel), "level", "processing_type"}
    # an id is one of its source
    if "job_id" in found:
        found.add("source")
    return tuple(name for name in table(panel.view.table).column_names if name in found)


def _named_in(panel: Panel) -> Iterator[str]:
    """Yield columns that fields, tiles, conditions, order and sums of a panel name."""
    view = panel.view
    for entry in panel.fields:
        if not entry.table:
            yield from columns_of_entry(entry)
    for tile in panel.tiles:
        yield from (tile.column, *(where.column for where in tile.where))
    yield from (where.column for where in (*view.where, *view.first))
    yield from (column.lstrip("-").strip("|") for column in view.sort)
    for metric in view.metrics:
        yield from fields_of(metric)
    yield from (*view.by, view.over, *(join.on for join in panel.joins))
    if panel.kind in CHARTS:
        yield from columns_of(panel)


def columns_of_entry(entry: Entry) -> Iterable[str]:
    """Return the columns that one of its fields is written from."""
    yield from (each for each in (entry.column, entry.error, entry.unit, entry.per) if each)
    if entry.fixed is not None:
        yield entry.fixed[0]
    if entry.show == "verdict":
        yield from ("status_shown", "origin", "confirmed")


def fields_of(metric: Metric | Mean) -> tuple[str, ...]:
    """The columns that a metric reads."""
    return (metric.field,) if isinstance(metric, Mean) else metric_fields(metric)
