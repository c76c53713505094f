"""Changes of indices and aliases by administrators cost no row; ``esjobs setup --repair`` repairs them."""

from collections.abc import Callable
from typing import Any

import pytest

from esjobs.core.errors import BlockedError, PublishedError, SchemaError, StoreError, UsageError
from esjobs.schema.declared import COREPOWER
from esjobs.schema.flags import FLAG_NOTES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FACTORS
from esjobs.store.elastic import renaming
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.results.records import Records
from esjobs.store.elastic.state import State
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import job, put, visible
from tests.elastic.published import FIRST, night, opened, seen, stored, written
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)

Backup = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]
Attempt = Callable[[], object]


def backup(server: Server, index: str) -> Backup:
    """The mappings, aliases and documents of an index, as a snapshot has them."""
    server.json("POST", f"{index}/_refresh")
    mappings = server.json("GET", f"{index}/_mapping")[index]["mappings"]
    aliases = server.json("GET", f"{index}/_alias")[index]["aliases"]
    hits = server.json("POST", f"{index}/_search", {"size": 10_000})["hits"]["hits"]
    return mappings, aliases, hits


def restore(server: Server, index: str, kept: Backup, *, aliases: bool = False) -> None:
    server.json("PUT", index, {"mappings": kept[0], "aliases": kept[1] if aliases else {}})
    for hit in kept[2]:
        server.json("PUT", f"{index}/_doc/{hit['_id']}", hit["_source"])
    server.json("POST", f"{index}/_refresh")


def reindex(server: Server, index: str, target: str, *, carried: bool) -> None:
    """As the Upgrade Assistant leaves an index: under another name, with an alias of its own."""
    kept = backup(server, index)
    restore(server, target, kept, aliases=carried)
    swap = [{"remove_index": {"index": index}}, {"add": {"index": target, "alias": index}}]
    server.json("POST", "_aliases", {"actions": swap})


def n_rows(server: Server, indices: list[str]) -> dict[str, int]:
    """The rows of indices, published or not."""
    query = {"query": {"exists": {"field": "partition"}}}
    return {index: server.json("POST", f"{index}/_count", query)["count"] for index in indices}


def refused(attempts: list[Attempt], error: type[StoreError] = PublishedError) -> None:
    for attempt in attempts:
        with raised(error):
            attempt()


@pytest.mark.parametrize("carried", [True, False], ids=["aliases carried over", "aliases lost"])
def test_a_reindexed_index_gets_its_name_back(server: Server, index_prefix: str, carried: bool) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    for number in range(2):
        night(store, number)
    put(store, "a", job(1), job(2))
    store.set_up()
    expected, rows = seen(store), stored(server, names)
    (of_jobs,) = (index for index in rows if names.is_jobs(index) and index != names.jobs_of())
    moved = {
        names.rows(COREPOWER): lambda: visible(opened(server, index_prefix), COREPOWER),
        names.rows(BUCKETS, str(FIRST)): store.sweep,
        of_jobs: store.span,
        names.state: lambda: opened(server, index_prefix).publish([]),
    }
    for index, attempt in moved.items():
        reindex(server, index, f"{index_prefix}v9-{index}", carried=carried)
        refused([attempt], StoreError)
    fresh = opened(server, index_prefix)
    planned = fresh.set_up(repair=True, dry_run=True).done
    assert [index for index in sorted(moved) if any(index in line for line in planned)] == sorted(moved)
    assert fresh.set_up(repair=True).done[:4] == planned
    assert (seen(fresh), stored(server, names), fresh.span().jobs) == (expected, rows, 2)
    assert server.json("GET", f"_resolve/index/{index_prefix}v9-*")["indices"] == []
    night(fresh, 2)
    put(fresh, "b", job(3))
    assert (seen(fresh)["corepower"], fresh.span().jobs) == (3, 3)
    for each in (store, fresh):
        each.close()


class _Dying:
    """A connection of a process that is killed after so many changes."""

    def __init__(self, cluster: Cluster, left: int) -> None:
        self._cluster = cluster
        self._left = left

    def call(self, method: str, path: str, *rest: Any, **options: Any) -> Any:
        if method != "GET":
            if self._left == 0:
                raise KeyboardInterrupt
            self._left -= 1
        return self._cluster.call(method, path, *rest, **options)


def test_giving_a_name_back_is_finished_by_whoever_comes_next(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    store.set_up()
    expected, rows = seen(store), stored(server, names)
    index, target = names.rows(COREPOWER), f"{index_prefix}v9"
    cluster = connect(Access(server.url))
    for left in range(4):
        reindex(server, index, target, carried=left % 2 == 0)
        with pytest.raises(KeyboardInterrupt):
            renaming._give_back(_Dying(cluster, left), index, target)  # type: ignore[arg-type]
        refused([lambda: visible(opened(server, index_prefix), COREPOWER)])
        fresh = opened(server, index_prefix)
        assert target in fresh.set_up(repair=True).done[0]
        assert (seen(fresh), stored(server, names)) == (expected, rows)
        fresh.close()
    cluster.close()
    store.close()


def test_a_table_that_people_enter_starts_empty_where_somebody_says_so(
    server: Server, index_prefix: str
) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    for number in range(2):
        night(store, number)
    expected = seen(store)
    server.json("DELETE", names.rows(COREPOWER))
    fresh = opened(server, index_prefix)
    attempts: list[Attempt] = [fresh.sweep, lambda: fresh.set_up(repair=True)]
    refused(attempts)
    refused([lambda: fresh.set_up(repair=True, start_empty=["flag_notes"])])
    with raised(UsageError):
        fresh.set_up(repair=True, start_empty=["factors"])
    (line,) = (each for each in fresh.set_up(repair=True, start_empty=["corepower"]).done if "2 part" in each)
    assert "--start-empty" in line
    assert seen(fresh) == {**expected, "corepower": 0}
    night(fresh, 2)
    assert seen(fresh)["corepower"] == 1
    for each in (store, fresh):
        each.close()


@pytest.mark.parametrize("aliases", [True, False], ids=["with aliases", "without aliases"])
def test_an_older_snapshot_shows_the_newest_complete_rows(
    server: Server, index_prefix: str, aliases: bool
) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    for number in range(2):
        night(store, number)
    # newer than what was published, and one row of it is lost
    damaged = written(store, COREPOWER, "import0", 5)
    server.json("POST", f"{names.rows(COREPOWER)}/_refresh")
    server.json("DELETE", f"{names.rows(COREPOWER)}/_doc/{damaged.number}.3")
    indices = [names.rows(COREPOWER), names.rows(BUCKETS, str(FIRST)), names.rows(FACTORS)]
    kept = {index: backup(server, index) for index in indices}
    night(store, 2)
    store.publish([written(store, COREPOWER, "import0", 3), written(store, BUCKETS, str(FIRST), 4)])
    expected = seen(store)
    assert (expected["corepower"], expected["buckets"], expected["factors"]) == (5, 6, 3)
    for index in indices:
        server.json("DELETE", index)
        restore(server, index, kept[index], aliases=aliases)
    rows = n_rows(server, indices)
    fresh = opened(server, index_prefix)
    refused([fresh.sweep, fresh.set_up])
    with raised(PublishedError):
        fresh.set_up(repair=True)
    # nothing of the table that lacks rows is changed, everything else is put right
    done = fresh.set_up(repair=True, start_empty=["corepower"]).done
    (line,) = (each for each in done if "shows other rows" in each)
    assert "import0 to import0" in line
    assert n_rows(server, indices) == rows
    # one row of import0 and one of import1; days 0 and 1; runs 0 and 1
    now = seen(fresh)
    assert (now["corepower"], now["buckets"], now["factors"]) == (2, 2, 2)
    assert {**now, "corepower": 0, "buckets": 0, "factors": 0} == {
        **expected,
        "corepower": 0,
        "buckets": 0,
        "factors": 0,
    }
    fresh.sweep()
    assert seen(fresh) == now
    night(fresh, 2)
    assert [seen(fresh)[name] for name in ("corepower", "buckets", "factors")] == [3, 3, 3]
    for each in (store, fresh):
        each.close()


def test_an_alias_of_ours_on_another_index_is_taken_from_it(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    store.set_up()
    expected, rows = seen(store), stored(server, names)
    other = f"{index_prefix}restored"
    for alias in (names.alias(COREPOWER), names.alias(BUCKETS), names.jobs):
        server.json("PUT", other, {"aliases": {alias: {}}})
        server.json("PUT", f"{other}/_doc/1?refresh=true", {"queue": "A"})
        fresh = opened(server, index_prefix)
        refused([fresh.sweep if alias != names.jobs else fresh.span, fresh.set_up])
        assert any(other in each.text for each in fresh.ailments())
        assert other in fresh.set_up(repair=True).done[0]
        assert (seen(fresh), stored(server, names)) == (expected, rows)
        assert server.json("GET", f"{other}/_alias")[other]["aliases"] == {}
        assert server.json("GET", f"{other}/_count")["count"] == 1
        server.json("DELETE", other)
        fresh.close()
    # it may have the rows of an index that is gone: nobody but its owner knows
    kept = backup(server, names.rows(COREPOWER))
    server.json("DELETE", names.rows(COREPOWER))
    restore(server, other, kept, aliases=True)
    fresh = opened(server, index_prefix)
    refused([lambda: fresh.set_up(repair=True, start_empty=["corepower"])])
    added = {"add": {"index": other, "alias": names.rows(COREPOWER)}}
    server.json("POST", "_aliases", {"actions": [added]})
    fresh.set_up(repair=True)
    assert (seen(fresh), stored(server, names)) == (expected, rows)
    for each in (store, fresh):
        each.close()


def test_an_index_that_has_the_name_of_an_alias_stays(server: Server, index_prefix: str) -> None:
    """As when something writes to a name whose alias is gone, and the cluster makes an index of it."""
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    store.set_up()
    expected, rows = seen(store), stored(server, names)
    alias = names.alias(COREPOWER)
    for index in (names.rows(COREPOWER), names.rows(BUCKETS, str(FIRST))):
        server.json("DELETE", f"{index}/_alias/{alias if 'corepower' in index else names.alias(BUCKETS)}")
    server.json("PUT", f"{alias}/_doc/1?refresh=true", {"queue": "A"})
    fresh = opened(server, index_prefix)
    refused([fresh.sweep, fresh.set_up, lambda: fresh.set_up(repair=True)])
    # all but that table is put right
    assert len(visible(fresh, BUCKETS)) == expected["buckets"]
    assert stored(server, names) == {**rows, alias: 1}
    server.json("DELETE", alias)
    fresh.set_up(repair=True)
    assert (seen(fresh), stored(server, names)) == (expected, rows)
    for each in (store, fresh):
        each.close()


def test_an_index_that_has_the_name_of_the_alias_of_jobs_stays(server: Server, index_prefix: str) -> None:
    """As when something writes to the name while its alias is gone; a store that is open notices, too."""
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    put(store, "a", job(1))
    server.json("DELETE", f"{names.jobs_of('2018-08')},{names.jobs_of()}/_alias/{names.jobs}")
    server.json("PUT", f"{names.jobs}/_doc/1?refresh=true", {"queue": "A"})
    refused([store.span, lambda: put(store, "b", job(2)), lambda: store.set_up(repair=True)])
    refused([lambda: opened(server, index_prefix)], SchemaError)
    assert [each.what for each in store.ailments()] == ["jobs"]
    server.json("DELETE", names.jobs)
    store.set_up(repair=True)
    assert store.span().jobs == 1
    store.close()


@pytest.mark.parametrize("facts", [{"is_write_index": True}, {"routing": "1"}], ids=["writing", "routing"])
def test_an_alias_that_has_more_than_a_filter(
    server: Server, index_prefix: str, facts: dict[str, Any]
) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    put(store, "a", job(1))
    store.set_up()
    expected, rows = seen(store), stored(server, names)
    for index, alias in ((names.rows(COREPOWER), names.alias(COREPOWER)), (names.jobs_of(), names.jobs)):
        usual = server.json("GET", f"{index}/_alias/{alias}")[index]["aliases"][alias]
        added = {"index": index, "alias": alias, "filter": usual["filter"], **facts}
        server.json("POST", "_aliases", {"actions": [{"add": added}]})
        fresh = opened(server, index_prefix)
        refused([fresh.span if alias == names.jobs else fresh.sweep])
        fresh.set_up(repair=True)
        assert server.json("GET", f"{index}/_alias/{alias}")[index]["aliases"][alias] == usual
        assert (seen(fresh), stored(server, names), fresh.span().jobs) == (expected, rows, 1)
        fresh.close()
    store.close()


def test_the_alias_of_jobs(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    put(store, "a", job(1), job(2), job(1))
    store.set_up()
    indices = sorted(index for index in stored(server, names) if names.is_jobs(index))
    assert len(indices) == 2
    changes: list[Callable[[str], list[dict[str, Any]]]] = [
        lambda index: [{"remove": {"index": index, "alias": names.jobs}}],
        lambda index: [
            {"remove": {"index": index, "alias": names.jobs}},
            {"add": {"index": index, "alias": f"{names.jobs}-old"}},
        ],
        lambda index: [{"add": {"index": index, "alias": names.jobs}}],
        lambda index: [{"add": {"index": index, "alias": names.jobs, "filter": {"term": {"load": 7}}}}],
    ]
    rows, jobs = stored(server, names), server.json("GET", f"{names.jobs}/_count")["count"]
    assert jobs == 2
    for number, change in enumerate(changes):
        for index in indices if number == 0 else indices[:1]:
            server.json("POST", "_aliases", {"actions": change(index)})
        fresh = opened(server, index_prefix)
        refused([fresh.span, lambda: put(fresh, "b", job(3)), fresh.set_up])  # noqa: B023
        assert [each.what for each in fresh.ailments()] == ["jobs"] * (2 if number == 0 else 1)
        assert stored(server, names) == rows
        assert fresh.set_up(repair=True, dry_run=True).done == fresh.set_up(repair=True).done
        assert server.json("GET", f"{names.jobs}/_count")["count"] == jobs
        assert (fresh.span().jobs, stored(server, names)) == (2, rows)
        fresh.close()
    put(store, "b", job(3))
    assert store.span().jobs == 3
    store.close()


BLOCKS = ("read_only", "read_only_allow_delete", "write", "metadata")


@pytest.mark.parametrize("block", BLOCKS)
def test_what_is_blocked_is_said_before_anything_is_published(
    server: Server, index_prefix: str, block: str
) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    expected = seen(store)
    records = Records(State(connect(Access(server.url)), names))
    made = [written(store, COREPOWER, "import0", 2), written(store, BUCKETS, str(FIRST), 2)]
    before = records.publication()
    for index in (names.rows(COREPOWER), names.rows(BUCKETS, str(FIRST)), names.state):
        server.json("PUT", f"{index}/_settings", {f"index.blocks.{block}": True})
        refused([lambda: store.publish(made)], BlockedError)
        server.json("PUT", f"{index}/_settings", {f"index.blocks.{block}": None})
        assert records.publication() == before
        assert seen(store) == expected
    store.publish(made)
    assert seen(store) == {**expected, "corepower": 2, "buckets": 2}
    store.close()


def test_the_first_index_of_a_table_with_months_is_made_again(server: Server, index_prefix: str) -> None:
    """It is empty and keeps the alias of a table that nothing was written to."""
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    expected = seen(store)
    server.json("DELETE", names.rows(BUCKETS))
    fresh = opened(server, index_prefix)
    assert seen(fresh) == expected
    night(fresh, 1)
    assert seen(fresh)["buckets"] == 2
    assert names.rows(BUCKETS) in stored(server, names)
    for each in (store, fresh):
        each.close()


def test_a_closed_index_and_replicas_that_no_node_takes(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store = opened(server, index_prefix)
    night(store, 0)
    expected, rows = seen(store), stored(server, names)
    server.json("PUT", f"{names.prefix}-*/_settings", {"index.number_of_replicas": 2})
    assert seen(opened(server, index_prefix)) == expected
    index = names.rows(FLAG_NOTES)
    server.json("POST", f"{index}/_close?wait_for_active_shards=0")
    fresh = opened(server, index_prefix)
    attempts: list[Attempt] = [
        lambda: visible(fresh, FLAG_NOTES),
        fresh.sweep,
        lambda: fresh.publish([written(fresh, FLAG_NOTES, "x")]),
    ]
    refused(attempts, StoreError)
    server.json("POST", f"{index}/_open?wait_for_active_shards=1")
    assert (seen(fresh), stored(server, names)) == (expected, rows)
    night(fresh, 1)
    assert seen(fresh)["flag_notes"] == 2
    for each in (store, fresh):
        each.close()


def test_templates_that_give_indices_other_than_they_need(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    store: ElasticStore = opened(server, index_prefix)
    store.set_up()
    assert store.ailments() == []
    ours = names.template("corepower")
    stored_one = server.json("GET", f"_index_template/{ours}")["index_templates"][0]["index_template"]
    changed = {**stored_one["template"], "settings": {"index": {"refresh_interval": "1s"}}}
    server.json("PUT", f"_index_template/{ours}", {**stored_one, "template": changed})
    theirs = {"settings": {"index.mapping.total_fields.limit": 2000}, "aliases": {"everything": {}}}
    named = {"index_patterns": [f"{names.prefix}-buckets*"], "priority": 900, "template": theirs}
    server.json("PUT", f"_index_template/{index_prefix}theirs", named)
    found = {each.what: each for each in store.ailments()}
    assert found.keys() == {f"template {ours}", f"template {index_prefix}theirs"}
    assert "refresh_interval 1s, not -1" in found[f"template {ours}"].text
    text = found[f"template {index_prefix}theirs"].text
    assert "900" in text
    assert "mapping.total_fields.limit 2000" in text
    assert f"created template {ours}" in store.set_up().done
    server.json("DELETE", f"_index_template/{index_prefix}theirs")
    assert store.ailments() == []
    store.close()
