"""Everything about one job: its record, scores, tags, issues with their evidence, footprint and series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core import fields
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.query import Filter, In
from esjobs.core.tables import Table
from esjobs.issues.plots import Plot, plots
from esjobs.publish.publication import read_table
from esjobs.records.jobs.resolution import select
from esjobs.records.series.blocks import blocks
from esjobs.schema.issues import FOOTPRINTS, ISSUES, MEASURES
from esjobs.schema.pop import POP
from esjobs.schema.scores import SCORES
from esjobs.schema.series import SERIES
from esjobs.schema.similar import PREDICTED_SCORES
from esjobs.store.base import JobStore

Row = Mapping[str, Any]


@dataclass(frozen=True)
class JobStory:
    """What is known of a job; rows as they stand in the tables.

    ``record``: its fields that are known, in the order of the catalogue; empty where only series are stored.
    ``scores``: None where it was not scored. ``issues``: the worst first, tags among them.
    ``predicted``: scores predicted from similar jobs, where none was measured. ``pop``: what TALP measured,
    a row a region; empty where the job was not run under it.
    ``monitoring``: what it costs to collect such numbers, as far as that was measured, in sentences.
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

    def seen_in(self, metric: str) -> tuple[Row, ...]:
        """The issues of detectors whose evidence is a part of the time of a metric."""
        return tuple(row for row in self.issues if row["metric"] == metric and row["begin"] is not None)


def job_story(store: JobStore, job_id: str, source: str | None = None, *, points: int = 240) -> JobStory:
    """Everything about a job. ``points``: values a plot has at most.

    Raises :class:`NoResultError` when nothing of it is stored, :class:`UsageError` when several sources have
    one of this name. Cost: a search for its record and one for its series, and a few rows of five tables.
    """
    where: list[Filter] = [In("job_id", (job_id,))]
    if source is not None:
        where.append(In("source", (source,)))
    records = job_records(store, where)
    series = read_table(store, SERIES, where, ["source", "metric"]).to_pylist()
    sources = sorted({row["source"] for row in (*records, *series)})
    if not sources:
        told = "" if source is None else f" of the source '{source}'"
        raise NoResultError(f"no job '{job_id}'{told} is stored; list some with: esjobs export jobs")
    if len(sources) > 1:
        raise UsageError(f"several sources have a job '{job_id}': {', '.join(sources)}; name one: --source")
    where = [In("job_id", (job_id,)), In("source", (sources[0],))]
    issues = in_order(table_rows(store, ISSUES, where))
    metrics = sorted({row["metric"] for row in series})
    seen = [(row["metric"], row["unit"]) for row in issues if row["metric"] and row["unit"]]
    drawn: list[Plot] = []
    for block in blocks(store, None, metrics, where=where) if metrics else ():
        for row in range(block.jobs.num_rows):
            drawn += plots(block, row, seen, points)
    scores = table_rows(store, SCORES, where)
    return JobStory(
        sources[0],
        job_id,
        {name: value for name, value in (records[0] if records else {}).items() if value is not None},
        scores[0] if scores else None,
        tuple(issues),
        tuple(table_rows(store, MEASURES, where)),
        tuple(sorted(table_rows(store, FOOTPRINTS, where), key=lambda row: row["metric"])),
        tuple(drawn),
        tuple(table_rows(store, POP, [*where, In("level", ("application",))])),
        predicted=missing_only(table_rows(store, PREDICTED_SCORES, where), scores),
    )


def missing_only(predictions: Sequence[Row], scores: Sequence[Row]) -> tuple[Row, ...]:
    """The predictions of scores that a job lacks, made since its scores were."""
    return tuple(
        row
        for row in predictions
        if scores and scores[0].get(row["score_name"]) is None and row["mark"] == scores[0]["mark"]
    )


def in_order(issues: Sequence[Row]) -> list[Row]:
    """Issues of a job, the worst first."""
    return sorted(
        issues, key=lambda row: (-row["severity_rank"], -(row["idle_core_h"] or 0), row["detector"])
    )


def job_records(store: JobStore, where: Sequence[Filter]) -> list[dict[str, Any]]:
    """Records of jobs in every field of the catalogue, and what follows from them."""
    names = [field.name for field in fields.JOB_FIELDS] + ["cpu_model", "site", "efficiency"]
    rows: list[dict[str, Any]] = select(store, names, None, where=where).read_all().to_pylist()
    return rows


def table_rows(store: JobStore, table: Table, where: Sequence[Filter]) -> list[dict[str, Any]]:
    """Rows of a table as dictionaries."""
    rows: list[dict[str, Any]] = read_table(store, table, where).to_pylist()
    return rows
