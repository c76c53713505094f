"""Writes results beside the visible ones and switches readers over at once."""

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from esjobs import __version__
from esjobs.core import tables
from esjobs.core.arrow import table_schema
from esjobs.core.errors import StoreError, UsageError
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.runs.tables import RUN_COUNTS, RUNS
from esjobs.store.base import Generation, JobStore, Retired

_log = logging.getLogger(__name__)

Change = Generation | Retired
"""What a publication does to one partition."""


@dataclass(frozen=True)
class Outcome:
    """What a step made, none of it visible yet, and its report.

    ``rows``: those of its run, not yet written. ``written``: what it wrote itself, or takes out of sight, in
    tables that are replaced per something else (a day, a job), one change a partition.
    """

    report: RunReport
    rows: Mapping[tables.Table, pa.Table] = field(default_factory=dict)
    written: Sequence[Change] = ()


def rows_table(table: tables.Table, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Build rows of a result table; a column that a row does not name is null, an unknown one raises."""
    listed = list(rows)
    known = set(table.column_names)
    for row in listed:
        unknown = set(row) - known
        if unknown:
            raise KeyError(f"table {table.name} has no column {sorted(unknown)[0]}")
    return pa.Table.from_pylist(listed, schema=table_schema(table))


def provenance(run: str, window: Window) -> dict[str, object]:
    """What every row of a run says of its origin; see :data:`esjobs.core.columns.PROVENANCE`."""
    return {
        "run": run,
        "window_start": window.start,
        "window_end": window.end,
        "program_version": __version__,
    }


def finite(value: Any) -> float | None:
    """A finite float, or None: the stores hold null, never NaN."""
    return float(value) if value is not None and math.isfinite(value) else None


def write(store: JobStore, run: str, outcome: Outcome) -> list[Change]:
    """Write the rows of an outcome into the partition of its run; still invisible."""
    for table in outcome.rows:
        if table.partition != "run":
            raise UsageError(
                f"'{table.name}' is replaced per {table.partition}; write it a partition at a time"
            )
    return [
        store.replace(table, run, rows.cast(table_schema(table)).to_batches())
        for table, rows in outcome.rows.items()
    ]


def record(
    store: JobStore, report: RunReport, window: Window, settings: Mapping[str, object], now: datetime
) -> list[Generation]:
    """Write the report of one step into ``runs``, and its counts and notes, a row each, into ``run_counts``.

    ``runs`` is the only table of results with the time of the clock in it.
    """
    partition = run_step(report.run, report.step)
    head = {"run_step": partition, **provenance(report.run, window), "step": report.step}
    row = {
        **head,
        "at": now,
        "seconds": report.seconds,
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "dropped": json.dumps(report.dropped),
        "counts": json.dumps(report.counts),
        "notes": json.dumps(report.notes),
        "settings": json.dumps(settings, sort_keys=True),
    }
    counts = [{**head, **count} for count in count_rows(report)]
    return [
        store.replace(table, partition, rows_table(table, rows).to_batches())
        for table, rows in ((RUNS, [row]), (RUN_COUNTS, counts))
    ]


def count_rows(report: RunReport) -> Iterator[dict[str, object]]:
    """What a report counted and remarked, a row each, in the order of the report."""
    for kind, counted in (("dropped", report.dropped), ("count", report.counts)):
        for place, (name, n) in enumerate(counted.items(), 1):
            yield {"kind": kind, "place": place, "name": name, "n": n}
    for place, note in enumerate(report.notes, 1):
        yield {"kind": "note", "place": place, "text": note}


def tidy(store: JobStore) -> None:
    """Sweep after a publication, which has succeeded even if this fails: leftovers wait for the next one."""
    try:
        store.sweep()
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
