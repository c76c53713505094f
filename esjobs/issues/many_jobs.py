"""Everything about many jobs at once: each table is asked once for a few hundred of them, not once a job."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from esjobs.core.query import Filter, In
from esjobs.core.tables import Table
from esjobs.issues.one_job import JobStory, Row, in_order, job_records, missing_only, table_rows
from esjobs.issues.plots import Plot, plots
from esjobs.publish.publication import read_table
from esjobs.records.series.blocks import blocks
from esjobs.schema.issues import FOOTPRINTS, ISSUES, MEASURES
from esjobs.schema.pop import POP
from esjobs.schema.scores import SCORES
from esjobs.schema.series import SERIES
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.store.base import JobStore

Identity = tuple[str, str]
"""Source and job_id."""
_AT_ONCE = 200
_VALUES = 1 << 24
"""Values of series in memory at a time."""


def job_stories(store: JobStore, jobs: Sequence[Identity], *, points: int = 240) -> Iterator[JobStory]:
    """The stories of jobs in their order, as :func:`~esjobs.issues.one_job.job_story` tells each.

    A job of which nothing is stored has none. Cost: nine questions per 200 jobs; their stories are in
    memory.
    """
    for first in range(0, len(jobs), _AT_ONCE):
        yield from _stories(store, jobs[first : first + _AT_ONCE], points)


def _stories(store: JobStore, jobs: Sequence[Identity], points: int) -> Iterator[JobStory]:
    where = [
        In("job_id", tuple(dict.fromkeys(job for _, job in jobs))),
        In("source", tuple(dict.fromkeys(source for source, _ in jobs))),
    ]
    records = _by_job(job_records(store, where))
    issues, measures, footprints, scores = (
        _of_table(store, each, where) for each in (ISSUES, MEASURES, FOOTPRINTS, SCORES)
    )
    predictions = _of_table(store, PREDICTED_SCORES, where)
    pop = _of_table(store, POP, [*where, In("level", ("application",))])
    series = _by_job(read_table(store, SERIES, where, ["source", "job_id", "metric"]).to_pylist())
    drawn = _drawn(store, where, series, issues, points)
    for job in jobs:
        if not records[job] and not series[job]:
            continue
        yield JobStory(
            *job,
            {
                name: value
                for name, value in (records[job][0] if records[job] else {}).items()
                if value is not None
            },
            scores[job][0] if scores[job] else None,
            tuple(in_order(issues[job])),
            tuple(measures[job]),
            tuple(sorted(footprints[job], key=lambda row: row["metric"])),
            tuple(drawn[job]),
            tuple(pop[job]),
            predicted=missing_only(predictions[job], scores[job]),
        )


def _of_table(store: JobStore, table: Table, where: Sequence[Filter]) -> Mapping[Identity, list[Row]]:
    return _by_job(table_rows(store, table, where))


def _by_job(rows: Sequence[Row]) -> Mapping[Identity, list[Row]]:
    found: dict[Identity, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["source"], row["job_id"]].append(row)
    return found


def _drawn(
    store: JobStore,
    where: Sequence[Filter],
    series: Mapping[Identity, list[Row]],
    issues: Mapping[Identity, list[Row]],
    points: int,
) -> Mapping[Identity, list[Plot]]:
    metrics = sorted({row["metric"] for rows in series.values() for row in rows})
    found: dict[Identity, list[Plot]] = defaultdict(list)
    for block in blocks(store, None, metrics, where=where, most=_VALUES) if metrics else ():
        for number, row in enumerate(block.jobs.select(["source", "job_id"]).to_pylist()):
            job = row["source"], row["job_id"]
            seen = [
                (each["metric"], each["unit"])
                for each in in_order(issues[job])
                if each["metric"] and each["unit"]
            ]
            found[job] += plots(block, number, seen, points)
    return found
