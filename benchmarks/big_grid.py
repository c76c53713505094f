"""A large grid through the whole product: seconds and memory of run and report, and what is found.

    python -m benchmarks.big_grid [--beside CHECKOUT] --out benchmarks/results/big_grid.md

The jobs are those of `big_grid_inputs`. Each command is a process of its own, on a store that holds the jobs
and nothing else; with --beside those of another checkout take turns with it.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import Run, run
from benchmarks.machine import describe

HERE = Path(__file__).resolve().parents[1]
_TARGETS = {"run": "40 s and 1.5 GB, better 20 s and 1 GB", "report": "4 s and 5 MB, better 2 s and 3 MB"}


def esjobs(checkout: Path, *arguments: object) -> Run:
    """A command of a checkout; modules are compiled once, as they are where it is installed."""
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    settings = [f"{name}={value}" for name, value in env.items()]
    command = [sys.executable, "-m", "esjobs", "--quiet", *map(str, arguments)]
    return run(["env", "-i", f"--chdir={checkout}", *settings, *command])


def measure(folder: Path, checkouts: Sequence[Path], repeat: int, jobs: int) -> dict[str, Any]:
    """Make the jobs, store them, and time run and report of every checkout in turns."""
    parquet, page = folder / "jobs.parquet", folder / "report.html"
    made = [sys.executable, "-m", "benchmarks.big_grid_inputs", str(parquet), "--jobs", str(jobs)]
    truth = json.loads(run(made).stdout)
    done: dict[tuple[int, str], list[Run]] = {}
    stores = [folder / f"{number}.duckdb" for number in range(len(checkouts))]
    full = [folder / f"{number}-jobs.duckdb" for number in range(len(checkouts))]
    sizes = [0] * len(checkouts)
    for number, checkout in enumerate(checkouts):
        esjobs(checkout, "demo", "--out", folder / f"demo-{number}")  # so that all is compiled
        esjobs(checkout, "--store", f"duckdb:{full[number]}", "ingest", "jobs", parquet)
    for _ in range(repeat):
        for number, checkout in enumerate(checkouts):
            shutil.copy(full[number], stores[number])
            told = ("--store", f"duckdb:{stores[number]}")
            ran = esjobs(checkout, *told, "run", "--window", truth["window"])
            reported = esjobs(checkout, *told, "report", "--out", page)
            sizes[number] = page.stat().st_size
            done.setdefault((number, "run"), []).append(ran)
            done.setdefault((number, "report"), []).append(reported)
    rows = [
        {
            "command": command,
            "checkout": "this one" if number == 0 else "the other",
            "wall_s": statistics.median(each.wall_s for each in runs),
            "cpu_s": statistics.median(each.cpu_s for each in runs),
            "peak_b": max(each.peak_b for each in runs),
            "others": statistics.median(each.others for each in runs),
            "page_b": sizes[number] if command == "report" else None,
        }
        for (number, command), runs in done.items()
    ]
    kept = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False)
    return {
        "machine": describe("scipy", "numba", "iminuit"),
        "commit": kept.stdout.strip()[:12],
        "jobs": jobs,
        "repeat": repeat,
        "rows": rows,
        "verdicts": verdicts(stores[0], truth),
    }


def verdicts(store: Path, truth: dict[str, Any]) -> dict[str, Any]:
    """What the headline fits of all types found of the truth."""
    import esjobs as product

    with product.open(f"duckdb:{store}") as session:
        flags, factors, fits = (
            session.tables.flags().to_pandas(),
            session.tables.factors().to_pandas(),
            session.tables.fits().to_pandas(),
        )
    told: dict[str, Any] = {"fits": len(fits)}
    for level in ("queue", "cpu_model"):
        mine = factors[(factors.level == level) & (factors.processing_type == "all")]
        mine = mine[mine.method == "gamma"].set_index("name")
        names = [
            name.replace("(R)", "").replace(" CPU", "").partition(" @")[0] for name in truth[level]["name"]
        ]
        mine = mine.reindex(names)
        move = np.log(mine.k.to_numpy(float) / np.array(truth[level]["k"]))
        move -= np.nanmedian(move)
        error = (mine.k_err / mine.k).to_numpy(float)
        told[level] = {
            "factors": int(np.isfinite(move).sum()),
            "rms": float(np.sqrt(np.nanmean(move**2))),
            "error": float(np.nanmedian(error)),
            "width": float(np.sqrt(np.nanmean((move / error) ** 2))),
            "jobs": int(mine.n_jobs.sum()),
        }
    mine = flags[(flags.level == "queue") & (flags.processing_type == "all") & (flags.method == "gamma")]
    mine = mine.set_index("name").reindex(truth["queue"]["name"])
    wrong = np.array(truth["queue"]["wrong"]) != 1
    deviates, confirmed = (mine.verdict == "deviates").to_numpy(), mine.confirmed.fillna(False).to_numpy(bool)
    return {
        **told,
        "planted": int(wrong.sum()),
        "found": int((deviates & wrong).sum()),
        "sendable": int((confirmed & wrong).sum()),
        "honest": int((~wrong).sum()),
        "accused": int((deviates & ~wrong).sum()),
    }


def render(measured: dict[str, Any]) -> str:
    """The numbers as a page."""
    machine, found = measured["machine"], measured["verdicts"]
    libraries = ("esjobs", "duckdb", "pyarrow", "numpy", "scipy", "numba", "iminuit")
    versions = ", ".join(f"{name} {machine[name]}" for name in libraries)
    lines = [
        "# A large grid",
        "",
        f"{measured['jobs']:,} jobs of 500 sites, 200 CPU models, 20 types and 2000 tasks at 60 sites each "
        f"on 30 days, {found['fits']} fits; DuckDB. Written by `python -m benchmarks.big_grid` at "
        f"{measured['commit']} on {machine['cores']} cores of {machine['cpu']}, Python {machine['python']}; "
        f"{versions}.",
        "",
        f"Whole commands, medians of {measured['repeat']}.",
        "",
        "| command | checkout | s | processor s | peak GB | page MB | others kept busy | at most |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in measured["rows"]:
        page = "" if row["page_b"] is None else f"{row['page_b'] / 1e6:.1f}"
        lines.append(
            f"| {row['command']} | {row['checkout']} | {row['wall_s']:.1f} | {row['cpu_s']:.1f} | "
            f"{row['peak_b'] / 1e9:.2f} | {page} | {row['others']:.1f} processors | "
            f"{_TARGETS[row['command']]} |"
        )
    lines += [
        "",
        f"{found['found']} of {found['planted']} planted wrong declarations are found, {found['sendable']} "
        f"of them can be sent; {found['accused']} of {found['honest']} honest sites are accused.",
        "",
        "| level | factors | jobs in them | rms of ln k | k_err / k | width of the pulls |",
        "|---|---|---|---|---|---|",
    ]
    for level, name in (("queue", "sites"), ("cpu_model", "CPU models")):
        row = found[level]
        lines.append(
            f"| {name} | {row['factors']} | {row['jobs']:,} | {row['rms']:.2%} | {row['error']:.2%} | "
            f"{row['width']:.2f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, and write the page with the numbers beside it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turns")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=3_000_000)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    checkouts = [HERE, *([asked.beside.resolve()] if asked.beside else [])]
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), checkouts, asked.repeat, asked.jobs)
    asked.out.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    old = asked.out.read_text(encoding="utf-8") if asked.out.exists() else ""
    _, mark, remarks = old.partition("\n## Remarks")
    asked.out.write_text(render(measured) + mark + remarks, encoding="utf-8")


if __name__ == "__main__":
    main()
