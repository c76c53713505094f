"""Reference tables into the store, the way of every source."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from esjobs.core.report import RunReport
from esjobs.records.ingest.base import Source
from esjobs.records.jobs.ingest import ingest
from esjobs.store.base import JobStore


def import_references(
    open_store: Callable[[], JobStore], source: Source, path: Path, *, now: datetime
) -> RunReport:
    """Read a reference table and store its rows; importing it again replaces its own rows only.

    Raises :class:`InputError` if it is not a table of this form; then nothing is stored.
    """
    report = ingest(open_store, source, [path], {}, now=now)
    return replace(report, step="reference import", rows_become="scores")
