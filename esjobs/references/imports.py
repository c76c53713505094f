"""Taking an import of reference scores back."""

import time

from esjobs.core.errors import NoResultError
from esjobs.core.query import In
from esjobs.core.report import RunReport
from esjobs.references.tables import REFERENCES
from esjobs.runs.publication import count_rows, tidy
from esjobs.store.base import JobStore, Retired


def remove_references(store: JobStore, import_id: str) -> RunReport:
    """Take an import back; :class:`NoResultError` when there is no such import."""
    began = time.perf_counter()
    rows = count_rows(store, REFERENCES, [In("import_id", (import_id,))])
    if not rows:
        raise NoResultError(f"no import '{import_id}'; see: esjobs show references --format csv")
    store.publish([Retired(REFERENCES, import_id)])
    tidy(store)
    return RunReport("reference remove", import_id, rows, 0, time.perf_counter() - began, rows_become="left")
