"""Speed factors from buckets: one fit per level, processing type and method."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from esjobs.core import tables
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, NAMED_LEVELS
from esjobs.publish.publication import Outcome, rows_table
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.machines import MachineSums
from esjobs.schema.speed import (
    COMPONENTS,
    CPU_MIX,
    FACTORS,
    FITS,
    PULL_HISTOGRAMS,
    RESIDUALS,
    STABILITY_CHECKS,
    TASK_RESULTS,
)
from esjobs.speed.factors import METHODS, Factors, Fit, solve, with_company
from esjobs.speed.fit_input import FitInputs
from esjobs.speed.fit_rows import component_rows, factor_rows, fit_rows
from esjobs.speed.jobs_used import why_left_out
from esjobs.speed.mixed_tasks import MAX_JOBS_READ, CheckedBuckets
from esjobs.speed.mixes import Predicted, mix_rows, predicted, with_queue_scatter
from esjobs.speed.model_checks import ModelChecks, check_model, with_checks
from esjobs.speed.ranking import with_ranking
from esjobs.speed.residual_rows import pull_rows, residual_rows
from esjobs.speed.settings import FitSettings
from esjobs.speed.task_rows import task_rows, with_decisions
from esjobs.speed.variants import variant_rows
from esjobs.speed.via_models import with_via_models

_TABLES = (FACTORS, FITS, PULL_HISTOGRAMS, COMPONENTS, TASK_RESULTS, RESIDUALS, STABILITY_CHECKS, CPU_MIX)


def fit(
    checked: CheckedBuckets,
    inputs: FitInputs,
    window: Window,
    run: str,
    settings: FitSettings,
    sites: Sites,
    machine_sums: Callable[[], MachineSums] | None = None,
) -> tuple[list[Factors], Outcome]:
    """Fit every level, processing type and method from the sums of a window.

    ``machine_sums``: reads those by CPU model, where queues are comparable through these alone; None: they
    are not compared. ``sites``: for the rows only. Returns the factors and the rows of this step's tables.
    Each fit becomes rows at once, so that memory does not grow with the types.
    """
    began = time.perf_counter()
    minimum = settings.min_bucket_jobs
    made = _Fits(checked, inputs, settings, sites, machine_sums)
    for level, pairs in groupby(inputs, itemgetter(0)):
        made.of_level(level, [kind for _, kind in pairs])
    found, fits, notes = made.rows, made.factors, made.notes
    found[CPU_MIX] = list(mix_rows(checked.sums.mix, fits, sites))
    _tell_mixes(found[FACTORS], predicted(checked.sums.mix, fits), settings.methods[0])
    tasks = list(
        task_rows(
            checked.sums.levels["queue"],
            inputs.costs["queue"],
            checked.looked_at,
            minimum,
            inputs.rho_scatter.get("queue"),
        )
    )
    found[TASK_RESULTS].extend(tasks)
    found[RESIDUALS] = list(with_decisions(found[RESIDUALS], tasks))
    # dictionaries go as columns come: both together would be most of the memory
    rows = {table: rows_table(table, found.pop(table, ())) for table in _TABLES}
    with_factor = sum(int((item.status == "ok").sum()) for item in fits)
    report = RunReport(
        "fit",
        run,
        checked.sums.n_buckets,
        rows[FACTORS].num_rows,
        time.perf_counter() - began,
        rows_are="buckets",
        rows_become="factor rows (name x type x method)",
        counts={
            "fits": len(fits),
            "factors": with_factor,
            "names without a factor": rows[FACTORS].num_rows - with_factor,
            **_decisions(rows[TASK_RESULTS]),
        },
        notes=(*_notes(fits, checked, sites), *notes),
        window=str(window),
    )
    return fits, Outcome(report, rows)


@dataclass
class _Fits:
    """Fits of all levels one after the other: of a level that is done only its rows and factors stay."""

    checked: CheckedBuckets
    inputs: FitInputs
    settings: FitSettings
    sites: Sites
    machine_sums: Callable[[], MachineSums] | None
    rows: dict[tables.Table, list[dict[str, object]]] = field(default_factory=lambda: defaultdict(list))
    factors: list[Factors] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of_level(self, level: str, kinds: Sequence[str]) -> None:
        """Fit a level by type and method."""
        settings, minimum = self.settings, self.settings.min_bucket_jobs
        # Fits of one type need what the fit of all types tells of them; it comes last in the tables.
        of_all = solve(self.inputs.of(level, ALL_TYPES), settings.methods[0], minimum)
        if (shared := of_all.shared) is not None:
            self.inputs.learn(level, shared.by_type.sigma)
        if level in NAMED_LEVELS:
            self.notes.extend(filter(None, [why_left_out(of_all)]))
        for kind in kinds if settings.by_type else [ALL_TYPES]:
            data = self.inputs.of(level, kind)
            for number, method in enumerate(settings.methods):
                valid = number == 0 and kind == ALL_TYPES
                item = with_company(of_all if valid else solve(data, method, minimum))
                self._finish(item, of_all, headline=number == 0)

    def _finish(self, item: Fit, of_all: Fit, *, headline: bool) -> None:
        """Check a fit and keep its rows."""
        least, level = self.settings.min_name_jobs, item.factors.level
        checks = check_model(item)
        item = with_checks(item, checks)
        item = replace(item, factors=replace(item.factors, left_out=why_left_out(item)))
        valid = headline and item.factors.processing_type == ALL_TYPES
        if valid and level == "queue" and self.machine_sums is not None:
            item = with_via_models(item, self.machine_sums, least)
        if level == "cpu_model" and METHODS[item.factors.method].weights != "none":
            item = with_queue_scatter(item, of_all, self.checked.sums.mix, self.factors)
        if headline:
            item = replace(item, factors=with_ranking(item.factors, least))
            varied = variant_rows(item, least)
            self.rows[STABILITY_CHECKS].extend({**item.factors.fit, **row} for row in varied)
        for table, made in _rows(item, checks, self.sites, headline=headline):
            self.rows[table].extend(made)
        self.factors.append(item.factors)


def _tell_mixes(rows: Iterable[dict[str, object]], usable: Mapping[str, Predicted], method: str) -> None:
    for row in rows:
        headline = (row["level"], row["processing_type"], row["method"]) == ("queue", ALL_TYPES, method)
        if headline and (each := usable.get(str(row["name"]))) is not None:
            row |= {"mix_k": each.k, "mix_k_err": each.k_err, "mix_share": each.share}


def _decisions(tasks: pa.Table) -> dict[str, int]:
    counted = Counter(tasks.column("decision").to_pylist())
    return {f"tasks: {what}": count for what, count in sorted(counted.items()) if what != "kept"}


def _notes(fits: Sequence[Factors], checked: CheckedBuckets, sites: Sites) -> Iterator[str]:
    for queue, clusters in sorted(sites.several.items()):
        yield (
            f"queue {queue} has jobs of {len(clusters)} clusters ({', '.join(clusters)}), so its site is its "
            "own name; a table that names its site is imported by: esjobs corepower import"
        )
    if checked.n_not_read:
        yield (
            f"{checked.n_not_read} suspicious tasks were judged by their sums only: at most "
            f"{MAX_JOBS_READ:,} jobs are read individually"
        )
    for item in fits:
        if item.level == "cpu_model" and item.processing_type == ALL_TYPES and not len(item.name):
            yield "no job record names a CPU model, so no CPU model has a factor"
            return


def _rows(
    item: Fit, checks: ModelChecks, sites: Sites, *, headline: bool
) -> Iterator[tuple[tables.Table, Iterator[dict[str, object]]]]:
    """Yield the rows of one fit per table; residuals of the headline fit of all types only."""
    factors = item.factors
    by_type = factors.fit
    yield FACTORS, ({**by_type, **row} for row in factor_rows(item, sites))
    yield FITS, ({**by_type, **row, **checks.columns} for row in fit_rows(item))
    yield PULL_HISTOGRAMS, ({**by_type, **row} for row in pull_rows(item))
    yield COMPONENTS, ({**by_type, **row} for row in component_rows(item))
    if headline and factors.processing_type == ALL_TYPES:
        yield (
            RESIDUALS,
            (
                {
                    "level": factors.level,
                    "method": factors.method,
                    **row,
                    "site": site.name if (site := sites.at(factors.level, str(row["name"]))) else None,
                }
                for row in residual_rows(item)
            ),
        )
