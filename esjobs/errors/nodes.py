"""Failing nodes of sites, from sums of the stored jobs by node and task."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import named, written
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import exact_percent
from esjobs.core.states import FAILED, FINISHED
from esjobs.core.window import Window
from esjobs.errors.black_holes import Cells, Judged, judge
from esjobs.errors.lost import NEW_DAYS
from esjobs.records.answer import Answer
from esjobs.records.errors.categories import ERROR_TABLES, KILLED, RETRIED, ErrorTable
from esjobs.records.errors.nodes import common_domain, node_name
from esjobs.records.jobs.query import query_jobs
from esjobs.schema.errors import BLACK_HOLE, FAILING
from esjobs.store.base import JobStore

LEAST_TASK_JOBS = 20
"""Jobs of a task at a site; smaller tasks are compared by kind of work."""
LEAST_NODE_JOBS = 2
"""Nodes with at most so many jobs in the median cannot be compared: containers, machines of a cloud."""
_FAST, _MANY = 0.25, 2.0
# a queue is ill from this rate on, at twice its past rate and so many standard errors
_ILL_RATE, _ILL_RATIO, _ILL_ERRORS = 0.05, 2.0, 5.0

_KEYS = ("node", "task_id", "processing_type", "state", "error")
_SUMS = ("jobs", "core_h", "wall_h")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("site", "name", "kind")),
        *(("n_jobs", pa.int64()), ("failed", pa.int64()), ("expected", pa.float64())),
        *((name, pa.float64()) for name in ("ratio", "ratio_low", "ratio_high", "q_value", "cost_core_h")),
        *(("sentence", pa.string()), ("node", pa.string())),
    ]
)
Row = Mapping[str, Any]


@dataclass
class _Node:
    """Sums of a node."""

    jobs: int = 0
    wall_h: float = 0.0
    lost_core_h: float = 0.0


@dataclass(frozen=True)
class _Site:
    """Nodes of a site in the order of the cells' indices, and the names that records give them."""

    nodes: Mapping[str, _Node]
    spelled: Mapping[str, set[str]]
    cells: Cells

    @property
    def ephemeral(self) -> bool:
        """True if names live for a job or two: containers, machines of a cloud."""
        counts = [node.jobs for node in self.nodes.values()]
        return bool(counts) and float(np.median(counts)) <= LEAST_NODE_JOBS


def failing_nodes(
    store: JobStore,
    window: Window | None,
    where: Sequence[str] = (),
    *,
    servers: Sequence[str] = (),
    every: bool = False,
) -> Answer:
    """Return the nodes on which more jobs fail than on the other nodes of their site, most costly first.

    ``expected``: failures, had the node failed as often as the others with the same tasks; ``ratio`` with its
    90 % interval; ``cost_core_h``: core-hours of the failures beyond. A ``black hole`` fails in a quarter of
    the usual time and takes twice the jobs of others per hour; else ``failing node``. Retried attempts and
    killed jobs do not count. ``servers``: patterns of hosts that are not nodes. ``every``: all nodes, with
    an empty ``kind`` where nothing is found. See :func:`esjobs.errors.black_holes.judge`.

    Cost: two grouped queries over sites, one per site (node x task), two per node that is found. Raises
    :class:`NoJobsError` without jobs, :class:`UsageError` for a condition on nodes.
    """
    if any(named(each) == "node" for each in where):
        raise UsageError("nodes are compared with the others of their site; use --site or --queue, or --all")
    present = (*where, "node is present")
    rates = query_jobs(store, ("site",), ("jobs", "failed"), where=present, window=window).to_pylist()
    before = _rates_before(store, present, window)
    # conditions on one field are alternatives: that on one site replaces those on several
    elsewhere = tuple(each for each in present if named(each) != "site")
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    n_compared = 0
    for rate in rates:
        at = (*elsewhere, written("site", "=", [rate["site"]]))
        site = _site(
            query_jobs(store, _KEYS, _SUMS, where=at, window=window), ERROR_TABLES.of(store), servers
        )
        if site.ephemeral:
            notes.append(
                f"{rate['site']}: half of the nodes have at most {LEAST_NODE_JOBS} jobs: too few to compare"
            )
            continue
        n_compared += 1
        judged = judge(site.cells)
        if not judged.found.any():
            notes += _illness(rate, before.get(rate["site"]))
        rows += _rows(store, window, at, str(rate["site"]), site, judged, every=every)
    if not rows and n_compared:
        notes.append("no node fails more often than the others of its site")
    rows.sort(key=lambda row: (-row["cost_core_h"], row["site"], row["node"]))
    return Answer(pa.Table.from_pylist(rows, schema=_SCHEMA), tuple(notes), title="failing nodes")


def _rates_before(store: JobStore, where: Sequence[str], window: Window | None) -> dict[str, Row]:
    if window is None:
        return {}
    before = Window(window.start - timedelta(days=NEW_DAYS), window.start)
    try:
        found = query_jobs(store, ("site",), ("jobs", "failed"), where=where, window=before)
    except NoJobsError:
        return {}
    return {row["site"]: row for row in found.to_pylist()}


def _illness(now: Row, before: Row | None) -> Iterator[str]:
    """Yield the sentence for a site all of which fails more often than before."""
    if before is None or not now["failed"] or before["failed"] is None:
        return
    rate, usual = now["failed"] / now["jobs"], before["failed"] / before["jobs"]
    # one job more, so that a site without failures has an error, too
    spread = np.sqrt(now["jobs"] * (usual + 1 / before["jobs"]))
    surprising = now["failed"] - now["jobs"] * usual > _ILL_ERRORS * spread
    if rate > _ILL_RATE and rate > _ILL_RATIO * usual and surprising:
        yield (
            f"{now['site']}: queue, not node: {exact_percent(rate)} of the jobs failed, "
            f"{exact_percent(usual)} in the {NEW_DAYS} days before"
        )


def _site(table: pa.Table, errors: ErrorTable, servers: Sequence[str]) -> _Site:
    rows = [row for row in table.to_pylist() if _counts(row, errors)]
    sizes = Counter[str | None]()
    for row in rows:
        sizes[row["task_id"]] += row["jobs"]
    nodes: dict[str, _Node] = {}
    spelled: dict[str, set[str]] = defaultdict(set)
    jobs, failed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        name = node_name(row["node"], servers)
        if name is None:
            continue
        cell = name, _stratum(row, sizes)
        node = nodes.setdefault(name, _Node())
        spelled[name].add(row["node"])
        node.jobs += row["jobs"]
        node.wall_h += row["wall_h"] or 0.0
        jobs[cell] += row["jobs"]
        if row["state"] in FAILED:
            failed[cell] += row["jobs"]
            node.lost_core_h += row["core_h"] or 0.0
    return _Site(nodes, spelled, _cells(list(nodes), jobs, failed))


def _counts(row: Row, errors: ErrorTable) -> bool:
    if row["state"] in FINISHED:
        return True
    category = errors.category(row["error"])
    return row["state"] in FAILED and (category is None or category.name not in (KILLED, RETRIED))


def _stratum(row: Row, sizes: Mapping[str | None, int]) -> str:
    task = row["task_id"]
    small = task is None or sizes[task] < LEAST_TASK_JOBS
    return f"kind {row['processing_type']}" if small else f"task {task}"


def _cells(names: Sequence[str], jobs: Counter[tuple[str, str]], failed: Counter[tuple[str, str]]) -> Cells:
    nodes = {name: number for number, name in enumerate(names)}
    strata = {name: number for number, name in enumerate(dict.fromkeys(stratum for _, stratum in jobs))}
    return Cells(
        np.array([nodes[name] for name, _ in jobs], np.int64),
        np.array([strata[stratum] for _, stratum in jobs], np.int64),
        np.array(list(jobs.values()), np.float64),
        np.array([failed[cell] for cell in jobs], np.float64),
    )


def _rows(
    store: JobStore,
    window: Window | None,
    at: Sequence[str],
    name: str,
    site: _Site,
    judged: Judged,
    *,
    every: bool,
) -> Iterator[dict[str, Any]]:
    domain = common_domain(site.nodes)
    for number, node in enumerate(site.nodes):
        if not (every or judged.found[number]):
            continue
        observed, expected = float(judged.observed[number]), float(judged.expected[number])
        ratio = [float(end[number]) for end in (judged.low, judged.high)] if expected else [None, None]
        beyond = max(0.0, 1 - expected / observed) if observed else 0.0
        yield {
            "site": name,
            "name": node.removesuffix(domain) if domain else node,
            "node": node,
            "kind": _kind(store, window, at, site, node) if judged.found[number] else None,
            "n_jobs": int(judged.jobs[number]),
            "failed": int(observed),
            "expected": expected,
            "ratio": observed / expected if expected else None,
            **dict(zip(("ratio_low", "ratio_high"), ratio, strict=True)),
            "q_value": float(judged.q[number]),
            "cost_core_h": site.nodes[node].lost_core_h * beyond,
            "sentence": f"{int(observed):,} of {int(judged.jobs[number]):,} jobs failed; at the rate of "
            f"other nodes {expected:.1f} would have",
        }


def _kind(store: JobStore, window: Window | None, at: Sequence[str], site: _Site, node: str) -> str:
    """Return ``black hole`` for a node that fails fast and therefore takes more jobs than others."""
    own = site.nodes[node]
    others_jobs = sum(each.jobs for each in site.nodes.values()) - own.jobs
    others_h = sum(each.wall_h for each in site.nodes.values()) - own.wall_h
    if not own.wall_h * others_jobs or own.jobs / own.wall_h <= _MANY * others_jobs / max(others_h, 1e-9):
        return FAILING
    on_node = (*at, written("node", "=", sorted(site.spelled[node])), written("state", "=", FAILED))
    failing = _median_wall(store, on_node, window)
    usual = _median_wall(store, (*at, written("state", "=", FINISHED)), window)
    fast = failing is not None and usual is not None and failing < _FAST * usual
    return BLACK_HOLE if fast else FAILING


def _median_wall(store: JobStore, where: Sequence[str], window: Window | None) -> float | None:
    try:
        found = query_jobs(store, (), ("median:wall_s",), where=where, window=window)
    except NoJobsError:
        return None
    median: float | None = found.column("median:wall_s")[0].as_py()
    return median
