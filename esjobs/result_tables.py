"""The result tables of a store as frames: one method for each of them, and ``show`` for any."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from esjobs import capabilities
from esjobs.arguments import Names, WindowLike, listed, window_of
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import Days, Filter, In
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, VERDICTS
from esjobs.output.frames import frame_of
from esjobs.runs.kinds import Kind
from esjobs.store.base import JobStore

if TYPE_CHECKING:
    import pandas as pd

    from esjobs.runs.finding import StoredRun


class Filters(TypedDict, total=False):
    """How :meth:`Session.show` narrows a result table; one value or several each, None as if left out."""

    level: Names | None
    type: Names | None
    name: Names | None
    site: Names | None
    method: Names | None
    run: str | None
    window: WindowLike


_COLUMNS = {
    "level": "level",
    "type": "processing_type",
    "name": "name",
    "site": "rc_site",
    "method": "method",
}
"""Keyword of a filter to the column that it chooses by."""


class ResultTables:
    """What a session gives of its results; every table of the catalogue is a method: ``s.flags(...)``."""

    if TYPE_CHECKING:

        @property
        def store(self) -> JobStore:
            """The store that is read."""

        def __getattr__(self, name: str) -> Callable[..., "pd.DataFrame"]: ...

    def verdicts(self, **filters: Unpack[Filters]) -> "pd.DataFrame":
        """The headline: verdicts of the queues, all types together, by the headline method.

        What may be sent comes first, the largest deviation first. Filters as in :meth:`show`: ``level``,
        ``type`` and ``method`` name others.
        """
        run = self.run_shown("flags", run=filters.get("run"), window=filters.get("window"))
        chosen: Filters = {"level": "site", "type": ALL_TYPES}
        if run is not None and run.headline is not None:
            chosen["method"] = run.headline
        chosen.update(filters)
        flags = self.show("flags", **chosen)
        ranks = flags["verdict"].map(VERDICTS.index)
        order = flags.assign(
            _sent=~flags["confirmed"].fillna(False).astype(bool), _rank=ranks, _size=-flags["deviation"].abs()
        )
        return flags.loc[order.sort_values(["_sent", "_rank", "_size", "name"]).index].reset_index(drop=True)

    def show(self, what: str, **filters: Unpack[Filters]) -> "pd.DataFrame":
        """The rows of a result table, those of the latest run that has them unless ``run`` names another.

        The latest run is that of the newest window; a restricted run (``tasks``, ``where``) counts only where
        there is no other. :meth:`run_shown` says which one it is.

        ``level``, ``type``, ``name``, ``method``, and ``site``, the WLCG site behind a queue: one value or
        several; only tables with such columns take them. Upper and lower case of a value do not matter where
        only one is meant. Buckets, days, loads, rejects, runs and corepower belong to no run: all visible
        rows are given, buckets and days of the window, runs of the run and of exactly the window; where these
        mean nothing they are refused.

        Raises :class:`NoResultError` when no run has the results, :class:`KeywordError` (a TypeError) for an
        unknown filter, and :class:`UsageError` for a value that no row has; both name what is close.
        """
        from esjobs.names import spelling

        spelling.refuse_unknown_keywords(filters, Filters.__annotations__)
        table = capabilities.table(what)
        given: Mapping[str, Any] = filters
        chosen = {column: _chosen(keyword, given.get(keyword)) for keyword, column in _COLUMNS.items()}
        within = window_of(filters.get("window"))
        return frame_of(
            spelling.chosen_rows(
                table, chosen, lambda values: self._rows(table, filters.get("run"), within, values)
            )
        )

    def _rows(
        self,
        table: Table,
        run: str | None,
        window: Window | None,
        chosen: Mapping[str, Sequence[str]],
    ) -> pa.Table:
        """The rows of a result table that have the chosen values, in the order in which they are shown."""
        from esjobs.declared.values import declared_table
        from esjobs.jobs import conditions
        from esjobs.runs.finding import read_results
        from esjobs.runs.publication import read_table

        where = list(conditions.row_filters(table, chosen))
        kind = capabilities.kind_of(table)
        if kind is not None:
            return read_results(self.store, table, self._find(kind, table, run, window), where)
        if run is not None and "run" not in table.column_names:
            raise UsageError(f"{table.name} belong to no run; leave the run out")
        if table.name == "corepower":
            rows = declared_table(self.store, window)
            for column, values in chosen.items():
                rows = rows.filter(pc.is_in(rows.column(column), pa.array(values, pa.string())))
            return rows
        if window is not None:
            where.extend(_within(table, window))
        rows = read_table(self.store, table, where)
        if run is not None:
            rows = rows.filter(pc.starts_with(rows.column("run"), run))
            if not rows.num_rows:
                raise NoResultError(f"no run '{run}'; list them with: esjobs show runs")
        order = table.order or table.column_names[:6]
        return rows.sort_by(
            [(name.removeprefix("-"), "descending" if name[0] == "-" else "ascending") for name in order]
        )

    def _chosen_rows(self, table: Table, run: str | None, window: Window | None) -> list[Filter]:
        """What chooses the rows of a run, or of a window, in the store."""
        kind = capabilities.kind_of(table)
        if kind is not None:
            return [In("run", (self._find(kind, table, run, window).run,))]
        where = [] if window is None else _within(table, window)
        if run is None:
            return where
        if "run" not in table.column_names:
            raise UsageError(f"{table.name} belong to no run; leave the run out")
        return [*where, In("run", (run,))]

    def run_shown(
        self, what: str, *, run: str | None = None, window: WindowLike = None
    ) -> "StoredRun | None":
        """The run whose rows :meth:`show` gives; None for tables that belong to no run.

        Raises :class:`NoResultError` when no run has the results.
        """
        table = capabilities.table(what)
        kind = capabilities.kind_of(table)
        within = window_of(window)
        return None if kind is None else self._find(kind, table, run, within)

    def _find(self, kind: Kind, table: Table, run: str | None, window: Window | None) -> "StoredRun":
        from esjobs.runs.finding import find_run

        return find_run(self.store, kind, (table.made_by,), run, window)


def _within(table: Table, window: Window) -> list[Filter]:
    if table.partition == "day":
        return [Days.of_window(window)]
    if "window_start" in table.column_names:
        return [In("window_start", (window.start.isoformat(),)), In("window_end", (window.end.isoformat(),))]
    raise UsageError(f"{table.name} belong to no window; leave the window out")


def _chosen(keyword: str, values: Names | None) -> tuple[str, ...]:
    """The values of a filter; None, as a wrapper passes it on, is the same as leaving the filter out."""
    chosen = () if values is None else listed(values)
    if values is not None and not chosen:
        # left out, it would show every row to someone who asked for none
        raise UsageError(f"no {keyword} is given to choose rows by; leave {keyword} out for every row")
    return chosen


def _reader(table: Table) -> Callable[..., Any]:
    """The method that shows a table."""

    def read(self: ResultTables, **filters: Unpack[Filters]) -> "pd.DataFrame":
        return self.show(table.name, **filters)

    read.__name__ = read.__qualname__ = table.name
    read.__doc__ = f"{table.meaning[0].upper()}{table.meaning[1:]}; filters as in :meth:`show`."
    return read


for _table in capabilities.TABLES:
    setattr(ResultTables, _table.name, _reader(_table))
