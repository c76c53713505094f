"""Small questions take one search; what one search cannot answer goes the long way."""

from typing import Any

import pytest

from esjobs.core.query import Count, Filter, In, Like, Missing, Query, Sum
from esjobs.core.rules import CleaningRules
from esjobs.core.tables import Table
from esjobs.store.elastic.asking import partitions
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster, Request
from esjobs.store.elastic.transport.connect import connect
from tests.contract.jobs import groups, hours, job, put
from tests.servers.server import Server

NO_TABLES: tuple[Table, ...] = ()


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The searches and snapshots that were asked for."""
    found: list[str] = []
    inner = Cluster._ask

    def noted(cluster: Cluster, read: Any, request: Request) -> Any:
        if request.path.endswith(("_search", "_pit", "point_in_time")):
            found.append(f"{request.method} {request.path}")
        return inner(cluster, read, request)

    monkeypatch.setattr(Cluster, "_ask", noted)
    return found


def test_one_search_where_one_is_enough(
    server: Server, index_prefix: str, searches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ElasticStore(connect(Access(server.url)), index_prefix.rstrip("-"), tables=NO_TABLES)
    jobs = [job(number, queue=f"S{number % 5}", end_time=hours(number)) for number in range(60)]
    put(store, "a", *jobs, job("without", cpu_raw=None))
    total = Sum("core_s", "core_s")

    def asked(
        keys: tuple[str, ...], where: tuple[Filter, ...] = (), *, books: bool = False, **more: Any
    ) -> int:
        searches.clear()
        query = Query(keys, (Count("n"), total), where=where, books=books, **more)
        groups(store, query)
        return len(searches)

    assert asked(("queue",)) == 1
    assert asked(("queue", "day")) == 1
    assert asked((), (Missing("cpu_raw"),)) == 1
    assert asked(("cpu_raw",), (In("queue", ("S1", "S2")),)) == 1
    # books, rules, patterns, more groups than a page has, and numbers that no index knows
    assert asked(("queue",), books=True) > 1
    assert asked(("queue",), drops=CleaningRules().drops()) > 1
    assert asked(("queue",), (Like("queue", ("s*",)),)) > 1
    with monkeypatch.context() as patched:
        patched.setattr(partitions, "PAGE", 3)
        assert asked(("queue",)) > 1
    put(store, "b", job("odd", cpu_s=float("inf")))
    assert asked(("queue",)) > 1
    store.close()
