"""Two processes that want to write jobs."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.store.elastic.access import Access
from esjobs.store.elastic.connect import connect
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.lease import Lease  # noqa: F401  for the process that dies
from esjobs.store.elastic.state import State
from esjobs.store.elastic.store import ElasticStore
from tests.contract.jobs import batch, job, put, selected
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)


def opened(server: Server, prefix: str) -> ElasticStore:
    return ElasticStore(connect(Access(server.url)), prefix.rstrip("-"))


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
        held = state.value("writer of jobs")
        assert state.compare_and_set("writer of jobs", held, "9999999999 1 - x elsewhere")
        store._jobs._lease._renewed = float("-inf")
        yield batch([job(3)])

    with pytest.raises(StoreBusyError, match="another process"):
        store.put_jobs(batches(), "b")
    assert selected(store, "job_id") == ["1"]
    with pytest.raises(StoreError, match="process 1 on elsewhere is writing"):
        put(store, "c", job(4))
