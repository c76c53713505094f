"""Slow nodes of sites, from sums of the finished jobs by node, task and CPU model."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import named, written
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.numbers import exact_percent
from esjobs.core.states import FINISHED
from esjobs.core.window import Window
from esjobs.errors.black_holes import Floats, Ints
from esjobs.errors.slowness import SlowJudged, TimedCells, judge_slow
from esjobs.publish.finding import run_of_everything
from esjobs.records.answer import Answer
from esjobs.records.errors.nodes import common_domain, node_name
from esjobs.records.jobs.query import query_jobs
from esjobs.records.tasks.solved import KnownOfTasks
from esjobs.schema.speed import SPEED
from esjobs.store.base import JobStore

# queues of a site differ in what they do to a task
_TASK = ("task_id", "core_class", "processing_type", "queue")
_CPU = ("cpu_model", "smt")
_SUMS = ("jobs", "core_h", "sum:cpu_s", "sum:events", "mean:cpu_s_per_event", "sd:cpu_s_per_event")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("site", "name", "cpu_model")),
        *(("n_jobs", pa.int64()), ("n_tasks", pa.int64())),
        *((name, pa.float64()) for name in ("slower", "slower_low", "slower_high", "q_value", "cost_core_h")),
        *(("slow", pa.bool_()), ("sentence", pa.string()), ("node", pa.string())),
    ]
)
Row = Mapping[str, Any]
_Rho = Mapping[tuple[str | None, str | None, str | None], float]


def slow_nodes(
    store: JobStore,
    window: Window | None,
    where: Sequence[str] = (),
    *,
    servers: Sequence[str] = (),
    every: bool = False,
) -> Answer:
    """Return the nodes that need more CPU time per event than others of their site and CPU model.

    ``slower``: CPU time per event over that of the others with the same tasks, minus 1, with its 90 %
    interval; ``cost_core_h``: core-hours beyond those of the others. Finished jobs with events, CPU time and
    CPU model count, one SMT state at a time. Start-up times: of the latest run, else 0. ``servers``: patterns
    of hosts that are not nodes. ``every``: all nodes that can be compared. See
    :func:`esjobs.errors.slowness.judge_slow`.

    Cost: a grouped query over sites, one per site (node x task). Raises :class:`NoJobsError` without jobs,
    :class:`UsageError` for a condition on nodes.
    """
    if any(named(each) == "node" for each in where):
        raise UsageError("nodes are compared with the others of their site; use --site or --queue, or --all")
    usable = ("node is present", "cpu_model is present", "cpu_s>0", "events>0")
    present = (*where, *usable, written("state", "=", FINISHED))
    sites = query_jobs(store, ("site",), ("jobs",), where=present, window=window).column("site").to_pylist()
    elsewhere = tuple(each for each in present if named(each) != "site")
    rho = _rho(store)
    rows: list[dict[str, Any]] = []
    n_compared = 0
    for site in sites:
        at = (*elsewhere, written("site", "=", [site]))
        found = query_jobs(store, ("node", *_TASK, *_CPU), _SUMS, where=at, window=window).to_pylist()
        of_cpu: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in found:
            node = node_name(row["node"], servers)
            if node is not None and row["task_id"] is not None:
                of_cpu[row["cpu_model"], row["smt"]].append({**row, "node": node})
        for one_cpu in of_cpu.values():
            judged, names = _judged(one_cpu, rho)
            n_compared += int(np.isfinite(judged.slower).sum())
            rows += _rows(str(site), one_cpu, names, judged, every=every)
    rows.sort(key=lambda row: (-row["cost_core_h"], row["site"], row["node"]))
    notes = [f"{n_compared:,} nodes compared with others of the same site, CPU model, SMT state and tasks"]
    return Answer(pa.Table.from_pylist(rows, schema=_SCHEMA), tuple(notes), title="slow nodes")


def _rho(store: JobStore) -> _Rho:
    try:
        return KnownOfTasks.of_run(store, run_of_everything(store, SPEED, "fit")).rho
    except NoResultError:
        return {}


def _judged(rows: Sequence[Row], rho: _Rho) -> tuple[SlowJudged, list[str]]:
    names = list(dict.fromkeys(row["node"] for row in rows))
    tasks = list(dict.fromkeys(tuple(row[name] for name in _TASK) for row in rows))
    node_at = {name: number for number, name in enumerate(names)}
    task_at = {task: number for number, task in enumerate(tasks)}
    node = np.array([node_at[row["node"]] for row in rows], np.int64)
    task = np.array([task_at[tuple(row[name] for name in _TASK)] for row in rows], np.int64)
    jobs, cpu, events = (np.array([row[name] for row in rows], float) for name in (_SUMS[0], *_SUMS[2:4]))
    start = np.array([rho.get((of[0], of[1], of[2]), 0.0) for of in tasks])[task]
    cells = TimedCells(node, task, np.log(cpu / (events + start * jobs)), _job_variance(rows, task) / jobs)
    return judge_slow(cells), names


def _job_variance(rows: Sequence[Row], task: Ints) -> Floats:
    """Return the relative variance of a job's CPU time per event, pooled over the nodes of its task."""
    own = np.array([((row[_SUMS[5]] or 0.0) / row[_SUMS[4]]) ** 2 for row in rows])
    dof = np.array([row["jobs"] - 1.0 for row in rows])
    overall = (dof * own).sum() / max(dof.sum(), 1.0)
    # tasks with a job a node take the scatter of all
    pooled: Floats = (np.bincount(task, dof * own) + overall) / (np.bincount(task, dof) + 1.0)
    return pooled[task]


def _rows(
    site: str, rows: Sequence[Row], names: Sequence[str], judged: SlowJudged, *, every: bool
) -> Iterator[dict[str, Any]]:
    domain = common_domain(names)
    for number, node in enumerate(names):
        if not np.isfinite(judged.slower[number]) or not (every or judged.found[number]):
            continue
        mine = [row for row in rows if row["node"] == node]
        slower, n_tasks = float(judged.slower[number]), int(judged.n_tasks[number])
        core_h = sum(row["core_h"] or 0.0 for row in mine)
        yield {
            "site": site,
            "name": node.removesuffix(domain) if domain else node,
            "node": node,
            "cpu_model": mine[0]["cpu_model"],
            "n_jobs": sum(row["jobs"] for row in mine),
            "n_tasks": n_tasks,
            "slower": slower,
            "slower_low": float(judged.low[number]),
            "slower_high": float(judged.high[number]),
            "q_value": float(judged.q[number]),
            "cost_core_h": core_h * max(0.0, 1.0 - 1.0 / (1.0 + slower)),
            "slow": bool(judged.found[number]),
            "sentence": f"{exact_percent(slower)} more CPU time per event than other nodes with this CPU "
            f"model; {n_tasks} tasks",
        }
