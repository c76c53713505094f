"""Fields that indices of jobs lack: read as null, and added by the next write of the month."""

import pytest

from esjobs.core.query import Count, In, Query
from esjobs.schema.jobs import BUCKETS
from esjobs.store.elastic.layout import Names, jobs_index
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import groups, hours, job, put, selected
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)

NEW = frozenset(("smt", "counters", "executable"))


def mapped(server: Server, index: str) -> dict[str, object]:
    properties = server.json("GET", f"{index}/_mapping")[index]["mappings"]["properties"]
    return {name: kind for name, kind in properties.items() if name in NEW}


def test_indices_without_new_fields(
    server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"{index_prefix}own"
    names = Names(prefix)
    old, new = names.jobs_of("2018-07"), names.jobs_of("2018-08")

    def opened() -> ElasticStore:
        return ElasticStore(connect(Access(server.url)), prefix, tables=[BUCKETS])

    with monkeypatch.context() as before:
        before.setattr("esjobs.store.elastic.jobs.months.jobs_index", _without_new)
        store = opened()
        put(store, "a", job(1, end_time=hours(-48)), job(2))
        marks = store.day_fingerprints(None).to_pylist()
        store.close()
    assert mapped(server, old) == mapped(server, new) == {}
    store = opened()
    assert store.day_fingerprints(None).to_pylist() == marks
    assert selected(store, "smt", "counters") == [(None, None)] * 2
    put(store, "b", job(3, smt=True, counters=[(f"event {n}", 1.0) for n in range(2000)]))
    assert mapped(server, old) == {}
    assert mapped(server, new)["counters"] == {"type": "object", "enabled": False}
    found = groups(store, Query(("smt",), (Count(),)))
    assert {key: row["n_jobs"] for (key,), row in found.items()} == {True: 1, None: 2}
    assert selected(store, "job_id", where=[In("smt", ("true",))]) == ["3"]
    put(store, "c", job(1, end_time=hours(-48), executable="gmx"))
    assert mapped(server, old).keys() == NEW
    assert selected(store, "executable", where=[In("job_id", ("1",))]) == ["gmx"]
    store.close()


def _without_new(*how: object, **more: object) -> dict[str, object]:
    layout = jobs_index(*how, **more)  # type: ignore[arg-type]
    layout["mappings"]["properties"] = {
        name: kind for name, kind in layout["mappings"]["properties"].items() if name not in NEW
    }
    return layout
