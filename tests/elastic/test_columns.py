"""Rows as lines of bulk requests and back as columns: nothing is lost, whatever the text or the number."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.errors import StoreError
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import DAYS
from esjobs.store.elastic.asking.hits import Reader
from esjobs.store.elastic.jobs.stamps import identities, stamped
from esjobs.store.elastic.results.lines import create_lines
from esjobs.store.elastic.store import ElasticStore
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import RefusedError
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.elastic.transport.scan import PAGE
from esjobs.store.elastic.transport.writing import sent
from tests.contract.jobs import batch, job, table_batch
from tests.messages import raised
from tests.servers.server import Server

SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
    }
)
DAYS_SCHEMA = table_batch(DAYS, []).schema
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
ROWS = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(),
        "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
        "number": st.none() | st.floats(),
        "truth": st.none() | st.booleans(),
        "time": st.none() | TIMES,
        "day": st.none() | st.dates(date(1900, 1, 1), date(2200, 1, 1)),
    }
)


def lines_of(rows: pa.RecordBatch, names: pa.Array | None = None) -> list[tuple[str, dict[str, object]]]:
    """Name and document of every line, as the cluster reads them."""
    ids = pa.array(map(str, range(rows.num_rows)), pa.string()) if names is None else names
    found: list[tuple[str, dict[str, object]]] = []
    for first, lines in create_lines('an "index"', ids, rows, {"load": 3}):
        assert first == len(found)
        for line in lines:
            action, body, end = line.split(b"\n")
            assert end == b""
            assert json.loads(action)["create"]["_index"] == 'an "index"'
            found.append((json.loads(action)["create"]["_id"], json.loads(body)))
    return found


def answer(documents: list[dict[str, object]]) -> bytes:
    """A page with these documents, as a cluster would send it."""
    hits = [{"_id": "x", "_source": document, "sort": [n]} for n, document in enumerate(documents)]
    shards = {"total": 1, "successful": 1, "failed": 0}
    return json.dumps({"timed_out": False, "_shards": shards, "hits": {"hits": hits}}).encode()


@given(st.lists(ROWS, max_size=6))
def test_what_is_written_is_read(rows: list[dict[str, object]]) -> None:
    written = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    documents = [document for _, document in lines_of(written)]
    reader = Reader(SCHEMA)
    found = reader.batch(reader.decode(answer(documents)).rows)
    assert repr(found.to_pylist()) == repr(written.to_pylist())


def test_a_slice_of_a_batch_is_written_as_itself() -> None:
    rows = [{"text": text, "number": float(n)} for n, text in enumerate(('a"', "b\n", "\\c", "d", "d", "d"))]
    written = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    names = written.column("text")
    for start in range(len(rows)):
        some = lines_of(written.slice(start, 4), names.slice(start, 4))
        assert [(name, body["number"]) for name, body in some] == [
            (row["text"], row["number"]) for row in rows[start : start + 4]
        ]


def test_what_is_null_or_no_number_is_no_member() -> None:
    rows = [{"number": None}, {"number": math.nan}, {"number": -math.inf, "whole": 1}, {"number": 0.5}]
    assert [body for _, body in lines_of(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))] == [
        {"load": 3},
        {"load": 3, "not_finite": {"number": "nan"}, "scan_only": True},
        {"load": 3, "whole": 1, "not_finite": {"number": "-inf"}, "scan_only": True},
        {"load": 3, "number": 0.5},
    ]


def test_a_document_says_that_the_index_does_not_know_a_text() -> None:
    rows = [{"text": "x" * 4095}, {"text": "x" * 4096}, {"text": "\N{PILE OF POO}" * 4096}, {"text": None}]
    written = lines_of(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    assert [body.get("scan_only") for _, body in written] == [None, True, True, None]


def test_names_of_jobs_are_all_different() -> None:
    pairs = [
        ("a", "b:c"),
        ("a:b", "c"),
        (None, "1"),
        ("0", ":1"),
        ("1:", "1"),
        ("s", "x" * 999),
        ("s", "x" * 998),
    ]
    sources, ids = zip(*pairs, strict=True)
    names = identities(pa.array(sources, pa.string()), pa.array(ids, pa.string())).to_pylist()
    assert len(set(names)) == len(pairs)
    assert max(len(name.encode()) for name in names) <= 400


def test_marks_are_of_the_job_not_of_the_place_it_came_from() -> None:
    def mark(**values: object) -> int:
        found = stamped(batch([job(1, **values)]), 7).to_pylist()[0]
        assert found["row"] == 7
        return int(found["mark_low"])

    plain = mark()
    assert mark(origin_file="x.csv", origin_line=4) == plain
    others = [
        mark(user="u"),
        mark(project="u"),
        mark(user=""),
        mark(cores=1),
        mark(hs06_s=8.0),
        mark(cores=None),
    ]
    assert len({plain, *others}) == 7
    assert all(0 <= some < 2**31 for some in (plain, *others))


def test_a_job_without_what_it_needs_is_refused() -> None:
    with raised(StoreError):
        stamped(batch([job(1), job(2, queue=None)]), 0)


def test_many_rows_are_all_read_once(server: Server, index_prefix: str) -> None:
    store = ElasticStore(connect(Access(server.url)), f"{index_prefix}many", tables=TABLES)
    count = 3 * PAGE + 5000
    rows = pa.record_batch({"n_jobs": pa.array(range(count))})
    columns = [
        rows.column(0) if item.name == "n_jobs" else pa.nulls(count, item.type) for item in DAYS_SCHEMA
    ]
    store.publish([store.replace(DAYS, "d", [pa.RecordBatch.from_arrays(columns, schema=DAYS_SCHEMA)])])
    found = list(store.read(DAYS, columns=["n_jobs"]))
    assert max(some.num_rows for some in found) <= PAGE
    assert sorted(number for some in found for number in some.column("n_jobs").to_pylist()) == list(
        range(count)
    )
    begun = store.read(DAYS)
    next(begun)
    store.close()
    with raised(StoreError):
        next(begun)


def test_after_a_refused_item_no_request_begins(server: Server, index_prefix: str) -> None:
    cluster = connect(Access(server.url))
    index = f"{index_prefix}strict"
    cluster.call("PUT", f"/{index}", {"mappings": {"dynamic": "strict", "properties": {}}})
    begun = []

    def requests() -> Iterator[tuple[list[bytes], int]]:
        for number in range(100):
            begun.append(number)
            line = json.dumps({"create": {"_index": index, "_id": str(number)}}) + '\n{"x": 1}\n'
            yield [line.encode()], number

    with raised(RefusedError):
        list(sent(cluster, requests()))
    assert len(begun) <= 4
    cluster.close()
