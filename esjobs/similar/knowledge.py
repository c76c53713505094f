"""Knowledge base: jobs with measured scores and time series."""

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from esjobs.core.errors import NoResultError
from esjobs.core.metrics import METRICS, metric
from esjobs.core.query import Days, Filter
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.jobs.resolution import select
from esjobs.records.series.blocks import blocks
from esjobs.schema.scores import OWN_ROW, SCORES
from esjobs.schema.similar import PREDICTED_NAMES
from esjobs.similar.prepared import (
    DURATION,
    LEAST_S,
    PreparedJob,
    Scale,
    measured,
    node_class,
    prepared,
    scale_of,
)
from esjobs.similar.settings import SimilarSettings
from esjobs.store.base import JobStore
from fitters import WarpedSeries
from fitters.layout.arrays import Floats, Ints, Mask

Key = tuple[str, str]
Row = Mapping[str, Any]

# A metric that a smaller part of the knowledge base has would cost more jobs than it tells of the others
_COMMON = 0.8
_SEGMENTS, _BAND = 50, 5  # The band is a tenth of the duration to either side
# Of weights: neighbours, jobs that are predicted, at most and at least, and the least part of the variance
_NEAREST, _TRIED, _LEAST_TRIED, _LEAST_R2 = 5, 200, 20, 0.1
_FACTS = (
    *("source", "job_id", "queue", "user", "project", "application", "processing_type", "cpu_model"),
    *("end_time", "node_h", "core_h", "nodes", "variant", "day", "fingerprint", *PREDICTED_NAMES),
)


class KnowledgeBase:
    """Jobs with measured scores and their series.

    ``facts``: rows of ``scores``; ``scores``: by name, NaN if not measured. ``runs``, ``users``: group
    numbers of job arrays (or submission series) and users. ``limiting``: one half of the runs, which
    determines limits; the other half determines errors.
    """

    def __init__(
        self,
        facts: Sequence[Row],
        jobs: Sequence[PreparedJob],
        tasks: Mapping[Key, str | None],
        names: tuple[str, ...],
    ) -> None:
        values = np.stack([job.values for job in jobs if job.values is not None])
        self.metrics = names
        self.scale: Scale = scale_of(values)
        # equal weights first: shapes are weighted, and the weights follow from shapes
        self.weights = np.ones(len(names))
        self.facts = tuple(facts)
        self.keys: tuple[Key, ...] = tuple((row["source"], row["job_id"]) for row in facts)
        self.places = {key: index for index, key in enumerate(self.keys)}
        self.scores = {
            name: np.array([np.nan if row[name] is None else row[name] for row in facts], np.float64)
            for name in PREDICTED_NAMES
        }
        self._lengths = np.array([job.length_s for job in jobs])
        self._nodes = np.array([node_class(nodes_of(row, job)) for row, job in zip(facts, jobs, strict=True)])
        # jobs of one array are copies of each other: halves and folds must not cut through them
        runs = [_run(row, tasks) for row in facts]
        self.runs = _numbered(runs)
        self.limiting = _half(runs)
        self.users = _numbered([_user(row) for row in facts])
        self.applications = np.array([row["application"] or "" for row in facts], dtype=object)
        shapes = self.shape(values)
        self.weights = self._predictive(shapes)
        # a squared distance has the weight itself
        self.series = WarpedSeries(shapes * np.sqrt(self.weights).astype(np.float32), _BAND)

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def weighed(self) -> list[tuple[str, float]]:
        """Metrics with their weights."""
        return list(zip(self.metrics, self.weights.tolist(), strict=True))

    def shape(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return scaled and weighted means of 50 segments; ``values``, (..., samples, metrics), are scaled.

        50 segments with a tenth of the band predict as well as 500 samples, at a hundredth of the cost.
        """
        self.scale.apply(values)
        *before, n_samples, n_metrics = values.shape
        pieces = values.reshape(*before, _SEGMENTS, n_samples // _SEGMENTS, n_metrics)
        return np.asarray(pieces.mean(axis=-2) * np.sqrt(self.weights), np.float32)

    def _predictive(self, shapes: npt.NDArray[np.float32]) -> Floats:
        """Return a weight per metric, mean 1: what part of the variance of a score it predicts alone.

        Predicted is each job of the limiting half from its five nearest ones of other users, for a user's
        habits tell of the user; the better of both scores counts, and less than a tenth is dropped. All equal
        where no metric predicts or too few jobs can be tried.
        """
        found = np.array([self._r2(shapes[:, :, [number]]) for number in range(shapes.shape[2])])
        found[~(found >= _LEAST_R2)] = 0.0  # In this form, as NaN must go as well
        return found / found.mean() if found.any() else np.ones(len(found))

    def _r2(self, shapes: npt.NDArray[np.float32]) -> float:
        series = WarpedSeries(shapes, _BAND)
        best = 0.0
        for scores in self.scores.values():
            usable = self.limiting & ~np.isnan(scores)
            tried = np.flatnonzero(usable)
            pairs = []
            # evenly over the base, which is ordered by source and job
            for index in tried[:: max(1, len(tried) // _TRIED)].tolist():
                others = self.comparable_to(index)
                others = others[usable[others] & (self.users[others] != self.users[index])]
                if len(others) >= _NEAREST:
                    near = series.nearest(shapes[index], _NEAREST, others)
                    pairs.append((scores[index], scores[near.places].mean()))
            truth, predicted = np.array(pairs).reshape(-1, 2).T
            if len(truth) >= _LEAST_TRIED and truth.var() > 0:
                best = max(best, 1 - float(np.square(truth - predicted).mean() / truth.var()))
        return best

    def comparable(self, length_s: float, nodes: int) -> Ints:
        """Return jobs of half to twice a duration and of a class of nodes."""
        ratio = self._lengths / length_s
        fits = (ratio >= DURATION[0]) & (ratio <= DURATION[1]) & (self._nodes == nodes)
        return np.flatnonzero(fits)

    def comparable_to(self, index: int) -> Ints:
        """Return the jobs comparable to one of the knowledge base."""
        found = self.comparable(float(self._lengths[index]), int(self._nodes[index]))
        others: Ints = found[found != index]
        return others


def knowledge_base(store: JobStore, settings: SimilarSettings) -> KnowledgeBase:
    """Return the newest jobs with a measured score and comparable series.

    Raises :class:`NoResultError` without any, :class:`UsageError` for an unknown metric. Cost: the series of
    all jobs once, twice if the settings name no metrics.
    """
    for name in settings.metrics:
        metric(name)
    facts = {
        key: row
        for key, row in scored_jobs(store, None).items()
        if any(row[name] is not None for name in PREDICTED_NAMES)
    }
    # ties by key: a limit of jobs must cut at the same one each time
    newest = sorted(facts, key=lambda key: (facts[key]["end_time"], key), reverse=True)
    chosen = set(newest[: settings.most_jobs])
    if not chosen:
        raise NoResultError("no job has a measured score_cpu or score_mem; run: esjobs score")
    # all series are read once more to find them: only where the settings name none
    names = settings.metrics or _common(store, chosen)
    kept = {
        (job.source, job.job_id): job
        for block in blocks(store, None, names)
        for job in prepared(block, names)
        if (job.source, job.job_id) in chosen and job.values is not None and job.length_s >= LEAST_S
    }
    if not kept:
        raise NoResultError(
            f"none of {len(chosen):,} jobs with a measured score has time series of {LEAST_S / 60:.0f} "
            f"minutes in {', '.join(names) or 'a usable metric'}"
        )
    keys = sorted(kept)
    tasks = _tasks(store)
    return KnowledgeBase([facts[key] for key in keys], [kept[key] for key in keys], tasks, names)


def scored_jobs(store: JobStore, window: Window | None) -> dict[Key, Row]:
    """Return rows of ``scores`` by job, in the columns of predictions."""
    where: list[Filter] = [OWN_ROW, *([] if window is None else [Days.of_window(window)])]
    rows = read_table(store, SCORES, where, _FACTS).to_pylist()
    return {(row["source"], row["job_id"]): row for row in rows}


def nodes_of(row: Row, job: PreparedJob) -> int:
    """Return the nodes of a job: record, else series, else one."""
    return int(row["nodes"] or job.nodes or 1)


def _common(store: JobStore, chosen: set[Key]) -> tuple[str, ...]:
    """Return the metrics that most jobs have enough samples of, in catalogue order."""
    listed = [each.name for each in METRICS]
    counts: Counter[str] = Counter()
    n_jobs = 0
    for block in blocks(store, None, listed):
        keys = zip(*(block.jobs.column(name).to_pylist() for name in ("source", "job_id")), strict=True)
        for index, key in enumerate(keys):
            if key in chosen:
                n_jobs += 1
                counts.update(measured(block, index, listed))
    return tuple(name for name in listed if n_jobs and counts[name] >= _COMMON * n_jobs)


def _tasks(store: JobStore) -> dict[Key, str | None]:
    found: dict[Key, str | None] = {}
    for batch in select(store, ["source", "job_id", "task_id"], None):
        rows = batch.to_pylist()
        found.update({(row["source"], row["job_id"]): row["task_id"] for row in rows if row["task_id"]})
    return found


def _run(row: Row, tasks: Mapping[Key, str | None]) -> tuple[Any, ...]:
    """Return the group of a job array; without a task one user, application and day are a group."""
    key = (row["source"], row["job_id"])
    if task := tasks.get(key):
        return row["source"], "task", task
    if row["user"] is not None:
        return row["source"], "user", row["user"], row["application"], row["day"]
    return row["source"], "job", row["job_id"]


def _user(row: Row) -> tuple[Any, ...]:
    return ("user", row["user"]) if row["user"] is not None else (row["source"], "job", row["job_id"])


def _half(runs: Sequence[tuple[Any, ...]]) -> Mask:
    """Return the mask of one half of the runs."""
    # by hash, for runs follow each other in time; crc32 is the same in every process, unlike hash()
    ordered = sorted(set(runs), key=lambda run: (zlib.crc32(repr(run).encode()), repr(run)))
    chosen = set(ordered[: (len(ordered) + 1) // 2])
    return np.array([run in chosen for run in runs], np.bool_)


def _numbered(keys: Sequence[tuple[Any, ...]]) -> Ints:
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
