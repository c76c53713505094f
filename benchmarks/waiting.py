"""How long a person waits for short commands: on the four tasks of the real PanDA records, and on the demo.

    python -m benchmarks.waiting --data ../shared/data/panda-jobs --out benchmarks/results/waiting.md

Each command is a process of its own, run several times after one that is not counted; the least of the times
is what it takes on a machine that does nothing else. Bytecode is cached, as it is where pip has installed.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.child import Run, run
from benchmarks.machine import describe, load, publish

WINDOW = "2018-08-01/2018-09-01"
_FILL = ("--set", "processing_type=simul", "--set", "end_time=2018-08-15T12:00:00Z")
_COMMANDS: dict[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "show factors": ("show", "factors"),
    "show flags": ("show", "flags"),
    "query --by queue": ("query", "--by", "queue"),
    "fields": ("fields",),
    "run": ("run", "--window", WINDOW, "--format", "json"),
    "report": ("report", "--out", "report.html"),
}
_OF_DEMO: dict[str, tuple[str, ...]] = {
    "show flags": ("show", "flags"),
    "query --by site": ("query", "--by", "site"),
    "site EBONY-LCG2": ("site", "EBONY-LCG2"),
    "job": ("job", "JOBID"),
    "today": ("today",),
    "report": ("report", "--out", "report.html"),
}
_LIBRARIES = ("click", "numpy", "pyarrow", "duckdb", "pydantic", "pandas", "scipy.optimize", "numba")


def measure(folder: Path, data: Path, repeats: int) -> dict[str, Any]:
    """Fill a store in ``folder`` and take the times."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    command = (sys.executable, "-m", "esjobs", "--store", f"duckdb:{folder / 'jobs.duckdb'}", "--quiet")
    files = [str(file) for file in sorted(data.glob("*.csv.gz"))]
    if not files:
        raise FileNotFoundError(f"no *.csv.gz in {data}; name the folder of the records with --data")
    run([*command, "ingest", "panda", *files, *_FILL])
    run([*command, "run", "--window", WINDOW])
    run([sys.executable, "-m", "esjobs", "--quiet", "demo", "--out", str(folder / "demo")])
    of_demo = (
        sys.executable,
        "-m",
        "esjobs",
        "--store",
        f"duckdb:{folder / 'demo' / 'demo.duckdb'}",
        "--quiet",
    )
    found = run(
        [*of_demo, "sql", "SELECT job_id FROM jobs ORDER BY job_id LIMIT 1", "--format", "csv"]
    ).stdout
    job = found.split()[-1]
    imports = {
        library: _least([sys.executable, "-c", f"import {library}"], repeats)
        for library in ("sys", *_LIBRARIES)
    }
    return {
        "machine": describe("pandas", "numba", "pydantic"),
        "load": load(),
        "repeats": repeats,
        "commands": _all(command, _COMMANDS, folder, repeats),
        "demo": _all(of_demo, _OF_DEMO, folder, repeats, job),
        "imports": imports,
    }


def _all(
    command: tuple[str, ...], commands: dict[str, tuple[str, ...]], folder: Path, repeats: int, job: str = ""
) -> dict[str, dict[str, Any]]:
    """The times of commands; files are written into the folder, JOBID stands for a job."""
    taken = {}
    for name, arguments in commands.items():
        print(name, file=sys.stderr, flush=True)
        given = [str(folder / each) if each.endswith(".html") else each for each in arguments]
        taken[name] = _least([*command, *(each.replace("JOBID", job) for each in given)], repeats)
    return taken


def _least(command: list[str], repeats: int) -> dict[str, Any]:
    """The quickest of several runs after one for the caches, with the seconds that its steps reported."""
    run(command)
    runs = [run(command) for _ in range(repeats)]
    quickest = min(runs, key=lambda done: done.wall_s)
    return {
        "wall_s": quickest.wall_s,
        "cpu_s": min(done.cpu_s for done in runs),
        "steps": _steps(quickest),
    }


def _steps(done: Run) -> dict[str, float]:
    if not done.stdout.startswith("["):
        return {}
    return {report["step"]: report["seconds"] for report in json.loads(done.stdout)}


def render(measured: dict[str, Any]) -> str:
    """The numbers as a page."""
    machine, commands = measured["machine"], measured["commands"]
    bare = measured["imports"]["sys"]["wall_s"]
    lines = [
        "# Waiting: short commands on a small store",
        "",
        f"The four PanDA tasks, 13,012 jobs; the least of {measured['repeats']} runs each, load "
        f"{measured['load'][0]:.1f}. Made by `python -m benchmarks.waiting`.",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
        + ", ".join(f"{name} {machine[name]}" for name in ("duckdb", "pyarrow", "numpy", "pandas", "numba"))
        + ".",
        "",
        "| command | s | processor s |",
        "|---|---|---|",
    ]
    lines += [
        f"| `esjobs {name}` | {taken['wall_s']:.2f} | {taken['cpu_s']:.2f} |"
        for name, taken in commands.items()
    ]
    steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in commands["run"]["steps"].items())
    lines += [
        "",
        f"Of `run`: {steps}; the rest is imports and the opening of the store.",
        "",
        "| on the demo, 300,000 jobs | s | processor s |",
        "|---|---|---|",
        *(
            f"| `esjobs {name}` | {taken['wall_s']:.2f} | {taken['cpu_s']:.2f} |"
            for name, taken in measured["demo"].items()
        ),
        "",
        "| import | s beyond a bare Python |",
        "|---|---|",
    ]
    lines += [
        f"| `{library}` | {max(0.0, measured['imports'][library]['wall_s'] - bare):.2f} |"
        for library in _LIBRARIES
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/panda-jobs"))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/waiting.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), args.data, args.repeats)
    publish(args.out, render(measured), measured)


if __name__ == "__main__":
    main()
