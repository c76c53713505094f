"""Steps of the speed factors in order, alone or together, with their publication."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.clock import Clock
from esjobs.core.errors import NoResultError, NothingToFitError
from esjobs.core.report import RunReport
from esjobs.core.tables import columns
from esjobs.core.window import Window
from esjobs.core.words import LEVELS, NAMED_LEVELS
from esjobs.publish.finding import made_last, read_results
from esjobs.publish.latest import latest_run
from esjobs.publish.publication import Outcome, tidy
from esjobs.publish.publisher import Publisher
from esjobs.publish.stored import StoredRun, stored_runs
from esjobs.records.declared.values import declared_sites, declared_values, known_sites
from esjobs.records.jobs.aggregate import Progress, days_behind, require_buckets, require_rules
from esjobs.records.jobs.conditions import bucket_filters, job_filters, parse_conditions
from esjobs.records.jobs.job_counts import count_jobs, counts_of_books, last_day
from esjobs.records.tasks.machines import machine_sums
from esjobs.records.tasks.memory import release_memory
from esjobs.records.tasks.sums import read_sums, with_sites
from esjobs.schema.speed import FACTORS, FITS, SPEED, STABILITY_CHECKS
from esjobs.speed.bucketing import make_buckets
from esjobs.speed.cost_priors import cost_priors
from esjobs.speed.cut_off import mark_cut_off
from esjobs.speed.factors import LATER, Factors
from esjobs.speed.fit import fit
from esjobs.speed.fit_input import FitInputs
from esjobs.speed.judging.changed_declarations import changed_declarations
from esjobs.speed.judging.flag import flag
from esjobs.speed.line import Declarations, correlate
from esjobs.speed.mixed_tasks import CheckedBuckets, check_buckets
from esjobs.speed.question import SpeedQuestion
from esjobs.speed.ranking import RANKED
from esjobs.store.base import JobStore

_FIT = ("level", "processing_type", "method")
_NUMBERS = (*columns("k k_err k_raw k_err_stat k_err_int events_per_job efficiency"), *LATER)
_COUNTS = columns("n_units n_tasks n_jobs n_buckets n_rejected n_cut")
_TEXTS = ("reason", "sole_link", "records_doubt")


class Chain:
    """Steps over one store. ``clock`` stamps reports, ``progress`` receives the current step."""

    def __init__(self, store: JobStore, clock: Clock, progress: Progress | None = None) -> None:
        self._store = store
        self._publisher = Publisher(store, clock)
        self._progress = progress

    def fit(self, question: SpeedQuestion) -> RunReport:
        """Fit the buckets of the window and publish the factors.

        Lines and verdicts that rested on earlier factors of the same question are made again, and all is
        published in one switch. Days whose jobs are not in the buckets are noted: only ``aggregate`` adds
        them.
        """
        factors, outcome = self._fit(question)
        outcome = _noted(outcome, self._notes_alone(question))
        judged = partial(self._judge, question, question.run, factors, outcome.rows[STABILITY_CHECKS])
        return self._publish_with_later(question, outcome, ("correlate", "flag"), judged)

    def correlate(self, window: Window) -> RunReport:
        """Compare the newest factors of the window with the declared values, and publish the lines.

        Verdicts of the run are made again.
        """
        run, question, factors = self._stored(window)
        limit = question.fit.deviation_limit
        _, outcome = correlate(factors, self._declarations(factors, window), window, run.run, limit)

        def judged() -> tuple[Outcome, Outcome]:
            return self._judge(question, run.run, factors, self._variants(run))

        return self._publish_with_later(question, outcome, ("flag",), judged)

    def flag(self, window: Window) -> RunReport:
        """Judge the newest factors of the window by the current declarations; publish verdicts and lines.

        The lines are made again with the verdicts, so that both rest on the same declarations; a note says if
        these have changed.
        """
        run, question, factors = self._stored(window)
        correlated, flagged = self._judge(question, run.run, factors, self._variants(run))
        flagged = _noted(flagged, changed_declarations(self._store, run.run, correlated, flagged))
        return self._publisher.publish(question, [correlated, flagged])[-1]

    def run(self, question: SpeedQuestion, *, rebuild: bool = False) -> list[RunReport]:
        """Run all four steps; results become visible together at the end.

        The buckets and their balance are visible before, whatever becomes of the fit. The report of
        ``aggregate`` is not, so that a failed run is not listed.
        """
        aggregated = make_buckets(self._store, question, rebuild=rebuild, progress=self._progress)
        # whatever becomes of the fit: nobody has to aggregate again
        if aggregated.written:
            self._store.publish(aggregated.written)
            tidy(self._store)
        # the step before has compared the buckets with their balance
        return self._concluded(question, [aggregated.report], buckets_checked=True)

    def judge(self, question: SpeedQuestion) -> list[RunReport]:
        """Run all steps but the first, from the buckets as they are; results become visible together.

        For callers that bring the days up to date by another rule: no job is read to check them.
        """
        return self._concluded(question, (), buckets_checked=False)

    def _concluded(
        self, question: SpeedQuestion, before: Sequence[RunReport], *, buckets_checked: bool
    ) -> list[RunReport]:
        self._tell("fitting", 0)
        factors, fitted = self._fit(question, buckets_checked=buckets_checked)
        self._tell("judging", 1)
        correlated, flagged = self._judge(question, question.run, factors, fitted.rows[STABILITY_CHECKS])
        reports = self._publisher.publish(question, [fitted, correlated, flagged], before=before)
        self._tell("done", 2)
        return reports

    def _publish_with_later(
        self,
        question: SpeedQuestion,
        outcome: Outcome,
        later: Sequence[str],
        judged: Callable[[], tuple[Outcome, Outcome]],
    ) -> RunReport:
        """Publish a step alone, with the later steps that its run has already, in one switch.

        So a complete run stays complete: if its verdicts were only withdrawn, readers of the latest run would
        get an older one, or none. ``judged`` makes lines and verdicts from the results of the step.
        """
        existing = self._steps_of(outcome.report.run)
        wanted = later if "flag" in existing else tuple(step for step in later if step in existing)
        again, notes = [], list[str]()
        if wanted:
            correlated, flagged = judged()
            again = [item for item in (correlated, flagged) if item.report.step in wanted]
            made = " and ".join({"correlate": "lines", "flag": "verdicts"}[step] for step in wanted)
            notes = [f"this run already had {made}; they were computed again and published with it"]
            notes += changed_declarations(self._store, outcome.report.run, correlated, flagged)
        # another process may have published some meanwhile: they are of other factors
        outdated = [step for step in later if step not in wanted]
        return self._publisher.publish(question, [_noted(outcome, notes), *again], outdated=outdated)[0]

    def _steps_of(self, run: str) -> AbstractSet[str]:
        return next((item.steps for item in stored_runs(self._store, SPEED, run)), {}).keys()

    def _variants(self, run: StoredRun) -> pa.Table:
        return read_results(self._store, STABILITY_CHECKS, run)

    def _fit(
        self, question: SpeedQuestion, *, buckets_checked: bool = False
    ) -> tuple[list[Factors], Outcome]:
        require_rules(self._store, question.window, question.rules)
        if not buckets_checked:
            require_buckets(self._store, question.window)
        checked = self._checked(question)
        if not checked.sums.n_buckets:
            raise self._no_buckets(question)
        sites = known_sites(self._store, question.window)
        checked = replace(checked, sums=with_sites(checked.sums, sites))
        priors = cost_priors(self._store, question)
        inputs = FitInputs(checked.sums, question.fit.min_bucket_jobs, checked.costs, priors)
        by_model = partial(machine_sums, checked.sums.fine)
        factors, outcome = fit(checked, inputs, question.window, question.run, question.fit, sites, by_model)
        del checked, inputs, by_model
        # before the verdicts, whose rows need as much again
        release_memory()
        return factors, replace(outcome, last_data=last_day(self._store, question.window))

    def _notes_alone(self, question: SpeedQuestion) -> Iterator[str]:
        # Notes for a fit without the other steps.
        window = question.window
        behind = days_behind(self._store, window, question.rules)
        if behind:
            yield (
                f"{len(behind)} days have jobs that are not aggregated yet, first {next(iter(behind))}; run: "
                f"esjobs aggregate --window {window}"
            )
        latest = latest_run(self._store, SPEED)
        complete = self._steps_of(question.run) >= set(SPEED.steps)
        if latest is not None and latest.run != question.run and not complete:
            yield (
                f"{latest.title} remains the latest run until this one has lines and flags; its factors: "
                f"esjobs show factors --run {question.run}"
            )

    def _checked(self, question: SpeedQuestion) -> CheckedBuckets:
        window, tasks = question.window, question.tasks
        where = bucket_filters(self._store, window, question.where, tasks)
        sums = read_sums(self._store, window, where)
        of_jobs = job_filters(self._store, question.restriction, window)
        # before mixed tasks are looked for: what a limit cuts off must not look like another kind of work
        queues = mark_cut_off(self._store, sums.levels["queue"], window, question.rules, of_jobs)
        return check_buckets(
            self._store,
            replace(sums, levels={**sums.levels, "queue": queues}),
            window,
            question.rules.drops(),
            of_jobs,
            question.fit.min_bucket_jobs,
        )

    def _no_buckets(self, question: SpeedQuestion) -> NoResultError:
        """Return the error for an empty fit, with its remedy."""
        window = question.window
        restriction = question.restriction
        # the balance of the days tells without reading a job, unless the run is restricted
        counted = counts_of_books(self._store, window, question.rules)
        if not counted.total:
            return NoResultError(f"no buckets in {window}; run: esjobs aggregate --window {window}")
        chosen = ""
        if counted.binned and restriction:
            where = job_filters(self._store, restriction, window)
            counted = count_jobs(self._store, window, question.rules, where)
            chosen = f" with {', '.join(restriction)}"
            if not counted.total:
                names = ",".join(parse_conditions(restriction))
                return NoResultError(
                    f"no bucket in {window} has {', '.join(restriction)}; list the values: "
                    f"esjobs query --by {names}"
                )
        if counted.binned:
            return NoResultError(
                f"{counted.binned} jobs{chosen} in {window} pass the cleaning rules but are in no bucket; "
                f"run: esjobs aggregate --window {window}"
            )
        return NothingToFitError(
            f"no fit for {window}: cleaning rejected all {counted.total} jobs{chosen} ({counted.reasons}). "
            f"Details: esjobs show day_books --window {window}"
        )

    def _stored(self, window: Window) -> tuple[StoredRun, SpeedQuestion, list[Factors]]:
        run = made_last(self._store, SPEED, "fit", window)
        return run, SpeedQuestion.of_run(run), stored_factors(self._store, run)

    def _declarations(self, factors: Sequence[Factors], window: Window) -> Declarations:
        # one read per level for all fits: types and methods share most names
        names: dict[str, set[str]] = {level: set() for level in LEVELS}
        for item in factors:
            names[item.level].update(item.name)
        queues, models = (declared_values(self._store, window, level, names[level]) for level in NAMED_LEVELS)
        sites = declared_sites(self._store, window, queues, names["site"])
        return {"queue": queues, "site": sites, "cpu_model": models}

    def _judge(
        self, question: SpeedQuestion, run: str, factors: Sequence[Factors], variants: pa.Table
    ) -> tuple[Outcome, Outcome]:
        declarations = self._declarations(factors, question.window)
        limit = question.fit.deviation_limit
        compared, correlated = correlate(factors, declarations, question.window, run, limit)
        flagged = flag(
            compared, declarations, variants, question.window, run, question.fit, question.restriction
        )
        return correlated, flagged

    def _tell(self, what: str, done: int) -> None:
        if self._progress:
            self._progress(what, done, 2)


def _noted(outcome: Outcome, notes: Iterable[str]) -> Outcome:
    return replace(outcome, report=replace(outcome.report, notes=(*outcome.report.notes, *notes)))


def stored_factors(store: JobStore, run: StoredRun) -> list[Factors]:
    """Return the factors of a stored run, one item per fit, headline method first."""
    fits = read_results(store, FITS, run).to_pylist()
    rows = read_results(store, FACTORS, run)
    return [_stored_fit(item, rows) for item in fits]


def _stored_fit(item: Mapping[str, Any], rows: pa.Table) -> Factors:
    rows = rows.filter(pc.field("level") == item["level"])
    rows = rows.filter(pc.field("processing_type") == item["processing_type"])
    rows = rows.filter(pc.field("method") == item["method"])
    texts: dict[str, Any] = {name: item[name] or "" for name in ("only_type", "left_out", "model_doubt")}
    columns = {name: rows.column(name).to_numpy(zero_copy_only=False) for name in rows.column_names}
    component = columns["component"].astype(np.int64)
    ranked = zip(columns["name"], rows.select(RANKED).to_pylist(), strict=True)
    return Factors(
        **{name: item[name] for name in _FIT},
        name=columns["name"],
        component=component,
        status=columns["status"],
        n_components=int(component.max(initial=-1)) + 1,
        **{name: columns[name].astype(np.int64) for name in _COUNTS},
        **{name: columns[name].astype(float) for name in _NUMBERS},
        **{name: pc.fill_null(rows.column(name), "").to_numpy(zero_copy_only=False) for name in _TEXTS},
        **texts,
        ranking={name: row for name, row in ranked if row["rank_low"] is not None},
    )
