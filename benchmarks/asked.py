"""The 25 questions of coordinators, each as a call with a session open, on ten million stored jobs.

    python -m benchmarks.asked --store /tmp/questions --out benchmarks/results/asked.md

The store is that of :mod:`benchmarks.questions`; what the questions need beside jobs is added once:
countries, a pledge, factors, accounting, issues, a decomposition. Questions, and the SQL that gives their
numbers, are those of ``tests/test_questions.py``, about a site of this store.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import esjobs
from benchmarks.child import run
from benchmarks.machine import describe, load, publish
from benchmarks.questions import settings
from tests import test_questions as tests

LONGEST_S, MOST = 1.0, 1.2
_WITHOUT_SQL = "-"


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--store", type=Path, required=True, help="a folder in which the file is kept")
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/asked.md"))
    args = parser.parse_args()
    file = args.store / "jobs.duckdb"
    store = f"duckdb:{file}"
    if not file.exists():
        args.store.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "benchmarks.questions", "--make", store, str(args.jobs)])
    prepare(store, args.store)
    before = load()
    rows = []
    with esjobs.open(settings=settings(store), read_only=True) as session:
        jobs = session.store.span().jobs
        for question in tests.QUESTIONS:
            print(question.name, file=sys.stderr, flush=True)
            ours = _seconds(partial(question.ask, session), args.repeat)
            sql = question.sql.format_map(tests.NAMES)
            theirs = _seconds(partial(tests.by_hand, session, sql), args.repeat) if sql else None
            rows.append({"question": question.name, "esjobs_s": ours, "sql_s": theirs})
    about = {"jobs": jobs, "machine": describe(), "load": {"before": before, "after": load()}}
    publish(args.out, page({**about, "rows": rows}), {**about, "rows": rows})


def prepare(store: str, folder: Path) -> None:
    """Name a site of the store in the questions, and add what they need beside jobs, once."""
    with esjobs.open(settings=settings(store)) as session:
        by_size = session.query("queue", "jobs", sort="jobs", top=1000).rows.to_pylist()
        sites = {row["site"] for row in session.query("site", "jobs").rows.to_pylist()}
        # the SQL takes the queue for its site
        tests.SITE, tests.OTHER = [row["queue"] for row in by_size if row["queue"] in sites][:2]
        of_site = session.query("task_id", "jobs", where=f"queue={tests.SITE}", window=tests.JUNE, top=1)
        tests.TASK = of_site.rows.column("task_id")[0].as_py()
        tests.NAMES.update(SITE=tests.SITE, OTHER=tests.OTHER, TASK=tests.TASK)
        done = (folder / "prices.csv").exists()
        tests.add_tables(session, folder / "corepower.csv", folder)
    for step in () if done else ("decompose", "detect"):
        run([sys.executable, "-m", "esjobs", "--quiet", "--store", store, step])


def _seconds(ask: Callable[[], Any], repeat: int) -> list[float]:
    """Seconds of each turn, after one that does not count."""
    found = []
    for turn in range(repeat + 1):
        begin = time.perf_counter()
        ask()
        if turn:
            found.append(time.perf_counter() - begin)
    return found


def page(measured: dict[str, Any]) -> str:
    """The table."""
    machine, rows = measured["machine"], measured["rows"]
    loads = [measured["load"][when][0] for when in ("before", "after")]
    slow = sum(statistics.median(row["esjobs_s"]) > LONGEST_S for row in rows)
    lines = [
        "# The 25 questions",
        "",
        "Made by `python -m benchmarks.asked`; see `benchmarks/asked.py`.",
        "",
        f"{measured['jobs']:,} jobs in DuckDB, 100 queues, 70 days; {machine['cpu']}, {machine['cores']} "
        f"cores, DuckDB {machine['duckdb']}, Python {machine['python']}; load before {loads[0]:.1f}, after "
        f"{loads[1]:.1f}. Medians after a turn that does not count, with a session open.",
        "",
        f"{slow} of {len(rows)} answers take more than {LONGEST_S:.0f} s. The SQL gives the numbers alone: "
        "no errors, no notes, no names of hidden groups.",
        "",
        "| question | esjobs, s | SQL, s | ratio |",
        "|---|---|---|---|",
    ]
    for row in rows:
        ours = statistics.median(row["esjobs_s"])
        if row["sql_s"] is None:
            lines.append(f"| {row['question']} | {ours:.2f} | {_WITHOUT_SQL} | {_WITHOUT_SQL} |")
            continue
        theirs = statistics.median(row["sql_s"])
        lines.append(f"| {row['question']} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
