"""Removal of imports."""

import time

from esjobs.core.errors import NoResultError
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.core.tables import Table
from esjobs.publish.publication import count_rows, tidy
from esjobs.store.base import Hide, JobStore


def remove_import(store: JobStore, table: Table, import_id: str, step: str) -> RunReport:
    """Remove an import. Raises :class:`NoResultError` if it does not exist."""
    began = time.perf_counter()
    # counted first: afterwards nobody sees them
    rows = count_rows(store, table, [In("import_id", (import_id,))])
    if not rows:
        raise NoResultError(
            f"import '{import_id}' not found; list imports: esjobs show {table.name} --format csv"
        )
    store.publish([Hide(table, import_id)])
    tidy(store)
    return RunReport(step, import_id, rows, 0, time.perf_counter() - began, rows_become="left")
