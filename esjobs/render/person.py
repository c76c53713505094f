"""User or project: hours, scores, ranking, issues, what would be saved, jobs to look at."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from esjobs.core.arguments import conditions
from esjobs.core.errors import NoResultError
from esjobs.core.numbers import amount, core_h, day_range, many, percent
from esjobs.core.query import Filter, In, Present, Range, Times
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.issues.worklist import recurring, work_list
from esjobs.records.jobs.query import query_jobs
from esjobs.records.names.spelling import as_stored
from esjobs.render.profile.sections import Section, listed, renamed, table_of
from esjobs.schema.issues import ISSUES, SEVERITIES
from esjobs.schema.scores import OWN_ROW, SCORES
from esjobs.scores.rank import rankings
from esjobs.store.base import JobStore

# Columns of a list of issues, with their headings
ISSUE_COLUMNS = (
    ("detector", "issue"),
    ("worst", "severity"),
    ("n_jobs", "jobs"),
    ("lost_node_h", "lost node-hours"),
    ("node_h", "node-hours"),
    ("idle_core_h", "core-hours to save"),
    ("idle_gpu_h", "GPU-hours to save"),
    ("value_low", "least value"),
    ("value_high", "largest value"),
)
Row = Mapping[str, Any]
_TOTALS = (
    *("jobs", "core_h", "efficiency", "idle_core_h", "failure_rate", "lost_core_h", "cancelled_core_h"),
    *("waiting_median_s", "time_used", "memory_used", "gpu_h", "gpu_efficiency", "energy_kwh"),
)
# Metrics of groups of jobs, with headings and factors
GROUP_COLUMNS = (
    ("jobs", "jobs", None),
    ("core_h", "core-hours", 1.0),
    ("gpu_h", "GPU-hours", 1.0),
    ("efficiency", "CPU efficiency, %", 100.0),
    ("gpu_efficiency", "GPU efficiency, %", 100.0),
    ("idle_core_h", "idle core-hours", 1.0),
    ("energy_kwh", "kWh", 1.0),
    ("failure_rate", "failed jobs, %", 100.0),
)
_TOP = 10
_HINTS = 200  # Findings among which hints of rules are looked for, the costliest first
_FINDING = (
    *("source", "job_id", "job_name", "end_time", "detector", "severity", "lost_node_h", "idle_core_h"),
    "hint",
)
_SCORED = ("source", "job_id", "end_time", "application", "node_h", "idle_core_h", "cpu_efficiency")


@dataclass(frozen=True)
class Person:
    """Everything known of a user or project in a window, as rows; unknown numbers are None.

    ``groups``: jobs by application, job name and queue. ``ranks``: one row per score with its place among
    all names. ``saved``: hours of issues, each job once. ``hints``: of the costliest finding, by rule.
    ``recurring``: issues that recur over jobs of one name, which ``findings`` has once. ``wasteful``: scored
    jobs of most idle core-hours.
    """

    kind: str
    name: str
    window: Window | None
    total: Row
    groups: Mapping[str, Sequence[Row]]
    ranks: Sequence[Row]
    saved: Row | None
    issues: Sequence[Row]
    hints: Mapping[str, str]
    recurring: Sequence[Row]
    findings: Sequence[Row]
    wasteful: Sequence[Row]

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{self.kind} {self.name}"

    @property
    def source(self) -> str:
        """Jobs that the page is about."""
        when = "all days" if self.window is None else day_range(self.window.start, self.window.end)
        return f"{many(self.total['jobs'], 'job')}, {when}"


def person(store: JobStore, kind: str, name: str, window: Window | None = None) -> Person:
    """Return everything about a user or project.

    Raises :class:`NoJobsError` without jobs, :class:`UsageError` with close names for one without any. Cost:
    four grouped queries to the jobs, three per score, four to the issues, and some rows.
    """
    names = query_jobs(store, [kind], ["jobs"], window=window).column(kind).drop_null().to_pylist()
    (name,) = as_stored(f"no job has the {kind}", [name], names, f"esjobs query --by {kind}")
    where = conditions({kind: name})
    chosen = {kind: name}
    return Person(
        kind,
        name,
        window,
        query_jobs(store, [], _TOTALS, where=where, window=window).to_pylist()[0],
        {field: _groups(store, field, where, window) for field, _ in _GROUPS},
        list(_ranked(store, kind, name, window)),
        next(iter(_work(store, (kind,), chosen, window)), None),
        _work(store, ("detector",), chosen, window),
        _hints(store, kind, name, window),
        recurring(store, kind, name, window=window)[:_TOP],
        _once(_rows(store, ISSUES, kind, name, window, _FINDING, _ISSUES, ISSUES.order, _HINTS))[:_TOP],
        _rows(store, SCORES, kind, name, window, _SCORED, _OWN_ROWS, _IDLE_FIRST, _TOP),
    )


_SEVERE = In("severity", SEVERITIES[1:])
# The worst finding of each job
_ISSUES: tuple[Filter, ...] = (_SEVERE, Range("n_jobs", ge=1))
_OWN_ROWS: tuple[Filter, ...] = (Present("idle_core_h"), OWN_ROW)
_IDLE_FIRST = ("-idle_core_h", "source", "job_id")


def _once(findings: Sequence[Row]) -> list[Row]:
    """Return the first finding of each job name and rule; jobs without a name stay."""
    first: dict[tuple[str, str], Row] = {}
    for row in findings:
        first.setdefault((row["job_name"] or f"{row['source']}\0{row['job_id']}", row["detector"]), row)
    return list(first.values())


def _groups(store: JobStore, field: str, where: Sequence[str], window: Window | None) -> list[Row]:
    rows = query_jobs(
        store, [field], [metric for metric, _, _ in GROUP_COLUMNS], where=where, window=window
    ).to_pylist()
    return sorted((row for row in rows if row[field]), key=lambda row: -(row["core_h"] or 0.0))[:_TOP]


def _ranked(store: JobStore, kind: str, name: str, window: Window | None) -> Iterator[Row]:
    """Yield the row of the name in the ranking of each of its scores, with its place."""
    for score, rows in rankings(store, kind, In(kind, (name,)), window=window):
        scored = rows.filter(rows.column("score").is_valid())
        position = scored.column("name").index(name).as_py()
        if position >= 0:
            (row,) = scored.slice(position, 1).to_pylist()
            yield {**row, "name": score, "place": position + 1, "n_names": scored.num_rows}


def _work(
    store: JobStore, by: Sequence[str], chosen: Mapping[str, str], window: Window | None
) -> Sequence[Row]:
    try:
        rows: list[Row] = work_list(store, by, window=window, where=chosen).to_pylist()
    except NoResultError:
        return []
    return rows


def _hints(store: JobStore, kind: str, name: str, window: Window | None) -> dict[str, str]:
    columns = ("end_time", "detector", "hint")
    found = _rows(store, ISSUES, kind, name, window, columns, (_SEVERE,), ISSUES.order, _HINTS)
    return {row["detector"]: row["hint"] for row in reversed(found)}


def _rows(
    store: JobStore,
    table: Table,
    kind: str,
    name: str,
    window: Window | None,
    columns: Sequence[str],
    filters: Sequence[Filter],
    order: Sequence[str],
    most: int,
) -> list[Row]:
    """Return the first rows of a name in an order."""
    where: list[Filter] = [In(kind, (name,)), *filters]
    if window is not None:
        where.append(Times("end_time", window.start, window.end))
    batches = store.read(table, where, columns, order=order, limit=most)
    return [row for batch in batches for row in batch.to_pylist()]


def person_sections(of: Person) -> list[Section]:
    """Everything there is to say, in the order in which people ask."""
    made = [_hours(of), _scores(of), _issues(of), _recurring(of), _findings(of), _wasteful(of)]
    made += [_group(field, title, of.groups[field]) for field, title in _GROUPS]
    return [section for section in made if section is not None]


_GROUPS = (("application", "Applications"), ("job_name", "Job names"), ("queue", "Queues"))


def _hours(of: Person) -> Section:
    total = of.total
    sentences = [f"{many(total['jobs'], 'job')} used {used_hours(total)}.", efficiency_sentence(total)]
    if total["failure_rate"] is not None:
        lost, cancelled = _or_unknown(total["lost_core_h"]), _or_unknown(total["cancelled_core_h"])
        sentences.append(
            f"{percent(total['failure_rate'])} of the jobs failed and used {lost}; cancelled jobs used "
            f"{cancelled}."
        )
    return Section("Hours", "", [*sentences, *_requests(total)])


def used_hours(total: Row) -> str:
    """Return core-hours, GPU-hours and measured energy of jobs in words, as far as there are any."""
    units = (("gpu_h", "GPU-hours"), ("energy_kwh", "kWh of measured energy"))
    more = [f"{amount(total[name])} {unit}" for name, unit in units if total[name]]
    return ", ".join([_or_unknown(total["core_h"]), *more])


def efficiency_sentence(total: Row) -> str:
    """Return sentences about the efficiency of jobs and their idle hours."""
    gpus = total["gpu_efficiency"]
    of_gpus = "" if gpus is None else f" GPU efficiency was {percent(gpus)}."
    if total["efficiency"] is None:
        return f"CPU efficiency is unknown: no record has CPU time.{of_gpus}"
    said = f"CPU efficiency was {percent(total['efficiency'])}"
    if total["efficiency"] > 1:
        return f"{said}, which cannot be: check cores and CPU times of the records.{of_gpus}"
    return f"{said}: {core_h(total['idle_core_h'])} were idle.{of_gpus}"


def _requests(total: Row) -> Iterator[str]:
    for name, what in (("time_used", "time"), ("memory_used", "memory")):
        if total[name] is not None:
            yield f"Jobs used {percent(total[name])} of the {what} that they requested."


def _or_unknown(hours: float | None) -> str:
    return "unknown core-hours" if hours is None else core_h(hours)


def _scores(of: Person) -> Section:
    title = "Scores and ranking"
    if not of.ranks:
        return Section(
            title,
            sentences=[f"No job of {of.name} has a score; run: esjobs score. Reasons: esjobs show scores."],
        )
    rows = [
        {
            "score": row["name"],
            "mean": row["score"],
            "95 % from": row["score_low"],
            "to": row["score_high"],
            "coverage, %": _of_hundred(row["coverage"]),
            "scored jobs": row["n_scored"],
            "place": f"{row['place']:,} of {row['n_names']:,}",
            "differs from others": row["differs"],
        }
        for row in of.ranks
    ]
    about = (
        "Means weighted by node-hours, gpu_efficiency by GPU-hours; 0 is best, 100 worst; efficiencies: 1 is "
        f"best. Place 1: the worst {of.kind}. Places of names that do not differ have no meaning."
    )
    return Section(title, about, table=table_of(rows))


_SAVED = (("lost_node_h", "node-hours"), ("idle_core_h", "core-hours"), ("idle_gpu_h", "GPU-hours"))


def _issues(of: Person) -> Section:
    if of.saved is None:
        return Section("Issues", sentences=["No issues found; did `esjobs detect` run?"])
    hours = [f"{amount(of.saved[name])} {unit}" for name, unit in _SAVED if of.saved[name] is not None]
    sentence = f"{many(of.saved['n_jobs'], 'job')} had issues"
    saved = f"{sentence}; without them {', '.join(hours)} would be saved." if hours else f"{sentence}."
    rows = [
        {heading: row[name] for name, heading in ISSUE_COLUMNS} | {"hint": of.hints.get(row["detector"])}
        for row in of.issues
    ]
    about = "Most lost node-hours first; hours of issues of one job overlap. Hints: of the costliest job."
    return Section("Issues", about, [saved], table_of(rows), ("hint",))


def _recurring(of: Person) -> Section | None:
    columns = (
        *(("job_name", "job_name"), ("detector", "issue"), ("worst", "severity"), ("n_jobs", "jobs")),
        *(("first", "first"), ("last", "last"), ("lost_node_h", "lost node-hours")),
    )
    about = "The same issue in several jobs of one name: fix it once."
    return listed("Recurring issues", renamed(of.recurring, columns), about)


def _findings(of: Person) -> Section | None:
    columns = (
        *(("job_id", "job"), ("job_name", "job_name"), ("end_time", "ended"), ("detector", "worst issue")),
        *(("severity", "severity"), ("lost_node_h", "lost node-hours"), ("idle_core_h", "idle core-hours")),
        ("hint", "hint"),
    )
    about = "The costliest job per name and issue. A report on one: esjobs job JOBID."
    return listed("Jobs to look at", renamed(of.findings, columns), about, prose=("hint",))


def _wasteful(of: Person) -> Section | None:
    columns = (
        *(("job_id", "job"), ("end_time", "ended"), ("application", "application")),
        *(("node_h", "node-hours"), ("idle_core_h", "idle core-hours")),
    )
    rows = [
        one | {"CPU efficiency, %": _of_hundred(row["cpu_efficiency"])}
        for one, row in zip(renamed(of.wasteful, columns), of.wasteful, strict=True)
    ]
    return listed("Jobs of most idle core-hours", rows)


def _group(field: str, title: str, groups: Sequence[Row]) -> Section | None:
    return listed(title, [group_cells(row, field, GROUP_COLUMNS) for row in groups])


def group_cells(row: Row, field: str, columns: Sequence[tuple[str, str, float | None]]) -> dict[str, Any]:
    """Return the cells of a group of jobs by heading; ``columns``: metric, heading, factor."""
    cells: dict[str, Any] = {field: row[field] or "not recorded"}
    for metric, heading, factor in columns:
        value = row[metric]
        cells[heading] = value if value is None or factor is None else round(factor * value, 2)
    return cells


def _of_hundred(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
