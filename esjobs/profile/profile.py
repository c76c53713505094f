"""Everything that is known of a site, a queue or a CPU model, read together."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from esjobs.core.query import Days, Filter, In, Query, Sum
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT, Level
from esjobs.drift.tables import DRIFT, DRIFTS
from esjobs.jobs.tables import BUCKETS
from esjobs.profile.named import Named, named
from esjobs.profile.needs import needed
from esjobs.profile.standing import Standing, standings
from esjobs.reasons.tables import MACHINES, REASON, REASONS
from esjobs.references.tables import REFERENCES
from esjobs.runs.kinds import Kind
from esjobs.runs.latest import latest_run
from esjobs.runs.publication import read_table
from esjobs.runs.stored import StoredRun
from esjobs.speed.question import SpeedQuestion
from esjobs.speed.tables import COMPONENTS, FACTORS, FLAGS, MIXES, RESIDUALS, SPEED, TASK_RESULTS
from esjobs.store.base import JobStore
from esjobs.watch.tables import FLAG_STATES

Row = Mapping[str, Any]
_TASKS_SHOWN = 12
_EVERY_TYPE = In("processing_type", (ALL_TYPES,))


@dataclass(frozen=True)
class Profile:
    """What is known of a site, a queue or a CPU model; rows are as in the tables of their names.

    ``run``: the run of speed factors that people see; None: there is none, and everything that follows from
    factors is empty. ``window``: of that run, or the days of the jobs. ``method``: the headline, of every
    row. ``flags``: of all processing types together, a row a name; ``types``: of each type. ``mixes``: CPU
    models of a queue, or queues of a CPU model. ``tasks``: what the factors rest on, most jobs first.
    ``needs``: by name, what would decide a verdict that claims nothing. ``standings``: among all others.
    ``history``: flags of all windows as long as that of the run, oldest first.
    """

    named: Named
    run: StoredRun | None
    window: Window | None
    method: str
    limit: float
    flags: Sequence[Row] = ()
    types: Sequence[Row] = ()
    factors: Sequence[Row] = ()
    mixes: Sequence[Row] = ()
    machines: Sequence[Row] = ()
    reasons: Sequence[Row] = ()
    tasks: Sequence[Row] = ()
    links: Sequence[Row] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    standings: Sequence[Standing] = ()
    history: Sequence[Row] = ()
    drifts: Sequence[Row] = ()
    states: Sequence[Row] = ()
    references: Sequence[Row] = ()

    def __str__(self) -> str:
        """The page as a terminal shows it."""
        from esjobs.profile.told import write_page

        text = io.StringIO()
        write_page(self, text)
        return text.getvalue()


def profile(store: JobStore, level: Level, name: str) -> Profile:
    """Everything about a WLCG site or a queue (``level`` site), or about a CPU model, as of the latest run.

    Raises :class:`NoJobsError` when nothing is stored, :class:`UsageError` with close names for one that is
    nowhere. Cost: some rows of a dozen tables, one query to the buckets of the window and one to its jobs.
    """
    run = latest_run(store, SPEED)
    window = _stored(store) if run is None else run.window
    meant = named(store, level, name, run, window)
    if run is None:
        return Profile(meant, None, window, "", DEVIATION_LIMIT, standings=standings(store, meant, window))
    settings = SpeedQuestion.of_run(run).fit
    method, limit = run.headline or "", settings.deviation_limit
    of_names = [In("level", (level,)), In("name", meant.names)]
    of_run = [In("run", (run.run,)), *of_names]
    judged = _sorted(_rows(store, FLAGS, [*of_run, In("method", (method,))]), "name", "processing_type")
    factors = _rows(store, FACTORS, [*of_run, In("method", (method,))])
    flags = [row for row in judged if row["processing_type"] == ALL_TYPES]
    factor_of = {row["name"]: row for row in factors if row["processing_type"] == ALL_TYPES}
    needs = {row["name"]: needed(row, factor_of.get(row["name"]), limit) for row in flags}
    return Profile(
        meant,
        run,
        window,
        method,
        limit,
        flags=flags,
        types=[row for row in judged if row["processing_type"] != ALL_TYPES],
        factors=factors,
        mixes=_mixes(store, run, meant),
        machines=_machines(store, run, meant),
        reasons=_following(store, REASON, REASONS, run, of_names),
        tasks=_tasks(store, run, meant, method),
        links=_links(store, run, level, method, flags),
        needs={name: text for name, text in needs.items() if text},
        standings=standings(store, meant, window),
        history=_history(store, run, of_names),
        drifts=_sorted(_of_latest(store, DRIFT, DRIFTS, of_names), "day", "name"),
        states=_sorted(
            _rows(store, FLAG_STATES, [*of_names, _EVERY_TYPE]),
            "name",
        ),
        references=_references(store, meant),
    )


def _stored(store: JobStore) -> Window | None:
    span = store.span()
    if span.first is None or span.last is None:
        return None
    return Window.of_days(span.first.date(), span.last.date())


def _rows(store: JobStore, table: Table, where: Sequence[Filter]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(store, table, where).to_pylist()
    return rows


def _sorted(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in names))


def _of_latest(store: JobStore, kind: Kind, table: Table, where: Sequence[Filter]) -> list[dict[str, Any]]:
    """The rows of the run of a kind that people see; none without one."""
    run = latest_run(store, kind)
    return [] if run is None else _rows(store, table, [In("run", (run.run,)), *where])


def _following(
    store: JobStore, kind: Kind, table: Table, speed: StoredRun, where: Sequence[Filter]
) -> list[dict[str, Any]]:
    """Of these the ones that follow from a run of speed factors: an older answer is none to this question."""
    return _of_latest(store, kind, table, [In("speed_run", (speed.run,)), *where])


def _mixes(store: JobStore, run: StoredRun, meant: Named) -> list[dict[str, Any]]:
    """The CPU models of queues, or the queues of a CPU model, largest share of the core time first."""
    by = "name" if meant.level == "site" else "cpu_model"
    rows = _rows(store, MIXES, [In("run", (run.run,)), In(by, meant.names)])
    order = ("name",) if meant.level == "site" else ()
    return sorted(
        rows,
        key=lambda row: (*(row[name] for name in order), -(row["core_s"] or 0.0), row["cpu_model"] or ""),
    )


def _machines(store: JobStore, run: StoredRun, meant: Named) -> list[dict[str, Any]]:
    by = "site" if meant.level == "site" else "name"
    rows = _following(store, REASON, MACHINES, run, [In(by, meant.names)])
    return sorted(rows, key=lambda row: (-row["n_jobs"], row["name"], row["site"]))


def _history(store: JobStore, run: StoredRun, of_names: Sequence[Filter]) -> list[dict[str, Any]]:
    where = [*of_names, _EVERY_TYPE, In("method", (run.headline or "",))]
    rows = _rows(store, FLAGS, where)
    alike = [
        row
        for row in rows
        if (row["window_end"] - row["window_start"]).days == run.window.days
        and row["scope"] in (None, run.scope)
    ]
    return sorted(alike, key=lambda row: (row["window_end"], row["name"]))


def _tasks(store: JobStore, run: StoredRun, meant: Named, method: str) -> list[dict[str, Any]]:
    """The tasks that most of the jobs are of: jobs here, queues they run at, and how fast they ran here.

    ``deviation``: expected over measured CPU time, minus 1, where the run kept it.
    """
    key = "site" if meant.level == "site" else "cpu_model"
    keys = ("task_id", "core_class", "processing_type")
    asked = Query(
        keys,
        (Sum("n_jobs", "n_jobs"), Sum("cpu_s", "cpu_s")),
        None,
        (Days.of_window(run.window), In(key, meant.names)),
        over=BUCKETS,
    )
    found = store.aggregate(asked).table.to_pylist()
    found.sort(key=lambda row: (-row["n_jobs"], str(row["task_id"]), str(row["core_class"])))
    shown = found[:_TASKS_SHOWN]
    ids = tuple(sorted({row["task_id"] for row in shown if row["task_id"] is not None}))
    if not ids:
        return []
    of_tasks = [In("run", (run.run,)), In("task_id", ids)]
    known = {_task(row): row for row in _rows(store, TASK_RESULTS, of_tasks)}
    here = [
        row
        for row in _rows(store, RESIDUALS, [*of_tasks, In("level", (meant.level,)), In("name", meant.names)])
        if row["method"] == method
    ]
    return [
        {
            "task_id": row["task_id"],
            "core_class": row["core_class"],
            "processing_type": row["processing_type"],
            "n_jobs": row["n_jobs"],
            "n_sites": known.get(_task(row), {}).get("n_sites"),
            "decision": known.get(_task(row), {}).get("decision"),
            "deviation": _mean_deviation([each for each in here if _task(each) == _task(row)]),
        }
        for row in shown
    ]


def _task(row: Row) -> tuple[Any, Any]:
    return row["task_id"], row["core_class"]


def _mean_deviation(rows: Sequence[Row]) -> float | None:
    """Over queues and kinds of work, by jobs."""
    known = [(row["n_jobs"], row["deviation"]) for row in rows if row["deviation"] is not None]
    jobs = sum(number for number, _ in known)
    return sum(number * value for number, value in known) / jobs if jobs else None


def _links(
    store: JobStore, run: StoredRun, level: Level, method: str, flags: Sequence[Row]
) -> list[dict[str, Any]]:
    """Of names outside the largest component, theirs: what would connect it stands there."""
    apart = {row["component"] for row in flags if row["component"] not in (None, 0)}
    where = [
        In("run", (run.run,)),
        In("level", (level,)),
        In("method", (method,)),
        _EVERY_TYPE,
    ]
    return [row for row in _rows(store, COMPONENTS, where) if row["component"] in apart] if apart else []


def _references(store: JobStore, meant: Named) -> list[dict[str, Any]]:
    if meant.level == "site":
        return []
    rows = _rows(store, REFERENCES, [In("cpu_model", meant.names)])
    return _sorted(rows, "benchmark", "value_per_core")
