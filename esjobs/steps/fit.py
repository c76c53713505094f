"""Buckets to speed factors: one fit per level, processing type and method."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

import fitters
from esjobs import __version__
from esjobs.core import tables
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, LEVELS
from esjobs.settings import FitSettings
from esjobs.steps.factors import Fit, solve, with_company
from esjobs.steps.fit_input import FitInput, fit_input, fixed_costs, processing_types, unit_sums
from esjobs.steps.fit_rows import component_rows, factor_rows, fit_rows
from esjobs.steps.mixed_tasks import MAX_JOBS_READ, CheckedBuckets
from esjobs.steps.publication import Outcome, rows_table
from esjobs.steps.residual_rows import residual_rows
from esjobs.steps.task_rows import task_rows

Costs = Mapping[str, fitters.FixedCosts | None]
"""By level; None where nothing has a name."""


def fit(
    checked: CheckedBuckets,
    window: Window,
    run: str,
    settings: FitSettings,
    imported_sites: Mapping[str, str],
) -> tuple[list[Fit], Outcome]:
    """Fit every level, processing type and method from the buckets of a window.

    ``imported_sites``: queue -> WLCG site, as imported tables name it; it stands beside factors, enters no
    fit. Returns the fits and their rows for ``factors``, ``fits``, ``components``, ``tasks``, ``residuals``.
    """
    began = time.perf_counter()
    minimum = settings.min_bucket_jobs
    buckets = checked.buckets
    costs = costs_by_level(buckets, minimum)
    fits = [
        with_company(solve(data, method, minimum))
        for data in fit_inputs(buckets, costs)
        for method in settings.methods
    ]
    shown = [
        item
        for item in fits
        if (item.data.processing_type, item.factors.method) == (ALL_TYPES, settings.methods[0])
    ]
    tasks = task_rows(unit_sums(buckets, "site"), costs["site"], checked.looked_at, minimum)
    stamp = {
        "run": run,
        "window_start": window.start,
        "window_end": window.end,
        "program_version": __version__,
    }
    with_site = partial(factor_rows, imported_sites=imported_sites)
    rows = {
        tables.FACTORS: rows_table(tables.FACTORS, _stamped(stamp, fits, with_site)),
        tables.FITS: rows_table(tables.FITS, _stamped(stamp, fits, fit_rows)),
        tables.COMPONENTS: rows_table(tables.COMPONENTS, _stamped(stamp, fits, component_rows)),
        tables.TASK_RESULTS: rows_table(tables.TASK_RESULTS, ({**stamp, **row} for row in tasks)),
        tables.RESIDUALS: rows_table(
            tables.RESIDUALS, _stamped(stamp, shown, residual_rows, ("level", "method"))
        ),
    }
    with_factor = sum(int((item.factors.status == "ok").sum()) for item in fits)
    report = RunReport(
        "fit",
        run,
        buckets.num_rows,
        rows[tables.FACTORS].num_rows,
        time.perf_counter() - began,
        rows_are="buckets",
        rows_become="factor rows (name x type x method)",
        counts={
            "fits": len(fits),
            "factors": with_factor,
            "names without a factor": rows[tables.FACTORS].num_rows - with_factor,
            **_decisions(rows[tables.TASK_RESULTS]),
        },
        notes=tuple(_notes(fits, checked)),
        window=str(window),
    )
    return fits, Outcome(report, rows)


def costs_by_level(buckets: pa.Table, min_bucket_jobs: int) -> Costs:
    """The fixed costs of all units of A, as the names of each level tell them."""
    return {level: fixed_costs(unit_sums(buckets, level), min_bucket_jobs) for level in LEVELS}


def fit_inputs(buckets: pa.Table, costs: Costs) -> Iterator[FitInput]:
    """The columns of every level and processing type, one after the other."""
    for level in LEVELS:
        for kind in processing_types(buckets):
            yield fit_input(buckets, level, kind, costs[level])


def _decisions(tasks: pa.Table) -> dict[str, int]:
    """How many tasks were corrected, split or set aside; nothing where none was."""
    counted = Counter(tasks.column("decision").to_pylist())
    return {f"tasks: {what}": count for what, count in sorted(counted.items()) if what != "kept"}


def _notes(fits: Sequence[Fit], checked: CheckedBuckets) -> Iterator[str]:
    if checked.n_not_read:
        yield (
            f"{checked.n_not_read} suspicious tasks were judged by their sums alone: more than "
            f"{MAX_JOBS_READ:,} jobs are not read one by one"
        )
    for item in fits:
        if item.data.level == "cpu_model" and item.data.processing_type == ALL_TYPES and not len(item.data):
            yield "no record names a CPU model, so no CPU model has a factor"
            return


def _stamped(
    stamp: Mapping[str, object],
    fits: Sequence[Fit],
    rows_of: Any,
    columns: Sequence[str] = ("level", "processing_type", "method"),
) -> Iterator[dict[str, object]]:
    for item in fits:
        head = {**stamp, **{name: getattr(item.factors, name) for name in columns}}
        for row in rows_of(item):
            yield {**head, **row}
