"""Stored jobs to a file in canonical columns, which ``esjobs ingest jobs`` reads back unchanged."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from esjobs.core.errors import InputError, UsageError
from esjobs.core.query import Select
from esjobs.core.window import Window
from esjobs.ingest.export import ExportFormat, write_jobs
from esjobs.steps.conditions import job_filters
from esjobs.store.base import JobStore

_SUFFIXES: dict[str, ExportFormat] = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


def export_jobs(
    store: JobStore,
    out: str,
    *,
    form: ExportFormat | None = None,
    where: Sequence[str] = (),
    window: Window | None = None,
) -> int:
    """Stream the jobs of a window to a file (``-``: standard output); how many they were.

    ``form``: ``csv``, ``jsonl`` (an object a line) or ``parquet``; by the file's suffix when None.
    """
    chosen = form or _SUFFIXES.get(Path(out).suffix)
    if chosen is None:
        raise UsageError(f"cannot tell the format of '{out}'; give --format csv, jsonl or parquet")
    batches = stored_jobs(store, where, window)
    try:
        return write_jobs(batches, sys.stdout.buffer if out == "-" else Path(out), chosen)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "standard output" if out == "-" else out
        raise InputError(
            f"cannot write {where}: {error.strerror}; give a path that can be written"
        ) from error


def stored_jobs(
    store: JobStore, where: Sequence[str] = (), window: Window | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream stored jobs in canonical columns."""
    yield from store.select(Select(window=window, where=job_filters(store, where, window)))
