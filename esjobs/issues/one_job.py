"""Reports on jobs: record, scores, tags, issues with evidence, footprint and series."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core import fields
from esjobs.core.errors import NoResultError
from esjobs.core.numbers import many
from esjobs.core.query import Count, Filter, In, Like, Query
from esjobs.core.tables import Table
from esjobs.issues.plots import Plot, plots
from esjobs.issues.roofline import COUNTERS, TRAFFIC, Roofline, roofline
from esjobs.publish.publication import read_table
from esjobs.records.clusters.description import Clusters
from esjobs.records.jobs.resolution import require_one_source, select
from esjobs.records.series.blocks import blocks
from esjobs.schema.issues import FOOTPRINTS, ISSUES, MEASURES
from esjobs.schema.pop import POP
from esjobs.schema.scores import SCORES
from esjobs.schema.series import SERIES
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.store.base import JobStore

Identity = tuple[str, str]
"""Source and job_id."""
Row = Mapping[str, Any]
DescribedClusters = Callable[[], Clusters]
"""Reads the descriptions of clusters."""
_Rows = Mapping[Identity, list[Row]]

# jobs that are asked for together
_PER_QUERY = 200
# values of series in memory at a time
_VALUES = 1 << 24
_LIST_JOBS = "list jobs: esjobs jobs"


@dataclass(frozen=True)
class EarlierRun:
    """A job of the same name: its record (unknown is None) and the rules of its issues, the worst first."""

    record: Row
    issues: tuple[str, ...]


@dataclass(frozen=True)
class JobStory:
    """Stored data of a job, as rows of the tables.

    ``record``: its present fields in catalogue order; empty if only series are stored. ``issues``: worst
    first, including tags. ``predicted``: predictions of missing scores. ``pop``: one row per region.
    ``monitoring``: measured overhead of monitoring, in sentences. ``runs``: earlier jobs of the name, newest
    first, where one job is asked for.
    """

    source: str
    job_id: str
    record: Row
    scores: Row | None
    issues: tuple[Row, ...]
    measures: tuple[Row, ...]
    footprints: tuple[Row, ...]
    plots: tuple[Plot, ...]
    pop: tuple[Row, ...] = ()
    monitoring: tuple[str, ...] = ()
    predicted: tuple[Row, ...] = ()
    runs: tuple[EarlierRun, ...] = ()
    roofline: Roofline | None = None

    def seen_in(self, metric: str) -> tuple[Row, ...]:
        """Return issues whose evidence is an interval of a metric."""
        return tuple(row for row in self.issues if row["metric"] == metric and row["begin"] is not None)


def job_story(
    store: JobStore,
    job_id: str,
    source: str | None = None,
    *,
    points: int = 240,
    clusters: DescribedClusters | None = None,
) -> JobStory:
    """Return the report on a job. ``points``, ``clusters``: as in :func:`job_stories`.

    Raises :class:`NoResultError` if nothing is stored, :class:`UsageError` if several sources have the id.
    """
    where: list[Filter] = [In("job_id", (job_id,))]
    if source is not None:
        where.append(In("source", (source,)))
    records = select(store, ["source"], None, where=where).read_all()
    series = read_table(store, SERIES, where, ["source"])
    sources = sorted({each for rows in (records, series) for each in rows.column("source").to_pylist()})
    if not sources:
        of_source = "" if source is None else f" of the source '{source}'"
        attempts = _attempts(store, job_id, where[1:])
        if attempts:
            way_out = f"use one of its attempts: {', '.join(attempts)}"
        else:
            way_out = _of_array(store, job_id, where[1:]) or _LIST_JOBS
        raise NoResultError(f"job '{job_id}'{of_source} not found; {way_out}")
    require_one_source(job_id, sources)
    return next(job_stories(store, [(sources[0], job_id)], points=points, clusters=clusters))


def _attempts(store: JobStore, job_id: str, where: Sequence[Filter]) -> list[str]:
    """Return the ids of attempts that Slurm repeated under the number of a job."""
    # an id has no wildcards
    pattern = Like("job_id", (f"{job_id.replace('*', '')}@*",))
    found = select(store, ["job_id"], None, where=[*where, pattern]).read_all()
    return sorted(set(found.column("job_id").to_pylist()))


def _of_array(store: JobStore, job_id: str, where: Sequence[Filter]) -> str | None:
    """Return the way to a job of a Slurm array, ``ARRAY_NUMBER``, whose jobs are stored by their own ids."""
    array, _, number = job_id.partition("_")
    if not number.isdecimal():
        return None
    query = Query((), (Count("n"),), where=(*where, In("task_id", (array,))))
    (found,) = store.aggregate(query).table.to_pylist()
    if not found["n"]:
        return None
    return (
        f"{many(found['n'], 'job')} of array {array} are stored by JobIDRaw; the one of this job: "
        f"sacct -nXj {job_id} -o JobIDRaw; all of them: esjobs jobs --where task_id={array}"
    )


def job_stories(
    store: JobStore, jobs: Sequence[Identity], *, points: int = 240, clusters: DescribedClusters | None = None
) -> Iterator[JobStory]:
    """Yield the reports on jobs, in order; jobs without stored data are skipped.

    ``points``: values per plot, at most. ``clusters``: reads the peaks of nodes, called if rooflines can be
    drawn; None: no rooflines. Cost: nine queries per 200 jobs, two more for rooflines.
    """
    for start in range(0, len(jobs), _PER_QUERY):
        yield from _stories(store, jobs[start : start + _PER_QUERY], points, clusters)


def _stories(
    store: JobStore, jobs: Sequence[Identity], points: int, clusters: DescribedClusters | None
) -> Iterator[JobStory]:
    where = [
        In("job_id", tuple(dict.fromkeys(job for _, job in jobs))),
        In("source", tuple(dict.fromkeys(source for source, _ in jobs))),
    ]
    records = _records(store, where)
    issues, measures, footprints, scores, predictions = (
        _of_table(store, each, where) for each in (ISSUES, MEASURES, FOOTPRINTS, SCORES, PREDICTED_SCORES)
    )
    pop = _of_table(store, POP, [*where, In("level", ("application",))])
    series = _of_table(store, SERIES, where, ["source", "job_id", "metric"])
    drawn = _drawn(store, where, series, issues, points)
    present = {job: _without_nulls(records[job]) for job in jobs}
    roofs = {} if clusters is None else _rooflines(store, where, series, present, clusters)
    for job in jobs:
        if records[job] or series[job]:
            own = next(iter(scores[job]), None)
            yield JobStory(
                *job,
                present[job],
                own,
                tuple(_worst_first(issues[job])),
                tuple(measures[job]),
                tuple(sorted(footprints[job], key=lambda row: str(row["metric"]))),
                tuple(drawn[job]),
                tuple(pop[job]),
                # a prediction is shown beside scores only, never in their place
                predicted=() if own is None else _missing_only(predictions[job], own),
                roofline=roofs.get(job),
            )


def _without_nulls(records: Sequence[Row]) -> Row:
    return {name: value for row in records[:1] for name, value in row.items() if value is not None}


def _missing_only(predictions: Sequence[Row], scores: Row) -> tuple[Row, ...]:
    """Return predictions of missing scores that are as new as the job's scores."""
    current = (row for row in predictions if row["fingerprint"] == scores["fingerprint"])
    return tuple(row for row in current if scores.get(row["score_name"]) is None)


def _worst_first(issues: Sequence[Row]) -> list[Row]:
    return sorted(
        issues, key=lambda row: (-row["severity_rank"], -(row["idle_core_h"] or 0), row["detector"])
    )


def _records(store: JobStore, where: Sequence[Filter]) -> _Rows:
    names = [field.name for field in fields.JOB_FIELDS] + ["cpu_model", "site", "efficiency"]
    return _by_job(select(store, names, None, where=where).read_all().to_pylist())


def _of_table(store: JobStore, table: Table, where: Sequence[Filter], columns: Sequence[str] = ()) -> _Rows:
    return _by_job(read_table(store, table, where, columns).to_pylist())


def _by_job(rows: Sequence[Row]) -> _Rows:
    found: dict[Identity, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["source"], row["job_id"]].append(row)
    return found


def _drawn(
    store: JobStore, where: Sequence[Filter], series: _Rows, issues: _Rows, points: int
) -> Mapping[Identity, list[Plot]]:
    metrics = sorted({row["metric"] for rows in series.values() for row in rows})
    found: dict[Identity, list[Plot]] = defaultdict(list)
    for block in blocks(store, None, metrics, where=where, most=_VALUES) if metrics else ():
        for number, row in enumerate(block.jobs.select(["source", "job_id"]).to_pylist()):
            job = row["source"], row["job_id"]
            shown = [(each["metric"], each["unit"]) for each in _worst_first(issues[job])]
            units = [(metric, unit) for metric, unit in shown if metric and unit]
            found[job] += plots(block, number, units, points)
    return found


def _rooflines(
    store: JobStore,
    where: Sequence[Filter],
    series: _Rows,
    records: Mapping[Identity, Row],
    clusters: DescribedClusters,
) -> Mapping[Identity, Roofline | None]:
    if not any(row["metric"] == TRAFFIC for rows in series.values() for row in rows):
        return {}
    described = clusters()
    # apart from other metrics, whose samples may have other distances
    return {
        job: roofline(block, number, records.get(job, {}), described)
        for block in blocks(store, None, COUNTERS, where=where, most=_VALUES)
        for number, row in enumerate(block.jobs.select(["source", "job_id"]).to_pylist())
        for job in [(row["source"], row["job_id"])]
    }
