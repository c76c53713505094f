"""The ways of the benchmark of clusters, each called once, in a process of its own.

``fill-peer``, ``fill-store``, ``fill-buckets``, ``history``   what the others need; not compared
``composite``, ``aggregate``     a day of jobs into buckets: by hand, and through the store
``bulk``, ``bulk-orjson``, ``bulk-alike``, ``bulk-ready``, ``put``     jobs into an empty index:
                                 ``helpers.parallel_bulk`` and ``put_jobs``; but for ``bulk-ready``, from
                                 Arrow batches; ``bulk-alike`` into one with the settings of the store's
``step``                         the aggregate step: buckets made and written; for its memory
``night``                        the jobs of one more day: stored, aggregated, published, read
``scan``, ``read``               stored buckets back: by hand, and through the store as columns

Jobs are made up before the clock starts.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.elasticsearch_inputs import DAY, batches, buckets
from benchmarks.elasticsearch_task import Task
from benchmarks.machine import cpu_s_of
from esjobs import Settings
from esjobs.api.factory import open_store
from esjobs.core.frames import spare_pandas
from esjobs.core.query import In, Query
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS, aggregate
from esjobs.schema.jobs import BUCKETS
from esjobs.settings import ClusterSettings
from esjobs.store.base import JobStore
from esjobs.store.elastic.results.lines import documents

if TYPE_CHECKING:
    from benchmarks.elasticsearch_peer import Peer

Measured = dict[str, Any]

COMPARED = ("n_jobs", "cpu_s", "events_sq", "events_cpu_s")
"""Columns of buckets whose sums both ways to make them must have in common."""


def _peer(task: Task, *, fast: bool = False) -> "Peer":
    # imported here, so that the clients of both products are not in the memory of the store's ways
    from benchmarks.elasticsearch_peer import Peer

    return Peer(task.url, task.product, fast=fast)


def _store(task: Task, prefix: str = "") -> JobStore:
    cluster = ClusterSettings(prefix=prefix or task.name, timeout_s=120)
    return open_store(Settings(store=task.url, cluster=cluster))


def _jobs(task: Task, day: int = 0) -> list[pa.RecordBatch]:
    return list(batches(task.rows, task.seed, DAY + timedelta(days=day)))


def _window(day: int = 0) -> Window:
    return Window.of_days(DAY + timedelta(days=day), DAY + timedelta(days=day))


class _Clock:
    """Seconds, and processor seconds of this process and of the server."""

    def __init__(self, task: Task) -> None:
        self._servers = task.servers
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._server = cpu_s_of(self._servers)

    def stop(self, **found: object) -> Measured:
        return {
            "wall_s": time.perf_counter() - self._wall,
            "cpu_s": time.process_time() - self._cpu,
            "server_s": cpu_s_of(self._servers) - self._server,
            **found,
        }


def _written_by_peer(task: Task, *, fast: bool, ready: bool = False, as_ours: bool = False) -> Measured:
    """From the same batches as ``put``; ``ready``: from documents that were made of them before.

    ``as_ours``: into an index with the settings of the store's.
    """
    peer, jobs = _peer(task, fast=fast), _jobs(task)
    peer.make_index(task.name, as_ours=as_ours)
    rows: Iterable[dict[str, Any]] = (row for batch in jobs for row in _rows(batch))
    if ready:
        rows = [document for batch in jobs for document in _documents(batch)]
    clock = _Clock(task)
    peer.write(task.name, rows)
    return clock.stop(rows=task.rows)


def _rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    for row in batch.to_pylist():
        yield {name: value for name, value in row.items() if value is not None}


def _documents(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return documents(batch.drop_columns(["source"]), {"source": "panda"})


def fill_peer(task: Task) -> Measured:
    """A day of jobs in an index as other programs make them."""
    peer, clock = _peer(task, fast=True), _Clock(task)
    peer.make_index(task.name)
    for batch in batches(task.rows, task.seed):
        peer.write(task.name, _documents(batch))
    return clock.stop()


def fill_store(task: Task) -> Measured:
    """A day of jobs in the store."""
    store, clock = _store(task), _Clock(task)
    counts = store.put_jobs(batches(task.rows, task.seed), "day 0")
    return clock.stop(rows=counts.stored)


def fill_buckets(task: Task) -> Measured:
    """Buckets of several days in the store, published."""
    store, clock = _store(task), _Clock(task)
    written = []
    for number in range(task.days):
        day = DAY + timedelta(days=number)
        written.append(store.replace(BUCKETS, str(day), [buckets(task.rows // task.days, task.seed, day)]))
    store.publish(written)
    return clock.stop()


def history(task: Task) -> Measured:
    """Some days of jobs, aggregated."""
    store, clock = _store(task), _Clock(task)
    for number in range(task.days):
        store.put_jobs(_jobs(task, number), f"day {number}")
    last = DAY + timedelta(days=task.days - 1)
    store.publish(aggregate(store, Window.of_days(DAY, last), CleaningRules(), run="history").written)
    return clock.stop()


def composite(task: Task) -> Measured:
    """The buckets by hand."""
    rules = CleaningRules()
    clean = {
        "filter": [
            {"term": {"state": "finished"}},
            {"range": {"events": {"gte": 1}}},
            {"range": {"cores": {"gte": 1}}},
            {"range": {"wall_s": {"gt": rules.min_wall_s, "lt": rules.max_wall_s}}},
            {"range": {"cpu_s": {"gt": 0}}},
            {"exists": {"field": "task_id"}},
        ]
    }
    keys = ("task_id", "queue", "cpu_raw", "cores", "processing_type")
    peer, clock = _peer(task), _Clock(task)
    found = list(peer.buckets(task.name, {"bool": clean}, keys))
    done = clock.stop(buckets=len(found))
    return done | {f"sum_{name}": sum(row[name] for row in found) for name in COMPARED}


def through_store(task: Task) -> Measured:
    """The buckets of the aggregate step's query through the store, with books."""
    store = _store(task)
    query = Query(BUCKET_KEYS, BUCKET_METRICS, _window(), drops=CleaningRules().drops())
    clock = _Clock(task)
    table = store.aggregate(query).table
    done = clock.stop(buckets=table.num_rows)
    return done | {f"sum_{name}": float(np.sum(table.column(name).to_numpy())) for name in COMPARED}


def step(task: Task) -> Measured:
    """The aggregate step."""
    store, clock = _store(task), _Clock(task)
    done = aggregate(store, _window(), CleaningRules(), run="step", rebuild=True)
    return clock.stop(buckets=done.report.counts["new buckets"])


def put(task: Task) -> Measured:
    """Jobs into an empty store."""
    # each time into a store that does not exist yet
    store, jobs = _store(task, f"{task.name}-{task.day}"), _jobs(task)
    clock = _Clock(task)
    counts = store.put_jobs(jobs, "day 0")
    return clock.stop(rows=counts.stored)


def night(task: Task) -> Measured:
    """The jobs of one more day: stored, aggregated, published, and their buckets read."""
    store, jobs, window = _store(task), _jobs(task, task.day), _window(task.day)
    clock = _Clock(task)
    store.put_jobs(jobs, f"day {task.day}")
    store.publish(aggregate(store, window, CleaningRules(), run="night").written)
    day = In("day", (str(DAY + timedelta(days=task.day)),))
    return clock.stop(buckets=sum(batch.num_rows for batch in store.read(BUCKETS, [day])))


def scan(task: Task) -> Measured:
    """Stored buckets back by hand, as dictionaries."""
    peer, clock = _peer(task), _Clock(task)
    return clock.stop(rows=len(peer.documents(f"{task.name}-buckets")))


def read(task: Task) -> Measured:
    """Stored buckets back through the store, as columns."""
    store = _store(task)
    days = In("day", tuple(str(DAY + timedelta(days=number)) for number in range(task.days)))
    clock = _Clock(task)
    found = pa.Table.from_batches(store.read(BUCKETS, [days]))
    return clock.stop(rows=found.num_rows)


WAYS: dict[str, Callable[[Task], Measured]] = {
    "fill-peer": fill_peer,
    "fill-store": fill_store,
    "fill-buckets": fill_buckets,
    "history": history,
    "composite": composite,
    "aggregate": through_store,
    "bulk": lambda task: _written_by_peer(task, fast=False),
    "bulk-orjson": lambda task: _written_by_peer(task, fast=True),
    "bulk-alike": lambda task: _written_by_peer(task, fast=True, as_ours=True),
    "bulk-ready": lambda task: _written_by_peer(task, fast=True, ready=True),
    "put": put,
    "step": step,
    "night": night,
    "scan": scan,
    "read": read,
}


def main() -> None:
    """Call one way once, and say the result as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("task", type=json.loads)
    args = parser.parse_args()
    spare_pandas()  # as every command that makes no frames
    print(json.dumps(WAYS[args.way](Task(**args.task))))


if __name__ == "__main__":
    main()
