"""The questions of coordinators on ten million stored jobs, and on a million documents of a cluster.

    python -m benchmarks.questions --out benchmarks/results/questions.md

A made-up grid is stored in a temporary file, with the results of two windows. Each question is put through
esjobs with a session open and as SQL on the same file, in turns, each side a process of its own, and once as
a command. Then the same with a server that is started for it, beside aggregations of the official client.
Each part can be measured alone (``--part``); the other's numbers stay.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import esjobs
from benchmarks.child import run
from benchmarks.machine import describe, load, publish
from benchmarks.questions_asked import MONTH, MONTH_BEFORE, QUESTIONS
from benchmarks.questions_sides import MEMORY, PREFIX, Side, write_names
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.records.demo import Grid
from esjobs.settings import ClusterSettings

LAST, DAYS, QUEUES = date(2025, 6, 29), 70, 100
SITES = 20
LONGEST_S, MOST = 1.0, 1.1


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--part", choices=["duckdb", "cluster", "both"], default="both")
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--product", default="elasticsearch8")
    parser.add_argument("--store", type=Path, help="a folder in which the file is kept, or is there already")
    parser.add_argument("--make", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/questions.md"))
    args = parser.parse_args()
    if args.make:
        make(args.make[0], int(args.make[1]), *args.make[2:])
        return
    data = args.out.with_suffix(".json")
    known: dict[str, Any] = json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}
    if args.part in ("duckdb", "both"):
        known["duckdb"] = _of_duckdb(args.jobs, args.repeat, args.store)
    if args.part in ("cluster", "both"):
        known["cluster"] = _of_cluster(args.product, args.documents, args.repeat)
    publish(args.out, page(known), known)


def settings(store: str) -> Settings:
    """Of both stores."""
    return Settings(store=store, memory=MEMORY, cluster=ClusterSettings(prefix=PREFIX))


def jobs_of(grid: Grid) -> Iterator[pa.RecordBatch]:
    """The jobs of all days, in order of time."""
    for back in range(DAYS - 1, -1, -1):
        yield from grid.jobs(LAST - timedelta(days=back))


def make(store: str, jobs: int, folder: str = "") -> None:
    """The jobs, and with a folder, that of an embedded store too, the results of two windows."""
    grid = Grid(jobs_per_day=jobs // DAYS, n_queues=QUEUES)
    with esjobs.open(settings=settings(store), create=True) as session:
        session.store.put_jobs(jobs_of(grid), "made")
        if store.startswith("duckdb:"):
            folder = str(Path(store.removeprefix("duckdb:")).parent)
        if folder:
            file = Path(folder) / "corepower.csv"
            declared = [
                f"{each.level},{each.name},{each.corepower},{each.site or ''}" for each in grid.declarations()
            ]
            header = "level,name,corepower,site"
            file.write_text("\n".join([header, *declared]) + "\n", encoding="utf-8")
            session.declared.import_values(file, benchmark="HS06")
            for window in (MONTH_BEFORE, MONTH):
                session.run("/".join(window))
            write_names(session, Path(folder))


def names_of(session: Session) -> list[dict[str, str]]:
    """The WLCG sites of most jobs with more than two CPU models, each with its queues."""
    rows = session.query(("site", "queue", "cpu_model"), "jobs").rows.to_pylist()
    models: dict[str, set[str]] = {}
    queues: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["site"] and row["cpu_model"]:
            models.setdefault(row["site"], set()).add(row["cpu_model"])
        queues.setdefault(row["site"], {})[row["queue"]] = None
    sites = [name for name, known in models.items() if len(known) > 2][:SITES]
    return [
        {"site": name, "queue": next(iter(queues[name])), "queues": ",".join(queues[name])} for name in sites
    ]


def _of_duckdb(jobs: int, repeat: int, kept: Path | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="esjobs-questions-") as name:
        folder = kept or Path(name)
        file = folder / "jobs.duckdb"
        store = f"duckdb:{file}"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            run([sys.executable, "-m", "benchmarks.questions", "--make", store, str(jobs)])
        before = load()
        with esjobs.open(settings=settings(store), read_only=True) as session:
            names = names_of(session)
        rows = []
        with ExitStack() as stack:
            sides = {
                name: stack.enter_context(Side(kind, store, names))
                for name, kind in (("ours", "esjobs"), ("theirs", "sql"), ("whole", "whole"))
            }
            for number, asked in enumerate(QUESTIONS):
                taking = {name: side for name, side in sides.items() if name != "whole" or asked.whole}
                rows.append({"title": asked.title, **_in_turns(taking, number, repeat, len(names))})
        for asked, row in zip(QUESTIONS, rows, strict=True):
            command = [text.format(**names[0]) for text in asked.command]
            done = run([sys.executable, "-m", "esjobs", "--quiet", "--store", store, *command])
            row["command_s"], row["others"] = done.wall_s, done.others
            row["command_b"] = done.peak_b
        size = file.stat().st_size
    return {
        "jobs": jobs // DAYS * DAYS,
        "store_b": size,
        "repeat": repeat,
        "machine": describe(),
        "load": {"before": before, "after": load()},
        "rows": rows,
    }


def _in_turns(sides: Mapping[str, Side], number: int, repeat: int, places: int) -> dict[str, Any]:
    """A question to all sides, once for warming, then so often in turns, each about another site."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for turn in range(repeat + 1):
        answers = {}
        for name in list(sides)[:: 1 if turn % 2 else -1]:
            answers[name] = sides[name].ask(number, turn % places)
        for name, said in answers.items():
            _require_alike(QUESTIONS[number].title, answers["ours"]["numbers"], said["numbers"])
            if turn:
                found[name].append(said)
    return {
        f"{name}_{what}": [each[what] for each in found[name]]
        for name in sides
        for what in ("wall_s", "cpu_s")
    }


def _require_alike(title: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> None:
    for name in theirs:
        if ours and not math.isclose(ours[name], theirs[name], rel_tol=1e-6):
            raise RuntimeError(
                f"{title}: {name} is {ours[name]} by esjobs and {theirs[name]} by another side"
            )


def _of_cluster(product: str, documents: int, repeat: int) -> dict[str, Any]:
    from tests.servers.memory import in_memory
    from tests.servers.products import PRODUCTS
    from tests.servers.server import Server

    chosen = PRODUCTS[product]
    with Server(chosen, heap_mb=1024, java_options=(), parent=in_memory()) as server:
        run([sys.executable, "-m", "benchmarks.questions", "--make", server.url, str(documents)])
        server.json("POST", f"{PREFIX}-jobs/_refresh")
        # else a side that asks the same a second time would be given what the server remembers
        server.json("PUT", f"{PREFIX}-*/_settings", {"index.requests.cache.enable": False})
        before = load()
        with esjobs.open(settings=settings(server.url), read_only=True) as session:
            names = names_of(session)
        rows = []
        with Side("esjobs", server.url, names) as ours, Side("client", server.url, names) as theirs:
            for number, asked in enumerate(QUESTIONS):
                if asked.body is not None:
                    print(asked.title, file=sys.stderr, flush=True)
                    sides = {"ours": ours, "theirs": theirs}
                    rows.append({"title": asked.title, **_in_turns(sides, number, repeat, len(names))})
    return {
        "documents": documents // DAYS * DAYS,
        "server": f"{chosen.title} {chosen.version}",
        "repeat": repeat,
        "machine": describe("elasticsearch"),
        "load": {"before": before, "after": load()},
        "rows": rows,
    }


def _median(row: Mapping[str, Any], side: str) -> float:
    seconds: list[float] = row[f"{side}_wall_s"]
    return statistics.median(seconds)


def _ratio(row: Mapping[str, Any], side: str, what: str = "wall_s") -> float:
    """Of seconds of esjobs to those of a side: the median of the ratios of each turn."""
    turns: zip[tuple[float, float]] = zip(row[f"ours_{what}"], row[f"{side}_{what}"], strict=True)
    return statistics.median(ours / theirs for ours, theirs in turns)


def page(known: Mapping[str, Any]) -> str:
    """The tables."""
    lines = [
        "# Questions of coordinators",
        "",
        "Made by `python -m benchmarks.questions`; see `benchmarks/questions.py`.",
    ]
    if "duckdb" in known:
        lines += _duckdb_lines(known["duckdb"])
    if "cluster" in known:
        lines += _cluster_lines(known["cluster"])
    return "\n".join(lines) + "\n"


def _on(part: Mapping[str, Any]) -> str:
    machine, loads = part["machine"], [part["load"][when][0] for when in ("before", "after")]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, DuckDB {machine['duckdb']}, "
        f"Python {machine['python']}; load before {loads[0]:.1f}, after {loads[1]:.1f}. "
        f"Medians of {part['repeat']} turns after one that does not count; a ratio is the median of those of "
        "the turns."
    )


def _duckdb_lines(part: Mapping[str, Any]) -> list[str]:
    rows = part["rows"]
    slow = sum(_median(row, "ours") > LONGEST_S for row in rows)
    numbers_only = sum(_ratio(row, "theirs") > MOST for row in rows)
    of_whole = sum(_ratio(row, _whole(row)) > MOST for row in rows)
    lines = [
        "",
        f"## {part['jobs']:,} jobs in DuckDB",
        "",
        f'{QUEUES} queues, {DAYS} days, a file of {part["store_b"] / 1e9:.1f} GB, `memory = "{MEMORY}"`. '
        + _on(part),
        "",
        f"{slow} of {len(rows)} questions take more than {LONGEST_S:.0f} s; {numbers_only} more than {MOST} "
        f"times SQL that gives the numbers alone, {of_whole} more than {MOST} times SQL that gives all that "
        "the answer says (how many jobs it leaves out, groups where it is 0). Every turn asks about another "
        "site. "
        "The command is the process, with Python's start and all that it prints.",
        "",
        "| question | esjobs, s | SQL, s | ratio | of processor s | SQL of the whole answer, s | ratio "
        "| command, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        numbers = [f"{_median(row, 'ours'):.3f}", f"{_median(row, 'theirs'):.3f}"]
        numbers += [f"{_ratio(row, 'theirs'):.2f}", f"{_ratio(row, 'theirs', 'cpu_s'):.2f}"]
        whole = _whole(row)
        numbers += (
            ["the same", ""]
            if whole == "theirs"
            else [f"{_median(row, whole):.3f}", f"{_ratio(row, whole):.2f}"]
        )
        lines.append(f"| {row['title']} | {' | '.join(numbers)} | {row['command_s']:.2f} |")
    return lines


def _whole(row: Mapping[str, Any]) -> str:
    """The side that gives all that the answer says."""
    return "whole" if "whole_wall_s" in row else "theirs"


def _cluster_lines(part: Mapping[str, Any]) -> list[str]:
    lines = [
        "",
        f"## {part['documents']:,} documents in {part['server']}",
        "",
        "One node with 1024 MB of heap, its cache of answers off; beside one search of the official client, "
        "whose answer is not taken further. " + _on(part),
        "",
        "| question | esjobs, s | client, s | ratio |",
        "|---|---|---|---|",
    ]
    for row in part["rows"]:
        ours, theirs = (_median(row, side) for side in ("ours", "theirs"))
        lines.append(f"| {row['title']} | {ours:.3f} | {theirs:.3f} | {_ratio(row, 'theirs'):.2f} |")
    return lines


if __name__ == "__main__":
    main()
