"""The jobs that behaved most like one, and in what they differ most."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.metrics import METRICS, metric
from esjobs.core.query import Filter, In
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.resolution import select
from esjobs.records.series.blocks import blocks
from esjobs.schema.scores import SCORES
from esjobs.schema.series import SERIES
from esjobs.similar.comparable import BAND, DURATION, LEAST_S, node_class
from esjobs.similar.prepared import PreparedJob, measured, prepared
from esjobs.similar.scaling import scale_of
from esjobs.store.base import JobStore

_RECORD = ("user", "project", "application")
_SHOWN_SCORES = ("score_cpu", "score_mem")

COLUMNS = pa.schema(
    [
        ("rank", pa.int64()),
        ("job_id", pa.string()),
        ("distance", pa.float64()),
        ("differs_in", pa.string()),
        ("differs_frac", pa.float64()),
        *((name, pa.string()) for name in _RECORD),
        *((name, pa.float64()) for name in _SHOWN_SCORES),
        ("nodes", pa.int64()),
        ("series_s", pa.float64()),
        ("source", pa.string()),
    ]
)
"""Columns of the answer; ``distance`` in the spread that the jobs have, ``differs_frac`` of its square."""


@dataclass(frozen=True)
class SimilarJobs:
    """The nearest jobs (``COLUMNS``), the nearest first.

    ``metrics``: in which jobs were compared. ``n_compared``: with how many; ``n_warped``: of these those
    that no bound excluded. ``left_out``: how many were not compared, by reason.
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
    """The ``top`` jobs of a window (None: all that ended at any time) most like a job; top None: all.

    ``metrics``: in which they are compared; none: every one of the catalogue that the job has. Compared are
    jobs of half to twice its duration and of its class of nodes: 1, 2, 3 to 4, 5 to 8, ... Raises
    :class:`NoResultError` where the job has no series, too short ones, or nothing to compare them with,
    :class:`UsageError` for a metric that is none. Memory: 4 bytes x 500 x metrics a job of the window.
    """
    for name in metrics:
        metric(name)
    asked, names = _asked(store, job_id, source, metrics)
    nodes = _recorded_nodes(store, window, asked)
    own_nodes = nodes.get((asked.source, asked.job_id)) or asked.nodes or 1
    left_out: Counter[str] = Counter()
    alike: list[PreparedJob] = []
    for block in blocks(store, window, names):
        for job in prepared(block, names):
            key = (job.source, job.job_id)
            if key == (asked.source, asked.job_id):
                continue
            reason = _unlike(job, asked, nodes.get(key) or job.nodes or 1, own_nodes)
            if reason:
                left_out[reason] += 1
            else:
                alike.append(job)
    if not alike:
        told = ", ".join(f"{count:,} {reason}" for reason, count in left_out.most_common())
        raise NoResultError(f"no job to compare '{job_id}' with: {told or 'no other has time series'}")
    alike.sort(key=lambda job: (job.source, job.job_id))
    return _answer(store, asked, alike, names, nodes, left_out, top)


def _asked(
    store: JobStore, job_id: str, source: str | None, metrics: Sequence[str]
) -> tuple[PreparedJob, tuple[str, ...]]:
    """The job asked for, and in which metrics it is compared."""
    where: list[Filter] = [In("job_id", (job_id,))]
    if source is not None:
        where.append(In("source", (source,)))
    rows = read_table(store, SERIES, where, ["source", "metric"])
    sources = sorted(set(rows.column("source").to_pylist()))
    if not sources:
        raise NoResultError(f"no time series of a job '{job_id}' are stored; esjobs show series lists them")
    if len(sources) > 1:
        raise UsageError(f"several sources have a job '{job_id}': {', '.join(sources)}; name one: --source")
    stored = set(rows.column("metric").to_pylist())
    wanted = tuple(dict.fromkeys(metrics)) or tuple(each.name for each in METRICS if each.name in stored)
    missing = [name for name in wanted if name not in stored]
    if missing or not wanted:
        has = ", ".join(sorted(stored))
        raise NoResultError(
            f"job '{job_id}' has no series of {', '.join(missing) or 'any known metric'}; it has {has}"
        )
    where = [In("job_id", (job_id,)), In("source", (sources[0],))]
    for block in blocks(store, None, wanted, where=where):
        names = measured(block, 0, wanted)
        few = [name for name in wanted if name not in names]
        if not names or (metrics and few):
            raise NoResultError(f"job '{job_id}' has too few samples of {', '.join(few)}")
        job = next(prepared(block, names))
        if job.length_s < LEAST_S:
            raise NoResultError(
                f"the series of job '{job_id}' last {job.length_s:.0f} s; "
                f"jobs are compared from {LEAST_S:.0f} s on"
            )
        return job, names
    raise NoResultError(f"the series of job '{job_id}' have no samples")


def _recorded_nodes(
    store: JobStore, window: Window | None, asked: PreparedJob
) -> dict[tuple[str, str], int | None]:
    """Nodes of the jobs by their records, the job asked for among them."""
    one = [In("source", (asked.source,)), In("job_id", (asked.job_id,))]
    names = ["source", "job_id", "nodes"]
    found: dict[tuple[str, str], int | None] = {}
    for rows in (select(store, names, window), select(store, names, None, where=one)):
        for batch in rows:
            keys = zip(*(batch.column(name).to_pylist() for name in names[:2]), strict=True)
            found.update(zip(keys, batch.column("nodes").to_pylist(), strict=True))
    return found


def _unlike(job: PreparedJob, asked: PreparedJob, nodes: int, own_nodes: int) -> str:
    """Why a job is not compared; empty: it is."""
    if job.length_s < LEAST_S:
        return f"with series of less than {LEAST_S / 60:.0f} min"
    if not DURATION[0] <= job.length_s / asked.length_s <= DURATION[1]:
        return "of less than half or more than twice its duration"
    if node_class(nodes) != node_class(own_nodes):
        return "of another number of nodes"
    return "" if job.values is not None else "without all of its metrics"


def _answer(
    store: JobStore,
    asked: PreparedJob,
    alike: Sequence[PreparedJob],
    names: tuple[str, ...],
    nodes: Mapping[tuple[str, str], int | None],
    left_out: Mapping[str, int],
    top: int | None,
) -> SimilarJobs:
    from fitters import WarpedSeries

    values = np.stack([job.values for job in (asked, *alike) if job.values is not None])
    scale_of(values).apply(values)
    series = WarpedSeries(values[1:], BAND)
    nearest = series.nearest(values[0], len(alike) if top is None else top)
    chosen = [alike[place] for place in nearest.places.tolist()]
    ids = tuple({job.job_id for job in chosen})
    records = _by_job(
        select(store, ["source", "job_id", *_RECORD], None, where=[In("job_id", ids)]).read_all()
    )
    scored = ["source", "job_id", *_SHOWN_SCORES]
    scores = _by_job(read_table(store, SCORES, [In("job_id", ids)], scored))
    rows = []
    for rank, (job, place) in enumerate(zip(chosen, nearest.places.tolist(), strict=True), start=1):
        shares = series.shares(values[0], place)
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
        pa.Table.from_pylist(rows, schema=COLUMNS), names, len(alike), nearest.n_warped, dict(left_out)
    )


def _by_job(rows: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["source"], row["job_id"]): row for row in rows.to_pylist()}
