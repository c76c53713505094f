"""Stored jobs to a file in canonical columns, which ``esjobs ingest jobs`` reads back unchanged."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from esjobs.core.errors import InputError, UsageError
from esjobs.core.query import Select
from esjobs.core.window import Window
from esjobs.ingest.export import write_jobs
from esjobs.steps.conditions import job_filters
from esjobs.store.base import JobStore

_SUFFIXES = {".csv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}


def export_jobs(
    store: JobStore, out: str, *, form: str | None, where: Sequence[str] = (), window: Window | None = None
) -> int:
    """Stream the jobs of a window to a file (``-``: standard output); how many they were.

    ``form``: ``csv``, ``json`` (a line each) or ``parquet``; by the file's suffix when None.
    """
    chosen = form or _SUFFIXES.get(Path(out).suffix)
    if chosen is None:
        raise UsageError(f"cannot tell the format of '{out}'; give --format csv, json or parquet")
    select = Select(window=window, where=job_filters(store, where, window))
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in store.select(select):
            count += batch.num_rows
            yield batch

    try:
        if out == "-":
            write_jobs(counted(), sys.stdout.buffer, chosen)
        else:
            write_jobs(counted(), Path(out), chosen)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}; give a path that can be written") from error
    return count
