"""Failing nodes of sites, from sums of the stored jobs by node and task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from esjobs.core.conditions import named, written
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.core.numbers import exact_percent
from esjobs.core.query import Count, Either, Filter, In, Missing, Moment, NotIn, Present
from esjobs.core.states import FAILED, FINISHED
from esjobs.core.window import Window
from esjobs.errors.black_holes import Cells, Judged, Parts, judge
from esjobs.errors.lost import NEW_DAYS
from esjobs.records.answer import Answer
from esjobs.records.errors.categories import ERROR_TABLES, KILLED, RETRIED
from esjobs.records.errors.nodes import common_domain, numbered
from esjobs.records.jobs.conditions import job_filters
from esjobs.records.jobs.query import query_jobs
from esjobs.records.jobs.resolution import aggregate
from esjobs.schema.errors import BLACK_HOLE, FAILING
from esjobs.store.base import JobStore
from esjobs.store.merge import coded, encoded, floats
from fitters.layout.arrays import Floats, Ints

LEAST_TASK_JOBS = 20
"""Jobs of a task at a site, or of a user and job name; fewer are compared by kind of work."""
LEAST_NODE_JOBS = 2
"""Nodes with at most so many jobs in the median cannot be compared: containers, machines of a cloud."""
# Of a black hole: time to failure over the usual wall time, and jobs per hour over others'
_FAST, _MANY = 0.25, 2.0
# from this rate on, at twice its past rate and this many standard errors, all of a site is ill
_ILL_RATE, _ILL_RATIO, _ILL_ERRORS = 0.05, 2.0, 5.0

# with the queue, as sites are made of queues: groups need no merging
_KEYS = ("queue", "site", "node", "task_id", "processing_type")
_KEYS_WITHOUT_TASK = (*_KEYS, "user", "job_name")
_FAILED = (In("state", FAILED),)
_OF_FAILED = (Count("failed"), Moment(("core_s",), "failed_core_s"))
_SPARSE = 32  # Entries per number of a table beyond which sorting is faster
_BATCH_JOBS = 1_500_000  # Jobs of the sites whose groups are in memory together
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("site", "name", "kind")),
        *(("n_jobs", pa.int64()), ("failed", pa.int64()), ("expected", pa.float64())),
        *((name, pa.float64()) for name in ("ratio", "ratio_low", "ratio_high", "q_value", "cost_core_h")),
        *(("sentence", pa.string()), ("node", pa.string())),
    ]
)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Site:
    """Nodes of a site in the order of the cells' indices, with their sums and the texts of records."""

    names: Sequence[str]
    jobs: Floats
    lost_core_h: Floats
    texts: Mapping[str, Sequence[str]]
    cells: Cells

    @property
    def ephemeral(self) -> bool:
        """True if names live for a job or two: containers, machines of a cloud."""
        return len(self.names) > 0 and float(np.median(self.jobs)) <= LEAST_NODE_JOBS


_NOTHING, _NO_INDEX = np.zeros(0), np.zeros(0, np.int64)
_NO_NODES = _Site((), _NOTHING, _NOTHING, {}, Cells(_NO_INDEX, _NO_INDEX, _NOTHING, _NOTHING))


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

    Cost: three grouped queries over sites and errors, four (node x task; of jobs without one, node x user x
    name; of all jobs, of failed ones) for sites of at most 1.5 M jobs together, one per site and two per node
    that is found. Raises :class:`NoJobsError` without jobs, :class:`UsageError` for a condition on nodes.
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
    judgeable = _judgeable(store, present, window)
    for some in in_batches(rates):
        at = (*elsewhere, written("site", "=", [rate["site"] for rate in some]))
        sites = _sites(_groups(store, window, (*job_filters(store, at, window), *judgeable)), servers)
        for rate in some:
            site = sites.get(rate["site"], _NO_NODES)
            if site.ephemeral:
                few = f"half of the nodes have at most {LEAST_NODE_JOBS} jobs: too few to compare"
                notes.append(f"{rate['site']}: {few}")
                continue
            n_compared += 1
            judged = judge(site.cells)
            # where all nodes fail alike none is found, which must not read as "all is well"
            if not judged.found.any():
                notes += _illness(rate, before.get(rate["site"]))
            of_site = (*elsewhere, written("site", "=", [rate["site"]]))
            wall_h = _NOTHING
            if judged.found.any():
                filters = (*job_filters(store, of_site, window), *judgeable)
                wall_h = _wall_hours(store, window, filters, site)
            rows += _rows(store, window, of_site, str(rate["site"]), site, judged, wall_h, every=every)
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
    # Poisson; one job more, so that a site without failures has an error, too
    spread = np.sqrt(now["jobs"] * (usual + 1 / before["jobs"]))
    surprising = now["failed"] - now["jobs"] * usual > _ILL_ERRORS * spread
    if rate > _ILL_RATE and rate > _ILL_RATIO * usual and surprising:
        yield (
            f"{now['site']}: queue, not node: {exact_percent(rate)} of the jobs failed, "
            f"{exact_percent(usual)} in the {NEW_DAYS} days before"
        )


def in_batches(rates: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield sites together whose groups fit into memory: there are no more groups than jobs."""
    batch: list[Row] = []
    for rate in rates:
        if batch and sum(each["jobs"] for each in batch) + rate["jobs"] > _BATCH_JOBS:
            yield batch
            batch = []
        batch.append(rate)
    if batch:
        yield batch


def _judgeable(store: JobStore, where: Sequence[str], window: Window | None) -> tuple[Filter, ...]:
    """Return the filters of jobs that finished or failed, without killed jobs and retried attempts."""
    failures = (*job_filters(store, where, window), *_FAILED)
    found = aggregate(store, ("error",), (Count("jobs"),), window, where=failures, books=False).table
    table = ERROR_TABLES.of(store)
    categories = {text: table.category(text) for text in found.column("error").to_pylist()}
    dull = [text for text, each in categories.items() if each is not None and each.name in (KILLED, RETRIED)]
    ended = In("state", (*FINISHED, *FAILED))
    if not dull:
        return (ended,)
    return ended, Either((In("state", FINISHED), NotIn("error", tuple(dull)), Missing("error")))


def _groups(store: JobStore, window: Window | None, filters: Sequence[Filter]) -> pa.Table:
    """Return the sums by site, node, task and type; of jobs without a task by user and job name, too.

    Rows of failed jobs follow those of all: a cluster would send every sum of every group.
    """
    found = [
        encoded(aggregate(store, keys, sums, window, where=(*filters, *some, rule), books=False).table)
        for keys, rule in ((_KEYS, Present("task_id")), (_KEYS_WITHOUT_TASK, Missing("task_id")))
        for sums, some in (((Count("jobs"),), ()), (_OF_FAILED, _FAILED))
    ]
    return pa.concat_tables(found, promote_options="default").unify_dictionaries()


def _wall_hours(store: JobStore, window: Window | None, filters: Sequence[Filter], site: _Site) -> Floats:
    """Return the wall hours of each node of a site."""
    sums = (Moment(("wall_s",), "wall_s"),)
    found = aggregate(store, ("node",), sums, window, where=filters, books=False).table
    seconds = {row["node"]: row["wall_s"] or 0.0 for row in found.to_pylist()}
    return np.array([sum(seconds.get(text, 0.0) for text in site.texts[name]) for name in site.names]) / 3600


def _sites(of: pa.Table, servers: Sequence[str]) -> dict[str, _Site]:
    """Return the sites of groups by site, node, task and type."""
    if not of.num_rows:
        return {}
    text, texts = coded(of, "node")
    of_text, spelled = numbered(texts, servers)
    site, sites = coded(of, "site")
    stratum, culprit = _strata(of, site, len(sites))
    usable = of_text[text] >= 0  # Without servers, and lists of nodes
    names = list(spelled)
    nodes, node = _distinct((site * len(names) + of_text[text])[usable])
    n_strata = int(stratum.max()) + 1
    cells, cell = _distinct(node * n_strata + stratum[usable])
    jobs, failed, lost_s = (_numbers(of, name)[usable] for name in ("jobs", "failed", "failed_core_s"))
    of_cell = [_summed(cell, values) for values in (jobs, failed)]
    culprit = culprit[usable]
    # rows by cell: those of a site are one slice
    order = np.argsort(cell, kind="stable")
    in_order = cell[order]
    of_node = [_summed(node, values) for values in (jobs, lost_s / 3600)]
    cell_node, cell_stratum = np.divmod(cells, n_strata)
    found = {}
    for at in np.unique(nodes // max(len(names), 1)).tolist():
        # nodes, and cells by node, are in order of sites
        first, last = np.searchsorted(nodes, [at * len(names), (at + 1) * len(names)])
        part = slice(*np.searchsorted(cell_node, [first, last]))
        mine = order[slice(*np.searchsorted(in_order, [part.start, part.stop]))]
        parts = Parts(cell[mine] - part.start, culprit[mine], jobs[mine], failed[mine])
        found[str(sites[at])] = _Site(
            [names[each % len(names)] for each in nodes[first:last]],
            of_node[0][first:last],
            of_node[1][first:last],
            spelled,
            Cells(cell_node[part] - first, cell_stratum[part], of_cell[0][part], of_cell[1][part], parts),
        )
    return found


def _strata(of: pa.Table, site: Ints, n_sites: int) -> tuple[Ints, Ints]:
    """Return the task of each group, of jobs without one their user and name, and the culprit.

    Those with too few jobs at a site are one with all of their kind of work. Culprits: a task, a user, a job
    name; -1 for jobs that have none of them.
    """
    (task, tasks), (kind, _), (user, users), (name, names) = (
        coded(of, key) for key in ("task_id", "processing_type", "user", "job_name")
    )
    no_task = task == 0
    # numbers from len(tasks) on: pairs of user and job name
    common = _distinct(np.where(no_task, len(tasks) + user * len(names) + name, task))[1]
    of_site = common * n_sites + site
    small = np.bincount(of_site, _numbers(of, "jobs"))[of_site] < LEAST_TASK_JOBS
    nobody = no_task & (user == 0) & (name == 0)
    small |= nobody
    # of jobs without a task the user is the culprit, else the job name
    whose = np.where(user > 0, user - 1, len(users) + name - 1)
    culprit = np.where(nobody, -1, np.where(no_task, len(tasks) + whose, task))
    return np.where(small, int(common.max(initial=0)) + 1 + kind, common), culprit


def _distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in order, and the position of each; dense ones are not sorted."""
    size = int(numbers.max(initial=-1)) + 1
    if size > _SPARSE * len(numbers):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(size, np.bool_)
    present[numbers] = True
    distinct = np.flatnonzero(present)
    position = np.zeros(size, np.int64)
    position[distinct] = np.arange(len(distinct))
    return distinct, position[numbers]


def _summed(group: Ints, values: Floats) -> Floats:
    return np.bincount(group, values).astype(np.float64)


def _numbers(table: pa.Table, name: str) -> Floats:
    """Return a column, 0 where it is missing."""
    return np.nan_to_num(floats(table.column(name)))


def _rows(
    store: JobStore,
    window: Window | None,
    at: Sequence[str],
    name: str,
    site: _Site,
    judged: Judged,
    wall_h: Floats,
    *,
    every: bool,
) -> Iterator[dict[str, Any]]:
    domain = common_domain(site.names)
    for number, node in enumerate(site.names):
        if not (every or judged.found[number]):
            continue
        observed, expected = float(judged.observed[number]), float(judged.expected[number])
        ratio = [float(end[number]) for end in (judged.low, judged.high)] if expected else [None, None]
        beyond = max(0.0, 1 - expected / observed) if observed else 0.0
        yield {
            "site": name,
            "name": node.removesuffix(domain) if domain else node,
            "node": node,
            "kind": _kind(store, window, at, site, number, wall_h) if judged.found[number] else None,
            "n_jobs": int(judged.jobs[number]),
            "failed": int(observed),
            "expected": expected,
            "ratio": observed / expected if expected else None,
            **dict(zip(("ratio_low", "ratio_high"), ratio, strict=True)),
            "q_value": float(judged.q[number]),
            "cost_core_h": float(site.lost_core_h[number]) * beyond,
            "sentence": f"{int(observed):,} of {int(judged.jobs[number]):,} jobs failed; at the rate of "
            f"other nodes {expected:.1f} would have",
        }


def _kind(
    store: JobStore, window: Window | None, at: Sequence[str], site: _Site, node: int, wall_h: Floats
) -> str:
    """Return ``black hole`` for a node that fails fast and therefore takes more jobs than others."""
    jobs, own_h = float(site.jobs[node]), float(wall_h[node])
    others_jobs, others_h = float(site.jobs.sum()) - jobs, float(wall_h.sum()) - own_h
    # cheap check first: the medians below cost two queries
    if not own_h * others_jobs or jobs / own_h <= _MANY * others_jobs / max(others_h, 1e-9):
        return FAILING
    texts = sorted(site.texts[site.names[node]])
    on_node = (*at, written("node", "=", texts), written("state", "=", FAILED))
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
