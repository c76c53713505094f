"""Ingest and aggregation of the embedded store at full size, beside hand-written SQL on the same file.

    python -m benchmarks.store --jobs 10000000 --out benchmarks/results/store.md

Every measurement is a process of its own, so that its peak memory is its own; this one imports nothing large.
Repetitions of what is compared take turns, because a machine is rarely as quiet as one thinks.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.child import Run, run
from benchmarks.machine import describe, load, publish, wait_until_quiet
from benchmarks.store_table import render

WAYS = ("store", "sql", "step", "sql-table")
Measured = dict[str, Any]


def measure(folder: Path, jobs: int, panda_rows: int, repeat: int, seed: int, patience_s: float) -> Measured:
    """Everything, in order; ``folder`` needs about 700 bytes per job of room.

    ``patience_s``: how long each measurement may wait for other programs to become idle.
    """
    store = folder / "jobs.duckdb"
    before = load()
    _say(f"making {jobs:,} jobs up")
    made = _module(
        "benchmarks.store_inputs", folder, "--jobs", jobs, "--panda-rows", panda_rows, "--seed", seed
    )
    inputs = json.loads(made.stdout)
    ingests: dict[str, list[Measured]] = {"jobs": [], "panda": []}
    for _ in _rounds(repeat, "esjobs ingest jobs"):
        _remove(store)
        wait_until_quiet(patience_s)
        ingests["jobs"].append(_ingest(store, "jobs", folder / "jobs.parquet"))
    aggregations, equality = _aggregations(store, _window(inputs), folder, repeat, patience_s)
    full = store.stat().st_size
    copy = folder / "copy.duckdb"
    for _ in _rounds(repeat, "esjobs ingest panda"):
        _remove(copy)
        shutil.copyfile(store, copy)
        wait_until_quiet(patience_s)
        ingests["panda"].append(_ingest(copy, "panda", folder / "panda.csv"))
    _require_books(ingests, inputs)
    return {
        "machine": describe(),
        "load": {"before": before, "after": load()},
        "inputs": inputs
        | {
            "parquet_b": (folder / "jobs.parquet").stat().st_size,
            "csv_b": (folder / "panda.csv").stat().st_size,
        },
        "repeat": repeat,
        "store_b": full,
        "ingests": ingests,
        "aggregations": aggregations,
        "equality": equality,
    }


def _ingest(store: Path, form: str, file: Path) -> Measured:
    """The command as a user gives it: start of Python, opening, reading, storing, books, closing."""
    done = _module(
        "esjobs", "--store", f"duckdb:{store}", "--quiet", "ingest", form, file, "--format", "json"
    )
    (report,) = json.loads(done.stdout)
    return _of(done) | {
        "rows": report["rows_in"],
        "step_s": report["seconds"],
        "dropped": json.loads(report["dropped"]),
        "counts": json.loads(report["counts"]),
    }


def _aggregations(
    store: Path, window: str, folder: Path, repeat: int, patience_s: float
) -> tuple[dict[str, list[Measured]], dict[str, Measured]]:
    """The four ways in turns; the first round warms the disk's cache up, is compared and not counted."""
    module = "benchmarks.store_aggregation"
    timings: dict[str, list[Measured]] = {way: [] for way in WAYS}
    for way in WAYS:
        _module(module, way, store, "--window", window, "--keep", folder)
    equality = json.loads(_module(module, "compare", store, "--window", window, "--keep", folder).stdout)
    for number in _rounds(repeat, "aggregation, four ways"):
        for way in WAYS if number % 2 else reversed(WAYS):
            wait_until_quiet(patience_s)
            done = _module(module, way, store, "--window", window)
            timings[way].append(_of(done) | json.loads(done.stdout))
    return timings, equality


def _require_books(ingests: dict[str, list[Measured]], inputs: Measured) -> None:
    """A measurement of an ingest that loses rows is worth nothing."""
    dirty = dict(inputs["dirty"])
    updated = dirty.pop("updated", 0)
    for done in ingests["jobs"]:
        assert done["counts"] == {"stored": inputs["jobs"], "updated": 0}, done
    for done in ingests["panda"]:
        assert done["dropped"] == {reason: count for reason, count in dirty.items() if count}, done
        stored = inputs["panda_rows"] - updated - sum(dirty.values())
        assert done["counts"] == {"stored": stored, "updated": updated}, done


def _module(name: str, *arguments: object) -> Run:
    return run([sys.executable, "-m", name, *map(str, arguments)])


def _of(done: Run) -> Measured:
    return {"wall_s": done.wall_s, "cpu_s": done.cpu_s, "peak_b": done.peak_b, "others": done.others}


def _window(inputs: Measured) -> str:
    return f"{inputs['first_day']}/{date.fromisoformat(inputs['last_day']) + timedelta(days=1)}"


def _remove(store: Path) -> None:
    for path in (store, store.with_name(f"{store.name}.wal")):
        path.unlink(missing_ok=True)


def _rounds(repeat: int, what: str) -> Iterator[int]:
    for number in range(1, repeat + 1):
        _say(f"{what}: {number} of {repeat}")
        yield number


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--panda-rows", type=int, default=2_000_000, help="at most --jobs")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wait", type=float, default=0, help="longest wait in seconds for a quiet machine")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/store.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        panda_rows = min(args.panda_rows, args.jobs)
        measured = measure(Path(folder), args.jobs, panda_rows, args.repeat, args.seed, args.wait)
    publish(args.out, render(measured), measured)


if __name__ == "__main__":
    main()
