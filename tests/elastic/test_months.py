"""Days and jobs are in an index per month: what is written where, read from where, and dropped."""

from datetime import date, timedelta
from functools import partial
from typing import Any

import pytest

from esjobs.core.errors import PartialAnswerError, PublishedError, SettingsError, StoreError
from esjobs.core.query import Count, Days, Query, Sum
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS, DAYS
from esjobs.schema.speed import FACTORS
from esjobs.store.base import Generation, Hide
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.layout import IndexSettings, Names
from esjobs.store.elastic.results.generations import Results
from esjobs.store.elastic.results.pieces import Packer
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport import scan
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import START, batch, hours, job, put, selected, table_batch, visible
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.proxy import Predicate, Proxy, path
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

HELD = (BUCKETS, DAYS, FACTORS)
FIRST = date(2018, 7, 30)


def opened(url: str, prefix: str, **options: Any) -> ElasticStore:
    return ElasticStore(connect(Access(url)), f"{prefix}own", tables=HELD, **options)


def of_day(store: ElasticStore, day: date, n_jobs: int = 1, rows: int = 2) -> Generation:
    """The buckets of a day, written."""
    row = {"day": day, "n_jobs": n_jobs, "queue": "A"}
    return store.replace(BUCKETS, str(day), [table_batch(BUCKETS, [row] * rows)])


def seen(store: ElasticStore) -> list[int]:
    """The numbers of jobs of the buckets that readers see."""
    return sorted(row["n_jobs"] for row in visible(store, BUCKETS))


def shown(server: Server, prefix: str, table: Table = BUCKETS) -> dict[str, list[str]]:
    """The days that the alias of a table shows, by index."""
    alias = Names(f"{prefix}own").alias(table)
    return {
        index.removeprefix(f"{alias}-"): facts["aliases"][alias]["filter"]["bool"]["filter"][1]["terms"][
            "partition"
        ]
        for index, facts in server.json("GET", f"{alias}/_alias/{alias}").items()
    }


def test_the_days_of_a_month_are_in_its_index(server: Server, index_prefix: str) -> None:
    store = opened(server.url, index_prefix)
    days = [FIRST + timedelta(days=number) for number in range(4)]
    store.publish([of_day(store, day, number) for number, day in enumerate(days)])
    assert shown(server, index_prefix) == {
        "000001": ["none"],
        "2018-07": [str(days[0]), str(days[1])],
        "2018-08": [str(days[2]), str(days[3])],
    }
    store.publish([of_day(store, days[3], 9)])
    store.sweep()
    assert [row["n_jobs"] for row in visible(store, BUCKETS)] == [0, 0, 1, 1, 2, 2, 9, 9]
    assert [row["n_jobs"] for row in visible(store, BUCKETS, [Days("day", days[1], days[2])])] == [1, 1, 2, 2]
    per_day = Query(("day",), (Count("n"), Sum("n_jobs", "s")), over=BUCKETS)
    groups = {row["day"]: (row["n"], row["s"]) for row in store.aggregate(per_day).table.to_pylist()}
    assert groups == {day: (2, 2 * jobs) for day, jobs in zip(days, (0, 1, 2, 9), strict=True)}
    alias = Names(f"{index_prefix}own").alias(BUCKETS)
    assert server.json("GET", f"{alias}/_count")["count"] == 8
    store.close()


def test_a_day_is_asked_of_its_month_alone(server: Server, index_prefix: str) -> None:
    with Proxy(server.url) as proxy:
        store = opened(proxy.url, index_prefix)
        store.publish([of_day(store, FIRST + timedelta(days=31 * number)) for number in range(4)])
        day = FIRST + timedelta(days=62)
        names = Names(f"{index_prefix}own")
        asked = f"/{names.rows(BUCKETS)}*,{names.alias(BUCKETS)}-{str(day)[:7]}*/_alias"
        before = len(proxy.requests(path(asked, "GET")))
        assert len(visible(store, BUCKETS, [Days("day", day, day)])) == 2
        ends = ("_pit", "_search/point_in_time")
        opening = [
            end for end in ends if proxy.requests(path(f"/{names.rows(BUCKETS, str(day))}/{end}", "POST"))
        ]
        assert len(opening) == 1
        # what is published of other months is not asked for, either
        assert len(proxy.requests(path(asked, "GET"))) == before + 1
        store.close()


def test_long_days_are_read_one_by_one(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page over the end of a day takes the cluster five times as long: between two days lies a document."""
    monkeypatch.setattr(scan, "PAGE", 7)
    monkeypatch.setattr(scan, "_LONG_RUN", 5)
    # as an earlier version wrote them
    monkeypatch.setattr(Packer, "lines", lambda _: iter(()))
    with Proxy(server.url) as proxy:
        store = opened(proxy.url, index_prefix)
        rows = {FIRST + timedelta(days=number): size for number, size in enumerate((20, 1, 7, 15))}
        written = [of_day(store, day, number, rows[day]) for number, day in enumerate(rows)]
        store.publish(written)
        store.publish([of_day(store, FIRST, 4, rows[FIRST])])
        expected = [1] + [2] * 7 + [3] * 15 + [4] * 20
        alone = [b'{"term":{"generation":"%s"}}' % generation.number.encode() for generation in written]
        assert seen(store) == expected
        assert [bool(proxy.requests(path("/_search", "POST", each))) for each in alone] == [False] + [
            True
        ] * 3
        # where days are short they are not
        monkeypatch.setattr(scan, "_LONG_RUN", 50)
        before = len(proxy.requests(path("/_search", "POST", alone[1])))
        assert seen(store) == expected
        assert len(proxy.requests(path("/_search", "POST", alone[1]))) == before
        store.close()


def test_a_sweep_looks_into_months_in_which_something_happened(server: Server, index_prefix: str) -> None:
    with Proxy(server.url) as proxy:
        store = opened(proxy.url, index_prefix)
        names = Names(f"{index_prefix}own")
        days = [FIRST + timedelta(days=31 * number) for number in range(3)]
        store.publish([of_day(store, day) for day in days])
        store.sweep()

        def looked_into() -> list[int]:
            """The months whose markers a sweep asks for, and the rows that it removes."""
            before = [len(proxy.requests(opens(names.rows(BUCKETS, str(day))))) for day in days]
            swept.append(store.sweep())
            after = [len(proxy.requests(opens(names.rows(BUCKETS, str(day))))) for day in days]
            return [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if new > old]

        swept: list[int] = []
        assert looked_into() == []
        store.publish([of_day(store, days[2], 5)])
        assert looked_into() == [2]
        store.publish([Hide(BUCKETS, str(days[0]))])
        assert looked_into() == [0]
        assert looked_into() == []
        # what somebody is writing is looked into until it is published, or nobody will publish it
        other = opened(server.url, index_prefix)
        of_day(other, days[1])
        assert (looked_into(), looked_into()) == ([1], [1])
        other.close()
        assert (looked_into(), looked_into()) == ([1], [])
        assert [count for count in swept if count] == [2, 2, 2]
        # if the list is lost, every month is looked into once
        store.compare_and_set("months with garbage", store.value("months with garbage"), None)
        assert looked_into() == [1, 2]
        assert looked_into() == []
        store.close()


def opens(index: str) -> Predicate:
    """Snapshots of an index."""
    return lambda request: index in request.path and request.path.endswith(("_pit", "point_in_time"))


def test_a_month_that_is_swept_while_somebody_begins_to_write_is_looked_into_again(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = opened(server.url, index_prefix), opened(server.url, index_prefix)
    store.publish([of_day(store, FIRST)])
    store.sweep()
    ensure = Results._ensure
    counts = []

    def swept_first(results: Results, *given: Any) -> None:
        """The month is on the list, and nothing is there yet."""
        monkeypatch.setattr(Results, "_ensure", ensure)
        counts.append(other.sweep())
        ensure(results, *given)

    monkeypatch.setattr(Results, "_ensure", swept_first)
    of_day(store, FIRST, 7)
    store.close()  # and is never published
    assert (counts, other.sweep(), seen(other)) == ([0], 2, [1, 1])
    other.close()


def test_a_month_of_which_nothing_is_seen_is_dropped(server: Server, index_prefix: str) -> None:
    store, other = opened(server.url, index_prefix), opened(server.url, index_prefix)
    first, last = FIRST, FIRST + timedelta(days=3)
    store.publish([of_day(store, first), of_day(store, first + timedelta(days=1)), of_day(store, last)])
    index = Names(f"{index_prefix}own").rows(BUCKETS, str(first))
    retired = [Hide(BUCKETS, str(first + timedelta(days=number))) for number in range(2)]
    # what another store is about to publish keeps the month
    waiting = of_day(other, first, 7)
    store.publish(retired)
    assert store.sweep() == 4
    assert server.request("GET", index).status == 200
    other.publish([waiting])
    assert seen(store) == [1, 1, 7, 7]
    store.publish([Hide(BUCKETS, str(first))])
    assert store.sweep() == 2
    assert server.request("GET", index).status == 404
    assert [row["day"] for row in visible(store, BUCKETS)] == [last, last]
    store.publish([of_day(store, first, 5)])
    assert seen(store) == [1, 1, 5, 5]
    for each in (store, other):
        each.close()


def test_a_reader_is_told_when_a_month_goes_under_it(server: Server, index_prefix: str) -> None:
    store = opened(server.url, index_prefix)
    store.publish([of_day(store, FIRST)])
    rows = store._results.visible(BUCKETS)
    server.json("DELETE", Names(f"{index_prefix}own").rows(BUCKETS, str(FIRST)))
    store._results.visible = lambda *_: rows  # type: ignore[method-assign]
    with raised(PartialAnswerError):
        visible(store, BUCKETS)
    with raised(PartialAnswerError):
        store.aggregate(Query((), (Count("n"),), over=BUCKETS))
    store.close()


def test_a_snapshot_without_a_shard_is_refused(server: Server, index_prefix: str) -> None:
    """An index whose shard is nowhere is not an index without rows."""
    here, nowhere = f"{index_prefix}here", f"{index_prefix}nowhere"
    server.json("PUT", here, {})
    unallocated = {"settings": {"index.routing.allocation.require._name": "nobody"}}
    server.json("PUT", f"{nowhere}?wait_for_active_shards=0&timeout=1s", unallocated)
    cluster = connect(Access(server.url, retries=0))
    try:
        with raised(StoreError), scan.PointInTime(cluster, f"{here},{nowhere}") as at:
            at.search({"size": 0})
    finally:
        server.json("DELETE", nowhere)
        cluster.close()


def test_an_alias_without_our_filter_is_told_and_nothing_is_swept(server: Server, index_prefix: str) -> None:
    store = opened(server.url, index_prefix)
    store.publish([of_day(store, FIRST)])
    names = Names(f"{index_prefix}own")
    index, alias = names.rows(BUCKETS, str(FIRST)), names.alias(BUCKETS)
    for given in ({}, {"filter": {"term": {"queue": "A"}}}):
        add = {"add": {"index": index, "alias": alias, **given}}
        server.json("POST", "_aliases", {"actions": [{"remove": {"index": index, "alias": alias}}, add]})
        publish = partial(store.publish, [of_day(store, FIRST + timedelta(days=1))])
        for ask in (partial(visible, store, BUCKETS), store.sweep, publish):
            with raised(PublishedError):
                ask()
    server.json("POST", f"{index}/_refresh")
    assert server.json("GET", f"{index}/_count")["count"] >= 2
    store.set_up(repair=True)
    assert [row["n_jobs"] for row in visible(store, BUCKETS)] == [1, 1]
    store.close()


def test_shards_replicas_and_priorities_are_settings(server: Server, index_prefix: str) -> None:
    how = IndexSettings(shards=2, replicas=0, template_priority=777)
    store = opened(server.url, index_prefix, how=how)
    store.set_up()
    store.publish([of_day(store, FIRST + timedelta(days=number), 1, 300) for number in range(4)])
    put(store, "a", *(job(number) for number in range(300)))
    names = Names(f"{index_prefix}own")
    for index, shards in (
        (names.rows(BUCKETS, str(FIRST)), "2"),
        (names.jobs_of("2018-08"), "2"),
        (names.rows(BUCKETS), "1"),
        (names.rows(FACTORS), "1"),
    ):
        settings = server.json("GET", f"{index}/_settings")[index]["settings"]["index"]
        assert (settings["number_of_shards"], settings["number_of_replicas"]) == (shards, "0")
    template = server.json("GET", f"_index_template/{names.template('buckets')}")
    assert template["index_templates"][0]["index_template"]["priority"] == 777
    # documents of several shards of several indices, each once
    assert len(visible(store, BUCKETS)) == 1200
    assert selected(store, "job_id") == sorted(str(number) for number in range(300))
    store.close()


def test_templates_of_others_are_left(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    pattern = {"index_patterns": [f"{names.alias(FACTORS)}-0*"], "priority": 500}
    theirs = names.template("factors")
    store = opened(server.url, index_prefix)
    server.json("PUT", f"_index_template/{theirs}", {**pattern, "_meta": {"by": "somebody"}})
    with raised(StoreError):
        store.set_up()
    server.json("DELETE", f"_index_template/{theirs}")
    store.close()


def test_nothing_is_made_for_jobs_that_are_elsewhere(server: Server, index_prefix: str) -> None:
    server.json("PUT", f"{index_prefix}theirs", {"mappings": {"properties": {"end_time": {"type": "date"}}}})
    foreign = {"jobs_index": f"{index_prefix}theirs", "field_map": load_field_map("esjobs")}
    store = opened(server.url, index_prefix, **foreign)
    assert not any("jobs" in line for line in store.set_up().done)
    assert server.request("GET", f"{index_prefix}own-jobs").status == 404
    store.close()


def test_a_prefix_that_could_be_an_alias_of_another_is_refused(server: Server) -> None:
    with raised(SettingsError):
        ElasticStore(connect(Access(server.url)), "esjobs-latest", tables=TABLES)


JULY, AUGUST, SEPTEMBER = hours(-1), hours(1), START + timedelta(days=40)


def in_months(server: Server, prefix: str) -> dict[str, int]:
    """How many documents there are of jobs, by month."""
    jobs = Names(f"{prefix}own").jobs
    server.json("POST", f"{jobs}/_refresh")
    found = server.json("GET", f"{jobs}/_alias")
    counts = {index: server.json("GET", f"{index}/_count")["count"] for index in found}
    return {index.removeprefix(f"{jobs}-"): count for index, count in sorted(counts.items()) if count}


def test_jobs_are_in_the_month_of_their_end(server: Server, index_prefix: str) -> None:
    store = opened(server.url, index_prefix)
    rows = [job(1, end_time=JULY), job(2, end_time=AUGUST), job(3, end_time=SEPTEMBER)]
    assert put(store, "a", *rows) == (3, 0, 0)
    assert in_months(server, index_prefix) == {"2018-07": 1, "2018-08": 1, "2018-09": 1}
    assert put(store, "a", *rows) == (0, 3, 0)
    assert selected(store, "job_id") == ["1", "2", "3"]
    assert selected(store, "job_id", window=Window(hours(0), hours(24))) == ["2"]
    assert store.span().jobs == 3
    assert [row["n_jobs"] for row in store.day_fingerprints(None).to_pylist()] == [1, 1, 1]
    store.close()


def test_a_job_whose_end_moves_to_another_month_is_there_once(server: Server, index_prefix: str) -> None:
    store = opened(server.url, index_prefix)
    assert put(store, "a", job(1, end_time=JULY, events=1), job(2, end_time=JULY)) == (2, 0, 0)
    assert put(store, "b", job(1, end_time=AUGUST, events=2)) == (0, 1, 0)
    assert selected(store, "job_id", "events") == [("1", 2), ("2", 100)]
    # older than what is stored
    assert put(store, "c", job(1, end_time=JULY, events=3)) == (0, 0, 1)
    assert selected(store, "events", where=()) == [100, 2]
    jobs = Names(f"{index_prefix}own").jobs
    server.json("POST", f"{jobs}/_refresh")
    assert server.json("GET", f"{jobs}/_count")["count"] == 2
    assert store.undo_load("b").jobs == 1
    assert selected(store, "job_id", "events") == [("1", 3), ("2", 100)]
    assert store.undo_load("c").jobs == 1
    assert selected(store, "job_id", "events") == [("1", 1), ("2", 100)]
    assert store.undo_load("a").jobs == 2
    assert selected(store, "job_id") == []
    assert put(store, "d", job(1, end_time=SEPTEMBER)) == (1, 0, 0)
    assert selected(store, "job_id") == ["1"]
    store.close()


def test_a_job_in_two_months_of_one_load_is_there_once(server: Server, index_prefix: str) -> None:
    for number, times in enumerate(((JULY, AUGUST, SEPTEMBER), (SEPTEMBER, JULY, AUGUST))):
        store = opened(server.url, f"{index_prefix}{number}-")
        rows = (job(1, end_time=time, events=time.month) for time in times)
        counts = store.put_jobs((batch([row]) for row in rows), "a")
        assert (counts.stored, counts.updated, counts.superseded) == (1, 0, 2)
        assert selected(store, "events") == [9]
        assert in_months(server, f"{index_prefix}{number}-") == {"2018-09": 1}
        store.close()
