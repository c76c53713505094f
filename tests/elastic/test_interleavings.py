"""Writers whose requests come in any order: nothing is lost, nobody sees a part, nothing is left behind."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import Hide
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.elastic.transport.writing import refresh
from tests.contract.jobs import hours, table_batch, visible
from tests.races.gate import Gate
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

INTERLEAVINGS = 2
"""Of each kind here; several hundred were tried."""

ROWS = 7


def gated(server: Server, gate: Gate) -> Cluster:
    """A connection all of whose requests pass the gate."""
    cluster = connect(Access(server.url))
    send = cluster._send

    def one(*request: Any) -> Any:
        with gate.one():
            return send(*request)

    opened: Any = cluster
    opened._send = one
    return cluster


def rows(writer: int, turn: int) -> list[dict[str, object]]:
    return [{"day": hours(0).date(), "n_jobs": 100 * writer + turn, "task_id": f"{n}"} for n in range(ROWS)]


def work(store: ElasticStore, writer: int) -> None:
    """Write and publish a partition that all writers write, and one of its own, twice."""
    for turn in range(2):
        written = [
            store.replace(BUCKETS, partition, [table_batch(BUCKETS, rows(writer, turn))])
            for partition in ("shared", f"of {writer}")
        ]
        store.publish(written)
        store.sweep()


def seen(store: ElasticStore) -> Counter[int]:
    """How many rows there are of each writer and turn."""
    return Counter(row["n_jobs"] for row in visible(store, BUCKETS))


@pytest.mark.parametrize("seed", range(INTERLEAVINGS))
@pytest.mark.parametrize("writers", [2, 4])
def test_in_any_order(server: Server, index_prefix: str, writers: int, seed: int) -> None:
    gate, prefix = Gate(seed), index_prefix.rstrip("-")
    reader = ElasticStore(connect(Access(server.url)), prefix, tables=[BUCKETS])
    reader.set_up()
    stores = [ElasticStore(gated(server, gate), prefix, tables=[BUCKETS]) for _ in range(writers)]
    with ThreadPoolExecutor(writers) as pool:
        working = [pool.submit(work, store, number) for number, store in enumerate(stores)]
        while not all(each.done() for each in working):
            assert all(count in (ROWS, 2 * ROWS) for count in seen(reader).values()), "a part was visible"
        for each in working:
            each.result()
    last = seen(reader)
    assert sum(last.values()) == (writers + 1) * ROWS
    assert {100 * number + 1 for number in range(writers)} == set(last)
    for store in stores:
        store.close()
    reader.sweep()
    index = Names(prefix).rows(BUCKETS)
    cluster = connect(Access(server.url))
    refresh(cluster, index)
    markers = pieces = writers + 1
    assert cluster.call("GET", f"/{index}/_count")["count"] == (writers + 1) * ROWS + markers + pieces
    reader.close()


@pytest.mark.parametrize("seed", range(INTERLEAVINGS))
def test_a_month_is_dropped_and_written_in_any_order(server: Server, index_prefix: str, seed: int) -> None:
    """One process takes the only day of a month out of sight and sweeps, another writes days of it."""
    gate, prefix = Gate(seed), index_prefix.rstrip("-")
    pruner, writer = (ElasticStore(gated(server, gate), prefix, tables=[BUCKETS]) for _ in range(2))

    def written(turn: int) -> None:
        day = hours(24 * turn).date()
        row = {"day": day, "n_jobs": turn, "task_id": "1"}
        writer.publish([writer.replace(BUCKETS, str(day), [table_batch(BUCKETS, [row] * ROWS)])])
        writer.sweep()

    def pruned() -> None:
        for _ in range(2):
            pruner.publish([Hide(BUCKETS, str(hours(0).date()))])
            pruner.sweep()

    def written_later() -> None:
        written(1)
        written(2)

    written(0)
    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(pruned), pool.submit(written_later)]
        for each in working:
            each.result()
    assert seen(writer) == {1: ROWS, 2: ROWS}
    index = Names(prefix).rows(BUCKETS, str(hours(0).date()))
    mapped = server.json("GET", f"{index}/_mapping")[index]["mappings"]
    assert mapped["dynamic"] == "strict", "the index was made by a guess of the cluster"
    for store in (pruner, writer):
        store.close()
