"""Loads that brought nothing but rows that people enter: the rows themselves are their account."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from esjobs.core.tables import LOAD_TIMES, Table
from esjobs.publish.publication import read_table, rows_table
from esjobs.schema.jobs import LOADS
from esjobs.store.base import JobStore


def entered_loads(store: JobStore, tables: Iterable[Table]) -> pa.Table:
    """Return a row of ``loads`` for each load of an entered table; ``stored``: its present rows."""
    loads: dict[tuple[str, str], dict[str, Any]] = {}
    for table in tables:
        if not table.entered or table.load_column is None:
            continue
        moment = next((name for name in LOAD_TIMES if name in table.column_names), None)
        columns = [table.load_column, *(name for name in (moment, "source") if name in table.column_names)]
        for row in read_table(store, table, columns=columns).to_pylist():
            load = loads.setdefault((table.name, row[table.load_column]), _load(table, row, moment))
            load["stored"] += 1
    return rows_table(LOADS, loads.values())


def _load(table: Table, row: Mapping[str, Any], moment: str | None) -> dict[str, Any]:
    return {
        "load_id": row[table.load_column or ""],
        "state": "complete",
        "format": table.name,
        "files": row.get("source"),
        "stored": 0,
        "loaded_at": None if moment is None else row[moment],
    }
