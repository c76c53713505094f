"""Everything that is known of a site, a queue or a CPU model, read together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from esjobs.core.query import Days, Filter, In, Query, Sum
from esjobs.core.tables import Table
from esjobs.core.verdict_order import verdict_order
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES, DEVIATION_LIMIT, Level
from esjobs.publish.latest import latest_run
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun
from esjobs.records.jobs.job_counts import has_events
from esjobs.render.profile.days import days_of_site, incidents_of_site
from esjobs.render.profile.named import Named, named
from esjobs.render.profile.percentiles import Percentile, percentiles
from esjobs.render.profile.power import needed
from esjobs.schema.decomposition import CPU_SPEED_BY_QUEUE, DECOMPOSED, DECOMPOSITION
from esjobs.schema.drift import DRIFT, DRIFTS
from esjobs.schema.flags import FLAG_STATES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.kinds import Kind
from esjobs.schema.references import REFERENCES
from esjobs.schema.speed import COMPONENTS, CPU_MIX, FACTORS, FLAGS, RESIDUALS, SPEED, TASK_RESULTS
from esjobs.speed.probes import probe_rows
from esjobs.speed.question import SpeedQuestion
from esjobs.store.base import JobStore

Row = Mapping[str, Any]
_TASKS_SHOWN = 12
_EVERY_TYPE = In("processing_type", (ALL_TYPES,))


@dataclass(frozen=True)
class Profile:
    """Profile of a site, a queue or a CPU model; rows are as in the tables of their names.

    ``run``: the run of speed factors that people see; None: there is none, and everything that follows from
    factors is empty. ``window``: of that run, or the days of the jobs. ``method``: the headline, of every
    row. ``flags``: of all processing types together, a row a name; ``combined``: of a site of several queues,
    of these together; ``types``: of each type. ``mixes``: CPU models of a queue, or queues of a CPU model.
    ``tasks``: what the factors rest on, most jobs first.
    ``needs``: by name, what would decide a verdict that claims nothing. ``percentiles``: among all others.
    ``history``: flags of all windows as long as that of the run, oldest first. ``has_events``: False if no
    stored job records its events, so that none of them can be fitted. ``days``, ``incidents``: of a site,
    what the daily watch says of its last weeks. ``probes``: of queues, beside production.
    """

    named: Named
    run: StoredRun | None
    window: Window | None
    method: str
    limit: float
    flags: Sequence[Row] = ()
    combined: Sequence[Row] = ()
    types: Sequence[Row] = ()
    factors: Sequence[Row] = ()
    mixes: Sequence[Row] = ()
    machines: Sequence[Row] = ()
    reasons: Sequence[Row] = ()
    tasks: Sequence[Row] = ()
    links: Sequence[Row] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    percentiles: Sequence[Percentile] = ()
    history: Sequence[Row] = ()
    drifts: Sequence[Row] = ()
    states: Sequence[Row] = ()
    references: Sequence[Row] = ()
    has_events: bool = True
    days: Sequence[Row] = ()
    incidents: Sequence[Row] = ()
    probes: Sequence[Row] = ()


def profile(store: JobStore, level: Level, name: str) -> Profile:
    """Everything about a site or a queue (``level`` site), or about a CPU model, as of the latest run.

    Raises :class:`NoJobsError` when nothing is stored, :class:`UsageError` with close names for one that is
    nowhere. Cost: some rows of a dozen tables, one query to the buckets of the window and one to its jobs; of
    a site two more for the daily watch.
    """
    run = latest_run(store, SPEED)
    window = _stored(store) if run is None else run.window
    (found,) = profiles(store, [named(store, level, name, run, window)], run, window)
    meant = found.named
    if run is not None and level == "queue":
        found = replace(found, probes=probe_rows(store, run, meant.names))
    # without a table of sites a queue is its own site
    if level == "cpu_model" or not (meant.of_site or meant.site in (None, meant.title)):
        return found
    days = days_of_site(store, meant.title)
    return replace(found, days=days, incidents=incidents_of_site(store, meant.title, days))


def profiles(
    store: JobStore, meant: Sequence[Named], run: StoredRun | None, window: Window | None
) -> list[Profile]:
    """Everything about several names of one level, which costs little more than about one.

    ``run``: the run of speed factors that is told of; ``window``: its own, or without one that of the jobs.
    """
    if not meant:
        return []
    places = percentiles(store, meant, window)
    if run is None:
        fitted = has_events(store)
        return [
            Profile(each, None, window, "", DEVIATION_LIMIT, percentiles=here, has_events=fitted)
            for each, here in zip(meant, places, strict=True)
        ]
    read = _Read(store, run, meant)
    return [
        replace(read.of(each), window=window, percentiles=here)
        for each, here in zip(meant, places, strict=True)
    ]


class _Read:
    """The rows of a run about some names, each table read once."""

    def __init__(self, store: JobStore, run: StoredRun, meant: Sequence[Named]) -> None:
        level = meant[0].level
        names = tuple(sorted({name for each in meant for name in each.names}))
        # the verdict on a site of one queue is that on the queue
        sites = tuple(each.title for each in meant if each.of_site and len(each.names) > 1)
        self._store, self._run, self._level = store, run, level
        self._method = run.headline or ""
        self._limit = SpeedQuestion.of_run(run).fit.deviation_limit
        of_names = [In("level", (level,)), In("name", names)]
        of_run = [In("run", (run.run,)), *of_names]
        of_method = In("method", (self._method,))
        self._flags = _by(_rows(store, FLAGS, [*of_run, of_method]), "name")
        self._factors = _by(_rows(store, FACTORS, [*of_run, of_method]), "name")
        of_sites = [In("run", (run.run,)), In("level", ("site",)), In("name", sites), of_method, _EVERY_TYPE]
        self._combined = _by(_rows(store, FLAGS, of_sites) if sites else [], "name")
        mine = In(level, names)
        self._mixes = _by(_rows(store, CPU_MIX, [In("run", (run.run,)), mine]), level)
        self._machines = _by(_following(store, CPU_SPEED_BY_QUEUE, run, [mine]), level)
        self._reasons = _by(_following(store, DECOMPOSITION, run, of_names), "name")
        of_level = [In("run", (run.run,)), In("level", (level,)), of_method, _EVERY_TYPE]
        self._links = {row["component"]: row for row in _rows(store, COMPONENTS, of_level)}
        self._history = _by(self._windows_as_long(of_names), "name")
        self._drifts = _by(_of_latest(store, DRIFT, DRIFTS, of_names), "name")
        self._states = _by(_rows(store, FLAG_STATES, [*of_names, _EVERY_TYPE]), "name")
        of_models = [] if level == "queue" else _rows(store, REFERENCES, [In("cpu_model", names)])
        self._references = _by(of_models, "cpu_model")
        self._tasks = self._read_tasks(names)

    def of(self, meant: Named) -> Profile:
        """Return the profile of one of them, without its rank among the others."""
        judged = _sorted(_all(self._flags, meant), "name", "processing_type")
        factors = _all(self._factors, meant)
        flags = sorted(_of_all_types(judged), key=verdict_order)
        return Profile(
            meant,
            self._run,
            self._run.window,
            self._method,
            self._limit,
            flags=flags,
            combined=self._combined.get(meant.title, ()) if meant.of_site else (),
            types=[row for row in judged if row["processing_type"] != ALL_TYPES],
            factors=factors,
            mixes=sorted(_all(self._mixes, meant), key=_by_queue if meant.level == "queue" else _by_work),
            machines=sorted(_all(self._machines, meant), key=_by_jobs),
            reasons=_all(self._reasons, meant),
            tasks=self._tasks_of(meant),
            links=self._links_of(flags),
            needs=self._undecided(flags, _of_all_types(factors)),
            history=sorted(_all(self._history, meant), key=lambda row: (row["window_end"], row["name"])),
            drifts=_sorted(_all(self._drifts, meant), "day", "name"),
            states=_sorted(_all(self._states, meant), "name"),
            references=_sorted(_all(self._references, meant), "benchmark", "value_per_core"),
        )

    def _undecided(self, flags: Sequence[Row], factors: Sequence[Row]) -> dict[str, str]:
        factor_of = {row["name"]: row for row in factors}
        needs = {row["name"]: needed(row, factor_of.get(row["name"]), self._limit) for row in flags}
        return {name: text for name, text in needs.items() if text}

    def _links_of(self, flags: Sequence[Row]) -> list[Row]:
        """The links of other components than the largest, which is number 0."""
        apart = {row["component"] for row in flags} - {None, 0}
        return [self._links[number] for number in sorted(apart) if number in self._links]

    def _windows_as_long(self, of_names: Sequence[Filter]) -> list[dict[str, Any]]:
        rows = _rows(self._store, FLAGS, [*of_names, _EVERY_TYPE, In("method", (self._method,))])
        return [
            row
            for row in rows
            if (row["window_end"] - row["window_start"]).days == self._run.window.days
            and row["scope"] in (None, self._run.scope)
        ]

    def _read_tasks(self, names: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
        query = Query(
            (self._level, *_TASK),
            (Sum("n_jobs", "n_jobs"),),
            None,
            (Days.of_window(self._run.window), In(self._level, names)),
            over=BUCKETS,
        )
        return _by(self._store.aggregate(query).table.to_pylist(), self._level)

    def _tasks_of(self, meant: Named) -> list[dict[str, Any]]:
        """The tasks of most jobs: jobs here, queues they run at, and how fast they ran here.

        ``deviation``: expected over measured CPU time, minus 1, where the run kept it.
        """
        jobs: Counter[tuple[Any, ...]] = Counter()
        for row in _all(self._tasks, meant):
            jobs[tuple(row[name] for name in _TASK)] += row["n_jobs"]
        # as texts: a class or type may be missing, and None has no order
        shown = sorted(jobs.items(), key=lambda item: (-item[1], tuple(map(str, item[0]))))[:_TASKS_SHOWN]
        decisions, here = self._known_tasks
        return [
            {
                **dict(zip(_TASK, task, strict=True)),
                "n_jobs": n_jobs,
                "n_queues": decisions.get(task[:2], {}).get("n_queues"),
                "decision": decisions.get(task[:2], {}).get("decision"),
                "deviation": _mean_deviation(
                    [row for row in here.get(task[:2], ()) if row["name"] in meant.names]
                ),
            }
            for task, n_jobs in shown
        ]

    @cached_property
    def _known_tasks(self) -> tuple[Mapping[Any, Row], Mapping[Any, Sequence[Row]]]:
        """Return the tasks of the run, with their buckets at these names."""
        decisions = {
            (row["task_id"], row["core_class"]): row
            for row in _rows(self._store, TASK_RESULTS, [In("run", (self._run.run,))])
        }
        here: dict[Any, list[Row]] = {}
        where = [In("run", (self._run.run,)), In("level", (self._level,)), In("method", (self._method,))]
        for row in _rows(self._store, RESIDUALS, where):
            here.setdefault((row["task_id"], row["core_class"]), []).append(row)
        return decisions, here


_TASK = ("task_id", "core_class", "processing_type")


def _stored(store: JobStore) -> Window | None:
    span = store.span()
    if span.first is None or span.last is None:
        return None
    return Window.of_days(span.first.date(), span.last.date())


def _rows(store: JobStore, table: Table, where: Sequence[Filter]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(store, table, where).to_pylist()
    return rows


def _by(rows: Sequence[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups


def _all(groups: Mapping[str, list[dict[str, Any]]], meant: Named) -> list[dict[str, Any]]:
    return [row for name in meant.names for row in groups.get(name, ())]


def _of_all_types(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["processing_type"] == ALL_TYPES]


def _by_work(row: Row) -> tuple[Any, ...]:
    return -(row["core_s"] or 0.0), row["queue"], row["cpu_model"] or ""


def _by_queue(row: Row) -> tuple[Any, ...]:
    return str(row["queue"]), *_by_work(row)


def _by_jobs(row: Row) -> tuple[Any, ...]:
    return -row["n_jobs"], row["cpu_model"], row["queue"]


def _sorted(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in names))


def _of_latest(store: JobStore, kind: Kind, table: Table, where: Sequence[Filter]) -> list[dict[str, Any]]:
    """The rows of the run of a kind that people see; none without one."""
    run = latest_run(store, kind)
    return [] if run is None else _rows(store, table, [In("run", (run.run,)), *where])


def _following(
    store: JobStore, table: Table, speed: StoredRun, where: Sequence[Filter]
) -> list[dict[str, Any]]:
    """Of the latest reasons those that follow from a run of speed factors: older ones answer another run."""
    return _of_latest(store, DECOMPOSED, table, [In("speed_run", (speed.run,)), *where])


def _mean_deviation(rows: Sequence[Row]) -> float | None:
    """Over queues and kinds of work, by jobs."""
    pairs = [(row["n_jobs"], row["deviation"]) for row in rows if row["deviation"] is not None]
    jobs = sum(number for number, _ in pairs)
    return sum(number * value for number, value in pairs) / jobs if jobs else None
