"""Buckets packed as columns beside their documents: the same rows, whatever is missing."""

from collections.abc import Iterator
from datetime import date, timedelta

import pyarrow as pa
import pytest

from esjobs.core.arrow import table_schema
from esjobs.core.query import Days, In
from esjobs.publish.publication import read_table
from esjobs.schema.jobs import BUCKETS
from esjobs.store.elastic.layout import Names, rows_index
from esjobs.store.elastic.results.pieces import _ROWS
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.servers.plugin import server_params
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)

DAY = date(2018, 8, 1)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
def store(server: Server, index_prefix: str) -> Iterator[ElasticStore]:
    store = ElasticStore(connect(Access(server.url)), f"{index_prefix}own", tables=[BUCKETS])
    yield store
    store.close()


def buckets(day: date, count: int) -> pa.Table:
    """Rows with odd values: no model, a number that JSON cannot write, a text longer than a term."""
    rows = [
        {
            "day": day,
            "task_id": f"task {number % 7}",
            "core_class": "multi",
            "queue": f"Q{number}",
            "cpu_model": None if number % 3 else "M" * 9000 if number == 3 else "AMD EPYC 7402",
            "n_jobs": number,
            "events": float("nan") if number == 1 else number / 3,
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=table_schema(BUCKETS))


def write(store: ElasticStore, day: date, count: int) -> None:
    store.publish([store.replace(BUCKETS, str(day), buckets(day, count).to_batches())])


def rows(store: ElasticStore, *where: object, columns: tuple[str, ...] = ()) -> list[str]:
    return sorted(map(repr, read_table(store, BUCKETS, where, columns).to_pylist()))


def pieces(server: Server, names: Names) -> int:
    index = names.rows(BUCKETS, str(DAY))
    server.json("POST", f"{index}/_refresh")
    return int(server.json("GET", f"{index}/_count?q=_exists_:piece")["count"])


def test_rows_of_pieces_are_those_of_documents(
    store: ElasticStore, server: Server, index_prefix: str
) -> None:
    names = Names(f"{index_prefix}own")
    large = store.replace(BUCKETS, str(DAY), buckets(DAY, _ROWS + 5).to_batches())
    store.publish([large])
    write(store, NEXT, 3)
    store.publish([store.add(BUCKETS, str(DAY), buckets(DAY, 2).to_batches())])
    assert pieces(server, names) == 2 + 1 + 1
    both, columns = Days("day", DAY, NEXT), ("queue", "events")
    of_pieces = rows(store, both), rows(store, Days("day", NEXT, NEXT)), rows(store, columns=columns)
    assert len(of_pieces[0]) == _ROWS + 5 + 3 + 2
    # readers of the alias see rows alone
    assert server.json("GET", f"{names.alias(BUCKETS)}/_count")["count"] == _ROWS + 5 + 3 + 2
    # what the index filters is read from documents
    assert rows(store, both, In("core_class", ("multi",))) == of_pieces[0]
    index = names.rows(BUCKETS, str(DAY))
    server.json("DELETE", f"{index}/_doc/{large.number}.p2?refresh=true")
    # a generation without one of its pieces is read from its documents
    assert (
        rows(store, both),
        rows(store, Days("day", NEXT, NEXT)),
        rows(store, columns=columns),
    ) == of_pieces


def test_pieces_go_with_their_generation(store: ElasticStore, server: Server, index_prefix: str) -> None:
    names = Names(f"{index_prefix}own")
    write(store, DAY, 5)
    write(store, DAY, 4)
    assert store.sweep() == 5
    assert (len(rows(store)), pieces(server, names)) == (4, 1)


def test_an_index_of_an_earlier_version(
    store: ElasticStore, server: Server, index_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(f"{index_prefix}own")
    with monkeypatch.context() as before:
        before.setattr("esjobs.store.elastic.results.generations.rows_index", _without_pieces)
        before.setattr("esjobs.store.elastic.results.pieces.Packer.lines", lambda _: iter(()))
        write(store, DAY, 5)
    assert (len(rows(store)), pieces(server, names)) == (5, 0)
    write(store, NEXT, 3)
    assert (len(rows(store)), pieces(server, names)) == (8, 1)


def _without_pieces(*how: object, **more: object) -> dict[str, object]:
    layout = rows_index(*how, **more)  # type: ignore[arg-type]
    kept = layout["mappings"]["properties"].items()
    fields = {name: kind for name, kind in kept if name not in ("piece", "pieces", "packed")}
    return {**layout, "mappings": {**layout["mappings"], "properties": fields}}
