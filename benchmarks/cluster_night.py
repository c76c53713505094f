"""What a night costs on a cluster: every step, late records, and a bare client beside it.

    python -m benchmarks.cluster_night --jobs 25000 100000 --out benchmarks/results/cluster_night.md

A real Elasticsearch holds an own archive of three days in ATLAS names, and buckets of 87 days before, planted
without jobs. Measured are the night of the third day, the next one, before which late jobs came to earlier
days, and composite loops of the official client over a day. Processor time of the server is read from
``/proc``; requests are counted where they are sent.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.child import run
from benchmarks.cluster_meter import Meter
from benchmarks.machine import describe, load, publish
from esjobs import Settings
from esjobs import open as open_session
from esjobs.api.session import Session
from esjobs.capabilities import CAPABILITIES
from esjobs.core.query import Days, Query
from esjobs.core.rules import CleaningRules
from esjobs.core.window import Window
from esjobs.publish.publication import read_table
from esjobs.records.demo import Grid
from esjobs.records.jobs.aggregate import BUCKET_KEYS, BUCKET_METRICS
from esjobs.records.night import NightStep
from esjobs.schema.jobs import BUCKETS, DAYS
from scheduler.nights import Nights
from scheduler.steps import night_steps
from tests.scheduler.stage import Hands

PREFIX = "night"
FIRST = date(2025, 6, 1)
_OLDEST = date(2025, 2, 27)  # With a job of it windows of 90 days have data; the months between have none
_PLANTED = 87
_LATE_DAYS, _LATE_SHARE = 3, 0.001
_PAGE = 10_000
_COSTS = ("client_s", "server_s", "searches", "requests", "written_b", "rows")
_PLANNED = ("documents_read", "documents_written", "bytes_written", "processor_s")
_PRODUCTS = {
    "events_sq": ("events", "events"),
    "cpu_s_sq": ("cpu_s", "cpu_s"),
    "events_cpu_s": ("events", "cpu_s"),
}
_RATIOS = {"cpu_s": 1, "cpu_s_sq": 2}  # CPU time per event and its square, by the power of events
_NAN = {"client_s": math.nan, "server_s": math.nan}


def main() -> None:
    """Measure each size, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[25_000, 100_000])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cluster_night.md"))
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        part, url, pid, jobs = args.child
        print(json.dumps(_PARTS[part](Meter(int(pid)), url, int(jobs))))
        return
    before = load()
    # late jobs repeat whole nights: once is enough
    sizes = [measured(jobs, list(_PARTS)[: None if jobs == args.jobs[0] else -1]) for jobs in args.jobs]
    known = {"sizes": sizes, "machine": describe("elasticsearch"), "load": [before, load()]}
    publish(args.out, page(known, " ".join(sys.argv[1:])), known)


def measured(jobs: int, parts: Sequence[str]) -> dict[str, Any]:
    """Return the costs of parts for so many jobs a day, on a server of its own."""
    from tests.servers.memory import in_memory
    from tests.servers.products import PRODUCTS
    from tests.servers.server import Server

    with Server(PRODUCTS["elasticsearch8"], heap_mb=1536, java_options=(), parent=in_memory()) as server:
        (node,) = server.json("GET", "_nodes/process")["nodes"].values()
        found: dict[str, Any] = {"jobs": jobs, "server": node["version"]}
        for part in parts:
            child = [sys.executable, "-m", "benchmarks.cluster_night", "--child", part, server.url]
            done = run([*child, str(node["process"]["id"]), str(jobs)])
            found[part] = {**json.loads(done.stdout.splitlines()[-1]), "peak_b": done.peak_b}
            print(json.dumps({part: found[part]}), file=sys.stderr, flush=True)
    return found


def opened(url: str, hands: Hands) -> Session:
    """Return a session of the installation."""
    nights = {"windows": (7, 30, 90), "headline": 7, "late_days": _LATE_DAYS}
    given = {"store": url, "nights": nights, "cluster": {"prefix": PREFIX}}
    return open_session(settings=Settings.model_validate(given), clock=hands.clock)


def arrive(session: Session, jobs: int, *days: date, seed: int = 1) -> None:
    """Store jobs of some days; those of another seed are further ones."""
    grid = Grid(seed=seed, jobs_per_day=jobs, n_queues=130, tasks_per_day=tasks(jobs))
    for day in days:
        session.store.put_jobs(grid.jobs(day), f"{day} {seed}")


def tasks(jobs: int) -> int:
    """Return the tasks that begin on a day: those of a larger grid have more jobs.

    Buckets then grow as jobs to the power 0.71: 20,450 of 100,000 jobs, 139,700 of 1.5 million, which are
    10.7 jobs a bucket and 4,150 a task. The four published PanDA tasks have 3,250 in the mean.
    """
    return max(round(75 * math.pow(jobs / 100_000, 0.58)), 4)


def live(meter: Meter, session: Session, hands: Hands, night: date) -> dict[str, Any]:
    """Plan and run what is due in the morning after a night; return both."""
    hands.morning_after(night)
    nights = Nights(session._context, steps=[_metered(meter, step) for step in night_steps(CAPABILITIES)])
    plan = nights.plan().to_pylist()
    meter.steps = {}
    meter.watch(session)
    rows = meter.settled(nights.tend)
    assert all(row["state"] == "done" for row in rows), rows
    began = min(row["began"] for row in rows)
    done = [step for step in session.tables.night_steps().rows.to_pylist() if step["finished"] >= began]
    return {
        "steps": meter.steps,
        "searches": dict(meter.indices.most_common(40)),
        "nights": [str(row["night"]) for row in rows],
        "planned": {name: sum(row[name] for row in plan) for name in _PLANNED},
        "done": {name: sum(step[name] or 0 for step in done) for name in _PLANNED},
    }


def _metered(meter: Meter, step: NightStep) -> NightStep:
    def timed(act: Callable[..., Any]) -> Callable[..., Any]:
        def measured_act(*given: Any) -> Any:
            with meter.step(step.name):
                return act(*given)

        return measured_act

    function, inputs, stands = map(timed, (step.function, step.inputs, step.stands))
    return replace(step, function=function, inputs=inputs, stands=stands)


def first(meter: Meter, url: str, jobs: int) -> dict[str, Any]:
    """Two days of jobs and their first night, which also warms the server up; then older buckets."""
    hands, second = Hands(), FIRST + timedelta(days=1)
    with opened(url, hands) as session:
        meter.settled(lambda: arrive(session, jobs, FIRST, second))
        loaded = meter.steps["all"]
        found = live(meter, session, hands, second)
        found["steps"]["load"] = loaded
        arrive(session, 1, _OLDEST)
        return {**found, "planted": plant(session)}


def plant(session: Session) -> int:
    """Give the days before the jobs buckets like theirs, of other tasks; return their number."""
    store, changes, n_rows = session.store, [], 0
    for back in range(1, _PLANTED + 1):
        day, like = FIRST - timedelta(days=back), FIRST + timedelta(days=back % 2)
        for table in (BUCKETS, DAYS):
            rows = read_table(store, table, [Days("day", like, like)])
            columns = {"day": pa.repeat(pa.scalar(day), rows.num_rows)}
            if table is BUCKETS:
                tasks = rows["task_id"].cast(pa.string())
                columns["task_id"] = pc.binary_join_element_wise(tasks, str(back // 6), "")
                n_rows += rows.num_rows
            for name, column in columns.items():
                rows = rows.set_column(rows.column_names.index(name), name, column)
            changes.append(store.replace(table, str(day), rows.to_batches()))
    store.publish(changes)
    return n_rows


def later(meter: Meter, url: str, jobs: int, day: int = 2, late_days: int = 0) -> dict[str, Any]:
    """A further day and its night; some jobs come late to the days before."""
    hands, night = Hands(), FIRST + timedelta(days=day)
    with opened(url, hands) as session:
        arrive(session, jobs, night)
        before = [night - timedelta(days=back) for back in range(1, late_days + 1)]
        arrive(session, max(round(jobs * _LATE_SHARE), 1), *before, seed=7)
        return live(meter, session, hands, night)


def bare(meter: Meter, url: str, jobs: int) -> dict[str, Any]:
    """The aggregations of a day by the official client alone, page after page, the server warm.

    Beside them the question of the step through the store, with its rules and books.
    """
    from elasticsearch import Elasticsearch
    from elasticsearch.helpers import bulk

    del jobs
    client = Elasticsearch(url, request_timeout=300)
    day = FIRST + timedelta(days=2)
    query = {"range": {"end_time": {"gte": str(day), "lt": str(day + timedelta(days=1))}}}

    def groups(*keys: str) -> Iterator[Mapping[str, Any]]:
        sources = [{key: {"terms": {"field": key, "missing_bucket": True}}} for key in keys]
        composite: dict[str, Any] = {"size": _PAGE, "sources": sources}
        while composite.get("after", True):
            inside = {"groups": {"composite": composite, "aggs": sums}}
            answer = client.search(index=f"{PREFIX}-jobs", size=0, query=query, aggs=inside)
            found = answer["aggregations"]["groups"]
            composite["after"] = found.get("after_key")
            meter.counts.update({"searches": 1, "requests": 1})
            yield from found["buckets"]

    sums: dict[str, Any] = {name: {"sum": {"field": name}} for name in ("events", "cpu_s", "wall_s")}
    # squares and products as the store has them made: extended_stats cost twice as much
    for name, (value, weight) in _PRODUCTS.items():
        sums[name] = {"weighted_avg": {"value": {"field": value}, "weight": {"field": weight}}}
    by_task = ("task_id", "cores", "queue", "cpu_raw", "processing_type")
    by_user = ("queue", "user", "project", "application", "processing_type", "cores")

    def same_numbers() -> None:
        # sums of CPU time per event: without a script the events of a job must be a key
        buckets: dict[tuple[Any, ...], list[float]] = {}
        for row in groups(*by_task, "events"):
            *key, events = row["key"].values()
            found = {name: row[name]["value"] or 0.0 for name in sums}
            found |= {name: found[name] * found[weight] for name, (_, weight) in _PRODUCTS.items()}
            ratios = [found[name] / events**power if events else 0.0 for name, power in _RATIOS.items()]
            values = (row["doc_count"], *found.values(), *ratios)
            total = buckets.setdefault(tuple(key), [0.0] * len(values))
            buckets[tuple(key)] = [a + b for a, b in zip(total, values, strict=True)]

    def written() -> None:
        rows = (
            {"day": str(day), **row["key"], **{name: row[name]["value"] for name in sums}}
            for row in groups(*by_task)
        )
        bulk(client, rows, index="bare-buckets")
        client.indices.refresh(index="bare-buckets")

    question = Query(BUCKET_KEYS, BUCKET_METRICS, Window.of_days(day, day), drops=CleaningRules().drops())
    with opened(url, Hands()) as session:
        meter.watch(session)
        acts: dict[str, Callable[[], Any]] = {
            "aggregate": lambda: list(groups(*by_task)),
            "aggregate, same numbers": same_numbers,
            "aggregate, through the store": lambda: session.store.aggregate(question),
            "aggregate and write": written,
            "score": lambda: list(groups(*by_user)),
        }
        for name, act in acts.items():
            act()  # compiled code of the server
            with meter.step(name):
                act()
    return {"steps": meter.steps}


_PARTS: dict[str, Callable[[Meter, str, int], Any]] = {
    "first": first,
    "night": later,
    "bare": bare,
    "late": partial(later, day=3, late_days=_LATE_DAYS),
}


def page(known: Mapping[str, Any], command: str) -> str:
    """Return the tables; larger sizes lie on the line through the first and the last."""
    sizes, machine, busy = known["sizes"], known["machine"], known["load"][0][0]
    versions = f"Elasticsearch {sizes[0]['server']}, client {machine['elasticsearch']}"
    lines = ["# A night on a cluster", "", f"`python -m benchmarks.cluster_night {command}`: {versions}."]
    lines += [f"{machine['cores']} cores shared with others (load {busy:.1f}): processor seconds count.", ""]
    few, many = sizes[0], sizes[-1]
    more = many["jobs"] - few["jobs"]
    larger = (10 * many["jobs"], 1_500_000) if more else ()
    heads = [f"{jobs:,}" for jobs in (*(size["jobs"] for size in sizes), *larger)]
    lines += [f"| jobs a day | {' | '.join(heads)} | limit |", "|---" * (len(heads) + 2) + "|"]
    for name, limit, of in _LIMITS:
        slope = (of(many) - of(few)) / max(more, 1)
        values = [of(size) for size in sizes]
        values += [
            of(many) + slope * (jobs - many["jobs"]) if "/" not in name else math.nan for jobs in larger
        ]
        cells = ["" if math.isnan(value) else f"{value:,.3g}" for value in values]
        lines.append(f"| {name} | {' | '.join(cells)} | {limit} |")
    return "\n".join([*lines, *(line for size in sizes for line in _steps(size)), _EARLIER])


_EARLIER = """
## Earlier

| night of 100,000 jobs | client, s | server, s | searches | MB written | memory, MB |
|---|---|---|---|---|---|
| buckets read row by row | 62.5 | 27.1 | 630 | 140.7 | 919 |
| buckets packed as columns | 62.0 | 22.1 | 394 | 125.5 | 912 |
| a document for each stability check and sum of a day | 50.3 | 17.7 | 365 | 106.1 | 825 |

A first night of two days with 1.5 million jobs each (490,000 buckets, windows of 7 days alone), before that:

| step | client, s | server, s | searches | MB written | rows | ms / job |
|---|---|---|---|---|---|---|
| aggregate | 9.4 | 80.6 | 383 | 251 | 489,899 | 0.030 |
| today | 36.1 | 27.0 | 345 | 160 | 248,492 | 0.021 |
| detect | 37.8 | 19.6 | 318 | 12 | 16,878 | 0.019 |
| score | 46.2 | 23.0 | 340 | 197 | 170,068 | 0.023 |
| fit | 44.1 | 22.4 | 141 | 23 | 28,152 | |
| decompose | 28.0 | 11.5 | 60 | 1 | 1,293 | |
| all | 207.6 | 194.8 | 1,695 | 647 | 956,024 | 0.134 |

Its client took 1.5 GB. The night of the third day, with 21 million older buckets, was ended after the fit of
30 days: aggregate 41 processor seconds, fits of 7 and 30 days 134 and 380 (3.9 GB). Its tasks were small:
buckets grew as jobs to the power 0.97 (6.1 jobs a bucket at 1.5 million; now 10.7).
"""


def _steps(size: Mapping[str, Any]) -> Iterator[str]:
    """Yield the costs of the steps of a size."""
    yield f"\n## {size['jobs']:,} jobs a day, {size['first']['planted']:,} older buckets"
    for part in [part for part in ("night", "late", "bare") if part in size]:
        yield f"\n| {part} | client, s | server, s | searches | requests | MB written | rows |"
        yield "|---|---|---|---|---|---|---|"
        for name, spent in size[part]["steps"].items():
            client, server, *counts, written, rows = (spent.get(each, 0) for each in _COSTS)
            cells = [f"{client:.1f}", f"{server:.1f}", *map(str, counts), f"{written / 1e6:.1f}", f"{rows:,}"]
            yield f"| {name} | {' | '.join(cells)} |"


def _seconds(size: Mapping[str, Any], part: str = "night", step: str = "all") -> float:
    spent = size.get(part, {"steps": {step: _NAN}})["steps"][step]
    return float(spent["client_s"] + spent["server_s"])


def _beside(size: Mapping[str, Any], act: str, other: str) -> float:
    return _seconds(size, "bare", act) / _seconds(size, "bare", other)


def _step_beside_writing(size: Mapping[str, Any]) -> float:
    return _seconds(size, step="aggregate") / _seconds(size, "bare", "aggregate and write")


def _planned(name: str) -> Callable[[Mapping[str, Any]], float]:
    def of(size: Mapping[str, Any]) -> float:
        return size["late"]["planned"][name] / size["late"]["done"][name] if "late" in size else math.nan

    return of


_LIMITS: Sequence[tuple[str, str, Callable[[Mapping[str, Any]], float]]] = (
    ("processor minutes of a night", "8", lambda size: _seconds(size) / 60),
    ("memory of the client, MB", "600", lambda size: size["night"]["peak_b"] / 1e6),
    ("written, MB", "100", lambda size: size["night"]["steps"]["all"]["written_b"] / 1e6),
    ("searches", "400", lambda size: size["night"]["steps"]["all"]["searches"]),
    ("loading, ms / job", "", lambda size: _seconds(size, "first", "load") / size["jobs"] * 500),
    ("night, ms / job", "0.25", lambda size: _seconds(size) / size["jobs"] * 1e3),
    ("night after late jobs / without", "1.3", lambda size: _seconds(size, "late") / _seconds(size)),
    (
        "aggregate, through the store / bare with the same numbers",
        "0.35",
        lambda size: _beside(size, "aggregate, through the store", "aggregate, same numbers"),
    ),
    ("aggregate, whole step / bare that writes", "", _step_beside_writing),
    *((f"planned / done, {name}", "0.7 to 1.3", _planned(name)) for name in _PLANNED),
)


if __name__ == "__main__":
    main()
