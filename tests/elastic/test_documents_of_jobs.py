"""What the document of a job says and leaves out."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from esjobs.core.errors import StoreError
from esjobs.store.elastic.jobs import loads
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import hours, job, put, selected
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

AUGUST, SEPTEMBER = hours(1), hours(24 * 40)
BOOKKEEPING = {"load", "row", "from", "mark_low"}


def opened(server: Server, prefix: str) -> ElasticStore:
    return ElasticStore(connect(Access(server.url)), f"{prefix}own", tables=())


def of_store(server: Server, prefix: str) -> list[Any]:
    """All documents of jobs, whoever sees them."""
    names = Names(f"{prefix}own")
    indices_of_jobs = [name for name in server.json("GET", f"{names.jobs}/_alias") if names.is_jobs(name)]
    target = ",".join(indices_of_jobs)
    server.json("POST", f"{target}/_refresh")
    hits: list[Any] = server.json("GET", f"{target}/_search?size=1000")["hits"]["hits"]
    return hits


@contextmanager
def broken_off(store: ElasticStore, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything is written but the commit, and nothing is cleared away, as by a process that is killed."""

    def killed(*_: object) -> None:
        raise StoreError("killed")

    with patch.context() as at_the_end:
        at_the_end.setattr(store._state, "advance", killed)
        at_the_end.setattr(store._jobs, "_take_back", lambda: None)
        yield


def test_a_job_that_is_new_says_nothing_twice(server: Server, index_prefix: str) -> None:
    store = opened(server, index_prefix)
    row = job(1)
    assert put(store, "a", row) == (1, 0, 0)
    (hit,) = of_store(server, index_prefix)
    assert hit["_id"] == "5:panda:1"
    assert set(hit["_source"]) == {*row, *BOOKKEEPING}
    store.close()


@pytest.mark.parametrize("change", ["undo", "put"])
def test_a_document_that_a_killed_process_showed_again_stays(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """It is older than the commit that shows it: whoever clears away must not take it for a new one."""
    store = opened(server, index_prefix)
    put(store, "a", job(1, events=1, end_time=SEPTEMBER), job(2, events=1))
    put(store, "b", job(1, events=2, end_time=SEPTEMBER), job(2, events=2))
    store.undo_load("b")
    put(store, "c", job(1, events=3, end_time=SEPTEMBER), job(2, events=3))
    again = [job(1, events=4, end_time=SEPTEMBER), job(3)]
    act = partial(store.undo_load, "c") if change == "undo" else partial(put, store, "c", *again)
    with broken_off(store, monkeypatch), raised(StoreError):
        act()
    assert selected(store, "job_id", "events") == [("1", 3), ("2", 3)]
    assert put(store, "d", job(4)) == (1, 0, 0)
    assert selected(store, "job_id", "events") == [("1", 3), ("2", 3), ("4", 100)]
    store.undo_load("c")
    assert selected(store, "job_id", "events") == [("1", 1), ("2", 1), ("4", 100)]
    store.close()


def test_new_jobs_of_a_killed_process_go(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(server, index_prefix)
    put(store, "a", job(1))
    with broken_off(store, monkeypatch), raised(StoreError):
        # two versions in one load, of which the older one came first and the other way round
        put(store, "b", job(2), job(3, end_time=hours(2)), job(3), job(4), job(4, end_time=hours(2)))
    assert selected(store, "job_id") == ["1"]
    assert put(store, "c", job(5)) == (1, 0, 0)
    assert sorted(hit["_id"] for hit in of_store(server, index_prefix)) == ["5:panda:1", "5:panda:5"]
    store.close()


def test_pruning_that_is_killed_is_done_by_the_next_one(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(server, index_prefix)
    put(store, "a", job(1), job(2, user="ann"), job(3))
    put(store, "b", job(1, events=2), job(2), job(3, end_time=SEPTEMBER))
    put(store, "c", job(1, events=3))

    def killed(*_: object, **__: object) -> None:
        raise StoreError("killed")

    before = selected(store), store.day_fingerprints(None)
    with monkeypatch.context() as patch:
        patch.setattr(loads, "write", killed)
        with raised(StoreError):
            store.prune_versions(["a", "b", "c"])
    assert store.prune_versions(["a", "b", "c"]) == 3
    assert (selected(store), store.day_fingerprints(None)) == before
    with raised(StoreError):
        store.undo_load("b")
    found = {hit["_id"]: hit["_source"] for hit in of_store(server, index_prefix)}
    emptied = [source for source in found.values() if source["load"] == 0]
    assert all("queue" not in source for source in emptied)
    assert len(found) - len(emptied) == 3
    store.close()
