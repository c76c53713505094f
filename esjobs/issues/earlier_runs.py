"""Earlier runs of a job's name: the same user's jobs that ended before it."""

from typing import Any

from esjobs.core.query import Filter, In
from esjobs.core.text import visible
from esjobs.core.window import Window
from esjobs.issues.one_job import EarlierRun, JobStory
from esjobs.issues.rules.hints import formatted
from esjobs.publish.publication import read_table
from esjobs.records.jobs.resolution import select
from esjobs.schema.issues import ISSUES, SEVERITIES
from esjobs.store.base import JobStore

MOST = 10
"""Runs that are shown."""
HEADINGS = ("job", "end", "state", "wall time", "cores", "CPU efficiency", "issues")
"""Columns of :func:`cells`."""
_COLUMNS = ("source", "job_id", "end_time", "state", "wall_s", "cores", "efficiency")


def earlier_runs(store: JobStore, story: JobStory) -> tuple[EarlierRun, ...]:
    """Return the last runs of the name that ended before a job, newest first; none without a name or an end.

    Runs of a name are jobs of the source and of the user, if one is recorded. Cost: two queries.
    """
    record, span = story.record, store.span()
    name, end = record.get("job_name"), record.get("end_time")
    if not name or end is None or span.first is None or end <= span.first:
        return ()
    where: list[Filter] = [In("source", (story.source,)), In("job_name", (name,))]
    where += [In("user", (record["user"],))] if "user" in record else []
    before = Window(span.first, end)
    rows = select(store, _COLUMNS, before, where=where, order="-end_time", limit=MOST).read_all().to_pylist()
    found = _rules(store, [row["job_id"] for row in rows], story.source)
    return tuple(EarlierRun(row, tuple(found.get(row["job_id"], ()))) for row in rows)


def cells(run: EarlierRun) -> list[str]:
    """Return a run as texts under ``HEADINGS``; unknown values are a dash."""
    row = run.record
    return [
        visible(row["job_id"]),
        f"{row['end_time']:%Y-%m-%d %H:%M}",
        visible(row["state"] or "–"),
        _text(row["wall_s"], "time"),
        _text(row["cores"], "number"),
        _text(row["efficiency"], "percent"),
        ", ".join(run.issues) or "none",
    ]


def _text(value: Any, form: str) -> str:
    return "–" if value is None else formatted(value, form)


def _rules(store: JobStore, jobs: list[str], source: str) -> dict[str, dict[str, None]]:
    if not jobs:
        return {}
    # information is not an issue
    where = (In("source", (source,)), In("job_id", tuple(jobs)), In("severity", SEVERITIES[1:]))
    rows = read_table(store, ISSUES, where, ["job_id", "detector", "severity_rank"]).to_pylist()
    found: dict[str, dict[str, None]] = {}
    for row in sorted(rows, key=lambda each: (-each["severity_rank"], each["detector"])):
        found.setdefault(row["job_id"], {})[row["detector"]] = None
    return found
