"""Forecasts of tasks at other queues: do intervals hold what really ran?

    python -m benchmarks.what_if [--seeds 3] [--only WORD] [--demo jobs.parquet] [--out results/what_if.md]

One cell (task x queue) of every task is taken out of the records; the rest goes through ingest, aggregation
and fit. Each cell is then forecast and compared with its jobs. The scatter of site and task is planted.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import esjobs
from benchmarks.grids import Grid, make_jobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.window import Window
from esjobs.core.words import HALF_WIDTH_90
from esjobs.records.tasks.sums import TaskSums, read_sums
from esjobs.speed.settings import FitSettings
from esjobs.what_if.cells import MIN_JOBS, Cells, efficiencies, read_cells
from esjobs.what_if.model import fit_model

BASE = Grid(days=3)
CASES: dict[str, Grid] = {
    "interaction 2 %": BASE.but(interaction=0.02),
    "interaction 5 %": BASE,
    "interaction 10 %": BASE.but(interaction=0.10),
    "interaction 20 %": BASE.but(interaction=0.20),
    "lengths 3, rho 1": BASE.but(rho=1.0, lengths=3.0),
    "lengths 3, rho by site e^0.3": BASE.but(rho=1.0, lengths=3.0, rho_scatter=0.3),
    "14 tasks": BASE.but(tasks=14),
    "6 jobs a cell": BASE.but(jobs=6.0),
    "5 queues a task": BASE.but(sites_per_task=5),
    "types 10 %": BASE.but(type_effect=0.10),
    "stray 2 %": BASE.but(stray=0.02),
    "noise 0.5": BASE.but(noise=0.5),
    "two speeds": BASE.but(two_speeds=12, speeds_by="mixed"),
}
COLUMNS = (
    *("input", "cells", "90 %", "68 %", "median error", "half-width", "wall 90 %", "no forecast"),
    *("tau", "own check"),
)
HEADER = """# Forecasts of moved tasks

Written by `python -m benchmarks.what_if`. One cell (task x queue, {least} jobs or more) of each task, of the
demo three, is taken out before ingest, forecast by `esjobs what-if move` from all other queues, and compared
with its jobs: shares of 90 and 68 % intervals that hold, median error and half-width of the CPU time, share
of the wall times. "Own check": coverage of 90 % intervals that the run states of itself, and the factor by
which it widens them. "Two speeds" breaks the model: jobs of 12 of 40 queues land on nodes of two speeds.

{table}
"""


@dataclass
class Tally:
    """Pulls of CPU and wall time, errors and half-widths, over all runs of a case."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    half_width: list[float] = field(default_factory=list)
    without: int = 0
    tau: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    widened: list[float] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Return the row of a case."""
        cpu, wall = np.abs(self.cpu), np.abs(self.wall)
        cells = [
            name,
            str(len(cpu)),
            f"{np.mean(cpu <= HALF_WIDTH_90):.2f}",
            f"{np.mean(cpu <= 1.0):.2f}",
            f"{np.median(self.error):.1%}",
            f"{np.median(self.half_width):.0%}",
            f"{np.mean(wall <= HALF_WIDTH_90):.2f}" if len(wall) else "-",
            str(self.without),
            f"{np.mean(self.tau):.3f}",
            f"{np.mean(self.own):.2f} ({np.mean(self.widened):.2f})",
        ]
        return f"| {' | '.join(cells)} |"


def held_out(jobs: pa.Table, rng: np.random.Generator, per_task: int) -> np.ndarray:
    """Return a mask of the jobs of some cells of every task."""
    counted = jobs.group_by(["task_id", "queue"]).aggregate([("job_id", "count")]).to_pandas()
    counted = counted[(counted.job_id_count >= MIN_JOBS) & counted.task_id.notna()]
    chosen: set[tuple[str, str]] = set()
    for _, cells in counted.groupby("task_id"):
        if len(cells) > per_task + 1:
            picked = cells.iloc[rng.permutation(len(cells))[:per_task]]
            chosen |= set(zip(picked.task_id, picked.queue, strict=True))
    pairs = zip(jobs["task_id"].to_pylist(), jobs["queue"].to_pylist(), strict=True)
    return np.array([pair in chosen for pair in pairs])


def compare(jobs: pa.Table, seed: int, tally: Tally, per_task: int = 1) -> None:
    """Take cells out, fit the rest, forecast them, and count."""
    out = held_out(jobs, np.random.default_rng([seed, 7]), per_task)
    rest, truth = _cells(jobs.filter(pa.array(~out))), _sums(jobs.filter(pa.array(out)))
    model, efficiency = fit_model(rest), efficiencies(rest)
    tally.tau.append(model.tau)
    tally.own.append(model.calibration.coverage_90 or np.nan)
    tally.widened.append(model.calibration.widened)
    numbers, kinds = {key[:3]: number for number, key in enumerate(rest.keys.listed())}, rest.keys.kinds()
    for cell in np.flatnonzero(truth.sums["n_jobs"] >= MIN_JOBS):
        unit = numbers.get(truth.keys.parts(int(truth.task.names[truth.task.codes[cell]]))[:3])
        name = str(truth.name.names[truth.name.codes[cell]])
        if unit is None or name not in rest.queues:
            continue
        queue = rest.number(name)
        n_jobs = float(truth.sums["n_jobs"][cell])
        forecast = model.forecast(unit, queue, float(truth.sums["events"][cell]) / n_jobs)
        if forecast.reason is not None:
            tally.without += 1
            continue
        variance = forecast.error**2 + forecast.job_var / n_jobs
        error = float(np.log(truth.sums["cpu_s"][cell] / n_jobs)) - forecast.ln_cpu_s
        tally.cpu.append(error / np.sqrt(variance))
        tally.error.append(abs(error))
        tally.half_width.append(HALF_WIDTH_90 * np.sqrt(variance))
        at = efficiency.at(queue, int(kinds[unit]), efficiency.of_task(unit))
        if at is not None:
            wall = float(np.log(truth.sums["core_s"][cell] / n_jobs)) - forecast.ln_cpu_s + at[0]
            tally.wall.append(wall / np.sqrt(variance + at[1]))


def _window(jobs: pa.Table) -> Window:
    ends = pc.min_max(jobs["end_time"]).as_py()
    return Window.of_days(ends["min"].date(), ends["max"].date())


def _cells(jobs: pa.Table) -> Cells:
    """Cells of jobs after ingest, aggregation and fit."""
    with _session(jobs) as session:
        session.run(_window(jobs))
        return read_cells(session.store)


def _sums(jobs: pa.Table) -> TaskSums:
    """Sums of jobs after ingest and aggregation."""
    with _session(jobs) as session:
        session.speed.aggregate(_window(jobs))
        return read_sums(session.store, _window(jobs)).levels["queue"]


@contextmanager
def _session(jobs: pa.Table) -> Iterator[Session]:
    chosen = Settings(fit=FitSettings(methods=("gamma",)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.parquet"
        pq.write_table(jobs, path)
        with esjobs.open(f"duckdb:{folder}/store.duckdb", settings=chosen) as session:
            session.ingest("jobs", path)
            yield session


def rows(seeds: int, only: str, demo: Path | None) -> Iterator[str]:
    """Yield the lines of the table: grids whose name contains ``only``, then the demo."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for number, (name, grid) in enumerate(CASES.items()):
        if only not in name:
            continue
        tally = Tally()
        # equal numbers of cells in every case
        for seed in range(seeds * BASE.tasks // grid.tasks):
            jobs, _ = make_jobs(grid, 90_000 + 100 * number + seed)
            compare(jobs, seed, tally)
        yield tally.line(name)
    if demo is not None:
        tally = Tally()
        compare(pq.read_table(demo), 0, tally, per_task=3)
        yield tally.line("demo")


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the name of a case")
    parser.add_argument("--demo", type=Path, help="jobs.parquet of esjobs demo")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in rows(options.seeds, options.only, options.demo):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        page = HEADER.format(least=MIN_JOBS, table="\n".join(lines))
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
