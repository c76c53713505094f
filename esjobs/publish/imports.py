"""Removal of imports."""

import time
from collections.abc import Sequence

from esjobs.core.errors import NoResultError
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.publish.publication import count_rows, tidy
from esjobs.store.base import Hide, JobStore


def remove_import(store: JobStore, tables: Sequence[Table], import_id: str, step: str) -> RunReport:
    """Remove the rows of an import from its tables. Raises :class:`NoResultError` if it does not exist."""
    began = time.perf_counter()
    rows = {table: count_rows(store, table, [In("import_id", (import_id,))]) for table in tables}
    if not any(rows.values()):
        raise NoResultError(
            f"import '{import_id}' not found; list imports: esjobs show {tables[0].name} --format csv"
        )
    store.publish([Hide(table, import_id) for table, count in rows.items() if count])
    tidy(store)
    return RunReport(step, import_id, sum(rows.values()), 0, time.perf_counter() - began, rows_become="left")
