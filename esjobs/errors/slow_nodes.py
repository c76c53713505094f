"""Slow nodes of sites: by CPU time per event of tasks, or by run times of jobs of one name without events."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.conditions import named, written
from esjobs.core.errors import NoJobsError, NoResultError, UsageError
from esjobs.core.numbers import exact_percent
from esjobs.core.query import Count, Sum, SumProduct
from esjobs.core.states import FINISHED
from esjobs.core.window import Window
from esjobs.errors.nodes import in_batches
from esjobs.errors.runs import LEAST_NODES, LEAST_RUNS, cells_of_runs, counted_runs
from esjobs.errors.slowness import SlowJudged, TimedCells, judge_slow
from esjobs.publish.finding import run_of_everything
from esjobs.records.answer import Answer
from esjobs.records.errors.nodes import common_domain, numbered
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.query import query_jobs
from esjobs.records.jobs.resolution import aggregate, select
from esjobs.records.tasks.solved import KnownOfTasks
from esjobs.schema.speed import SPEED
from esjobs.store.base import JobStore
from esjobs.store.merge import coded, encoded, floats
from fitters.layout.arrays import Floats, Ints

# queues of a site differ in what they do to a task
_TASK = ("task_id", "core_class", "processing_type", "queue")
_CPU = ("cpu_model", "smt")
# a width is what a job had of a node
_RUNS = ("job_name", "user", "queue", "subcluster", "width")
_READ = ("site", "node", *_RUNS[:-1], *_CPU, "cores", "gpus", "wall_s", "core_s")
_SUMS = (
    Count("jobs"),
    Sum("core_s", "core_s"),
    Sum("cpu_s", "cpu_s"),
    Sum("events", "events"),
    Sum("cpu_s_per_event", "per_event"),
    SumProduct("cpu_s_per_event", "cpu_s_per_event", "per_event_sq"),
)
_SUM_NAMES = tuple(each.name for each in _SUMS)
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("site", "name", "cpu_model")),
        *(("n_jobs", pa.int64()), ("n_tasks", pa.int64())),
        *((name, pa.float64()) for name in ("slower", "slower_low", "slower_high", "q_value", "cost_core_h")),
        *(("slow", pa.bool_()), ("sentence", pa.string()), ("node", pa.string())),
    ]
)
_EVENTS = "{percent} more CPU time per event than other nodes with this CPU model; {n_tasks} tasks"
_NAMES = "{percent} longer runs than on other nodes; {n_tasks} names of jobs"
MOST_SLOW = 0.1
"""Share of nodes beyond which slow ones are rather another kind of node, where CPU models may be unknown."""
Row = Mapping[str, Any]
_Rho = Mapping[tuple[str | None, ...], float]


def slow_nodes(
    store: JobStore,
    window: Window | None,
    where: Sequence[str] = (),
    *,
    servers: Sequence[str] = (),
    every: bool = False,
) -> Answer:
    """Return the nodes on which jobs take longer than on others of their site and CPU model.

    ``slower``: CPU time per event over that of the others with the same tasks, minus 1, with its 90 %
    interval; of jobs without events run time, over that of runs of the same user, name, queue and size.
    ``cost_core_h``: core-hours beyond those of the others. Finished jobs on one node count, one SMT state at
    a time. Start-up times: of the latest run, else 0. ``servers``: patterns of hosts that are not nodes.
    ``every``: all nodes that can be compared. See :func:`esjobs.errors.slowness.judge_slow`.

    Cost: a grouped query over sites, one (node x task) for sites of at most 1.5 M jobs together; jobs with
    names and without events are read, about 100 B each. Raises :class:`NoJobsError` without jobs on known
    nodes, :class:`UsageError` for a condition on nodes.
    """
    if any(named(each) == "node" for each in where):
        raise UsageError("nodes are compared with the others of their site; use --site or --queue, or --all")
    finished = (*where, "node is present", written("state", "=", FINISHED))
    query_jobs(store, (), ("jobs",), where=finished, window=window)  # raises with the nearest span
    rows, notes = _by_events(store, finished, window, servers, every=every)
    of_runs, of_names = _by_runs(store, finished, window, servers, every=every)
    rows += of_runs
    rows.sort(key=lambda row: (-row["cost_core_h"], row["site"], row["node"], row["cpu_model"] or ""))
    return Answer(pa.Table.from_pylist(rows, schema=_SCHEMA), (*notes, *of_names), title="slow nodes")


def _by_events(
    store: JobStore, where: Sequence[str], window: Window | None, servers: Sequence[str], *, every: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows and notes of nodes compared by CPU time per event."""
    present = (*where, "cpu_model is present", "cpu_s>0", "events>0")
    try:
        sites = query_jobs(store, ("site",), ("jobs",), where=present, window=window).to_pylist()
    except NoJobsError:
        return [], []
    # replaced by the sites of a batch: conditions on one field are alternatives
    elsewhere = tuple(each for each in present if named(each) != "site")
    rho = _rho(store)
    rows: list[dict[str, Any]] = []
    n_compared = 0
    for some in in_batches(sites):
        at = (*elsewhere, written("site", "=", [each["site"] for each in some]))
        filters = job_filters(store, at, window)
        keys = ("site", "node", *_TASK, *_CPU)
        found = aggregate(store, keys, _SUMS, window, where=filters, books=False).table
        for one_cpu in _by_cpu(encoded(found), servers):
            judged = _judged(one_cpu, rho)
            n_compared += int(np.isfinite(judged.slower).sum())
            rows += _rows(one_cpu, judged, _EVENTS, every=every)
    return rows, [
        f"{n_compared:,} nodes compared with others of the same site, CPU model, SMT state and tasks"
    ]


def _by_runs(
    store: JobStore, where: Sequence[str], window: Window | None, servers: Sequence[str], *, every: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows and notes of nodes compared by run times of jobs of one name."""
    filters = job_filters(store, (*where, "job_name is present", "wall_s>0", "events is missing"), window)
    batches = select(store, _READ, window, where=filters)
    read = [_sized(batch) for batch in batches if batch.num_rows]
    if not read:
        return [], []
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    n_compared = 0
    for one_cpu in _by_cpu(pa.concat_tables(read).unify_dictionaries(), servers, _RUNS, ("wall_s", "core_s")):
        chosen = counted_runs(one_cpu.node, one_cpu.task)
        if not len(chosen):
            continue
        runs = one_cpu.only(chosen)
        judged = judge_slow(cells_of_runs(runs.node, runs.task, runs.sums["wall_s"]))
        compared = int(np.isfinite(judged.slower).sum())
        n_compared += compared
        # too many: not slow nodes, but CPU models that the records do not tell apart
        if (n_found := int(judged.found.sum())) > max(MOST_SLOW * compared, 2):
            judged = replace(judged, found=np.zeros_like(judged.found))
            notes.append(
                f"{runs.site}: jobs take longer on {n_found} of {compared} nodes: rather another kind of "
                "node; records need cpu_model or subcluster"
            )
        rows += _rows(runs, judged, _NAMES, every=every)
    if not n_compared:
        return rows, [
            f"jobs without events: no name has {LEAST_RUNS} finished runs on {LEAST_NODES} nodes; "
            "nothing can be said of their nodes"
        ]
    compared_by = f"{n_compared:,} nodes compared by run times of jobs of one user, name, queue and size"
    return rows, [f"{compared_by} without events; jobs on several nodes do not count", *notes]


def _sized(batch: pa.RecordBatch) -> pa.Table:
    """Return jobs with texts encoded, and their width in place of cores and GPUs."""
    parts = [pc.fill_null(batch.column(name).cast(pa.string()), "") for name in ("cores", "gpus")]
    width = pc.binary_join_element_wise(*parts, "+")  # Such as 8+1
    table = pa.Table.from_batches([batch]).drop_columns(["cores", "gpus"])
    return encoded(table.append_column("width", width))


def _rho(store: JobStore) -> _Rho:
    try:
        return KnownOfTasks.of_run(store, run_of_everything(store, SPEED, "fit")).rho
    except NoResultError:
        return {}


@dataclass(frozen=True)
class _Cells:
    """Jobs of nodes of a site with one CPU model in one SMT state: a row per node and task, or per job."""

    site: str
    cpu_model: str | None
    names: Sequence[str]
    tasks: Sequence[tuple[str | None, ...]]
    node: Ints
    task: Ints
    sums: Mapping[str, Floats]

    def only(self, rows: Ints) -> "_Cells":
        """Return some rows, with their nodes and tasks numbered anew."""
        nodes, node = np.unique(self.node[rows], return_inverse=True)
        tasks, task = np.unique(self.task[rows], return_inverse=True)
        names, tasks_left = [self.names[each] for each in nodes], [self.tasks[each] for each in tasks]
        sums = {name: values[rows] for name, values in self.sums.items()}
        return replace(self, names=names, tasks=tasks_left, node=node, task=task, sums=sums)


def _by_cpu(
    groups: pa.Table, servers: Sequence[str], task: Sequence[str] = _TASK, sums: Sequence[str] = _SUM_NAMES
) -> Iterator[_Cells]:
    """Yield the cells of each site, CPU model and SMT state, without servers and jobs that have no task."""
    text, texts = coded(groups, "node")
    of_text, spelled = numbered(texts, servers)
    name, names = of_text[text], list(spelled)
    (model, models), (site, sites) = coded(groups, "cpu_model"), coded(groups, "site")
    # unknown, off, on
    smt = np.asarray(groups.column("smt").cast(pa.int64()).fill_null(-1)) + 1
    parts = [coded(groups, key) for key in task]
    sizes = [len(values) for _, values in parts]
    values_of = {each: floats(groups.column(each)) for each in sums}
    # the first part is the task or the name of the job; 0 is missing
    usable = np.flatnonzero((name >= 0) & (parts[0][0] > 0))
    cpu = (site[usable] * len(models) + model[usable]) * 3 + smt[usable]
    for each in np.unique(cpu).tolist():
        mine = usable[cpu == each]
        nodes, node = np.unique(name[mine], return_inverse=True)
        code = np.ravel_multi_index([codes[mine] for codes, _ in parts], sizes)
        keys, of_task = np.unique(code, return_inverse=True)
        codes = np.unravel_index(keys, sizes)
        columns = [[values[at] for at in of] for of, (_, values) in zip(codes, parts, strict=True)]
        yield _Cells(
            str(sites[each // 3 // len(models)]),
            models[each // 3 % len(models)],
            [names[at] for at in nodes],
            list(zip(*columns, strict=True)),
            node,
            of_task,
            {key: values[mine] for key, values in values_of.items()},
        )


def _judged(of: _Cells, rho: _Rho) -> SlowJudged:
    jobs, cpu, events = (of.sums[name] for name in ("jobs", "cpu_s", "events"))
    # start-up cost of a job, in events: with it, tasks of few events per job compare with others
    start = np.array([rho.get((task[0], task[1], task[2]), 0.0) for task in of.tasks])[of.task]
    ln_cost = np.log(cpu / (events + start * jobs))
    return judge_slow(TimedCells(of.node, of.task, ln_cost, _job_variance(of) / jobs))


def _job_variance(of: _Cells) -> Floats:
    """Return the relative variance of a job's CPU time per event, pooled over the nodes of its task."""
    jobs, total, squares = (of.sums[name] for name in ("jobs", "per_event", "per_event_sq"))
    dof = jobs - 1.0
    # numbers of equal jobs differ in their last digits
    own = np.maximum(squares - total**2 / jobs, 0.0) / np.maximum(dof, 1.0) / (total / jobs) ** 2
    overall = (dof * own).sum() / max(dof.sum(), 1.0)
    # tasks with a job a node take the scatter of all
    pooled: Floats = (np.bincount(of.task, dof * own) + overall) / (np.bincount(of.task, dof) + 1.0)
    return pooled[of.task]


def _rows(of: _Cells, judged: SlowJudged, sentence: str, *, every: bool) -> Iterator[dict[str, Any]]:
    domain = common_domain(of.names)
    n_jobs = np.bincount(of.node, of.sums.get("jobs"), len(of.names))
    core_h = np.bincount(of.node, np.nan_to_num(of.sums["core_s"]) / 3600, len(of.names))
    for number, node in enumerate(of.names):
        if not np.isfinite(judged.slower[number]) or not (every or judged.found[number]):
            continue
        slower, n_tasks = float(judged.slower[number]), int(judged.n_tasks[number])
        # sums in another order differ in their last digits
        slower = 0.0 if abs(slower) < 1e-9 else slower
        yield {
            "site": of.site,
            "name": node.removesuffix(domain) if domain else node,
            "node": node,
            "cpu_model": of.cpu_model,
            "n_jobs": int(n_jobs[number]),
            "n_tasks": n_tasks,
            "slower": slower,
            "slower_low": float(judged.low[number]),
            "slower_high": float(judged.high[number]),
            "q_value": float(judged.q[number]),
            "cost_core_h": float(core_h[number]) * max(0.0, 1.0 - 1.0 / (1.0 + slower)),
            "slow": bool(judged.found[number]),
            "sentence": sentence.format(percent=exact_percent(slower), n_tasks=n_tasks),
        }
