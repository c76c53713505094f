"""Stored jobs to a file in canonical columns, which ``esjobs ingest jobs`` reads back unchanged."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from esjobs.core.errors import UsageError
from esjobs.core.fields import JOB_FIELDS
from esjobs.core.personal import NAMING, kind_of_names
from esjobs.core.query import Select
from esjobs.core.window import Window
from esjobs.records.export.jobs import ExportFormat, write_jobs
from esjobs.records.export.pseudonyms import Pseudonyms
from esjobs.records.jobs.conditions import job_filters
from esjobs.store.base import JobStore
from esjobs.store.files.destination import writing, writing_binary

_SUFFIXES: dict[str, ExportFormat] = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


def export_jobs(
    store: JobStore,
    out: str,
    *,
    form: ExportFormat | None = None,
    where: Sequence[str] = (),
    window: Window | None = None,
    spreadsheet: bool = False,
    pseudonyms: Pseudonyms | None = None,
) -> int:
    """Stream the jobs of a window to a file (``-``: standard output) and return their number.

    ``form``: ``csv``, ``jsonl`` or ``parquet``; None: by the file's suffix. ``spreadsheet``: formulas in CSV
    cells become text. ``pseudonyms`` replace the names. An existing file is replaced when the new one is
    complete.
    """
    chosen = form or _SUFFIXES.get(Path(out).suffix)
    if chosen is None:
        raise UsageError(f"cannot derive the format from '{out}'; use --format csv, jsonl or parquet")
    if spreadsheet and chosen != "csv":
        raise UsageError(f"--spreadsheet requires CSV, not {chosen}; use --format csv")
    jobs = stored_jobs(store, where, window)
    if pseudonyms is not None:
        named = tuple(each.name for each in JOB_FIELDS if kind_of_names(each) in NAMING)
        names = Select(fields=named, window=window, where=job_filters(store, where, window))
        pseudonyms.learn(store.select(names), JOB_FIELDS)
        jobs = pseudonyms.batches(jobs, JOB_FIELDS)
    with writing_binary(out, chosen) if chosen == "parquet" else writing(out) as stream:
        return write_jobs(jobs, stream, chosen, spreadsheet=spreadsheet)


def stored_jobs(
    store: JobStore, where: Sequence[str] = (), window: Window | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream stored jobs in canonical columns."""
    yield from store.select(Select(window=window, where=job_filters(store, where, window)))
