"""What ``esjobs setup`` makes, and indices that an earlier version made."""

from collections.abc import Iterable

import pytest

from esjobs.core.errors import SchemaError
from esjobs.core.query import Count, Query
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FLAGS
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import hours, job, put, table_batch, visible
from tests.messages import raised
from tests.servers.server import Server


def opened(server: Server, prefix: str, tables: Iterable[Table] = TABLES) -> ElasticStore:
    """A store of the tables that a test is about: setting up makes an index for each."""
    return ElasticStore(connect(Access(server.url)), prefix, tables=tables)


def test_setting_up_makes_everything_once(server: Server, index_prefix: str) -> None:
    prefix = f"{index_prefix}own"
    store = opened(server, prefix)
    planned = store.set_up(dry_run=True)
    n_indices = len(TABLES) + 2
    assert len(planned.done) == 2 * n_indices + len(TABLES) + 1 + sum(table.has_latest for table in TABLES)
    assert all(line.startswith("would make ") for line in planned.done)
    assert server.json("GET", f"_resolve/index/{prefix}*")["indices"] == []
    done = store.set_up()
    assert [line.removeprefix("made ") for line in done.done] == [
        line.removeprefix("would make ") for line in planned.done
    ]
    assert store.set_up().done == store.set_up(dry_run=True).done == ()
    assert prefix in store.set_up().role
    # a field that is misspelt in a filter would match nothing, without a word
    for table in TABLES:
        index, alias = Names(prefix).rows(table), Names(prefix).alias(table)
        known = server.json("GET", f"{index}/_mapping")[index]["mappings"]["properties"]
        held = server.json("GET", f"{index}/_alias")[index]["aliases"][alias]["filter"]
        named = [name for part in held["bool"]["filter"] for kind in part.values() for name in kind]
        assert named
        assert set(named) <= set(known)
    store.close()


def test_an_index_made_by_another_program_gets_our_layout(server: Server, index_prefix: str) -> None:
    """A name of ours that something else writes to first does not become a guess of the cluster."""
    prefix = f"{index_prefix}own"
    store = opened(server, prefix, [BUCKETS])
    store.set_up()
    name = f"{Names(prefix).alias(BUCKETS)}-000002"
    server.json("PUT", name)
    (own, made) = (
        server.json("GET", f"{index}/_mapping")[index]["mappings"]
        for index in (Names(prefix).rows(BUCKETS), name)
    )
    assert made == own
    assert server.request("PUT", f"{name}/_doc/1", {"surprise": 1}).status == 400
    store.close()


def test_fields_that_are_new_are_added_to_an_index_of_before(server: Server, index_prefix: str) -> None:
    prefix = f"{index_prefix}own"
    index = Names(prefix).rows(BUCKETS)
    store = opened(server, prefix, [BUCKETS])
    store.set_up()
    layout = server.json("GET", f"{index}/_mapping")[index]["mappings"]
    server.json("DELETE", index)
    kept = {name: kind for name, kind in layout["properties"].items() if name != "cpe_sq"}
    server.json("PUT", index, {"mappings": {**layout, "properties": kept}})
    row = {"day": hours(0).date(), "queue": "A", "cpe_sq": 1.5}
    store.publish([store.replace(BUCKETS, "2018-08-01", [table_batch(BUCKETS, [row])])])
    assert [found["cpe_sq"] for found in visible(store, BUCKETS)] == [1.5]
    assert server.json("GET", f"{index}/_mapping")[index]["mappings"] == layout
    store.close()


def test_an_index_with_times_in_nanoseconds_is_used_as_it_is(server: Server, index_prefix: str) -> None:
    """As the first version made it; setting up says what that costs."""
    prefix = f"{index_prefix}own"
    index = Names(prefix).rows(FLAGS)
    store = opened(server, prefix, [FLAGS])
    store.set_up()
    layout = server.json("GET", f"{index}/_mapping")[index]["mappings"]
    server.json("DELETE", index)
    old = {"date": {"type": "date_nanos"}, "text": {"type": "keyword", "index": False, "doc_values": False}}
    kinds = {"window_start": "date", "window_end": "date", "sentence": "text", "finding": "text"}
    properties = {**layout["properties"], **{name: old[kind] for name, kind in kinds.items()}}
    server.json("PUT", index, {"mappings": {**layout, "properties": properties}})
    row = {"name": "A", "sentence": "slow", "window_end": hours(24.000001)}
    store.publish([store.replace(FLAGS, "r", [table_batch(FLAGS, [row])])])
    (found,) = visible(store, FLAGS)
    assert {name: found[name] for name in row} == row
    query = Query((), (Count("n"),), Window(hours(0), hours(48)), over=FLAGS)
    assert store.aggregate(query).table.to_pylist() == [{"n": 1}]
    (line,) = store.set_up().done
    assert line.startswith(f"index {index} stays as an earlier version made it: ")
    assert "4 fields" in line
    assert "cluster.prefix" in line
    store.close()


def test_tables_of_a_dashboard_can_show_times_and_texts(server: Server, index_prefix: str) -> None:
    """What Kibana and OpenSearch Dashboards take a field for is what the index says that it can do."""
    prefix = f"{index_prefix}own"
    store = opened(server, prefix)
    long = "why " * 2000
    rows = [{"name": name, "sentence": long + name, "window_end": hours(24)} for name in "ab"]
    store.publish([store.replace(FLAGS, "r", [table_batch(FLAGS, rows)])])
    alias = Names(prefix).alias(FLAGS)
    fields = server.json("GET", f"{alias}/_field_caps?fields=*")["fields"]
    kinds = {"time": {"date"}, "text": {"keyword"}, "keyword": {"keyword"}, "number": {"double"}}
    for column in FLAGS.columns:
        if column.type in kinds:
            assert fields[column.name].keys() == kinds[column.type], column.name
            assert all(each["aggregatable"] for each in fields[column.name].values()), column.name
    asked = {"size": 0, "aggs": {"said": {"terms": {"field": "sentence"}}}}
    groups = server.json("POST", f"{alias}/_search", asked)["aggregations"]["said"]["buckets"]
    assert sorted(group["key"] for group in groups) == [row["sentence"] for row in rows]
    store.close()


@pytest.mark.parametrize(
    ("layout", "kind"),
    [("1", "keyword"), (None, "keyword"), ("2", "long")],
    ids=["an earlier layout", "no layout", "another type"],
)
def test_an_index_of_another_layout_is_refused(
    server: Server, index_prefix: str, layout: str | None, kind: str
) -> None:
    prefix = f"{index_prefix}own"
    meta = {"_meta": {"layout": layout}} if layout else {}
    mappings = {**meta, "properties": {"queue": {"type": kind}}}
    server.json("PUT", f"{prefix}-jobs", {"mappings": mappings})
    with raised(SchemaError):
        put(opened(server, prefix), "a", job(1))
