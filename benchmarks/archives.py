"""An archive whose months are mapped differently beside the same documents under one mapping.

    python -m benchmarks.archives --out benchmarks/results/archives.md

The server is started for the benchmark. Questions take turns between the two archives; the numbers that
they give are compared, too.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.elasticsearch_inputs import batches
from benchmarks.machine import describe, load
from benchmarks.store_table import table
from esjobs import Settings
from esjobs.api.factory import open_store
from esjobs.core.query import Query
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.settings import ClusterSettings
from esjobs.store.base import JobStore
from esjobs.store.elastic.asking.aggregation import aggregate
from esjobs.store.elastic.fields.field_map import load_field_map
from esjobs.store.elastic.jobs.foreign_jobs import ForeignJobs
from esjobs.store.elastic.results.lines import documents
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.servers.node import QUICK_START
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

DAYS = (date(2018, 8, 30), date(2018, 9, 12), date(2018, 10, 3))
"""The jobs of a month are those of a day; a tenth of those of the second lie in the index of the first."""

_KEYWORD, _LONG, _DOUBLE = ({"type": kind} for kind in ("keyword", "long", "double"))
ONE: Mapping[str, Any] = {
    **dict.fromkeys(
        ("source", "job_id", "task_id", "queue", "cpu_raw", "processing_type", "state"), _KEYWORD
    ),
    **dict.fromkeys(("cores", "events"), _LONG),
    **dict.fromkeys(("cpu_s", "wall_s", "hs06_s"), _DOUBLE),
    "end_time": {"type": "date"},
}
_BESIDE = {"type": "text", "fields": {"keyword": _KEYWORD}}
MIXED: tuple[Mapping[str, Any], ...] = (
    {**ONE, "cpu_s": {"type": "float"}, "wall_s": {"type": "long"}},
    {**ONE, "queue": _BESIDE, "cpu_raw": _BESIDE, "cpu_s": {"type": "long"}},
    {name: kind for name, kind in ONE.items() if name not in ("hs06_s", "state")},
)
"""Numbers as they were guessed, texts with keywords beside them, fields that are missing: a month each."""

_Rows = list[tuple[str, bytes]]


def _documents(jobs: int, seed: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The number of a month, and some of its documents; seconds are whole, so that each type holds them."""
    for month, day in enumerate(DAYS):
        for batch in batches(jobs, seed, day):
            kept = batch.select([name for name in ONE if name != "source"])
            whole = {name: pc.round(kept.column(name)) for name in ("cpu_s", "wall_s", "hs06_s")}
            columns = [whole.get(name, kept.column(name)) for name in kept.schema.names]
            if month == len(DAYS) - 1:
                columns = [
                    pa.nulls(kept.num_rows, column.type) if name in ("hs06_s", "state") else column
                    for name, column in zip(kept.schema.names, columns, strict=True)
                ]
            found = pa.RecordBatch.from_arrays(columns, kept.schema.names)
            yield month, documents(found, {"source": "panda"})


def fill(server: Server, jobs: int, seed: int) -> None:
    """Both archives, with the same documents."""
    for name, mappings in (("one", (ONE,) * len(DAYS)), ("mixed", MIXED)):
        for month, mapping in enumerate(mappings):
            settings = {"number_of_shards": 2, "number_of_replicas": 0}
            body = {"settings": settings, "mappings": {"properties": mapping}}
            server.json("PUT", f"bench-{name}-{month}", body)
    for month, found in _documents(jobs, seed):
        for name in ("one", "mixed"):
            lines = []
            for number, document in enumerate(found):
                into = 0 if month == 1 and number % 10 == 0 else month
                lines += [{"index": {"_index": f"bench-{name}-{into}"}}, document]
            for start in range(0, len(lines), 10_000):
                text = b"\n".join([*map(orjson.dumps, lines[start : start + 10_000]), b""])
                answer = server.json("POST", "_bulk", text.decode())
                if answer["errors"]:
                    raise RuntimeError(str(answer)[:500])
    server.json("POST", "bench-*/_forcemerge?max_num_segments=1")
    server.json("POST", "bench-*/_refresh")


def _store(server: Server, name: str) -> JobStore:
    cluster = ClusterSettings(prefix="own", jobs_index=f"bench-{name}-*", field_map="esjobs")
    return open_store(Settings(store=server.url, cluster=cluster))


def _query(first: date, last: date) -> Query:
    return Query(BUCKET_KEYS, BUCKET_METRICS, Window.of_days(first, last), drops=CleaningRules().drops())


QUESTIONS: Mapping[str, Callable[[JobStore], pa.Table]] = {
    "buckets of a day that lies in one index": lambda store: store.aggregate(_query(DAYS[2], DAYS[2])).table,
    "buckets of a day that lies in two": lambda store: store.aggregate(_query(DAYS[1], DAYS[1])).table,
    "buckets of the three months at once": lambda store: store.aggregate(_query(DAYS[0], DAYS[2])).table,
    "the marks of all days": lambda store: store.day_fingerprints(Window.of_days(DAYS[0], DAYS[2])),
    "number, first and last of the jobs": lambda store: pa.table({"jobs": [store.span().jobs]}),
}


def measure(server: Server, repeat: int) -> list[tuple[str, list[float], list[float]]]:
    """Seconds of each question under one mapping and under several; raises when the answers differ."""
    stores = {name: _store(server, name) for name in ("one", "mixed")}
    found = []
    for title, ask in QUESTIONS.items():
        seconds: dict[str, list[float]] = {"one": [], "mixed": []}
        answers: dict[str, pa.Table] = {}
        for turn in range(repeat + 1):
            for name in ("one", "mixed") if turn % 2 else ("mixed", "one"):
                began = time.perf_counter()
                answers[name] = ask(stores[name])
                if turn:
                    seconds[name].append(time.perf_counter() - began)
        _require_same(answers["one"], answers["mixed"])
        found.append((title, seconds["one"], seconds["mixed"]))
    for store in stores.values():
        store.close()
    return found


def _require_same(one: pa.Table, other: pa.Table) -> None:
    if one.num_rows != other.num_rows:
        raise RuntimeError(f"{one.num_rows} rows and {other.num_rows} rows")
    for name in one.column_names:
        if pa.types.is_floating(one.schema.field(name).type) or name == "n_jobs":
            sums = [float(np.sum(each.column(name).to_numpy())) for each in (one, other)]
            if abs(sums[0] / sums[1] - 1) > 1e-12:
                raise RuntimeError(f"{name}: {sums}")


def by_reading(server: Server) -> tuple[float, int]:
    """Seconds to read the documents of the last day instead, and how many these are."""
    cluster = connect(Access(server.url))
    jobs = ForeignJobs(cluster, "bench-mixed-*", load_field_map("esjobs"))
    began = time.perf_counter()
    found = aggregate(cluster, jobs, _query(DAYS[2], DAYS[2]), by_reading=True)
    seconds = time.perf_counter() - began
    cluster.close()
    return seconds, int(
        pc.sum(found.books.filter(pc.not_equal(found.books["kind"], "note"))["n_jobs"]).as_py()
    )


def render(
    command: str, server: str, jobs: int, before: list[float], rows: list[Any], read: tuple[float, int]
) -> str:
    """The page in Markdown."""
    machine = describe("elasticsearch", "opensearch-py")
    setting = (
        f"`{command}`; {server} on the same machine; python {machine['python']}; {machine['cpu']}, "
        f"{machine['cores']} cores. Three monthly indices of two shards with {jobs:,} jobs each, asked in "
        f"turns, after one round that is not counted. Load average before {before[0]:.1f}, after "
        f"{load()[0]:.1f}: where it is high, seconds say little, and ratios of one run how the two compare."
    )
    what = (
        "One mapping: `cpu_s`, `wall_s` double, texts keyword. Several: `cpu_s` float, long, double; "
        "`wall_s` long in the first month; `site` and `cpu_raw` text with `.keyword` in the second; no "
        "`state` and no `hs06_s` in the third. Both archives hold the same documents; "
        "their answers are the same to 1e-12."
    )
    lines = [
        (
            title,
            f"{median(one):.2f}",
            f"{median(mixed):.2f}",
            f"{median(m / o for o, m in zip(one, mixed, strict=True)):.2f}",
            f"{min(mixed) / min(one):.2f}",
        )
        for title, one, mixed in rows
    ]
    header = ("question", "one mapping, s", "several, s", "median of ratios", "ratio of fastest")
    reading = f"To read the {read[1]:,} documents of a day instead takes {read[0]:.1f} s."
    parts = ["# Archives whose indices differ", setting, what, table(header, lines), reading]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Start a server, fill both archives, ask, write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--product", choices=PRODUCTS, default="elasticsearch8")
    parser.add_argument("--jobs", type=int, default=100_000, help="of each month")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--smoke", action="store_true", help="a server that starts quickly and is slow afterwards"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/archives.md"))
    args = parser.parse_args()
    product = PRODUCTS[args.product]
    before = load()
    with Server(product, heap_mb=1024, java_options=QUICK_START if args.smoke else ()) as server:
        fill(server, args.jobs, args.seed)
        rows = measure(server, args.repeat)
        read = by_reading(server)
    command = " ".join(["python -m benchmarks.archives", *sys.argv[1:]])
    text = render(command, f"{product.title} {product.version}", args.jobs, before, rows, read)
    args.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
