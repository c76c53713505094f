"""Users and projects whose jobs have issues on a day."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from esjobs.core.query import Count, Days, In, Maximum, Minimum, Present, Query
from esjobs.issues.worklist import RECURRING
from esjobs.publish.publication import read_table
from esjobs.schema.issues import ISSUES, SEVERITIES
from esjobs.store.base import JobStore

_HISTORY = timedelta(days=30)
_SHOWN = 3
_COLUMNS = ("source", "job_id", "job_name", "detector", "severity_rank", "idle_core_h", "idle_gpu_h", "hint")


@dataclass(frozen=True)
class Repeated:
    """An issue of several jobs of one name, from the day of the ``first`` to that of the ``last``."""

    job_name: str
    rule: str
    n_jobs: int
    first: date
    last: date


@dataclass(frozen=True)
class Example:
    """The costliest finding of a job."""

    job_id: str
    job_name: str | None
    rule: str
    hint: str | None


@dataclass(frozen=True)
class Recurrence:
    """User or project (``what``) with issues of a day.

    ``rules``: jobs per rule, most first. Wasted hours: sum over jobs of the largest of any rule, because
    findings of one job overlap. ``repeated``: issues in several jobs of one name within 30 days, most first.
    ``examples``: of the costliest jobs.
    """

    what: str
    name: str
    day: date
    severity: str
    n_jobs: int
    rules: tuple[tuple[str, int], ...]
    idle_core_h: float
    idle_gpu_h: float
    repeated: tuple[Repeated, ...] = ()
    examples: tuple[Example, ...] = ()


def recurrences(store: JobStore, day: date, least: str) -> Iterator[Recurrence]:
    """Yield users and projects with issues of at least a severity on a day, worst first.

    Later days do not change the result.
    """
    severities = SEVERITIES[SEVERITIES.index(least) :]
    of_day = [Days("day", day, day), In("severity", severities)]
    for what in ("user", "project"):
        rows = read_table(store, ISSUES, of_day, [what, *_COLUMNS]).to_pylist()
        by_name: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row[what] is not None:
                by_name.setdefault(row[what], []).append(row)
        # a filter by no names would not filter
        repeated = _repeated(store, what, tuple(by_name), day, severities) if by_name else {}
        found = [
            _recurrence(what, name, day, of_name, tuple(repeated.get(name, ())[:_SHOWN]))
            for name, of_name in by_name.items()
        ]
        yield from sorted(
            found,
            key=lambda one: (-SEVERITIES.index(one.severity), -(one.idle_core_h + one.idle_gpu_h), one.name),
        )


def _repeated(
    store: JobStore, what: str, names: tuple[str, ...], day: date, severities: tuple[str, ...]
) -> dict[str, list[Repeated]]:
    """Return by name the issues of several jobs of one job name until a day."""
    where = (
        Days("day", day - _HISTORY, day),
        In("severity", severities),
        In(what, names),
        Present("job_name"),
    )
    keys = (what, "job_name", "detector")
    query = Query(
        keys, (Count("n"), Minimum("day", "first"), Maximum("day", "last")), where=where, over=ISSUES
    )
    found: dict[str, list[Repeated]] = {}
    for row in store.aggregate(query).table.to_pylist():
        if row["n"] >= RECURRING:
            of_name = Repeated(row["job_name"], row["detector"], row["n"], row["first"], row["last"])
            found.setdefault(row[what], []).append(of_name)
    for listed in found.values():
        listed.sort(key=lambda one: (-one.n_jobs, one.job_name, one.rule))
    return found


def _recurrence(
    what: str, name: str, day: date, rows: list[dict[str, Any]], repeated: tuple[Repeated, ...]
) -> Recurrence:
    jobs: dict[tuple[str, str], tuple[float, float]] = {}
    for row in rows:
        key = (row["source"], row["job_id"])
        core, gpu = jobs.get(key, (0.0, 0.0))
        # findings of a job overlap in time: the largest, not the sum
        jobs[key] = (max(core, row["idle_core_h"] or 0.0), max(gpu, row["idle_gpu_h"] or 0.0))
    rules = Counter(row["detector"] for row in rows)
    return Recurrence(
        what,
        name,
        day,
        SEVERITIES[max(row["severity_rank"] for row in rows)],
        len(jobs),
        tuple(sorted(rules.items(), key=lambda item: (-item[1], item[0]))),
        sum(core for core, _ in jobs.values()),
        sum(gpu for _, gpu in jobs.values()),
        repeated,
        tuple(_examples(rows)),
    )


def _examples(rows: list[dict[str, Any]]) -> Iterator[Example]:
    """Yield the costliest finding of the costliest jobs."""

    def cost(row: dict[str, Any]) -> tuple[Any, ...]:
        hours = max(row["idle_core_h"] or 0.0, row["idle_gpu_h"] or 0.0)
        return -row["severity_rank"], -hours, row["source"], row["job_id"], row["detector"]

    costliest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(rows, key=cost):
        costliest.setdefault((row["source"], row["job_id"]), row)
    # one row per job, the costliest: dicts keep their order
    for row in list(costliest.values())[:_SHOWN]:
        yield Example(row["job_id"], row["job_name"], row["detector"], row["hint"])
