"""Pipeline step: missing scores predicted from the knowledge base."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, product
from typing import Any

import numpy as np

from esjobs.core.errors import NoResultError
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, Query
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.publish.publication import finite, rows_table, tidy
from esjobs.records.series.blocks import blocks
from esjobs.schema.similar import PREDICTED_NAMES, PREDICTED_SCORES
from esjobs.similar.calibration import Calibration, calibrated
from esjobs.similar.cross_validation import left_out, limits_of, near_each, spaced
from esjobs.similar.knowledge import KnowledgeBase, Row, knowledge_base, nodes_of, scored_jobs
from esjobs.similar.neighbours import Limits, neighbours, predicted, shown_limit
from esjobs.similar.prepared import LEAST_S, PreparedJob, node_class, prepared
from esjobs.similar.program_similarity import ProgramSimilarity, program_similarity
from esjobs.similar.settings import SimilarSettings
from esjobs.store.base import Change, Hide, JobStore
from fitters.layout.arrays import Floats, Ints

# Jobs of the knowledge base whose residuals calibrate errors
_CALIBRATED = 1000
_COPIED = (
    *("source", "job_id", "queue", "user", "project", "application", "processing_type", "cpu_model"),
    *("end_time", "node_h", "core_h", "day", "fingerprint"),
)


@dataclass(frozen=True)
class Way:
    """Limits and errors of the predictions of a score."""

    limits: Limits
    errors: Calibration
    n_measured: int


@dataclass(frozen=True)
class Target:
    """Job with missing scores. ``similarities``: of its program to the knowledge base."""

    facts: Row
    job: PreparedJob
    names: Sequence[str]
    similarities: Floats | None


def predict(store: JobStore, window: Window, settings: SimilarSettings) -> RunReport:
    """Predict missing scores of the jobs of a window and publish them by day.

    Rows in are missing scores; each is predicted or dropped with a reason. Idempotent. Raises
    :class:`NoResultError` without scored jobs, without a knowledge base, or if it is too small for limits.

    Cost: that of :func:`~esjobs.similar.knowledge.knowledge_base`, a few hundred searches for limits and
    errors, the series of the window, one search per job.
    """
    began = time.perf_counter()
    window.require_whole_days("similar predict")
    targets = scored_jobs(store, window)
    if not targets:
        raise NoResultError(f"no scored job in {window}; run: esjobs score")
    missing = {(key, name) for key, name in product(targets, PREDICTED_NAMES) if targets[key][name] is None}
    base = knowledge_base(store, settings)
    programs = _programs(store, base, settings, {key for key, _ in missing})
    ways, unready = _ways(base, settings, programs)
    rows: list[dict[str, Any]] = []
    dropped: Counter[str] = Counter()
    left = set(missing)  # What no series is found for is dropped at the end
    series = blocks(store, window, base.metrics)
    for job in chain.from_iterable(prepared(block, base.metrics) for block in series):
        key = (job.source, job.job_id)
        names = [name for name in PREDICTED_NAMES if (key, name) in left]
        if names:
            left.difference_update(product([key], names))
            target = Target(targets[key], job, names, None if programs is None else programs.to(key))
            _predict_job(base, ways, unready, settings, target, rows, dropped)
    if left:
        dropped["without time series in any of the metrics"] += len(left)
    _publish(store, window, rows)
    return _report(window, settings, base, ways, len(missing), rows, dropped, began)


def _programs(
    store: JobStore, base: KnowledgeBase, settings: SimilarSettings, targets: set[tuple[str, str]]
) -> ProgramSimilarity | None:
    if settings.approach == "dynamic":
        return None
    try:
        return program_similarity(store, base.keys, targets, settings.programs)
    except NoResultError as error:
        raise NoResultError(
            f"{error}; approach {settings.approach} requires it. Or set similar.approach to dynamic"
        ) from error


def _ways(
    base: KnowledgeBase, settings: SimilarSettings, programs: ProgramSimilarity | None
) -> tuple[dict[str, Way], dict[str, str]]:
    """Return limits and errors by score, or the reason why it cannot be predicted."""
    ways: dict[str, Way] = {}
    unready: dict[str, str] = {}
    static = None if programs is None else programs.of
    for name in PREDICTED_NAMES:
        own = np.flatnonzero(~np.isnan(base.scores[name]))
        if not len(own):
            unready[name] = f"no job with a measured {name} and time series"
            continue
        try:
            limits = limits_of(base, name, settings, static)
        except NoResultError as error:
            unready[name] = str(error)
            continue
        # errors from jobs of other runs, as new jobs are
        near = near_each(base, spaced(own, _CALIBRATED), limits.farthest)
        approach, how = settings.approach, settings.aggregation
        found = left_out(base, name, near, limits, approach, how, base.runs, static)
        ways[name] = Way(limits, calibrated(found.residuals, found.spreads[found.has_value]), len(own))
    if not ways:
        raise NoResultError("; ".join(unready.values()))
    return ways, unready


def _predict_job(
    base: KnowledgeBase,
    ways: dict[str, Way],
    unready: dict[str, str],
    settings: SimilarSettings,
    target: Target,
    rows: list[dict[str, Any]],
    dropped: Counter[str],
) -> None:
    """Add rows for the scores of one job that can be predicted, and count the others."""
    job = target.job
    if job.values is None or job.length_s < LEAST_S:
        short = f"with series of less than {LEAST_S / 60:.0f} min"
        dropped["without all of the metrics" if job.values is None else short] += len(target.names)
        return
    shape = base.shape(job.values)
    others = base.comparable(job.length_s, node_class(nodes_of(target.facts, job)))
    # a job of which one score was measured is no neighbour of itself
    others = others[others != base.places.get((job.source, job.job_id), -1)]
    # one search for all scores, as far as the widest limit
    near = base.series.within(shape, max(way.limits.farthest for way in ways.values()), others)
    # what the search did not return is beyond every limit
    distances = np.full(len(base), np.inf)
    distances[near.places] = near.distances
    for name in target.names:
        if name not in ways:
            dropped[unready[name]] += 1
            continue
        measured = others[~np.isnan(base.scores[name][others])]
        row = _predicted_score(base, name, ways[name], settings, target, measured, distances)
        if isinstance(row, str):
            dropped[row] += 1
        else:
            rows.append(row)


def _predicted_score(
    base: KnowledgeBase,
    name: str,
    way: Way,
    settings: SimilarSettings,
    target: Target,
    measured: Ints,
    distances: Floats,
) -> dict[str, Any] | str:
    """Return the row of a score predicted from measured jobs, or the reason why it cannot be."""
    if not len(measured):
        return "no measured job of similar duration and number of nodes"
    similarities = None if target.similarities is None else target.similarities[measured]
    chosen, step = neighbours(distances[measured], similarities, way.limits, settings.approach)
    if not chosen.any():
        return step
    jobs = measured[chosen]
    found = predicted(base.scores[name][jobs], distances[jobs], settings.aggregation)
    errors = way.errors.errors(found.spread)
    # definitions of a score differ by what was measured: a mean over several of them is marked
    variants = {base.facts[job]["variant"] for job in jobs.tolist()}
    return {
        **{each: target.facts[each] for each in _COPIED},
        "score_name": name,
        "value": found.value,
        "value_sq": found.value**2,
        "error_68": errors[0],
        "error_95": errors[1],
        "n_neighbours": found.n_neighbours,
        "spread": finite(found.spread),
        "nearest": found.nearest,
        "approach": settings.approach,
        "search_step": step,
        "aggregation": settings.aggregation,
        "static": way.limits.static,
        "distance_limit_a": shown_limit(way.limits.limit_a),
        "distance_limit_b": shown_limit(way.limits.limit_b),
        "variant": variants.pop() if len(variants) == 1 else "several",
        "metrics": ",".join(name for name, weight in base.weighed if weight),
        "n_known": way.n_measured,
        "n_errors": way.errors.n,
    }


def _publish(store: JobStore, window: Window, rows: Sequence[dict[str, Any]]) -> None:
    days = Days.of_window(window)
    query = Query(("day",), (Count("n"),), where=(days,), over=PREDICTED_SCORES)
    before: set[date] = {row["day"] for row in store.aggregate(query).table.to_pylist()}
    by_day: dict[date, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["source"], row["job_id"], row["score_name"])):
        by_day.setdefault(row["day"], []).append(row)
    # days without a prediction now must not keep those of before
    changes: list[Change] = [Hide(PREDICTED_SCORES, str(day)) for day in sorted(before - set(by_day))]
    for day, listed in sorted(by_day.items()):
        batches = rows_table(PREDICTED_SCORES, listed).to_batches()
        changes.append(store.replace(PREDICTED_SCORES, str(day), batches))
    if changes:
        store.publish(changes)
        tidy(store)


def _said(name: str, way: Way, settings: SimilarSettings) -> str:
    limit_b, limit_a = shown_limit(way.limits.limit_b), shown_limit(way.limits.limit_a)
    within = [] if limit_a is None else [f"{limit_a:.4g} for jobs of similar programs"]
    if settings.approach != "combined-2" and limit_b is not None:
        within.append(f"{limit_b:.4g}{' for any job' if within else ''}")
    if not within:
        return f"the most similar jobs differ in {name}, so it is not predicted"
    return (
        f"{name} within a distance of {' and '.join(within)}, from {way.n_measured:,} measured jobs, "
        f"errors from {way.errors.n:,} of them"
    )


def _report(
    window: Window,
    settings: SimilarSettings,
    base: KnowledgeBase,
    ways: dict[str, Way],
    n_missing: int,
    rows: Sequence[dict[str, Any]],
    dropped: Counter[str],
    began: float,
) -> RunReport:
    notes = [_said(name, way, settings) for name, way in ways.items()]
    notes.append("weights: " + ", ".join(f"{name} {weight:.2f}" for name, weight in base.weighed))
    several = sum(row["variant"] == "several" for row in rows)
    if several:
        notes.append(f"{several:,} from neighbours with several definitions of the score (variant: several)")
    return RunReport(
        "similar predict",
        content_id({"window": str(window), "settings": settings.model_dump()}),
        n_missing,
        len(rows),
        time.perf_counter() - began,
        rows_are="missing scores",
        rows_become="predicted",
        dropped=dict(dropped),
        counts={
            "jobs in the knowledge base": len(base),
            **{
                f"{name} predicted": sum(row["score_name"] == name for row in rows)
                for name in PREDICTED_NAMES
            },
        },
        notes=tuple(notes),
        window=str(window),
    )
