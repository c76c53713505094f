"""Ways in which search engines lose or double documents without saying so, each seen on a real server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from esjobs.core.errors import PartialAnswerError, StoreError
from esjobs.core.query import Count, Query, Select, Sum
from esjobs.core.rules import CleaningRules
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS
from esjobs.store.elastic.asking import partitions
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport import scan
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Request
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import books, groups, hours, job, put, table_batch, visible
from tests.elastic.foreign import CATALOGUE, make_index, plain, reader, write
from tests.messages import raised
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

MAP = load_field_map("esjobs")
BY_QUEUE = Query(("queue",), (Count(), Sum("cpu_s", "cpu_s")))


@contextmanager
def cluster_setting(server: Server, name: str, value: Any) -> Iterator[None]:
    server.json("PUT", "_cluster/settings", {"persistent": {name: value}})
    try:
        yield
    finally:
        server.json("PUT", "_cluster/settings", {"persistent": {name: None}})


def counts(store: ElasticStore, query: Query) -> dict[Any, int]:
    return {key: row["n_jobs"] for key, row in groups(store, query).items()}


def test_the_group_without_a_value_survives_paging(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PAGE", 2)
    rows = [job(number, cpu_raw=None if number % 3 else f"cpu {number}") for number in range(12)]
    make_index(server, f"{index_prefix}jobs", CATALOGUE, map(plain, rows))
    store = reader(server, index_prefix, f"{index_prefix}jobs", MAP)
    expected: dict[Any, int] = {(None,): 8} | {(f"cpu {number}",): 1 for number in (0, 3, 6, 9)}
    assert counts(store, Query(("cpu_raw",), (Count(),))) == expected


def test_every_document_is_read_once(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its shard, its values and the partitions between pages."""
    monkeypatch.setattr(scan, "PAGE", 37)
    rows = [job(number, queue=f"site {number % 7}") for number in range(500)]
    make_index(server, f"{index_prefix}jobs", CATALOGUE, map(plain, rows), shards=3)
    store = reader(server, index_prefix, f"{index_prefix}*", MAP)
    read = [row["job_id"] for batch in store.select(Select(("job_id",))) for row in batch.to_pylist()]
    assert sorted(read, key=int) == [str(number) for number in range(500)]


def test_a_document_with_two_sites_is_no_job(server: Server, index_prefix: str) -> None:
    documents = [
        plain(job(1)),
        {**plain(job(2)), "queue": ["CERN", "RAL"]},
        {**plain(job(3)), "queue": ["RAL"]},
    ]
    documents.append({**plain(job(4)), "queue": ["RAL", "RAL"]})
    make_index(server, f"{index_prefix}jobs", CATALOGUE, documents)
    store = reader(server, index_prefix, f"{index_prefix}jobs", MAP)
    assert counts(store, BY_QUEUE) == {("CERN",): 1, ("RAL",): 2}
    day = hours(1).date()
    assert books(store, BY_QUEUE) == {(day, "binned", "binned"): 3, (day, "invalid record", "dropped"): 1}


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("queue", "text"),
        ("events", "keyword"),
        ("events", "double"),
        ("user", None),
    ],
    ids=["keyword and text", "long and keyword", "long and double", "unmapped"],
)
def test_indices_that_disagree_about_a_field(
    server: Server, index_prefix: str, field: str, other: str | None
) -> None:
    make_index(server, f"{index_prefix}jobs-a", CATALOGUE, [plain(job(1, user="me"))])
    changed = {**CATALOGUE, field: {"type": other}}
    if other is None:
        del changed[field]
    second = {name: value for name, value in plain(job(2)).items() if name in changed}
    make_index(server, f"{index_prefix}jobs-b", changed, [second])
    store = reader(server, index_prefix, f"{index_prefix}jobs-*", MAP)
    query = Query(("queue", "user"), (Count(), Sum("events", "events")), drops=CleaningRules().drops())
    assert groups(store, query) == {
        ("CERN", "me"): {"n_jobs": 1, "events": 100.0},
        ("CERN", None): {"n_jobs": 1, "events": 100.0},
    }


@pytest.mark.parametrize("part", ['"timed_out":', '"failed":'], ids=["out of time", "a shard failed"])
def test_an_answer_for_a_part_is_refused(
    server: Server, index_prefix: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes with status 200, and may hold no groups at all, which looks like the end."""
    make_index(server, f"{index_prefix}jobs", CATALOGUE, [plain(job(number)) for number in range(20)])
    cluster = connect(Access(server.url))
    store = ElasticStore(
        cluster, f"{index_prefix}own", jobs_index=f"{index_prefix}jobs", field_map=MAP, tables=TABLES
    )
    whole = cluster._send
    changed: list[str] = []

    def partly(request: Request) -> bytes | str:
        found = whole(request)
        text = found.decode() if isinstance(found, bytes) else found
        searched = request.path.endswith("/_search")
        if not searched or len(changed) != skipped:
            changed.append("") if searched else None
            return text
        changed.append(part)
        return text.replace(f"{part}false", f"{part}true").replace(f"{part}0", f"{part}1")

    asks = (lambda: store.aggregate(BY_QUEUE), store.span, lambda: list(store.select(Select())))
    monkeypatch.setattr(cluster, "_send", partly)
    for ask in asks:
        for skipped in range(20):
            changed.clear()
            try:
                ask()
            except PartialAnswerError as error:
                assert "\n" not in str(error)  # noqa: PT017  how often it asks is its own affair
            else:
                assert part not in changed
                assert skipped
                break
    monkeypatch.undo()
    assert counts(store, BY_QUEUE) == {("CERN",): 20}


def test_pages_are_as_large_as_the_cluster_allows(server: Server, index_prefix: str) -> None:
    rows = [plain(job(number, queue=f"site {number}")) for number in range(700)]
    make_index(server, f"{index_prefix}jobs", CATALOGUE, rows)
    store = reader(server, index_prefix, f"{index_prefix}jobs", MAP)
    with cluster_setting(server, "search.max_buckets", 300):
        assert len(counts(store, BY_QUEUE)) == 700
    with (
        cluster_setting(server, "search.max_buckets", 5),
        raised(StoreError),
    ):
        counts(store, BY_QUEUE)


def test_a_pattern_that_matches_nothing_is_an_error(server: Server, index_prefix: str) -> None:
    with raised(StoreError):
        reader(server, index_prefix, f"{index_prefix}none-*", MAP)
    make_index(server, f"{index_prefix}jobs", CATALOGUE)
    store = reader(server, index_prefix, f"{index_prefix}jobs*", MAP)
    server.json("DELETE", f"{index_prefix}jobs")
    for ask in (lambda: counts(store, BY_QUEUE), store.span):
        try:
            assert not ask() or store.span().jobs == 0
        except StoreError as error:
            assert "\n" not in str(error)  # noqa: PT017  one product says so, the other has no jobs


def test_a_question_without_any_condition_counts_all(server: Server, index_prefix: str) -> None:
    """A filter above a composite aggregation reports no documents on one product."""
    make_index(server, f"{index_prefix}jobs", CATALOGUE, [plain(job(number)) for number in range(9)])
    store = reader(server, index_prefix, f"{index_prefix}jobs", MAP)
    assert groups(store, Query((), (Count(),))) == {(): {"n_jobs": 9}}
    assert sum(books(store, BY_QUEUE).values()) == 9


def test_what_is_not_published_is_not_seen_by_any_way_of_reading(server: Server, index_prefix: str) -> None:
    """The filter of an alias holds for searches, not for a document fetched by its id."""
    prefix = f"{index_prefix}own"
    store = ElasticStore(connect(Access(server.url)), prefix, tables=TABLES)
    put(store, "a", job(1))
    shown = store.replace(
        BUCKETS, "2018-08-01", [table_batch(BUCKETS, [{"day": hours(0).date(), "queue": "A"}])]
    )
    store.publish([shown])
    store.replace(BUCKETS, "2018-08-01", [table_batch(BUCKETS, [{"day": hours(0).date(), "queue": "B"}])])
    assert [row["queue"] for row in visible(store, BUCKETS)] == ["A"]
    alias = Names(prefix).alias(BUCKETS)
    server.json("POST", f"{prefix}-*/_refresh")
    hits = server.json("GET", f"{alias}/_search")["hits"]["hits"]
    assert [hit["_source"]["queue"] for hit in hits] == ["A"]
    store.close()


def test_a_job_that_is_changed_in_place_moves_the_mark_of_its_day(server: Server, index_prefix: str) -> None:
    name = f"{index_prefix}jobs"
    make_index(server, name, CATALOGUE, [{**plain(job(n)), "_id": str(n)} for n in (1, 2)])
    store = reader(server, index_prefix, name, MAP)
    before = store.day_fingerprints(None).to_pylist()
    assert store.day_fingerprints(None).to_pylist() == before
    write(server, name, [{**plain(job(1, cpu_s=1.0)), "_id": "1"}])
    (after,) = store.day_fingerprints(None).to_pylist()
    assert after["n_jobs"] == before[0]["n_jobs"] == 2
    assert after["fingerprint"] != before[0]["fingerprint"]
