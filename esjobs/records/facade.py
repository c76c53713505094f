"""Loads of records in a session: what ``s.ingest``, ``s.undo`` and ``s.declared`` do."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esjobs.core.arguments import paths
from esjobs.core.errors import UsageError
from esjobs.core.report import RunReport
from esjobs.records.context import Facade
from esjobs.schema.catalogue import TABLES
from esjobs.schema.declared import COREPOWER
from esjobs.schema.references import REFERENCES
from esjobs.store.checks import writes

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from esjobs.records.ingest.base import Source


class Records(Facade):
    """Loads of job records."""

    @writes
    def ingest(
        self,
        form: str | None,
        files: "str | Path | Sequence[str | Path] | pd.DataFrame | pa.Table",
        *,
        source: "Source | None",
        fill: Sequence[str] | Mapping[str, object],
        dry_run: bool,
        mapping: "str | Path | None" = None,
    ) -> RunReport:
        """Load files of a format: :meth:`Session.ingest`."""
        from esjobs.records.ingest.base import require_source
        from esjobs.records.ingest.formats import sources
        from esjobs.records.ingest.frames import as_file, is_frame
        from esjobs.records.loading import load_files, prepared

        if (form is None) == (source is None):
            raise UsageError("specify either a format or a source, for example s.ingest('panda', files)")
        chosen = sources.source(form) if form is not None else require_source(source)
        chosen = prepared(self._context, chosen, mapping)
        pairs = [f"{name}={value}" for name, value in fill.items()] if isinstance(fill, Mapping) else fill
        # rows in memory are read as a Parquet file, the way of all rows
        named: AbstractContextManager[Any] = as_file(files) if is_frame(files) else nullcontext(files)
        with named as named_files:
            return load_files(self._context, chosen, paths(named_files), pairs, dry_run=dry_run)

    @writes
    def undo(self, load: str) -> RunReport:
        """Undo a load: :meth:`Session.undo`."""
        from esjobs.records.jobs.undo import undo

        return self._context.ingested(undo(self._context.store, load, TABLES))


class Declared(Facade):
    """Declared benchmark scores and reference scores of CPU models: ``s.declared``."""

    @writes
    def import_values(
        self,
        file: str | Path,
        *,
        form: str = "csv",
        benchmark: str | None = None,
        level: str | None = None,
        valid_from: str | None = None,
    ) -> RunReport:
        """Import declared values by queue, site or CPU model, from a CSV table or from CRIC (``cric``)."""
        from esjobs.records.jobs.corepower import import_corepower

        return import_corepower(
            self._context.opener,
            Path(file),
            form=form,
            benchmark=benchmark,
            level=level,
            valid_from=valid_from,
            now=self._context.clock(),
        )

    @writes
    def remove(self, import_id: str) -> RunReport:
        """Remove an import of declared values. Raises :class:`NoResultError` for an unknown import."""
        from esjobs.publish.imports import remove_import

        return remove_import(self._context.store, COREPOWER, import_id, "corepower remove")

    @writes
    def import_references(self, file: str | Path, *, form: str) -> RunReport:
        """Import published scores of CPU models; :class:`UsageError` for an unknown form."""
        from esjobs.records.ingest.formats.sources import REFERENCE_SOURCES
        from esjobs.records.jobs.ingest import ingest

        for source in REFERENCE_SOURCES:
            if source.name == form:
                report = ingest(self._context.opener, source, [Path(file)], {}, now=self._context.clock())
                return replace(report, step="reference import", rows_become="scores")
        forms = ", ".join(source.name for source in REFERENCE_SOURCES)
        raise UsageError(f"unknown reference format '{form}'; use one of: {forms}")

    @writes
    def remove_references(self, import_id: str) -> RunReport:
        """Remove an import of reference scores. Raises :class:`NoResultError` for an unknown import."""
        from esjobs.publish.imports import remove_import

        return remove_import(self._context.store, REFERENCES, import_id, "reference remove")
