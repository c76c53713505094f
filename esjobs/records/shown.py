"""Rows of a result table as people ask for them."""

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arguments import ShowOptions, window_of
from esjobs.core.clock import Clock
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import Days, Filter, In
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.publish.finding import find_run, read_results
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.answer import Answer
from esjobs.records.choice import chosen_values, with_values
from esjobs.records.declared.values import declared_table
from esjobs.records.jobs import conditions as conditions_on
from esjobs.records.jobs.entered import entered_loads
from esjobs.records.names import spelling
from esjobs.records.ordering import Ordering
from esjobs.schema import catalogue
from esjobs.schema.issues import SEVERITIES
from esjobs.schema.jobs import LOADS
from esjobs.store.base import JobStore


def show_table(store: JobStore, clock: Clock, name: str, options: Mapping[str, Any]) -> Answer:
    """Return the rows of a result table that keywords (:class:`~esjobs.core.arguments.ShowOptions`) choose.

    Only the needed columns are read. Raises :class:`NoResultError` if no run has the results,
    :class:`KeywordError` for an unknown keyword, :class:`UsageError` for a column or value that the table
    lacks.
    """
    spelling.refuse_unknown_keywords(options, get_type_hints(ShowOptions))
    table = catalogue.table(name)
    order = Ordering.of(
        table, options.get("sort"), options.get("descending"), options.get("top"), options.get("columns")
    )
    chosen = chosen_values(table, options)
    within = window_of(options.get("window"), clock)
    run = options.get("run")
    found = run_of(store, table, run, within)
    columns = order.read(name for names, values in chosen.items() if values for name in names)
    rows = spelling.chosen_rows(
        table, chosen, lambda values: _rows(store, table, found or run, within, values, columns)
    )
    return Answer(order.applied(_at_least(table, rows, options.get("min_severity"))), run=found)


def run_of(store: JobStore, table: Table, run: str | None, window: Window | None) -> StoredRun | None:
    """Return the run whose rows are shown, None for a table without runs; else :class:`NoResultError`."""
    kind = catalogue.kind_of(table)
    return None if kind is None else find_run(store, kind, (table.made_by,), run, window)


def row_choice(store: JobStore, table: Table, run: str | None, window: Window | None) -> list[Filter]:
    """Filters for the rows of a run, or of a window, in the store."""
    found = run_of(store, table, run, window)
    if found is not None:
        return [In("run", (found.run,))]
    where = [] if window is None else _within(table, window)
    if run is None:
        return where
    _require_run(table)
    return [*where, In("run", (run,))]


def _rows(
    store: JobStore,
    table: Table,
    run: StoredRun | str | None,
    window: Window | None,
    chosen: spelling.Chosen,
    columns: Sequence[str],
) -> pa.Table:
    where = list(conditions_on.row_filters(table, chosen))
    # a run of a kind: one read, of its partition
    if isinstance(run, StoredRun):
        return read_results(store, table, run, where, columns)
    if run is not None:
        _require_run(table)
    if table.name == "corepower":
        return with_values(declared_table(store, window), chosen)
    if window is not None:
        where.extend(_within(table, window))
    rows = read_table(store, table, where, columns)
    if table == LOADS:
        entered = entered_loads(store, catalogue.TABLES)
        rows = pa.concat_tables([rows, entered.select(rows.column_names)])
    if run is not None:
        # runs may be named by the beginning of their id
        rows = rows.filter(pc.starts_with(rows.column("run"), run))
        if not rows.num_rows:
            raise NoResultError(f"run '{run}' not found; list runs: esjobs show runs")
    return rows.sort_by(
        [
            (name.removeprefix("-"), "descending" if name[0] == "-" else "ascending")
            for name in table.shown_order
        ]
    )


def _require_run(table: Table) -> None:
    if "run" not in table.column_names:
        raise UsageError(f"{table.name} belong to no run; omit the run")


def _at_least(table: Table, rows: pa.Table, severity: str | None) -> pa.Table:
    if severity is None:
        return rows
    if "severity" not in table.column_names:
        raise UsageError(f"table {table.name} has no severity; omit min_severity")
    if severity not in SEVERITIES:
        raise UsageError(f"unknown severity '{severity}'; use one of: {', '.join(SEVERITIES)}")
    return with_values(rows, {("severity",): SEVERITIES[SEVERITIES.index(severity) :]})


def _within(table: Table, window: Window) -> list[Filter]:
    if table.column(table.partition).type == "day":
        return [Days.of_window(window, table.partition)]
    if "day" in table.column_names:
        return [Days.of_window(window, "day")]
    if "window_start" in table.column_names:
        return [In("window_start", (window.start.isoformat(),)), In("window_end", (window.end.isoformat(),))]
    raise UsageError(f"{table.name} belong to no window; omit the window")
