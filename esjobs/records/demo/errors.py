"""Error codes and worker nodes of the synthetic grid; everything else of a job stays as it is.

One node of a large site takes many of its failures, and the failures of the incident have a code that no
other job has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from esjobs.records.demo.truth import Incident, QueueTruth

OF_INCIDENT = "pilot:1361"
"""Error of the failed jobs of the incident."""
OF_FAILING_NODE = "pilot:1377"
"""Error of the failed jobs that the failing node takes."""
FAILING = "wn007"
"""Failing node, at the largest site without the incident."""
# Enough for a black hole that the tests of nodes must find.
TAKEN = 0.4
"""The part of the failed jobs of its site that the failing node takes."""
CODES = {
    "trans:65": 0.28,
    "pilot:1099": 0.16,
    "pilot:1137": 0.12,
    "dispatcher:100": 0.12,
    "pilot:1110": 0.08,
    "trans:134": 0.07,
    "trans:15": 0.05,
    "pilot:1098": 0.04,
    "ddm:200": 0.03,
    "none:0": 0.05,
}
"""Errors of the failed jobs, with their shares."""
OF_STATES = {
    "timeout": "pilot:1213",
    "out_of_memory": "pilot:1235",
    "node_fail": "dispatcher:100",
    "cancelled": "taskbuffer:100",
}
_NODES_OF_GRID = 3000
_LEAST, _MOST = 8, 120  # nodes of a site


@dataclass(frozen=True)
class Nodes:
    """Nodes of the queues: names of all; by queue the first, their number, and true with the failing node."""

    names: pa.Array
    first: NDArray[np.int64]
    number: NDArray[np.int64]
    failing: NDArray[np.bool_]

    @classmethod
    def of(cls, queues: Sequence[QueueTruth], incident: Incident | None = None) -> "Nodes":
        """Return the nodes of queues; those of a site are shared by its queues, and grow with its size."""
        shares = _shares_of_sites(queues)
        sizes = np.clip(np.rint(np.array(list(shares.values())) * _NODES_OF_GRID), _LEAST, _MOST).astype(int)
        names = [
            f"wn{number + 1:03d}.{site.lower()}.example"
            for site, size in zip(shares, sizes, strict=True)
            for number in range(size)
        ]
        # nodes are numbered through all sites, those of a site in one piece
        at = np.array([list(shares).index(queue.site) for queue in queues])
        ill = site_of_failing_node(queues, incident)
        failing = np.array([queue.site == ill for queue in queues])
        return cls(pa.array(names), (np.cumsum(sizes) - sizes)[at], sizes[at], failing)


def site_of_failing_node(queues: Sequence[QueueTruth], incident: Incident | None = None) -> str:
    """Return the site with the failing node: the largest without the incident."""
    shares = _shares_of_sites(queues)
    if incident is not None:
        del shares[incident.site]
    return max(shares, key=shares.__getitem__)


def _shares_of_sites(queues: Sequence[QueueTruth]) -> dict[str, float]:
    shares = dict.fromkeys((queue.site for queue in queues), 0.0)
    for queue in queues:
        shares[queue.site] += queue.share
    return shares


def coded(
    jobs: pa.RecordBatch,
    rng: np.random.Generator,
    nodes: Nodes,
    queues: Sequence[QueueTruth],
    incident: Incident | None,
) -> pa.RecordBatch:
    """Return the jobs of a day with nodes and, where they did not finish, errors.

    ``incident``: that of the day, None on days without it.
    """
    drawn = rng.random((3, jobs.num_rows))
    names = pa.array([queue.name for queue in queues], pa.string())
    queue = pc.index_in(jobs.column("queue"), value_set=names).to_numpy(zero_copy_only=False)
    state = np.array(jobs.column("state").fill_null("").to_pylist(), object)
    failed = state == "failed"
    node = nodes.first[queue] + (drawn[0] * nodes.number[queue]).astype(np.int64)
    edges = np.cumsum(list(CODES.values()))
    # inverse transform sampling of the shares
    error = np.array(list(CODES), object)[np.searchsorted(edges[:-1], drawn[1], side="right")]
    if incident is not None:
        error[np.array([each.site == incident.site for each in queues])[queue]] = OF_INCIDENT
    takes = failed & nodes.failing[queue] & (drawn[2] < TAKEN)
    # nodes of a site are numbered from 1, in one piece
    node[takes] = nodes.first[queue[takes]] + int(FAILING.removeprefix("wn")) - 1
    error[takes] = OF_FAILING_NODE
    for word, code in OF_STATES.items():
        error[state == word] = code
    ended = failed | np.isin(state.astype(str), list(OF_STATES))
    changed = {
        "node": nodes.names.take(pa.array(node)),
        "error": pa.array(np.where(ended, error, None), pa.string()),
    }
    columns = [changed.get(item.name, jobs.column(item.name)) for item in jobs.schema]
    return pa.RecordBatch.from_arrays(columns, schema=jobs.schema)
