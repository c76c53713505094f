"""A load of files: read, stored, and what capabilities do after it."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from esjobs.core.report import RunReport
from esjobs.records.clusters.settings import ClustersSettings
from esjobs.records.context import Context
from esjobs.records.ingest.base import Source, parse_fill, settable, with_map
from esjobs.records.ingest.formats.declared_values import DeclaredValues
from esjobs.records.ingest.formats.naming import with_applications
from esjobs.records.jobs.corepower import ingest_declared
from esjobs.records.jobs.ingest import ingest


def prepared(context: Context, source: Source, mapping: str | Path | None = None) -> Source:
    """Return a source with a map of columns and metrics, and the table of applications of the settings."""
    if mapping is not None:
        source = with_map(source, Path(mapping))
    with suppress(LookupError):  # settings without this section
        if table := context.settings.section(ClustersSettings).applications:
            source = with_applications(source, table)
    return source


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
        *(context.opener, source, files, parse_fill(fill, settable(source))),
        dry_run=dry_run,
        now=context.clock(),
        progress=context.progress,
    )
    return report if dry_run else context.ingested(report)
