"""Pipeline step: daily scores from counters and issues."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrays import Floats, Mask
from esjobs.core.arrow import job_keys, table_schema
from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, In, Metric, Moment, Query, Select, Sum, SumWhere
from esjobs.core.report import RunReport
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.publish.publication import tidy
from esjobs.records.clusters.description import Clusters
from esjobs.records.clusters.reading import clusters_of
from esjobs.records.jobs.aggregate import forgotten_days
from esjobs.records.jobs.late_jobs import adding, fingerprints_by_day, progress_of
from esjobs.records.names.cpu_models import RESOLVER_VERSION
from esjobs.schema.issues import FOOTPRINTS
from esjobs.schema.scores import MEASURES, RANKED, SCORE_NAMES, SCORES
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.scores.families import EVENTS_VERSION
from esjobs.scores.findings import (
    Findings,
    busy_cores_of,
    communication_of,
    findings_of,
    fingerprints_of,
    gpu_load_of,
    gpu_scores_of,
    scores_of_issues,
)
from esjobs.scores.nodes import Nodes, nodes_of
from esjobs.scores.own_rows import own_and_shared
from esjobs.scores.reasons import NONE, Reasons
from esjobs.scores.scoring import Scored, score_counters
from esjobs.scores.settings import EfficiencySettings
from esjobs.scores.usage import (
    BEYOND,
    PAST_REQUEST,
    efficiency,
    gpu_share,
    hours,
    shares,
    time_used,
    used_memory,
)
from esjobs.store.base import Change, Hide, JobStore

SCORES_VERSION = 7
"""Version of the formulas; a change makes stored scores stale."""

_KEPT = (
    "source",
    "job_id",
    "queue",
    "user",
    "project",
    "application",
    "processing_type",
    "end_time",
    "state",
    "job_name",
)
_KEPT_NUMBERS = (
    *("requested_wall_s", "requested_memory_b", "requested_cores", "requested_gpus"),
    *("cores", "nodes", "gpus", "wall_s", "cluster", "subcluster"),
)
_NUMBERS = (
    *("cpu_s", "wall_s", "cores", "nodes", "gpus", "max_pss_b", "max_rss_b"),
    *("requested_wall_s", "requested_memory_b", "requested_cores", "requested_gpus"),
)
FIELDS = tuple(dict.fromkeys((*_KEPT, *_KEPT_NUMBERS, *_NUMBERS, "cpu_raw", "smt", "counters")))
"""Job fields read."""

Progress = Callable[[str, int, int], None]


def score(
    store: JobStore,
    window: Window,
    settings: Sections,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Score jobs of days whose scores are missing or stale, and publish them in one switch.

    A day is stale if its jobs, their issues, settings, cluster descriptions (digest: ``clusters``) or
    formulas changed; ``rebuild``: all days are. Days whose jobs are gone lose their scores. Raises
    :class:`NoJobsError` for a window without jobs.

    Cost: one pass over jobs of stale days, in batches.
    """
    began = time.perf_counter()
    window.require_whole_days("score")
    weights, clusters = settings.section(EfficiencySettings), clusters_of(settings)
    digest = _day_digest(store, window, weights, _digest(clusters))
    fingerprints = _digests(store, window, digest)
    stored = _stored_marks(store, window)
    # days that had jobs when they were scored, and have none now
    emptied = set(stored) - set(fingerprints)
    # scores outlive jobs that an archive has dropped
    emptied -= set() if rebuild else forgotten_days(store, emptied)
    gone = [Hide(SCORES, str(day)) for day in sorted(emptied)]
    if not fingerprints:
        store.publish(gone)
        raise NoJobsError(f"no jobs in {window} to score; check the stored data: esjobs doctor")
    days_made = progress_of(store, {} if rebuild else stored, fingerprints, digest)
    stale, late = sorted(fingerprints.keys() - days_made.fresh), days_made.late
    changes: list[Change] = [*gone]
    for number, day in enumerate(stale):
        if progress:
            progress("scoring", number, len(stale))
        some = late.get(day)
        jobs, write = (store, store.replace) if some is None else (some.store, adding(store).add)
        rows = _scored_day(jobs, day, fingerprints[day], weights, clusters)
        # rows of a million jobs a day are too many: those without findings share rows
        rows = own_and_shared(rows, weights.own_rows, partial(_watched, store, day))
        changes.append(write(SCORES, str(day), rows))
    if progress:
        progress("scoring", len(stale), len(stale))
    store.publish(changes)
    tidy(store)
    return _report(store, window, len(fingerprints), len(stale), began)


def score_digest(store: JobStore, window: Window, settings: Sections) -> str:
    """Return a digest of everything the scores of a window depend on."""
    weights, clusters = settings.section(EfficiencySettings), _digest(clusters_of(settings))
    fingerprints = fingerprints_of_days(store, window, weights, clusters)
    return content_id({"days": {str(day): fingerprint for day, fingerprint in fingerprints.items()}})


def _digest(clusters: Clusters) -> str:
    return content_id({"parts": sorted(map(repr, clusters.parts))})


def fingerprints_of_days(
    store: JobStore, window: Window, settings: EfficiencySettings, clusters: str
) -> dict[date, str]:
    """Return for each day with jobs a digest of everything its scores depend on."""
    return _digests(store, window, _day_digest(store, window, settings, clusters))


def _digests(store: JobStore, window: Window, digest: Callable[[date, str], str]) -> dict[date, str]:
    prints = store.day_fingerprints(window).to_pylist()
    return {row["day"]: digest(row["day"], row["fingerprint"]) for row in prints}


def _day_digest(
    store: JobStore, window: Window, settings: EfficiencySettings, clusters: str
) -> Callable[[date, str], str]:
    """Return the function from a day and a fingerprint of its jobs to the digest of its scores."""
    made_of = {
        **settings.model_dump(exclude={"nightly"}),
        "clusters": clusters,
        "versions": [SCORES_VERSION, EVENTS_VERSION, RESOLVER_VERSION],
        "layouts": [SCORES.layout, PREDICTED_SCORES.layout],
    }
    found = fingerprints_of(store, window)
    return lambda day, fingerprint: content_id({**made_of, "of": [fingerprint, found.get(day, "")]})


def _report(store: JobStore, window: Window, n_days: int, n_stale: int, began: float) -> RunReport:
    """Report on all rows of the window, also those made earlier."""
    faults = In("cpu_efficiency_reason", (BEYOND,))
    past = In("time_used_reason", (PAST_REQUEST,))
    counts: list[Metric] = [
        Count("rows"),
        Sum("n_jobs", "jobs"),
        Moment(("n_jobs",), "faults", where=(faults,)),
        Moment(("n_jobs",), "past", where=(past,)),
        *(SumWhere("n_jobs", (name,), name) for name in MEASURES),
    ]
    query = Query((), tuple(counts), where=(Days.of_window(window),), over=SCORES)
    (found,) = store.aggregate(query).table.to_pylist()
    n_rows, n_jobs, n_faults, n_past = (int(found[name] or 0) for name in ("rows", "jobs", "faults", "past"))
    notes = []
    if n_faults:
        notes.append(
            f"{n_faults:,} of {n_jobs:,} jobs report more CPU time than wall time x cores; they are excluded "
            "from all means (cpu_efficiency_reason)"
        )
    if n_past:
        notes.append(
            f"{n_past:,} of {n_jobs:,} jobs report {PAST_REQUEST}; the recorded request did not limit them, "
            "and they are excluded from means of time_used_frac (time_used_reason)"
        )
    return RunReport(
        "score",
        "-",
        n_jobs,
        n_rows,
        time.perf_counter() - began,
        rows_are="jobs",
        rows_become="rows",
        counts={
            "days scored": n_stale,
            "days up to date": n_days - n_stale,
            **{f"{name} measured": int(found[name] or 0) for name in MEASURES},
            "CPU efficiency above 1": n_faults,
            "time used above twice the request": n_past,
        },
        notes=tuple(notes),
        window=str(window),
    )


def _stored_marks(store: JobStore, window: Window) -> dict[date, set[str]]:
    query = Query(("day", "fingerprint"), (Count("n"),), where=(Days.of_window(window),), over=SCORES)
    return fingerprints_by_day(store.aggregate(query).table.to_pylist())


def _scored_day(
    store: JobStore, day: date, fingerprint: str, settings: EfficiencySettings, clusters: Clusters
) -> Iterator[pa.RecordBatch]:
    findings = findings_of(store, day, settings)
    for batch in store.select(Select(FIELDS, Window.of_days(day, day))):
        if batch.num_rows:
            yield scored_jobs(batch, day, fingerprint, findings, settings, clusters)


def _watched(store: JobStore, day: date) -> pa.Array:
    """Return the keys of jobs with time series."""
    query = Query(("source", "job_id"), (Count("n"),), where=(Days("day", day, day),), over=FOOTPRINTS)
    return pc.unique(job_keys(store.aggregate(query).table))


def score_of_job(store: JobStore, source: str, job_id: str, settings: Sections) -> dict[str, Any] | None:
    """Return the score row of a job, computed now; None without a record, or if it has nothing to score.

    Cost: the job, and issues and footprints of its day.
    """
    weights, clusters = settings.section(EfficiencySettings), clusters_of(settings)
    one = (In("source", (source,)), In("job_id", (job_id,)))
    # stores may give an empty batch first
    for jobs in store.select(Select(FIELDS, where=one)):
        if jobs.num_rows:
            day = jobs.column("end_time")[0].as_py().date()
            findings = findings_of(store, day, weights)
            row: dict[str, Any] = scored_jobs(jobs, day, "", findings, weights, clusters).to_pylist()[0]
            return row if any(row[name] is not None for name in MEASURES) else None
    return None


def scored_jobs(
    jobs: pa.RecordBatch,
    day: date,
    fingerprint: str,
    findings: Findings,
    settings: EfficiencySettings,
    clusters: Clusters,
) -> pa.RecordBatch:
    """Return score rows of a batch of jobs (:data:`FIELDS`) of a day."""
    reasons = Reasons()
    recorded = {name: _number(jobs.column(name)) for name in _NUMBERS}
    nodes = nodes_of(jobs, clusters, settings.cores_per_node)
    cores_from = _complete_cores(recorded, nodes)
    keys = job_keys(jobs)
    cpu_from = _complete_cpu_time(recorded, keys, findings, nodes)
    models = pc.coalesce(nodes.cpu_models, jobs.column("cpu_raw"))
    counters = jobs.column("counters")
    counted = score_counters(counters, models, nodes.smt, reasons)
    scored: dict[str, Scored] = {
        **counted.scores,
        **scores_of_issues(keys, findings, settings.issues, reasons),
        "cpu_efficiency": efficiency(recorded, reasons),
    }
    # before a report of TALP replaces the score: it has no variant
    by_issues = _exists(scored["score_io"]) | _exists(scored["score_mpi"])
    _prefer(scored, "score_mpi", communication_of(keys, findings))
    gpu_counters = _exists(scored["score_gpu"]) | _exists(scored["score_gpumem"])
    for name, of_series in gpu_scores_of(keys, findings, counters).items():
        # not a score of warps beside one of activity: a job has one definition
        _prefer(scored, name, np.where(gpu_counters, np.nan, of_series))
    values = _values(scored)
    busy_gpus = gpu_share(recorded, gpu_load_of(keys, findings, counters))
    of_hours = hours(recorded, nodes.cores)
    time_share = time_used(recorded, reasons)
    text = pa.string()
    columns: dict[str, Any] = {
        **{name: jobs.column(name) for name in (*_KEPT, *_KEPT_NUMBERS)},
        "cpu_model": nodes.cpu_models,
        "variant": counted.variant,
        **values,
        # stores add up columns, not formulas: squares make the spread of means
        **{f"{name}_sq": values[name] ** 2 for name in RANKED},
        **of_hours,
        **shares(recorded),
        "time_used_frac": np.where(time_share.codes == NONE, time_share.unclipped, np.nan),
        "gpus_used_frac": busy_gpus,
        "gpus_used_frac_sq": busy_gpus**2,
        "used_memory_b": used_memory(recorded),
        "node_h_from": pc.if_else(
            pa.array(np.isnan(of_hours["node_h"])),
            pa.scalar(None, text),
            pc.if_else(jobs.column("nodes").is_valid(), pa.scalar("nodes"), nodes.origin),
        ),
        # below 0 where a record has more CPU time than cores could give: sums are those of all jobs
        "idle_core_h": of_hours["core_h"] - recorded["cpu_s"] / 3600.0,
        "issues_variant": pc.if_else(pa.array(by_issues), pa.scalar(settings.issues), pa.scalar(None, text)),
        "n_scores": sum(~np.isnan(values[name]) for name in SCORE_NAMES),
        "time_used_reason": reasons.column(time_share.codes),
        "cores_from": cores_from,
        "cpu_from": cpu_from,
        "gpu_variant": _gpu_variant(values, gpu_counters),
        "day": pa.repeat(pa.scalar(day), jobs.num_rows),
        "fingerprint": pa.repeat(pa.scalar(fingerprint), jobs.num_rows),
        "n_jobs": np.ones(jobs.num_rows),
    }
    for name in MEASURES:
        columns[f"{name}_unclipped"] = scored[name].unclipped
        columns[f"{name}_reason"] = reasons.column(scored[name].codes)
        columns[f"{name}_from"] = _tenth(values[name], 1 if name in SCORE_NAMES else 100)
    beyond = scored["cpu_efficiency"].codes == reasons.code(BEYOND)
    # a share made of an impossible CPU time is impossible, too
    columns["cores_used_frac"] = np.where(beyond, np.nan, columns["cores_used_frac"])
    schema = table_schema(SCORES)
    arrays = [_column(columns[item.name], item.type) for item in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _exists(scored: Scored) -> Mask:
    return ~np.isnan(scored.unclipped)


def _prefer(scored: dict[str, Scored], name: str, measured: Floats) -> None:
    """Put a measured score in place of one that is inferred or missing."""
    of_job = ~np.isnan(measured)
    before = scored[name]
    scored[name] = Scored(
        np.where(of_job, measured, before.unclipped), np.where(of_job, NONE, before.codes).astype(np.int32)
    )


def _gpu_variant(values: Mapping[str, Floats], counters: Mask) -> pa.Array:
    """Return the definition of each job's GPU scores."""
    has_score = ~np.isnan(values["score_gpu"]) | ~np.isnan(values["score_gpumem"])
    names = np.where(counters, "warps", "activity")
    return pa.array(names, pa.string(), mask=~has_score)


def _values(scored: Mapping[str, Scored]) -> dict[str, Floats]:
    """Return clipped scores, their sum, and the CPU efficiency of correct records."""
    values = {name: scored[name].value for name in SCORE_NAMES}
    correct = scored["cpu_efficiency"].codes == NONE
    stacked = np.stack([values[name] for name in SCORE_NAMES])
    missing = np.isnan(stacked).all(axis=0)
    values["cpu_efficiency"] = np.where(correct, scored["cpu_efficiency"].unclipped, np.nan)
    values["score_sum"] = np.where(missing, np.nan, np.nansum(stacked, axis=0))
    return values


def _complete_cores(numbers: dict[str, Floats], nodes: Nodes) -> pa.Array:
    """Fill missing cores with nodes x described cores; return the source of each job's cores."""
    recorded = ~np.isnan(numbers["cores"])
    described = pc.equal(nodes.origin, "cluster").to_numpy(zero_copy_only=False)
    filled = ~recorded & described & (numbers["nodes"] > 0)
    numbers["cores"] = np.where(filled, numbers["nodes"] * nodes.cores, numbers["cores"])
    origin = np.select([recorded, filled], ["cores", "cluster"], "")
    return pa.array(origin, pa.string(), mask=~(recorded | filled))


def _complete_cpu_time(
    numbers: dict[str, Floats], keys: pa.Array, findings: Findings, nodes: Nodes
) -> pa.Array:
    """Fill missing CPU time with the mean load of the job's cores; return the source of each job's."""
    recorded = ~np.isnan(numbers["cpu_s"])
    # an assumed size of nodes does not tell who else is on them
    described = ~pc.equal(nodes.origin, "assumed").fill_null(True).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        # all cores of its nodes: no other job can have made their load
        exclusive = described & (numbers["cores"] >= numbers["nodes"] * nodes.cores)
    busy = np.minimum(busy_cores_of(keys, findings, exclusive), numbers["cores"])
    from_load = busy * numbers["wall_s"]
    numbers["cpu_s"] = np.where(recorded, numbers["cpu_s"], from_load)
    origin = np.select([recorded, ~np.isnan(numbers["cpu_s"])], ["cpu_s", "load"], "")
    return pa.array(origin, pa.string(), mask=origin == "")


def _tenth(values: Floats, percent: int) -> Floats:
    """Return the lower edge of a value's 10 % bin; 100 belongs to the last bin."""
    # percent: 1 for scores of 0 to 100, 100 for fractions
    return np.asarray(np.minimum(np.floor(values * percent / 10) * 10, 90.0), np.float64)


def _number(column: pa.Array) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    """Return a column as stored, with null for non-finite numbers."""
    if isinstance(values, np.ndarray):
        finite = np.isfinite(values)
        return pa.array(values, kind, mask=~finite)
    return values if values.type == kind else values.cast(kind)
