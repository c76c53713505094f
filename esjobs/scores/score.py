"""The step: scores of the jobs of each day, of what was counted and what was detected of them."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.arrow import table_schema
from esjobs.core.errors import NoJobsError
from esjobs.core.identity import content_id
from esjobs.core.query import Count, Days, In, Metric, Moment, Query, Select
from esjobs.core.report import RunReport
from esjobs.core.window import Window
from esjobs.publish.publication import tidy
from esjobs.records.jobs.aggregate import forgotten_days
from esjobs.records.names.cpu_models import RESOLVER_VERSION
from esjobs.schema.scores import MEASURES, RANKED, SCORE_NAMES, SCORES
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.scores.families import EVENTS_VERSION
from esjobs.scores.findings import Findings, findings_of, gpu_load_of, job_keys, marks_of, scores_of_issues
from esjobs.scores.formulas import Floats
from esjobs.scores.nodes import Described, Nodes, nodes_of
from esjobs.scores.reasons import NONE, Reasons
from esjobs.scores.scoring import Scored, score_counters
from esjobs.scores.settings import EfficiencySettings
from esjobs.scores.usage import BEYOND, PAST_REQUEST, efficiency, hours, shares, time_used, used_memory
from esjobs.store.base import Change, Hide, JobStore

SCORES_VERSION = 4
"""Of the formulas; moves when other numbers follow from the same jobs."""

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
"""What is read of a job."""

Progress = Callable[[str, int, int], None]


def score(
    store: JobStore,
    window: Window,
    settings: EfficiencySettings,
    described: Described,
    *,
    clusters: str = "",
    rebuild: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Score the jobs of the days of a window whose scores are missing or stale, in one switch.

    ``described``: what is known of the nodes of clusters; ``clusters``: a digest of that. A day is stale when
    its jobs, what was detected of them, the settings, the descriptions or the formulas changed since;
    ``rebuild`` takes every day as stale. Days that have no jobs any more lose their scores. Raises
    :class:`NoJobsError` for a window without jobs.

    Cost: the jobs of stale days are read once, a batch at a time; memory beside that: what was detected on a
    day.
    """
    began = time.perf_counter()
    window.require_whole_days("score")
    marks = day_marks(store, window, settings, clusters)
    known = _known(store, window)
    # an archive that forgets its jobs keeps what was made of them
    emptied = set(known) - set(marks)
    emptied -= set() if rebuild else forgotten_days(store, emptied)
    gone = [Hide(SCORES, str(day)) for day in sorted(emptied)]
    if not marks:
        store.publish(gone)
        raise NoJobsError(f"no jobs in {window}, so none to score; esjobs doctor says what is stored")
    stale = [day for day in sorted(marks) if rebuild or known.get(day) != {marks[day]}]
    changes: list[Change] = [*gone]
    for number, day in enumerate(stale):
        if progress:
            progress("scoring", number, len(stale))
        rows = _scored_day(store, day, marks[day], settings, described)
        changes.append(store.replace(SCORES, str(day), rows))
    if progress:
        progress("scoring", len(stale), len(stale))
    store.publish(changes)
    tidy(store)
    return _report(store, window, len(marks), len(stale), began)


def day_marks(
    store: JobStore, window: Window, settings: EfficiencySettings, clusters: str
) -> dict[date, str]:
    """By day that has jobs, a text that moves with anything that its scores are made from."""
    made_of = {
        **settings.model_dump(exclude={"nightly"}),
        "clusters": clusters,
        "versions": [SCORES_VERSION, EVENTS_VERSION, RESOLVER_VERSION],
        "layouts": [SCORES.layout, PREDICTED_SCORES.layout],
    }
    prints = {row["day"]: row["mark"] for row in store.day_fingerprints(window).to_pylist()}
    found = marks_of(store, window)
    return {day: content_id({**made_of, "of": [mark, found.get(day, "")]}) for day, mark in prints.items()}


def _report(store: JobStore, window: Window, n_days: int, n_stale: int, began: float) -> RunReport:
    """The account of the window: what stands there, however much of it was made now."""
    faults = In("cpu_efficiency_reason", (BEYOND,))
    past = In("time_used_reason", (PAST_REQUEST,))
    counts: list[Metric] = [
        Count("jobs"),
        Moment((), "faults", where=(faults,)),
        Moment((), "past", where=(past,)),
        *(Moment((), name, having=(name,)) for name in MEASURES),
    ]
    asked = Query((), tuple(counts), where=(Days.of_window(window),), over=SCORES)
    (found,) = store.aggregate(asked).table.to_pylist()
    n_jobs, n_faults, n_past = (int(found[name]) for name in ("jobs", "faults", "past"))
    notes = []
    if n_faults:
        notes.append(
            f"more CPU time than wall-clock time x cores: {n_faults:,} of {n_jobs:,} jobs. Their records are "
            "at fault, and no mean has them; see the column cpu_efficiency_reason"
        )
    if n_past:
        notes.append(
            f"{PAST_REQUEST}: {n_past:,} of {n_jobs:,} jobs. What their records say was asked for is not "
            "what they were stopped by, and no mean of time_used_frac has them; see time_used_reason"
        )
    return RunReport(
        "score",
        "-",
        n_jobs,
        n_jobs,
        time.perf_counter() - began,
        rows_are="jobs",
        rows_become="rows",
        counts={
            "days scored": n_stale,
            "days as they were": n_days - n_stale,
            **{f"{name} known": int(found[name]) for name in MEASURES},
            "CPU efficiency above 1": n_faults,
            "time used above twice the request": n_past,
        },
        notes=tuple(notes),
        window=str(window),
    )


def _known(store: JobStore, window: Window) -> dict[date, set[str]]:
    """What the stored scores of each day were made from."""
    asked = Query(("day", "mark"), (Count("n"),), where=(Days.of_window(window),), over=SCORES)
    known: dict[date, set[str]] = {}
    for row in store.aggregate(asked).table.to_pylist():
        known.setdefault(row["day"], set()).add(row["mark"])
    return known


def _scored_day(
    store: JobStore,
    day: date,
    mark: str,
    settings: EfficiencySettings,
    described: Described,
) -> Iterator[pa.RecordBatch]:
    findings = findings_of(store, day, settings)
    for batch in store.select(Select(FIELDS, Window.of_days(day, day))):
        if batch.num_rows:
            yield scored_jobs(batch, day, mark, findings, settings, described)


def scored_jobs(
    jobs: pa.RecordBatch,
    day: date,
    mark: str,
    findings: Findings,
    settings: EfficiencySettings,
    described: Described,
) -> pa.RecordBatch:
    """The rows of a batch of jobs (:data:`FIELDS`) of a day."""
    reasons = Reasons()
    given = {name: _number(jobs.column(name)) for name in _NUMBERS}
    nodes = nodes_of(jobs, described, settings.cores_per_node)
    cores_from = _complete_cores(given, nodes)
    keys = job_keys(jobs.column("source"), jobs.column("job_id"))
    named = pc.coalesce(nodes.cpu_models, jobs.column("cpu_raw"))
    counted = score_counters(jobs.column("counters"), named, nodes.smt, reasons)
    scored: dict[str, Scored] = {
        **counted.scores,
        **scores_of_issues(keys, findings, settings.issues, reasons),
        "cpu_efficiency": efficiency(given, reasons),
    }
    values = {name: scored[name].value for name in SCORE_NAMES}
    faults = scored["cpu_efficiency"].codes == reasons.code(BEYOND)
    sound = scored["cpu_efficiency"].codes == NONE
    values["cpu_efficiency"] = np.where(sound, scored["cpu_efficiency"].unclipped, np.nan)
    values["score_sum"], n_scores = _sum([values[name] for name in SCORE_NAMES])
    of_hours = hours(given, nodes.cores)
    of_shares = shares(given)
    time = time_used(given, reasons)
    of_shares["time_used_frac"] = np.where(time.codes == NONE, time.unclipped, np.nan)
    of_shares["cores_used_frac"] = np.where(faults, np.nan, of_shares["cores_used_frac"])
    busy = gpu_load_of(keys, findings) * given["gpus"]
    with np.errstate(divide="ignore", invalid="ignore"):
        asked = np.where(np.isnan(given["requested_gpus"]), given["gpus"], given["requested_gpus"])
        of_shares["gpus_used_frac"] = np.where(asked > 0, busy / asked, np.nan)
    issues_known = ~np.isnan(values["score_mpi"]) | ~np.isnan(values["score_io"])
    columns: dict[str, Any] = {
        **{name: jobs.column(name) for name in (*_KEPT, *_KEPT_NUMBERS)},
        "cpu_model": nodes.cpu_models,
        "variant": counted.variant,
        **{f"{name}_unclipped": scored[name].unclipped for name in MEASURES},
        **{f"{name}_reason": reasons.column(scored[name].codes) for name in MEASURES},
        **values,
        **{f"{name}_sq": values[name] ** 2 for name in RANKED},
        **{f"{name}_from": _tenth(values[name], 1 if name in SCORE_NAMES else 100) for name in MEASURES},
        **of_hours,
        **of_shares,
        "used_memory_b": used_memory(given),
        "node_h_from": pc.if_else(
            pa.array(np.isnan(of_hours["node_h"])),
            pa.scalar(None, pa.string()),
            pc.if_else(jobs.column("nodes").is_valid(), pa.scalar("nodes"), nodes.origin),
        ),
        # below 0 where a record says more CPU time than cores could give: sums are those of all jobs
        "idle_core_h": of_hours["core_h"] - given["cpu_s"] / 3600.0,
        "issues_variant": pc.if_else(
            pa.array(issues_known), pa.scalar(settings.issues), pa.scalar(None, pa.string())
        ),
        "n_scores": n_scores,
        "time_used_reason": reasons.column(time.codes),
        "cores_from": cores_from,
        "day": pa.repeat(pa.scalar(day), jobs.num_rows),
        "mark": pa.repeat(pa.scalar(mark), jobs.num_rows),
    }
    schema = table_schema(SCORES)
    return pa.RecordBatch.from_arrays(
        [_column(columns[item.name], item.type) for item in schema], schema=schema
    )


def _complete_cores(given: dict[str, Floats], nodes: Nodes) -> pa.Array:
    """Put nodes x described cores where the record names no cores; where the cores of each job are from."""
    recorded = ~np.isnan(given["cores"])
    described = pc.equal(nodes.origin, "cluster").to_numpy(zero_copy_only=False)
    known = ~recorded & described & (given["nodes"] > 0)
    given["cores"] = np.where(known, given["nodes"] * nodes.cores, given["cores"])
    return pa.array(
        np.select([recorded, known], ["cores", "cluster"], ""), pa.string(), mask=~(recorded | known)
    )


def _tenth(values: Floats, percent: int) -> Floats:
    """The lower end of the ten per cent in which a value lies; 100 belongs to the last."""
    return np.asarray(np.minimum(np.floor(values * percent / 10) * 10, 90.0), np.float64)


def _number(column: pa.Array) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _sum(scores: Sequence[Floats]) -> tuple[Floats, np.ndarray]:
    """The sum of the scores that jobs have, NaN of none, and how many these are."""
    stacked = np.stack(scores)
    known = (~np.isnan(stacked)).sum(axis=0)
    return np.where(known > 0, np.nansum(stacked, axis=0), np.nan), known


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    """A column as it is stored: nothing that is no number, null instead."""
    if isinstance(values, np.ndarray):
        finite = np.isfinite(values)
        return pa.array(values, kind, mask=~finite)
    return values if values.type == kind else values.cast(kind)
