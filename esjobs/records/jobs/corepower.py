"""Declared values into the store, the way of every source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from esjobs.core.query import Count
from esjobs.core.report import RunReport
from esjobs.records.declared.imports import account
from esjobs.records.ingest.base import Source
from esjobs.records.ingest.formats.corepower import COREPOWER_TABLE
from esjobs.records.ingest.formats.cric import CRIC_QUEUES
from esjobs.records.jobs.ingest import ingest
from esjobs.records.jobs.reading import Progress
from esjobs.records.jobs.resolution import aggregate
from esjobs.store.base import JobStore


def import_corepower(
    open_store: Callable[[], JobStore],
    path: Path,
    *,
    form: str,
    benchmark: str | None,
    level: str | None,
    valid_from: str | None,
    now: datetime,
) -> RunReport:
    """Read a file of declared values and store it; importing it again replaces its own rows only.

    ``form``: ``csv`` or ``cric``; the other options fill in what the file does not say. The store is opened
    when the file has been read. Raises :class:`InputError` naming file, line and column; then nothing is
    stored.
    """
    source = replace(CRIC_QUEUES if form == "cric" else COREPOWER_TABLE, written="--{} {}")
    options = {"benchmark": benchmark, "level": level, "valid_from": valid_from}
    fill: dict[str, object] = {name: value for name, value in options.items() if value is not None}
    return ingest_declared("corepower import", open_store, source, [path], fill, now=now)


def ingest_declared(
    step: str,
    open_store: Callable[[], JobStore],
    source: Source,
    paths: Sequence[Path],
    fill: Mapping[str, object],
    *,
    dry_run: bool = False,
    now: datetime,
    progress: Progress | None = None,
) -> RunReport:
    """Ingest declared values; the report of ``step`` also says what they mean."""
    stores: list[JobStore] = []

    def opened() -> JobStore:
        # kept for the account; ingest opens the store only when the file has been read
        stores.append(open_store())
        return stores[0]

    report = ingest(opened, source, paths, fill, dry_run=dry_run, now=now, progress=progress)
    if dry_run:
        return report

    def names_of_jobs(level: str) -> set[str]:
        names = aggregate(stores[0], (level,), (Count(),), books=False).table.column(level).to_pylist()
        return {name for name in names if name}

    return account(step, stores[0], report, names_of_jobs)
