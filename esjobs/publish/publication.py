"""Writes results beside the visible ones and switches readers over at once."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from esjobs.core import tables
from esjobs.core.arrow import table_schema
from esjobs.core.errors import PublishedError, StoreError
from esjobs.core.query import Count, Filter, Query
from esjobs.core.report import RunReport
from esjobs.store.base import Change, JobStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What a step made, none of it visible yet, and its report.

    ``rows``: those of its run, not yet written. ``written``: what it wrote itself, or takes out of sight, in
    tables that are replaced per something else (a day, a job), one change a partition. ``last_data``: a
    moment of the last day that it has data of; None: its window may be taken for that.
    """

    report: RunReport
    rows: Mapping[tables.Table, pa.Table] = field(default_factory=dict)
    written: Sequence[Change] = ()
    last_data: datetime | None = None


def rows_table(table: tables.Table, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Build rows of a result table; a column that a row does not name is null, an unknown one raises."""
    listed = list(rows)
    known = set(table.column_names)
    for row in listed:
        unknown = set(row) - known
        if unknown:
            raise KeyError(f"table {table.name} has no column {sorted(unknown)[0]}")
    return pa.Table.from_pylist(listed, schema=table_schema(table))


def finite(value: Any) -> float | None:
    """A finite float, or None: the stores hold null, never NaN."""
    return float(value) if value is not None and math.isfinite(value) else None


def tidy(store: JobStore) -> None:
    """Sweep after a publication, which has succeeded even if this fails: leftovers wait for the next one.

    Raises :class:`PublishedError`: that does not pass, and somebody has to put it right.
    """
    try:
        store.sweep()
    except PublishedError:
        raise
    except StoreError as error:
        _log.warning("what no reader sees any more was not deleted, the next step will: %s", error)


def run_step(run: str, step: str) -> str:
    """The name of the entry that a step of a run has in ``runs``."""
    return f"{run}-{step}"


def read_table(
    store: JobStore, table: tables.Table, where: Sequence[object] = (), columns: Sequence[str] = ()
) -> pa.Table:
    """Read the visible rows of a table into one Arrow table; right schema also when there are none."""
    schema = table_schema(table)
    if columns:
        schema = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(store.read(table, where, columns), schema=schema)  # type: ignore[arg-type]


def count_rows(store: JobStore, table: tables.Table, where: Sequence[Filter] = ()) -> int:
    """How many visible rows a table has; counted by the store, no row is read."""
    answer = store.aggregate(Query((), (Count("n_rows"),), where=tuple(where), over=table)).table
    return int(answer.column("n_rows")[0].as_py())
