"""The 25 questions of coordinators as calls with a session open: on ten million jobs, and on a cluster.

    python -m benchmarks.asked --store /tmp/questions --out benchmarks/results/asked.md
    python -m benchmarks.asked --cluster elasticsearch8 --out benchmarks/results/asked.md

The store is that of :mod:`benchmarks.questions`; what the questions need beside jobs is added once:
countries, a pledge, factors, accounting, issues, a decomposition. Questions, and the SQL that gives their
numbers, are those of ``tests/test_questions.py``, about a site of this store. On a cluster the
records of jobs that it sends are counted. Processor seconds stand beside wall time: other work on the
machine moves them less.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import esjobs
from benchmarks.child import run
from benchmarks.cluster_meter import Meter
from benchmarks.machine import describe, load, publish
from benchmarks.questions import settings
from benchmarks.questions_asked import MONTH
from benchmarks.questions_sides import PREFIX
from esjobs.api.session import Session
from esjobs.core.errors import NoResultError
from esjobs.store.elastic.transport.cluster import Request
from tests import test_questions as tests
from tests.servers.memory import in_memory
from tests.servers.processes import server_pids
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

LONGEST_S, LONGEST_ON_CLUSTER_S = 1.0, 3.0
_NOTHING = "-"
_TIMES = ("wall_s", "cpu_s")


def main() -> None:
    """Measure one part, and write both tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--store", type=Path, help="a folder in which the file is kept")
    parser.add_argument("--cluster", choices=sorted(PRODUCTS), help="instead: a server that is started")
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/asked.md"))
    args = parser.parse_args()
    data = args.out.with_suffix(".json")
    measured: dict[str, Any] = json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}
    if args.cluster:
        measured["cluster"] = _of_cluster(args.cluster, args.documents, args.repeat)
    elif args.store is None:
        parser.error("name a folder by --store, or a server by --cluster")
    else:
        measured["duckdb"] = _of_file(args.store, args.jobs, args.repeat)
    publish(args.out, page(measured), measured)


def _of_file(folder: Path, jobs: int, repeat: int) -> dict[str, Any]:
    file = folder / "jobs.duckdb"
    store = f"duckdb:{file}"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "benchmarks.questions", "--make", store, str(jobs)])
    done = (folder / "prices.csv").exists()
    prepare(store, folder)
    for step in () if done else ("decompose", "detect"):
        run([sys.executable, "-m", "esjobs", "--quiet", "--store", store, step])
    before = load()
    return {"rows": list(_asked(store, repeat)), **_about(store, before)}


def _of_cluster(product: str, documents: int, repeat: int) -> dict[str, Any]:
    chosen = PRODUCTS[product]
    with (
        tempfile.TemporaryDirectory(prefix="esjobs-asked-") as folder,
        Server(chosen, heap_mb=1024, java_options=(), parent=in_memory()) as server,
    ):
        run([sys.executable, "-m", "benchmarks.questions", "--make", server.url, str(documents), folder])
        prepare(server.url, Path(folder))
        server.json("PUT", f"{PREFIX}-*/_settings", {"index.requests.cache.enable": False})
        before, meters = load(), [Meter(process) for process in server_pids(server)]

        def both_sides() -> float:
            return time.process_time() + sum(meter.now()["server_s"] for meter in meters)

        rows = list(_asked(server.url, repeat, both_sides))
        return {"rows": rows, "server": f"{chosen.title} {chosen.version}", **_about(server.url, before)}


def _about(store: str, before: list[float]) -> dict[str, Any]:
    with esjobs.open(settings=settings(store), read_only=True) as session:
        jobs = session.store.span().jobs
    return {"jobs": jobs, "machine": describe("elasticsearch"), "load": {"before": before, "after": load()}}


def _asked(
    store: str, repeat: int, cpu_s: Callable[[], float] = time.process_time
) -> Iterator[dict[str, Any]]:
    with esjobs.open(settings=settings(store), read_only=True) as session:
        records = Counter[str]()
        if not store.startswith("duckdb:"):
            _watch(session, records)
        for question in tests.QUESTIONS:
            print(question.name, file=sys.stderr, flush=True)
            records.clear()
            try:
                ours = _seconds(partial(question.ask, session), repeat, cpu_s)
            except NoResultError:
                ours = {}  # needs a step that was not run
            row = {"question": question.name, "esjobs": ours}
            if not store.startswith("duckdb:"):
                yield row | {"records": records["jobs"] // (repeat + 1)}
                continue
            sql = question.sql.format_map(tests.NAMES)
            theirs = _seconds(partial(tests.by_hand, session, sql), repeat, cpu_s) if sql else None
            yield row | {"sql": theirs}


def _watch(session: Session, records: Counter[str]) -> None:
    """Count the job records that a session is sent."""
    store: Any = session.store
    send = store._cluster._send

    def counted(request: Request) -> Any:
        answer = send(request)
        if "_search" in request.path:
            found = json.loads(answer).get("hits", {}).get("hits", [])
            records["jobs"] += sum(f"{PREFIX}-jobs" in hit["_index"] for hit in found)
        return answer

    store._cluster._send = counted


def prepare(store: str, folder: Path) -> None:
    """Name a site of the store in the questions, and add what they need beside jobs, once."""
    with esjobs.open(settings=settings(store)) as session:
        by_size = session.query("queue", "jobs", sort="jobs", top=1000).rows.to_pylist()
        sites = {row["site"] for row in session.query("site", "jobs").rows.to_pylist()}
        # the SQL takes the queue for its site
        tests.SITE, tests.OTHER = [row["queue"] for row in by_size if row["queue"] in sites][:2]
        window = "/".join(MONTH)
        of_site = session.query("task_id", "jobs", where=f"queue={tests.SITE}", window=window, top=1)
        tests.TASK = of_site.rows.column("task_id")[0].as_py()
        tests.NAMES.update(SITE=tests.SITE, OTHER=tests.OTHER, TASK=tests.TASK)
        tests.add_tables(session, folder / "corepower.csv", folder)


def _seconds(ask: Callable[[], Any], repeat: int, cpu_s: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of each turn, and those of all processors, after one that does not count."""
    found: dict[str, list[float]] = {"wall_s": [], "cpu_s": []}
    for turn in range(repeat + 1):
        begin = time.perf_counter(), cpu_s()
        ask()
        if turn:
            found["wall_s"].append(time.perf_counter() - begin[0])
            found["cpu_s"].append(cpu_s() - begin[1])
    return found


def page(measured: dict[str, Any]) -> str:
    """The tables."""
    lines = ["# The 25 questions", "", "Made by `python -m benchmarks.asked`; see `benchmarks/asked.py`."]
    if "duckdb" in measured:
        part = measured["duckdb"]
        lines += [
            *("", f"## {part['jobs']:,} jobs in DuckDB", ""),
            f"100 queues, 70 days. {_on(part, LONGEST_S)} The SQL gives numbers, no errors, no notes.",
            "",
            "| question | esjobs, s | processor s | SQL, s | processor s | ratio of processor s |",
            "|---|---|---|---|---|---|",
        ]
        for row in part["rows"]:
            ours, theirs = (_least(row[side], "cpu_s") for side in ("esjobs", "sql"))
            ratio = _NOTHING if ours is None or not theirs else f"{ours / theirs:.1f}"
            numbers = (_written(_least(row[side], of)) for side in ("esjobs", "sql") for of in _TIMES)
            lines.append(f"| {row['question']} | {' | '.join(numbers)} | {ratio} |")
    if "cluster" in measured:
        part = measured["cluster"]
        lines += [
            *("", f"## {part['jobs']:,} documents in {part['server']}", ""),
            f"One node with 1024 MB of heap, its cache of answers off. {_on(part, LONGEST_ON_CLUSTER_S)} "
            "Records: of jobs, sent in a turn.",
            *("", "| question | esjobs, s | processor s of both sides | records |", "|---|---|---|---|"),
        ]
        for row in part["rows"]:
            numbers = (_written(_least(row["esjobs"], of)) for of in _TIMES)
            lines.append(f"| {row['question']} | {' | '.join(numbers)} | {row['records']} |")
    return "\n".join(lines) + "\n"


def _on(part: dict[str, Any], longest: float) -> str:
    machine, rows = part["machine"], part["rows"]
    loads = [part["load"][when][0] for when in ("before", "after")]
    slow = sum((_least(row["esjobs"], "cpu_s") or 0.0) > longest for row in rows)
    return (
        f"{machine['cpu']}, {machine['cores']} cores, DuckDB {machine['duckdb']}, "
        f"Python {machine['python']}; load before {loads[0]:.1f}, after {loads[1]:.1f}. "
        "The fastest turn after one that does not count. "
        f"{slow} of {len(rows)} answers take more than {longest:.0f} s of processors, the most that they "
        "take on an idle machine."
    )


def _least(side: dict[str, list[float]] | None, of: str) -> float | None:
    return min(side[of]) if side else None


def _written(seconds: float | None) -> str:
    return _NOTHING if seconds is None else f"{seconds:.2f}"


if __name__ == "__main__":
    main()
