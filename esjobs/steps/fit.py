"""Buckets to speed factors: one fit per level, processing type and method."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from esjobs import __version__
from esjobs.core import tables
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.settings import LEVELS, FitSettings
from esjobs.steps.factors import Fit, solve
from esjobs.steps.fit_input import fit_input, processing_types
from esjobs.steps.fit_rows import component_rows, factor_rows, fit_rows
from esjobs.steps.publication import Outcome, rows_table


def fit(buckets: pa.Table, window: Window, run: str, settings: FitSettings) -> tuple[list[Fit], Outcome]:
    """Fit every level, processing type and method from the buckets of a window.

    Returns the fits and their rows for ``factors``, ``fits`` and ``components``.
    """
    began = time.perf_counter()
    fits = [
        solve(fit_input(buckets, level, kind), method, settings.min_bucket_jobs)
        for level in LEVELS
        for kind in processing_types(buckets)
        for method in settings.methods
    ]
    stamp = {
        "run": run,
        "window_start": window.start,
        "window_end": window.end,
        "program_version": __version__,
    }
    rows = {
        tables.FACTORS: rows_table(tables.FACTORS, _stamped(stamp, fits, factor_rows)),
        tables.FITS: rows_table(tables.FITS, _stamped(stamp, fits, fit_rows)),
        tables.COMPONENTS: rows_table(tables.COMPONENTS, _stamped(stamp, fits, component_rows)),
    }
    with_factor = sum(int((item.factors.status == "ok").sum()) for item in fits)
    report = RunReport(
        "fit",
        run,
        buckets.num_rows,
        rows[tables.FACTORS].num_rows,
        time.perf_counter() - began,
        rows_are="buckets",
        rows_become="factors",
        counts={
            "fits": len(fits),
            "factors": with_factor,
            "names without a factor": rows[tables.FACTORS].num_rows - with_factor,
        },
        notes=tuple(_notes(fits)),
        window=str(window),
    )
    return fits, Outcome(report, rows)


def _notes(fits: Sequence[Fit]) -> Iterator[str]:
    for item in fits:
        if item.data.level == "cpu_model" and item.data.processing_type == "all" and not len(item.data):
            yield "no record names a CPU model, so no CPU model has a factor"
            return


def _stamped(stamp: Mapping[str, object], fits: Sequence[Fit], rows_of: Any) -> Iterator[dict[str, object]]:
    for item in fits:
        head = {
            **stamp,
            "level": item.data.level,
            "processing_type": item.data.processing_type,
            "method": item.factors.method,
        }
        for row in rows_of(item):
            yield {**head, **row}
