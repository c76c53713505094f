"""A load of files: read, stored, and what capabilities do after it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from esjobs.core.report import RunReport
from esjobs.records.context import Context
from esjobs.records.ingest.base import Source, parse_fill, settable
from esjobs.records.ingest.formats.declared_values import DeclaredValues
from esjobs.records.jobs.corepower import ingest_declared
from esjobs.records.jobs.ingest import ingest


def load_files(
    context: Context,
    source: Source,
    files: Sequence[Path],
    fill: Sequence[str] = (),
    *,
    dry_run: bool = False,
) -> RunReport:
    """Read files of a format into the store, all or none; ``fill``: ``FIELD=VALUE`` texts."""
    step = partial(ingest_declared, "ingest") if isinstance(source, DeclaredValues) else ingest
    report = step(
        lambda: context.store,
        source,
        files,
        parse_fill(fill, settable(source)),
        dry_run=dry_run,
        now=context.clock(),
        progress=context.progress,
    )
    return report if dry_run else context.ingested(report)


def import_table(context: Context, source: Source, file: Path, options: Mapping[str, object]) -> RunReport:
    """Import a small table that people keep; importing the same file again replaces its own rows only.

    ``options``: those that are None count as omitted. Raises :class:`InputError` for another format; then
    nothing is stored.
    """
    fill = {name: value for name, value in options.items() if value is not None}
    report = ingest(context.opener, source, [file], fill, now=context.clock())
    return replace(report, step=f"{source.name} import")
