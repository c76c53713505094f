"""Two processes that want to write jobs."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.core.tables import Table
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.state import State
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.elastic.transport.writing import delete, refresh, write
from esjobs.store.lease import Holding, Lease  # noqa: F401  for the process that dies
from esjobs.store.process import Process
from tests.contract.jobs import batch, hours, job, put, selected, table_batch, visible
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)


def opened(server: Server, prefix: str, tables: Iterable[Table] = TABLES) -> ElasticStore:
    return ElasticStore(connect(Access(server.url)), prefix.rstrip("-"), tables=tables)


def test_a_second_writer_is_told_who_writes_and_spoils_nothing(server: Server, index_prefix: str) -> None:
    first, second = opened(server, index_prefix), opened(server, index_prefix)

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch([job(1)])
        with raised(StoreBusyError):
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
        alive = replace(Process.current(), pid=1, began=Process.of(1).began)
        theirs = Holding("x", str(alive), datetime.now(UTC).isoformat(), 600).write()
        assert state.compare_and_set("who is writing jobs", held, theirs)
        store._jobs._lease._renewed = float("-inf")
        yield batch([job(3)])

    with raised(StoreBusyError):
        store.put_jobs(batches(), "b")
    assert selected(store, "job_id") == ["1"]
    with raised(StoreError):
        put(store, "c", job(4))


def test_publishers_wait_for_each_other(server: Server, index_prefix: str) -> None:
    """None undoes what another has just published."""
    stores = [opened(server, index_prefix, [BUCKETS]) for _ in range(3)]
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


CONCURRENT_SWEEP = """
import os, sys
from tests.elastic.test_writers import *
store = ElasticStore(connect(Access(sys.argv[1])), sys.argv[2], tables=TABLES)
rows = [{"day": hours(0).date(), "n_jobs": n} for n in range(50)]
generation = store.replace(BUCKETS, sys.argv[3], [table_batch(BUCKETS, rows)])
print("written", flush=True)
if sys.stdin.readline().strip() == "die":
    os._exit(9)
store.publish([generation])
print("published", flush=True)
"""


def another(server: Server, prefix: str, partition: str) -> subprocess.Popen[str]:
    """A process that has written 50 rows and publishes them when it is told to."""
    command = [sys.executable, "-c", CONCURRENT_SWEEP, server.url, prefix.rstrip("-"), partition]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def test_what_another_process_has_not_published_yet_is_not_swept(server: Server, index_prefix: str) -> None:
    mine = opened(server, index_prefix)
    other = another(server, index_prefix, "theirs")
    mine.publish([mine.replace(BUCKETS, "mine", [table_batch(BUCKETS, [{"day": hours(0).date()}])])])
    mine.sweep()
    assert other.communicate("go\n")[0] == "published\n"
    assert len(visible(mine, BUCKETS)) == 51
    assert mine.sweep() == 0


def test_what_a_killed_process_left_is_swept(server: Server, index_prefix: str) -> None:
    mine = opened(server, index_prefix)
    other = another(server, index_prefix, "theirs")
    assert mine.sweep() == 0
    other.communicate("die\n")
    assert other.returncode == 9
    assert mine.sweep() == 50
    assert documents(server, index_prefix) == 0


def test_rows_that_were_deleted_are_not_published(server: Server, index_prefix: str) -> None:
    """By hand, or by a policy."""
    store = opened(server, index_prefix)
    rows = [{"day": hours(0).date(), "n_jobs": number} for number in range(60)]
    generation = store.replace(BUCKETS, "all", [table_batch(BUCKETS, rows)])
    index = Names(index_prefix.rstrip("-")).rows(BUCKETS)
    write(connect(Access(server.url)), (delete(index, f"{generation.number}.{row}") for row in range(14, 61)))
    with raised(StoreError):
        store.publish([generation])
    assert visible(store, BUCKETS) == []


def documents(server: Server, prefix: str) -> int:
    """Documents in the index of buckets, those about generations and their pieces among them."""
    index = Names(prefix.rstrip("-")).rows(BUCKETS)
    cluster = connect(Access(server.url))
    refresh(cluster, index)
    return int(cluster.call("GET", f"/{index}/_count")["count"])


@pytest.mark.parametrize("first", [0, 1])
def test_two_writers_of_one_partition(server: Server, index_prefix: str, first: int) -> None:
    """Whoever publishes last is seen, whole; nothing is left of the other."""
    stores = [opened(server, index_prefix) for _ in range(2)]
    written = [
        store.replace(
            BUCKETS, "same", [table_batch(BUCKETS, [{"day": hours(0).date(), "n_jobs": number}] * 20)]
        )
        for number, store in enumerate(stores)
    ]
    for number in (first, 1 - first):
        stores[number].publish([written[number]])
        stores[number].sweep()
    assert [row["n_jobs"] for row in visible(stores[0], BUCKETS)] == [1 - first] * 20
    with raised(StoreError):
        stores[first].publish([written[first]])
    piece = 1
    assert documents(server, index_prefix) == 21 + piece


def test_rows_of_a_writer_elsewhere_wait_for_a_day(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody here can see whether it lives."""
    store, writer = opened(server, index_prefix), opened(server, index_prefix)
    with monkeypatch.context() as patch:
        elsewhere = replace(Process.current(), boot="another", host="elsewhere")
        patch.setattr(Process, "current", classmethod(lambda _: elsewhere))
        writer.replace(BUCKETS, "theirs", [table_batch(BUCKETS, [{"day": hours(0).date()}])])
    writer.close()
    assert store.sweep() == 0
    later = datetime.now(UTC) + timedelta(hours=25)
    store._results._clock = lambda: later
    assert store.sweep() == 1
