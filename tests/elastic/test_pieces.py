"""Rows packed as columns, beside their documents or alone: the same rows, whatever is missing."""

from collections.abc import Iterator
from datetime import date, timedelta

import pyarrow as pa
import pytest

from esjobs.core.arrow import table_schema
from esjobs.core.errors import PartialAnswerError
from esjobs.core.query import Count, Days, In, Query, Sum
from esjobs.publish.publication import read_table
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import STABILITY_CHECKS
from esjobs.store.base import Hide
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
    tables = [BUCKETS, STABILITY_CHECKS]
    store = ElasticStore(connect(Access(server.url)), f"{index_prefix}own", tables=tables)
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


def checks(run: str, count: int) -> pa.Table:
    rows = [
        {"run": run, "level": "queue", "name": f"Q{number}", "k_low": number / 3, "k_high": float("nan")}
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=table_schema(STABILITY_CHECKS))


def test_pieces_alone_answer_like_rows(store: ElasticStore, server: Server, index_prefix: str) -> None:
    names, table = Names(f"{index_prefix}own"), STABILITY_CHECKS
    runs = {run: checks(run, count) for run, count in {"a": _ROWS + 5, "b": 4, "none": 0}.items()}
    written = {run: store.replace(table, run, rows.to_batches()) for run, rows in runs.items()}
    store.publish([*written.values()])
    # two pieces and one: what counts as documents
    assert server.json("GET", f"{names.alias(table)}/_count")["count"] == 2 + 1
    assert repr(read_table(store, table, [In("run", ("b",))]).to_pylist()) == repr(runs["b"].to_pylist())
    assert read_table(store, table).num_rows == _ROWS + 5 + 4
    found = store.read(table, [In("name", ("Q2", "Q3"))], ("run", "k_low"), order=("-run", "-name"), limit=3)
    rows = [tuple(row.values()) for batch in found for row in batch.to_pylist()]
    assert rows == [("b", 1.0), ("b", 2 / 3), ("a", 1.0)]
    counted = store.aggregate(Query(("run",), (Count("n"), Sum("k_low", "k")), over=table)).table
    assert {row["run"]: (row["n"], row["k"]) for row in counted.to_pylist()}["b"] == (4, 2.0)
    store.publish([Hide(table, "none"), store.replace(table, "b", checks("b", 1).to_batches())])
    assert store.sweep() == 1
    assert read_table(store, table, [In("run", ("b", "none"))]).num_rows == 1


def test_a_piece_that_is_missing(store: ElasticStore, server: Server, index_prefix: str) -> None:
    table = STABILITY_CHECKS
    large = store.replace(table, "a", checks("a", _ROWS + 5).to_batches())
    store.publish([large])
    index = Names(f"{index_prefix}own").rows(table)
    server.json("DELETE", f"{index}/_doc/{large.number}.2?refresh=true")
    with pytest.raises(PartialAnswerError, match="incomplete, because another program deleted some"):
        read_table(store, table)


def _without_pieces(*how: object, **more: object) -> dict[str, object]:
    layout = rows_index(*how, **more)  # type: ignore[arg-type]
    kept = layout["mappings"]["properties"].items()
    fields = {name: kind for name, kind in kept if name not in ("piece", "pieces", "packed")}
    return {**layout, "mappings": {**layout["mappings"], "properties": fields}}
