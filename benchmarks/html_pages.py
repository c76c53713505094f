"""Pages of HTML over a large grid: how long they take to write and to open, and what they weigh.

    python -m benchmarks.html_pages --out benchmarks/results/html_pages.md

500 sites, 200 CPU models, 20 processing types: one night is run for real, on fewer jobs than such a grid has,
and the nights before are its rows with other dates and some noise. Pages are opened from disk in headless
Chromium; ready means that every table can be read and every filter be chosen, drawn that all charts are.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from playwright.sync_api import Page, sync_playwright

import esjobs
from benchmarks.machine import describe, load
from dashboards.pages import PAGES
from esjobs.api.session import Session
from esjobs.core.arrow import table_schema
from esjobs.core.query import In
from esjobs.schema.catalogue import table
from esjobs.store.base import Change

NIGHTS, JOBS = 60, 400_000
_OF_RUNS = ("flags", "factors", "fits", "lines", "fit_summaries")
_ACCOUNT = ("runs", "run_counts")
_NOISE = {"k": 0.01, "deviation": 0.02, "efficiency": 0.005}
_READY = "() => document.body.dataset.shown !== undefined"
_DRAWN = "() => document.body.dataset.drawn !== undefined"


def main() -> None:
    """Make the store, write the pages, open each of them, write the table and the numbers behind it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--keep", type=Path, help="a folder for the store and the pages")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    before = load()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        made = make_store(folder, asked.jobs, asked.nights)
        with esjobs.open(f"duckdb:{folder / 'grid.duckdb'}") as session:
            began = time.perf_counter()
            first = session.export.html(folder / "pages")
            written_s = time.perf_counter() - began
        rows = opened(first.parent, asked.repeat, asked.chromium)
    measured = {
        "command": f"python -m benchmarks.html_pages --jobs {asked.jobs} --nights {asked.nights}",
        "machine": describe(),
        "load": {"before": before, "after": load()},
        "made": made,
        "written_s": written_s,
        "repeat": asked.repeat,
        "pages": rows,
    }
    asked.out.with_suffix(".json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    asked.out.write_text(render(measured), encoding="utf-8")
    print(render(measured))


def make_store(folder: Path, jobs: int, nights: int) -> dict[str, Any]:
    """A store with a night that was run, and the nights before it; how many rows it has."""
    path, parquet = folder / "grid.duckdb", folder / "jobs.parquet"
    inputs = [sys.executable, "-m", "benchmarks.big_grid_inputs", str(parquet), "--jobs", str(jobs)]
    said = subprocess.run(inputs, check=True, capture_output=True, text=True)
    with esjobs.open(f"duckdb:{path}", create=True) as session:
        session.ingest("jobs", [str(parquet)])
        session.run(json.loads(said.stdout)["window"])
        earlier_nights(session, nights)
        return {
            "jobs": jobs,
            "nights": nights,
            "flags": sum(batch.num_rows for batch in session.store.read(table("flags"), (), ("run",))),
        }


def earlier_nights(session: Session, nights: int) -> None:
    """Publish the rows of the latest run as those of so many nights, this one among them."""
    shown = session.tables.latest_runs().to_pandas()
    run = str(shown[shown["shown"]]["run"].iloc[0])
    held = {each: _rows(session, each, run) for each in (*_OF_RUNS, *_ACCOUNT)}
    rng = np.random.default_rng(1)
    for night in range(1, nights):
        name = f"{run[:8]}{night:04d}"
        changes: list[Change] = []
        for each, rows in held.items():
            asked = table(each)
            for partition in sorted(set(rows.column(asked.partition).to_pylist())):
                chosen = rows.filter(pc.equal(rows.column(asked.partition), partition))
                moved = _moved(chosen, run, name, night, rng).to_batches()
                changes.append(session.store.replace(asked, partition.replace(run, name), moved))
        session.store.publish(changes)


def _rows(session: Session, name: str, run: str) -> pa.Table:
    """The rows of a table that belong to a run."""
    asked = table(name)
    return pa.Table.from_batches(session.store.read(asked, [In("run", (run,))]), table_schema(asked))


def _moved(rows: pa.Table, run: str, name: str, night: int, rng: np.random.Generator) -> pa.Table:
    """Rows with the name and the dates of an earlier night."""
    for place, field in enumerate(rows.schema):
        column = rows.column(place)
        if field.name in ("run", "run_step"):
            column = pc.replace_substring(column, run, name)
        elif field.name in ("window_start", "window_end", "data_end", "at"):
            column = pc.subtract(column, pa.scalar(timedelta(days=night), pa.duration("us")))
        elif field.name in _NOISE:
            values = column.to_numpy(zero_copy_only=False)
            column = pa.array(values + rng.normal(0, _NOISE[field.name], len(values)), from_pandas=True)
        rows = rows.set_column(place, field, column.cast(field.type))
    return rows


def opened(folder: Path, repeat: int, chromium: str) -> list[dict[str, Any]]:
    """Of each page: what a browser loads, and medians of the times until it is ready and drawn."""
    found = []
    with sync_playwright() as control:
        browser = control.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for page in PAGES:
            file = "index.html" if page is PAGES[0] else f"{page.id}.html"
            times: list[tuple[float, float]] = []
            loaded: set[str] = set()
            for _ in range(repeat):
                context = browser.new_context(viewport={"width": 1400, "height": 900}, offline=True)
                tab = context.new_page()
                _listen(tab, loaded)
                began = time.perf_counter()
                tab.goto((folder / file).as_uri())
                tab.wait_for_function(_READY)
                ready = time.perf_counter() - began
                tab.wait_for_function(_DRAWN, timeout=60_000)
                times.append((ready, time.perf_counter() - began))
                context.close()
            sizes = [Path(url.partition("#")[0].removeprefix("file://")).stat().st_size for url in loaded]
            found.append(
                {
                    "page": page.title,
                    "loaded_b": sum(sizes),
                    "ready_s": statistics.median(each[0] for each in times),
                    "drawn_s": statistics.median(each[1] for each in times),
                    "files": len(list(folder.glob(f"*/{page.id}-*.js"))),
                    "all_b": sum(path.stat().st_size for path in folder.glob(f"*/{page.id}-*.js")),
                }
            )
        browser.close()
    return found


def _listen(tab: Page, loaded: set[str]) -> None:
    """Take note of every file that a page loads."""
    tab.on("request", lambda request: loaded.add(request.url))


def render(measured: dict[str, Any]) -> str:
    """The numbers as a page."""
    machine, made = measured["machine"], measured["made"]
    lines = [
        "# Pages of HTML",
        "",
        f"`{measured['command']}`: 500 sites, 200 CPU models, 20 processing types, {made['nights']} nights "
        f"with {made['flags']:,} verdicts, {made['jobs']:,} jobs. {machine['cores']} cores of "
        f"{machine['cpu']}, Python {machine['python']}; running processes before and after: "
        f"{measured['load']['before'][0]:.1f} and {measured['load']['after'][0]:.1f}. Written in "
        f"{measured['written_s']:.1f} s. Opened in headless Chromium, medians of {measured['repeat']}; the "
        "target is 2 s and 5 MB for the first page.",
        "",
        "| page | MB loaded when it opens | ready, s | all charts drawn, s | files of rows | MB of rows |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['page']} | {row['loaded_b'] / 1e6:.2f} | {row['ready_s']:.2f} | {row['drawn_s']:.2f} | "
        f"{row['files']} | {row['all_b'] / 1e6:.2f} |"
        for row in measured["pages"]
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
