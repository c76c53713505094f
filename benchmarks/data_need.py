"""How much data it takes to find misdeclared sites, and how many honest ones are accused meanwhile.

    python -m benchmarks.data_need [--toys 200] [--out benchmarks/results/data_need.md]

Three minutes. Each toy is a grid of 100 sites of which ten declare wrong by a factor between 1.3 and 2, up or
down, and the others are right within 3 %. Every site takes part in the same number of tasks, every task runs
at ten sites. Jobs of a task scatter by 50 % around its mean, site and task have a relative interaction that
no number of jobs averages out. Fit and line are those of the nightly run, defaults throughout; of what a site
does to all tasks of a kind, and of start-up times, toys have nothing: see ``benchmarks.honesty``.
"""

import argparse
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.machine import describe
from tests.fitters.declared_toys import Tally, judge_grid

TASKS = (2, 3, 5, 10, 20, 50, 100)
JOBS = (20, 100, 1000)
INTERACTIONS = (0.05, 0.10, 0.20)


def cells(toys: int) -> Iterator[tuple[float, int, int, Tally]]:
    """Yield interaction, jobs, tasks and what was found; every cell with a seed of its own."""
    for interaction in INTERACTIONS:
        for jobs in JOBS if interaction == 0.10 else (100,):
            for tasks in TASKS:
                rng = np.random.default_rng([tasks, jobs, int(1000 * interaction)])
                tally = Tally()
                for _ in range(toys):
                    judge_grid(rng, tasks, jobs, interaction, tally)
                yield interaction, jobs, tasks, tally


HEADER = """# How much data a verdict needs

Written by `python -m benchmarks.data_need`, {toys} toys a row, on {cpu}; Python {python}, numpy {numpy}.
A toy is a grid of 100 sites of which ten declare wrong by 1.3 to 2 times, up or down; the others are right
within 3 %. Every task runs at ten sites; single jobs scatter by 50 %. Error is the median error of an honest
site's deviation. Honest sites are accused (verdict `deviates`), left undecided, or cleared (the rest); wrong
ones are found if their verdict is `deviates` on the right side. None was found on the wrong side unless a
line below the table says so.

{columns}
|---|---|---|---|---|---|---|---|
"""
COLUMNS = (
    "site-task interaction",
    "jobs per site and task",
    "tasks per site",
    "error, %",
    "honest: accused, %",
    "honest: undecided, %",
    "found of 1.3x to 1.5x, %",
    "found beyond 1.5x, %",
)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toys", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    machine = describe()
    page = HEADER.format(
        columns=f"| {' | '.join(COLUMNS)} |",
        toys=options.toys,
        cpu=machine["cpu"],
        python=machine["python"],
        numpy=version("numpy"),
    )
    wrong_side = []
    for interaction, jobs, tasks, tally in cells(options.toys):
        line = f"| {100 * interaction:.0f} % | {jobs} | {tasks} | {' | '.join(tally.row())} |"
        print(line, flush=True)
        page += line + "\n"
        if tally.wrong_side:
            wrong_side.append(f"{tally.wrong_side} at {interaction:.2f}, {jobs} jobs, {tasks} tasks")
    if wrong_side:
        page += f"\nFound on the wrong side: {'; '.join(wrong_side)}.\n"
    if options.out:
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
