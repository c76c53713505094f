"""Cost of planted incidents: do 90 % intervals hold what was lost?

    python -m benchmarks.incident_cost --out benchmarks/results/incident_cost.md

Days of the demo's sites get an incident: the same work takes more core-hours, and a share of it fails.
"""

import argparse
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import esjobs
from esjobs.core.numbers import many
from esjobs.core.version import __version__
from esjobs.core.window import Window
from esjobs.records.demo import Grid
from esjobs.records.demo.course import Course
from esjobs.today.incident import BASELINE_DAYS, Days, read_days
from esjobs.today.incident_cost import cost_of

JOBS, SITES = 300_000, 30
FACTORS, FAILURES, LENGTHS = (1.0, 0.95, 0.9, 0.75, 0.55), (0.0, 0.05, 0.15), (1, 2, 3, 4)
HEADER = """# Cost of planted incidents

Written by `python -m benchmarks.incident_cost` with esjobs {esjobs}, Python {python}, NumPy {numpy},
SciPy {scipy}. Days of the demo ({jobs:,} jobs, seeds 1 to {seeds}; the {sites} sites with most hours) get an
incident of 1 to 4 days: finished work takes 1/efficiency of its hours, and a share of it fails. Shares of
90 % intervals that hold what was lost; error (rms) and half-width in % of the usual hours of the window;
"found": the interval of the lost hours is above 0. "Kinds unlike": the efficiency of each kind of work is
multiplied by 0.55 to 1.

| incidents | n | excess | failed | lost | error % | half-width % | found |
|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Planted:
    """A planted incident and what was found, in core-hours over the usual ones of the window."""

    grid: str
    factor: float
    failing: float
    length: int
    errors: tuple[float, ...]
    halves: tuple[float, ...]
    found: bool


def days_of(seed: int) -> Days:
    """Return the sums of a demo without the site of its own incident and the task that is slow everywhere."""
    quiet = Grid.of_size(JOBS, seed=seed)
    listed = quiet.days(JOBS)
    grid = replace(quiet, course=Course(seed, listed[0], listed[-1], JOBS))
    incident = grid.truth().incident
    with esjobs.open("duckdb::memory:") as session:
        for day in listed:
            jobs = pa.Table.from_batches(grid.jobs(day))
            if grid.slow_task is not None:
                jobs = jobs.filter(pc.not_equal(jobs["task_id"], grid.slow_task.task_id))
            session.store.put_jobs(jobs.to_batches(), str(day))
        days = read_days(session.store, Window.of_days(listed[-2], listed[-2]))
    used = [n for n, name in enumerate(days.sites) if incident is None or name != incident.site]
    return replace(days, cpu=days.cpu[used], hours=days.hours[used], failed=days.failed[used])


def unlike(days: Days, seed: int) -> Days:
    """Return the days with kinds of work that differ in efficiency."""
    factor = np.random.default_rng(seed).uniform(0.55, 1.0, (1, days.cpu.shape[1], 1))
    return replace(days, cpu=days.cpu * factor)


def planted(days: Days, grid: str, rng: np.random.Generator) -> Iterator[Planted]:
    """Yield incidents at each site, of each length, efficiency and failures, on random days."""
    with_work = np.flatnonzero(days.hours.sum(axis=(0, 1)))
    largest = np.argsort(-days.hours.sum(axis=(1, 2)))[:SITES]
    for site in largest:
        for length in LENGTHS:
            first = int(rng.integers(with_work[0] + BASELINE_DAYS, with_work[-1] - length + 2))
            window, before = (np.zeros(days.cpu.shape[2], np.bool_) for _ in range(2))
            window[first : first + length] = before[first - BASELINE_DAYS : first] = True
            for factor in FACTORS:
                for failing in FAILURES:
                    one = _one(days, site, window, before, factor, failing)
                    if one is not None:
                        yield Planted(grid, factor, failing, length, *one)


def _one(
    days: Days, site: int, window: np.ndarray, before: np.ndarray, factor: float, failing: float
) -> tuple[tuple[float, ...], tuple[float, ...], bool] | None:
    cpu, hours, failed = days.cpu.copy(), days.hours.copy(), days.failed[site].copy()
    base = float(hours[site][:, window].sum())
    hours[site][:, window] *= (1 - failing) / factor
    cpu[site][:, window] *= 1 - failing
    failed[window] += days.hours[site][:, window].sum(axis=0) * failing / factor
    cost = cost_of(cpu, hours, failed, site, window, before)
    if cost is None or not base:
        return None
    excess = (1 - failing) * base * (1 / factor - 1)
    errors = [cost.excess.value - excess, cost.failed.value - base * failing / factor]
    lost = cost.excess + cost.failed
    halves = (cost.excess.half, cost.failed.half, lost.half)
    return (
        tuple(error / base for error in (*errors, sum(errors))),
        tuple(half / base for half in halves),
        lost.value > lost.half,
    )


def line(name: str, of: list[Planted]) -> str:
    """Return a row of the table."""
    errors, halves = (np.array([getattr(one, what) for one in of]) for what in ("errors", "halves"))
    covered = (np.abs(errors) <= halves).mean(axis=0)
    rms, half = 100 * np.sqrt(np.mean(errors[:, 2] ** 2)), 100 * np.mean(halves[:, 2])
    shares = " | ".join(f"{share:.2f}" for share in covered)
    return (
        f"| {name} | {len(of):,} | {shares} | {rms:.1f} | {half:.1f} | {np.mean([o.found for o in of]):.2f} |"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    all_of: list[Planted] = []
    for seed in range(1, chosen.seeds + 1):
        rng, days = np.random.default_rng(seed), days_of(seed)
        all_of += planted(days, "demo", rng)
        all_of += planted(unlike(days, seed), "unlike", rng)
    demo = [one for one in all_of if one.grid == "demo"]
    rows = [line("all", demo)]
    rows += [line(many(n, "day"), [one for one in demo if one.length == n]) for n in LENGTHS]
    rows += [line(f"efficiency x {f}", [one for one in demo if one.factor == f]) for f in FACTORS]
    rows += [line(f"{100 * p:.0f} % fail", [one for one in demo if one.failing == p]) for p in FAILURES]
    rows += [line("no incident", [one for one in demo if one.factor == 1 and not one.failing])]
    rows += [line("kinds unlike", [one for one in all_of if one.grid == "unlike"])]
    versions = {"esjobs": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy")}
    text = HEADER.format(**versions, jobs=JOBS, seeds=chosen.seeds, sites=SITES) + "\n".join(rows) + "\n"
    print(text)
    if chosen.out:
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
