"""What ``esjobs setup`` makes, and indices of other layouts."""

import json
from collections.abc import Iterable

import pytest

from esjobs.api.session import Session
from esjobs.cli.provisioned import text_of
from esjobs.core.errors import InputError, SchemaError
from esjobs.core.tables import Table
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FLAGS
from esjobs.store.elastic.jobs.months import SHOWN
from esjobs.store.elastic.layout import LAYOUT, Names
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import hours, job, put, table_batch, visible
from tests.messages import raised
from tests.servers.server import Server

pytestmark = pytest.mark.every_version


def opened(server: Server, prefix: str, tables: Iterable[Table] = TABLES) -> ElasticStore:
    """A store of the tables that a test is about: setting up makes an index for each."""
    return ElasticStore(connect(Access(server.url)), prefix, tables=tables)


def test_setting_up_makes_everything_once(server: Server, index_prefix: str) -> None:
    prefix = f"{index_prefix}own"
    store = opened(server, prefix)
    planned = store.set_up(dry_run=True)
    n_indices = len(TABLES) + 2
    assert len(planned.done) == 2 * n_indices + len(TABLES) + 1 + sum(table.has_latest for table in TABLES)
    assert all(line.startswith("would create ") for line in planned.done)
    assert server.json("GET", f"_resolve/index/{prefix}*")["indices"] == []
    done = store.set_up()
    assert [line.removeprefix("created ") for line in done.done] == [
        line.removeprefix("would create ") for line in planned.done
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


def test_fields_that_are_new_are_added_on_writing(server: Server, index_prefix: str) -> None:
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


@pytest.mark.parametrize("layout", ["4", None], ids=["an earlier layout", "no layout"])
@pytest.mark.parametrize("index", ["jobs", "jobs-2018-08", "state"])
def test_an_index_of_another_layout_is_refused(
    server: Server, index_prefix: str, layout: str | None, index: str
) -> None:
    prefix = f"{index_prefix}own"
    mappings = {"_meta": {"layout": layout}} if layout else {}
    aliases = {Names(prefix).jobs: {"filter": SHOWN}} if index == "jobs-2018-08" else {}
    server.json("PUT", f"{prefix}-{index}", {"mappings": mappings, "aliases": aliases})
    with raised(SchemaError):
        opened(server, prefix)


def test_an_index_with_a_field_of_another_type_is_refused(server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    mappings = {"_meta": {"layout": LAYOUT}, "properties": {"queue": {"type": "long"}}}
    aliases = {names.jobs: {"filter": SHOWN}}
    server.json("PUT", names.jobs_of("2018-08"), {"mappings": mappings, "aliases": aliases})
    with raised(SchemaError):
        put(opened(server, names.prefix), "a", job(1))


def test_what_is_printed_is_what_is_set_up(server: Server, index_prefix: str) -> None:
    """Role and templates for another tool are those of ``esjobs setup``; printing changes nothing."""
    prefix = f"{index_prefix}own"
    store = opened(server, prefix, [BUCKETS, FLAGS])
    planned = store.set_up(dry_run=True)
    assert server.json("GET", f"_resolve/index/{prefix}*")["indices"] == []
    printed = json.loads(text_of(planned, "template"))
    store.set_up()
    stored = {
        one["name"]: one["index_template"]
        for one in server.json("GET", f"_index_template/{prefix}*")["index_templates"]
    }
    assert stored.keys() == printed.keys()
    for name, body in printed.items():
        assert stored[name]["index_patterns"] == body["index_patterns"]
        assert stored[name]["priority"] == body["priority"]
        # the server takes what is printed, as it stands
        server.json("PUT", f"_index_template/{name}", body)
    resources = json.loads(text_of(planned, "terraform"))["resource"]
    (role,) = (kind["esjobs"] for name, kind in resources.items() if name.endswith("role"))
    assert prefix in json.dumps(role)
    (templates,) = (kind for name, kind in resources.items() if name.endswith("template"))
    assert templates.keys() == printed.keys()
    store.close()


def test_a_file_has_no_role(session: Session) -> None:
    with raised(InputError):
        text_of(session.store.set_up(dry_run=True), "role")
