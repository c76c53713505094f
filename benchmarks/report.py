"""Time and size of a report: the whole command, of the demo and of PanDA tasks, beside another checkout.

    python -m benchmarks.report --panda *.csv.gz --beside ../older --out benchmarks/results/report.md

Every report is a process of its own, in turns. Each checkout makes its own stores from the same files.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.child import Run, run
from benchmarks.machine import describe

HERE = Path(__file__).parents[1]
_FILL = ("--set", "processing_type=simul", "--set", "end_time=2018-08-15T12:00:00Z")
_WINDOW = "2018-08-01/2018-09-01"


def esjobs(checkout: Path, *arguments: object) -> Run:
    """A command of a checkout."""
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    settings = [f"{name}={value}" for name, value in env.items()]
    command = [sys.executable, "-m", "esjobs", "--quiet", *map(str, arguments)]
    return run(["env", "-i", f"--chdir={checkout}", *settings, *command])


def stores_of(checkout: Path, folder: Path, panda: Sequence[Path]) -> dict[str, Path]:
    """Stores with a complete run, by what they hold."""
    esjobs(checkout, "demo", "--out", folder / "demo")
    stores = {"demo": folder / "demo" / "demo.duckdb"}
    if panda:
        stores[f"{len(panda)} PanDA tasks"] = place = folder / "panda.duckdb"
        esjobs(checkout, "--store", f"duckdb:{place}", "ingest", "panda", *panda, *_FILL)
        esjobs(checkout, "--store", f"duckdb:{place}", "run", "--window", _WINDOW)
    return stores


def measure(
    folder: Path, checkouts: Sequence[Path], panda: Sequence[Path], repeat: int
) -> list[dict[str, Any]]:
    """A row per checkout and store: medians over the repetitions, and the size of the page."""
    homes = [folder / str(number) for number in range(len(checkouts))]
    for home in homes:
        home.mkdir()
    stores = [stores_of(checkout, home, panda) for checkout, home in zip(checkouts, homes, strict=True)]
    rows = []
    for what in stores[0]:
        done: list[list[Run]] = [[] for _ in checkouts]
        for _ in range(repeat):
            for number, checkout in enumerate(checkouts):
                store, page = stores[number][what], homes[number] / "report.html"
                done[number].append(esjobs(checkout, "--store", f"duckdb:{store}", "report", "--out", page))
        rows += [
            {
                "report": what,
                "checkout": "this one" if checkout == HERE else "the other",
                "wall_s": statistics.median(each.wall_s for each in done[number]),
                "cpu_s": statistics.median(each.cpu_s for each in done[number]),
                "peak_b": max(each.peak_b for each in done[number]),
                "others": statistics.median(each.others for each in done[number]),
                "page_b": (homes[number] / "report.html").stat().st_size,
            }
            for number, checkout in enumerate(checkouts)
        ]
    return rows


def render(measured: dict[str, Any]) -> str:
    """The numbers as a page."""
    machine = measured["machine"]
    lines = [
        "# Report",
        "",
        f"The whole command `esjobs report`, medians of {measured['repeat']}. {machine['cores']} cores of "
        f"{machine['cpu']}, Python {machine['python']}.",
        "",
        "| report of | checkout | s | processor s | peak MB | page MB | others kept busy |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['report']} | {row['checkout']} | {row['wall_s']:.2f} | {row['cpu_s']:.2f} | "
        f"{row['peak_b'] / 1e6:.0f} | {row['page_b'] / 1e6:.2f} | {row['others']:.1f} processors |"
        for row in measured["rows"]
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, and write the page with the numbers beside it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--panda", type=Path, nargs="*", default=[], help="files of PanDA job records")
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turns")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    checkouts = [HERE, *([asked.beside.resolve()] if asked.beside else [])]
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), checkouts, [path.resolve() for path in asked.panda], asked.repeat)
    measured = {"machine": describe(), "repeat": asked.repeat, "rows": rows}
    asked.out.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    asked.out.write_text(render(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
