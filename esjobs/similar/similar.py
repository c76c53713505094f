"""Jobs that behaved most like one, and their largest difference."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import NoResultError
from esjobs.core.metrics import METRICS, metric
from esjobs.core.query import Filter, In
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.resolution import require_one_source, select
from esjobs.records.series.blocks import blocks
from esjobs.schema.scores import SCORES
from esjobs.schema.series import SERIES
from esjobs.similar.prepared import (
    BAND,
    DURATION,
    LEAST_S,
    PreparedJob,
    measured,
    node_class,
    prepared,
    scale_of,
)
from esjobs.store.base import JobStore

_RECORD = ("user", "project", "application")
SHOWN_SCORES = ("score_cpu", "score_mem")
"""Scores shown beside similar jobs."""

COLUMNS = pa.schema(
    [
        ("rank", pa.int64()),
        ("job_id", pa.string()),
        ("distance", pa.float64()),
        ("differs_in", pa.string()),
        ("differs_frac", pa.float64()),
        *((name, pa.string()) for name in _RECORD),
        *((name, pa.float64()) for name in SHOWN_SCORES),
        ("nodes", pa.int64()),
        ("series_s", pa.float64()),
        ("source", pa.string()),
    ]
)
"""Columns of the answer; ``distance`` in units of the spread over jobs, ``differs_frac`` of its square."""


@dataclass(frozen=True)
class SimilarJobs:
    """Nearest jobs (``COLUMNS``), nearest first.

    ``n_compared``: candidates; ``n_warped``: those that no bound excluded; ``left_out``: others, by reason.
    """

    rows: pa.Table
    metrics: tuple[str, ...]
    n_compared: int
    n_warped: int
    left_out: Mapping[str, int]


def similar_jobs(
    store: JobStore,
    job_id: str,
    source: str | None = None,
    *,
    window: Window | None = None,
    top: int | None = 10,
    metrics: Sequence[str] = (),
) -> SimilarJobs:
    """Return the ``top`` jobs of a window (None: all) most similar to a job; ``top`` None: all jobs.

    ``metrics``: default: all of the job. Candidates have half to twice its duration and its class of nodes
    (1, 2, 3 to 4, 5 to 8, ...). Raises :class:`NoResultError` for a job without usable series or without
    candidates, :class:`UsageError` for an unknown metric. Memory: 4 bytes x 500 x metrics per job of the
    window.
    """
    for name in metrics:
        metric(name)
    target, names = _target(store, job_id, source, metrics)
    nodes = _recorded_nodes(store, window, target)
    own_nodes = nodes.get((target.source, target.job_id)) or target.nodes or 1
    left_out: Counter[str] = Counter()
    candidates: list[PreparedJob] = []
    every = chain.from_iterable(prepared(block, names) for block in blocks(store, window, names))
    for job in every:
        key = (job.source, job.job_id)
        if key == (target.source, target.job_id):
            continue
        reason = _unlike(job, target, nodes.get(key) or job.nodes or 1, own_nodes)
        if reason:
            left_out[reason] += 1
        else:
            candidates.append(job)
    if not candidates:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.most_common())
        raise NoResultError(f"no job to compare '{job_id}' with: {reasons or 'no other job has time series'}")
    # ties of distance are broken by position: an order that the store does not choose
    candidates.sort(key=lambda job: (job.source, job.job_id))
    return _answer(store, target, candidates, names, nodes, left_out, top)


def _source_and_metrics(store: JobStore, job_id: str, source: str | None) -> tuple[str, set[str]]:
    where: list[Filter] = [In("job_id", (job_id,))]
    if source is not None:
        where.append(In("source", (source,)))
    rows = read_table(store, SERIES, where, ["source", "metric"])
    sources = sorted(set(rows.column("source").to_pylist()))
    if not sources:
        raise NoResultError(f"no time series of job '{job_id}' are stored; list series: esjobs show series")
    require_one_source(job_id, sources)
    return sources[0], set(rows.column("metric").to_pylist())


def _target(
    store: JobStore, job_id: str, source: str | None, metrics: Sequence[str]
) -> tuple[PreparedJob, tuple[str, ...]]:
    source, stored = _source_and_metrics(store, job_id, source)
    wanted = _metrics(job_id, stored, metrics)
    where = [In("job_id", (job_id,)), In("source", (source,))]
    block = next(iter(blocks(store, None, wanted, where=where)), None)
    if block is None:
        raise NoResultError(f"the series of job '{job_id}' have no samples")
    names = measured(block, 0, wanted)
    few = [name for name in wanted if name not in names]
    if not names or (metrics and few):
        raise NoResultError(f"job '{job_id}' has too few samples of {', '.join(few)}")
    job = next(prepared(block, names))
    if job.length_s < LEAST_S:
        raise NoResultError(
            f"the time series of job '{job_id}' cover {job.length_s:.0f} s; at least {LEAST_S:.0f} s are "
            "required"
        )
    return job, names


def _metrics(job_id: str, stored: set[str], metrics: Sequence[str]) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(metrics)) or tuple(each.name for each in METRICS if each.name in stored)
    missing = [name for name in wanted if name not in stored]
    if missing or not wanted:
        has = ", ".join(sorted(stored))
        raise NoResultError(
            f"job '{job_id}' has no time series of {', '.join(missing) or 'a usable metric'}; it has {has}"
        )
    return wanted


def _recorded_nodes(
    store: JobStore, window: Window | None, target: PreparedJob
) -> dict[tuple[str, str], int | None]:
    one = [In("source", (target.source,)), In("job_id", (target.job_id,))]
    names = ["source", "job_id", "nodes"]
    found: dict[tuple[str, str], int | None] = {}
    # the job itself may lie outside the window
    for rows in (select(store, names, window), select(store, names, None, where=one)):
        for batch in rows:
            keys = zip(*(batch.column(name).to_pylist() for name in names[:2]), strict=True)
            found.update(zip(keys, batch.column("nodes").to_pylist(), strict=True))
    return found


def _unlike(job: PreparedJob, target: PreparedJob, nodes: int, own_nodes: int) -> str:
    """Return the reason for excluding a job, "" if compared."""
    if job.length_s < LEAST_S:
        return f"with series of less than {LEAST_S / 60:.0f} min"
    if not DURATION[0] <= job.length_s / target.length_s <= DURATION[1]:
        return "with less than half or more than twice its duration"
    if node_class(nodes) != node_class(own_nodes):
        return "with another number of nodes"
    return "" if job.values is not None else "without all of its metrics"


def _answer(
    store: JobStore,
    target: PreparedJob,
    candidates: Sequence[PreparedJob],
    names: tuple[str, ...],
    nodes: Mapping[tuple[str, str], int | None],
    left_out: Mapping[str, int],
    top: int | None,
) -> SimilarJobs:
    from fitters import WarpedSeries

    values = np.stack([job.values for job in (target, *candidates) if job.values is not None])
    # by what differs between these jobs, the target among them
    scale_of(values).apply(values)
    series = WarpedSeries(values[1:], BAND)
    nearest = series.nearest(values[0], len(candidates) if top is None else top)
    chosen = [candidates[index] for index in nearest.places.tolist()]
    ids = tuple({job.job_id for job in chosen})
    where = [In("job_id", ids)]
    records = _by_job(select(store, ["source", "job_id", *_RECORD], None, where=where).read_all())
    scores = scores_of(store, ids)
    rows = []
    for rank, (job, index) in enumerate(zip(chosen, nearest.places.tolist(), strict=True), start=1):
        shares = series.shares(values[0], index)
        key, most = (job.source, job.job_id), int(shares.argmax())
        rows.append(
            {
                **records.get(key, {}),
                **scores.get(key, {}),
                "rank": rank,
                "source": job.source,
                "job_id": job.job_id,
                "distance": float(nearest.distances[rank - 1]),
                "differs_in": names[most] if shares.any() else None,
                "differs_frac": float(shares[most]) if shares.any() else None,
                "nodes": nodes.get(key) or job.nodes,
                "series_s": job.length_s,
            }
        )
    return SimilarJobs(
        pa.Table.from_pylist(rows, schema=COLUMNS), names, len(candidates), nearest.n_warped, dict(left_out)
    )


def scores_of(store: JobStore, ids: Iterable[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the shown scores of jobs by source and id."""
    where = [In("job_id", tuple(ids))]
    return _by_job(read_table(store, SCORES, where, ["source", "job_id", *SHOWN_SCORES]))


def _by_job(rows: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["source"], row["job_id"]): row for row in rows.to_pylist()}
