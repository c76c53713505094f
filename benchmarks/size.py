"""Peak memory and time of every step at full size, from a wide grid whose buckets hold 1.2 jobs each.

    python -m benchmarks.size --jobs 20000000 --out benchmarks/results/size.md

Every step is a command, and so a process, of its own.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.child import Run, run
from benchmarks.machine import describe, load, publish

STEPS = ("aggregate", "fit", "correlate", "flag", "run")
_MB = 1e6


def measure(folder: Path, jobs: int, memory_mb: int) -> dict[str, Any]:
    """Make the jobs, store them and take every step; ``folder`` needs 250 bytes per job of room."""
    parquet, store = folder / "jobs.parquet", folder / "jobs.duckdb"
    made = json.loads(_python("benchmarks.size_inputs", parquet, "--jobs", jobs).stdout)
    settings = folder / "esjobs.toml"
    settings.write_text(f'memory = "{memory_mb}MB"\n', encoding="utf-8")
    command = ("esjobs", "--store", f"duckdb:{store}", "--config", settings, "--quiet")
    ingested = _python(*command, "ingest", "jobs", parquet)
    parquet.unlink()
    steps = {}
    for step in STEPS:
        print(step, file=sys.stderr, flush=True)
        options = ("--rebuild",) if step == "run" else ()
        done = _python(*command, step, "--window", made["window"], *options, "--format", "json")
        steps[step] = {**_of(done), "reports": json.loads(done.stdout)}
    (aggregated,) = steps["aggregate"]["reports"]
    return {
        "machine": describe("scipy", "numba"),
        "load": load(),
        "inputs": made,
        "memory_b": memory_mb * _MB,
        "n_buckets": json.loads(aggregated["counts"])["new buckets"],
        "store_b": store.stat().st_size,
        "ingest": _of(ingested),
        "steps": steps,
    }


def _python(module: str, *arguments: object) -> Run:
    return run([sys.executable, "-m", module, *map(str, arguments)])


def _of(done: Run) -> dict[str, Any]:
    return {"wall_s": done.wall_s, "cpu_s": done.cpu_s, "peak_b": done.peak_b, "others": done.others}


def render(measured: dict[str, Any]) -> str:
    """The numbers as a page."""
    machine, inputs, buckets = measured["machine"], measured["inputs"], measured["n_buckets"]
    memory_b = measured["memory_b"]
    lines = [
        "# Size: memory of every step",
        "",
        f"{inputs['jobs']:,} jobs of {inputs['sites']} sites, {inputs['tasks']:,} tasks and {inputs['days']} "
        f'days in {buckets:,} buckets; `memory = "{memory_b / _MB:.0f}MB"`; the store takes '
        f"{measured['store_b'] / 1e9:.1f} GB. Made by `python -m benchmarks.size`.",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
        + ", ".join(
            f"{name} {machine[name]}" for name in ("esjobs", "duckdb", "pyarrow", "numpy", "scipy", "numba")
        )
        + ".",
        "",
        "| step | peak, MB | beside `memory`, MB | per bucket, B | s | processor s | others |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, done in {"ingest": measured["ingest"], **measured["steps"]}.items():
        beside = done["peak_b"] - memory_b
        lines.append(
            f"| {name} | {done['peak_b'] / _MB:.0f} | {beside / _MB:.0f} | {beside / buckets:.0f} | "
            f"{done['wall_s']:.0f} | {done['cpu_s']:.0f} | {done['others']:.1f} |"
        )
    lines += [
        "",
        "Peak is the largest resident memory of the process, libraries included (about 300 MB with those of "
        "the fits). `others`: processors that other programs kept busy meanwhile; seconds say little where "
        "it is not near 0. `run` makes all buckets again.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--jobs", type=int, default=20_000_000)
    parser.add_argument("--memory", type=int, default=1000, help="setting of the store, in MB")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/size.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measured = measure(Path(folder), args.jobs, args.memory)
    publish(args.out, render(measured), measured)


if __name__ == "__main__":
    main()
