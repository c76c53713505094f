"""Two processes that want to write jobs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from esjobs.capabilities import TABLES
from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.jobs.tables import BUCKETS
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.state import State
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.lease import Lease  # noqa: F401  for the process that dies
from tests.contract.jobs import batch, hours, job, put, selected, table_batch, visible
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)


def opened(server: Server, prefix: str) -> ElasticStore:
    return ElasticStore(connect(Access(server.url)), prefix.rstrip("-"), tables=TABLES)


def test_a_second_writer_is_told_who_writes_and_spoils_nothing(server: Server, index_prefix: str) -> None:
    first, second = opened(server, index_prefix), opened(server, index_prefix)

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch([job(1)])
        with pytest.raises(StoreBusyError, match=f"process {os.getpid()} on .* is writing jobs"):
            put(second, "b", job(2))
        yield batch([job(3)])

    assert first.put_jobs(batches(), "a").stored == 2
    assert put(second, "b", job(2)) == (1, 0, 0)
    assert selected(first, "job_id") == ["1", "2", "3"]


def test_what_a_dead_process_held_is_taken_over(server: Server, index_prefix: str) -> None:
    text = (
        "import os, sys; from tests.elastic.test_writers import *; "
        "cluster = connect(Access(sys.argv[1])); names = Names(sys.argv[2]); "
        "Lease(State(cluster, names), 'here').take(); os._exit(9)"
    )
    prefix = index_prefix.rstrip("-")
    dead = subprocess.run([sys.executable, "-c", text, server.url, prefix], check=False)
    assert dead.returncode == 9
    assert put(opened(server, index_prefix), "a", job(1)) == (1, 0, 0)


def test_a_lease_that_was_taken_away_stops_the_write(server: Server, index_prefix: str) -> None:
    store = opened(server, index_prefix)
    put(store, "a", job(1))
    state = State(connect(Access(server.url)), Names(index_prefix.rstrip("-")))

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch([job(2)])
        held = state.value("who is writing jobs")
        assert state.compare_and_set("who is writing jobs", held, "9999999999 1 - x elsewhere")
        store._jobs._lease._renewed = float("-inf")
        yield batch([job(3)])

    with pytest.raises(StoreBusyError, match="another process"):
        store.put_jobs(batches(), "b")
    assert selected(store, "job_id") == ["1"]
    with pytest.raises(StoreError, match="process 1 on elsewhere is writing"):
        put(store, "c", job(4))


def test_publishers_wait_for_each_other(server: Server, index_prefix: str) -> None:
    """None undoes what another has just published."""
    stores = [opened(server, index_prefix) for _ in range(3)]
    stores[0].set_up()
    days = [hours(24 * number).date() for number in range(12)]
    written = [
        (store, store.replace(BUCKETS, str(day), [table_batch(BUCKETS, [{"day": day}])]))
        for store, day in zip(stores * 4, days, strict=True)
    ]

    def publish(mine: ElasticStore) -> None:
        for store, generation in written:
            if store is mine:
                mine.publish([generation])

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(publish, stores))
    assert sorted(row["day"] for row in visible(stores[0], BUCKETS)) == days
    for store in stores:
        store.close()
