"""Outcomes of steps and access to result tables."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from esjobs.core import tables
from esjobs.core.arrow import table_schema
from esjobs.core.errors import PublishedError, ReopenError, StoreError
from esjobs.core.query import Count, Filter, Query
from esjobs.core.report import RunReport
from esjobs.store.base import Change, Hide, JobStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """Result of a step, not yet visible, with its report.

    ``rows``: rows of its run, not yet written. ``written``: changes of tables that are replaced per day or
    job. ``last_data``: a moment of the last day with data; None: take the window.
    """

    report: RunReport
    rows: Mapping[tables.Table, pa.Table] = field(default_factory=dict)
    written: Sequence[Change] = ()
    last_data: datetime | None = None


def rows_table(table: tables.Table, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Build rows of a result table; omitted columns are null, unknown ones raise."""
    listed = list(rows)
    allowed = set(table.column_names)
    for row in listed:
        # Arrow would drop a misspelt column silently
        unknown = set(row) - allowed
        if unknown:
            raise KeyError(f"table {table.name} has no column {sorted(unknown)[0]}")
    return pa.Table.from_pylist(listed, schema=table_schema(table))


def replaced(
    store: JobStore, table: tables.Table, partition: str, rows: Sequence[Mapping[str, object]]
) -> Change:
    """Write the rows of a partition beside the visible ones; without rows the partition is hidden."""
    if not rows:
        return Hide(table, partition)
    return store.replace(table, partition, rows_table(table, rows).to_batches())


def finite(value: Any) -> float | None:
    """Return a finite float or None: stores hold null, never NaN."""
    # NaN would compare differently in every engine
    return float(value) if value is not None and math.isfinite(value) else None


def tidy(store: JobStore) -> None:
    """Sweep after a publication; failures are logged and left to the next sweep.

    Raises :class:`PublishedError`, which a person must resolve, and :class:`ReopenError`, after which nothing
    else would work.
    """
    try:
        store.sweep()
    # both need somebody: going on would hide them behind the next error
    except (PublishedError, ReopenError):
        raise
    except StoreError as error:
        _log.warning("cleanup of old rows failed; the next step retries it: %s", error)


def run_step(run: str, step: str) -> str:
    """Return the name of a step's entry in ``runs``."""
    return f"{run}-{step}"


def read_table(
    store: JobStore, table: tables.Table, where: Sequence[object] = (), columns: Sequence[str] = ()
) -> pa.Table:
    """Read the visible rows of a table into one Arrow table."""
    schema = table_schema(table)
    if columns:
        schema = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(store.read(table, where, columns), schema=schema)  # type: ignore[arg-type]


def newest(table: tables.Table, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows that count: of those with the same key the one that was imported last."""
    kept: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["imported_at"]):
        # in order of import: later rows overwrite earlier ones
        kept[tuple(row[name] for name in table.key)] = row
    return list(kept.values())


def count_rows(store: JobStore, table: tables.Table, where: Sequence[Filter] = ()) -> int:
    """Return the number of visible rows of a table, counted by the store."""
    answer = store.aggregate(Query((), (Count("n_rows"),), where=tuple(where), over=table)).table
    return int(answer.column("n_rows")[0].as_py())
