"""Where an answer is lost for good, or a request arrives late: whoever asks later finds all or nothing."""

import time
from collections.abc import Iterator

import pytest

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.schema.catalogue import TABLES
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.state import State
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster, RefusedError, UnreachableError
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import job, put, selected
from tests.elastic.faults import COMMIT, SEARCH, writes_jobs
from tests.elastic.table import BEFORE, PRODUCTS, SAME, scene
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.proxy import Proxy, Rule, answers, late, path, reset_after, reset_before, stalls
from tests.servers.server import Server

both = pytest.mark.parametrize("server", server_params(*PRODUCTS), indirect=True)
ALL = path("")
WAITS_S = 60


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.url) as found:
        yield found


def opened(url: str, prefix: str, *, retries: int = 1, timeout_s: float = 30.0) -> ElasticStore:
    access = Access(url, retries=retries, timeout_s=timeout_s)
    return ElasticStore(connect(access), prefix.rstrip("-"), tables=TABLES)


def state(url: str, prefix: str) -> State:
    return State(connect(Access(url, retries=1)), Names(prefix.rstrip("-")))


def cluster(url: str, retries: int = 1) -> Cluster:
    return connect(Access(url, retries=retries))


def outage_from(proxy: Proxy, rule: Rule) -> Rule:
    """From the moment when a rule has done its work nothing passes any more."""
    return proxy.on(lambda _: rule.hits > 0, reset_before(), times=None)


@scene(
    "the answer to the commit of a load lost, and every request after it",
    "could not know; left everything as it was",
    "one line, and the whole load",
)
def test_a_commit_whose_answer_is_lost_for_good_is_kept_whole(
    proxy: Proxy, server: Server, index_prefix: str
) -> None:
    store, other = opened(proxy.url, index_prefix), opened(server.url, index_prefix)
    put(store, "a", job(1, events=1))
    lost = outage_from(proxy, proxy.on(COMMIT, reset_after(), skip=1))
    with raised(StoreError):
        put(store, "b", job(1, events=2), job(2))
    assert lost.hits > 1
    assert selected(other, "job_id", "events") == [("1", 2), ("2", 100)]
    proxy.heal()
    assert put(store, "b", job(1, events=2), job(2)) == (0, 2, 0)
    assert store.undo_load("b").jobs == 2
    assert selected(other, "job_id", "events") == [("1", 1)]


@scene(
    "a commit that arrives when esjobs has given up and another load is stored",
    "had fenced it off: the cluster refused it",
    BEFORE,
)
def test_a_commit_that_arrives_late_changes_nothing(proxy: Proxy, server: Server, index_prefix: str) -> None:
    store = opened(proxy.url, index_prefix, retries=0, timeout_s=2.0)
    other = opened(server.url, index_prefix)
    put(other, "a", job(1))
    held = proxy.on(COMMIT, late(3.0), skip=1)
    with raised(UnreachableError):
        put(store, "b", job(2))
    assert put(other, "c", job(3)) == (1, 0, 0)
    deadline = time.monotonic() + WAITS_S
    while not held.done and time.monotonic() < deadline:
        time.sleep(0.05)
    assert selected(other, "job_id") == ["1", "3"]
    assert put(store, "b", job(2)) == (1, 0, 0)
    assert selected(other, "job_id") == ["1", "2", "3"]


@scene(
    "every request lost from the middle of a load on",
    "gave up; the next load cleared its rows away, and did not wait for its lease",
    BEFORE,
)
def test_a_failed_write_does_not_keep_its_process_from_writing(
    proxy: Proxy, server: Server, index_prefix: str
) -> None:
    store = opened(proxy.url, index_prefix)
    put(store, "a", job(1))
    lost = outage_from(proxy, proxy.on(writes_jobs, reset_before()))
    with raised(StoreError):
        put(store, "b", job(2))
    assert lost.hits > 1
    other = opened(server.url, index_prefix)
    assert selected(other, "job_id") == ["1"]
    assert put(other, "c", job(3)) == (1, 0, 0)
    proxy.heal()
    assert put(store, "b", job(2)) == (1, 0, 0)
    assert selected(other, "job_id") == ["1", "2", "3"]


@scene(
    "two processes set the same value, the answer to one of them lost",
    "told by its mark who had won",
    "only one of them won",
)
def test_only_one_of_two_wins_whatever_happens_to_the_answers(
    proxy: Proxy, server: Server, index_prefix: str
) -> None:
    ours, theirs = state(proxy.url, index_prefix), state(server.url, index_prefix)
    value = path("", "PUT", b'"kind":"value"')
    proxy.on(value, reset_after())
    assert ours.compare_and_set("x", None, "1")
    assert not theirs.compare_and_set("x", None, "1")

    def overtaken(request: object, forward: object) -> None:
        assert theirs.compare_and_set("x", "1", "2")

    proxy.on(value, overtaken)
    assert not ours.compare_and_set("x", "1", "2")
    assert theirs.value("x") == "2"
    proxy.on(value, reset_after(), times=2)
    assert ours.compare_and_set("x", "2", None)
    assert theirs.value("x") is None
    assert ours.compare_and_set("x", None, "3")
    assert not theirs.compare_and_set("x", None, "4")


@scene(
    "the answer to the making of an index lost",
    "asked again, took the index that was there",
    SAME,
)
def test_an_index_whose_making_was_not_answered_is_used(proxy: Proxy, index_prefix: str) -> None:
    store = opened(proxy.url, index_prefix)
    made = proxy.on(path("-jobs-000001", "PUT"), reset_after())
    assert put(store, "a", job(1)) == (1, 0, 0)
    assert made.hits == 1
    assert selected(store, "job_id") == ["1"]


@scene(
    "503 for the deletions after a load was taken back",
    "left them to the next write",
    SAME,
)
def test_an_undoing_that_cannot_delete_is_done_and_the_jobs_keep_their_places(
    proxy: Proxy, index_prefix: str
) -> None:
    store = opened(proxy.url, index_prefix)
    put(store, "a", job(1, events=1))
    put(store, "b", job(1, events=2))
    proxy.on(path("/_bulk", body=b'"load":0'), answers(503, {}), times=None)
    assert store.undo_load("a").jobs == 1
    proxy.heal()
    assert selected(store, "events") == [2]
    assert put(store, "c", job(1, events=3)) == (0, 1, 0)
    assert selected(store, "events") == [3]
    store.undo_load("c")
    assert selected(store, "events") == [2]


@both
def test_the_cluster_is_given_the_time_it_asks_for(proxy: Proxy) -> None:
    asked = cluster(proxy.url)
    rule = proxy.on(SEARCH, answers(429, {}, {"retry-after": "1"}))
    asked.call("POST", "/_search")
    assert proxy.requests(SEARCH)[1] - rule.at[0] >= 1.0


@both
def test_what_would_come_again_is_not_repeated(proxy: Proxy) -> None:
    asked = cluster(proxy.url)
    for kind, status in (("too_many_buckets_exception", 503), ("cluster_block_exception", 429)):
        before = len(proxy.requests(SEARCH))
        proxy.on(SEARCH, answers(status, {"error": {"type": kind, "reason": "x"}, "status": status}))
        with raised(StoreError):
            asked.call("POST", "/_search")
        assert len(proxy.requests(SEARCH)) == before + 1


@both
def test_a_cluster_without_master_is_waited_for(proxy: Proxy) -> None:
    asked = cluster(proxy.url)
    body = {"error": {"type": "cluster_block_exception", "reason": "no master"}, "status": 503}
    rule = proxy.on(SEARCH, answers(503, body))
    asked.call("POST", "/_search")
    assert rule.hits == 1
    proxy.on(SEARCH, answers(503, body), times=None)
    with raised(RefusedError) as caught:
        asked.call("POST", "/_search")
    assert not isinstance(caught.value, StoreBusyError)


@both
def test_after_a_failure_nothing_is_repeated_until_something_succeeds(proxy: Proxy) -> None:
    asked = cluster(proxy.url)
    rule = proxy.on(SEARCH, reset_before(), times=3)
    with pytest.raises(UnreachableError):
        asked.call("POST", "/_search")
    assert rule.hits == 2
    with pytest.raises(UnreachableError):
        asked.call("POST", "/_search")
    assert rule.hits == 3
    asked.call("POST", "/_search")
    rule = proxy.on(SEARCH, reset_before())
    asked.call("POST", "/_search")
    assert rule.hits == 1


@both
def test_an_address_where_nothing_answers_is_said_at_once(proxy: Proxy) -> None:
    rule = proxy.on(ALL, reset_before(), times=None)
    with raised(UnreachableError):
        connect(Access(proxy.url, retries=5))
    assert rule.hits == 1
    proxy.heal()
    proxy.on(ALL, stalls(4.0, done=False))
    with raised(UnreachableError):
        connect(Access(proxy.url, timeout_s=1.0))
