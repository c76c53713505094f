"""How often mixed tasks are found, and tasks of one kind taken for mixed ones.

    python -m benchmarks.mixture [--toys 200] [--panda FOLDER] [--out benchmarks/results/mixture.md]

A minute. With `--panda`, the folder of the four real tasks, the table about them is written, too.
"""

import argparse
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from fitters import Mixtures, estimate_fixed_cost, find_mixtures, fixed_cost_residuals
from tests.fitters.job_toys import SHAPES, MixedJobs, make_mixed
from tests.fitters.panda_jobs import read_jobs, sum_jobs

SIZES = ((5, 100), (10, 500), (40, 2000))
RATIOS = (2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
SHARES = (0.05, 0.2, 0.5)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a Markdown table."""
    for line in (header, ["---"] * len(header), *rows):
        yield "| " + " | ".join(line) + " |"


def flagged(found: Mixtures) -> float:
    """Share of tasks that are not kept as they are."""
    _, first = np.unique(found.tasks.name, return_index=True)
    return float(np.mean(found.tasks.decision[first] != "keep"))


def rate(toys: MixedJobs) -> float:
    """Share of flagged tasks, with the fixed cost estimated from the mixed buckets."""
    costs = estimate_fixed_cost(**toys.sums())
    residual = fixed_cost_residuals(costs, toys.task, toys.events, toys.cpu_s)
    return flagged(find_mixtures(toys.task, toys.unit, residual))


def false_alarm_table(toys: int) -> Iterator[str]:
    """Tasks of one kind that are flagged, by the shape of their scatter."""
    rng = np.random.default_rng(1)
    rows = []
    for shape in SHAPES:
        for sigma in (0.15, 0.3):
            for units, jobs in SIZES:
                tasks = min(toys, 200_000 // jobs)
                share = rate(make_mixed(rng, tasks, units, jobs, 0.0, 1.0, shape=shape, sigma=sigma))
                rows.append((shape, f"{sigma}", f"{units} x {jobs // units}", str(tasks), f"{share:.1%}"))
    yield from table(["scatter", "sigma", "units x jobs", "tasks", "flagged"], rows)


def power_table(toys: int) -> Iterator[str]:
    """Mixed tasks that are flagged."""
    rng = np.random.default_rng(2)
    rows = []
    for units, jobs in SIZES:
        tasks = min(max(toys // 6, 10), 60_000 // jobs)
        for share in SHARES:
            found = [rate(make_mixed(rng, tasks, units, jobs, share, ratio)) for ratio in RATIOS]
            cells = (f"{100 * percent:.0f}" for percent in found)
            rows.append((f"{units} x {jobs // units}", f"{share:.0%}", *cells))
    yield from table(["units x jobs", "second kind", *(f"ratio {ratio:g}" for ratio in RATIOS)], rows)


def real_table(folder: Path) -> Iterator[str]:
    """The real tasks as they are, and with a kind made up from CPU time per event where there are two."""
    jobs = pd.concat([read_jobs(path) for path in sorted(folder.glob("job_records_*.csv.gz"))])
    quick = (jobs["task"] == "13743294 single") & (jobs["cpu_s"] / jobs["events"] < 0.25)
    kind = np.where(quick, "merge", "simul")
    costs = estimate_fixed_cost(**sum_jobs(jobs))
    residual = fixed_cost_residuals(costs, jobs["task"], jobs["events"], jobs["cpu_s"])
    rows = []
    for named, mixtures in (
        ("no", find_mixtures(jobs["task"], jobs["unit"], residual)),
        ("yes", find_mixtures(jobs["task"], jobs["unit"], residual, kind=kind)),
    ):
        one = mixtures.tasks
        for place, name in enumerate(one.name):
            cells = (f"{one.n_jobs[place]:.0f}", f"{one.ratio[place]:.2f}", f"{one.sigma[place]:.2f}")
            kind_of_row = str(one.kind[place] or "")
            rows.append((str(name), named, kind_of_row, *cells, one.decision[place], one.reason[place]))
    yield from table(["task", "kinds named", "kind", "jobs", "ratio", "sigma", "decision", "reason"], rows)


TEXT = """# Mixed tasks

Written by `python -m benchmarks.mixture`; {versions}.
Made-up tasks with a fixed cost of 20 events, mean events per job from 10 to 40 by unit, units of different
size and speed. The second kind takes so many times less CPU time. A task is flagged for two modes, or for a
wide unit. rho is estimated from the mixed buckets, as it would be.

## False alarms: tasks of one kind that are flagged

"two CPUs": each unit has two that differ by 1.6x; "stuck jobs": 1 % take 3 to 30 times as long. Two CPUs that
differ by more than a factor of two are two kinds of work to this test: give every CPU model as a unit of its
own where it is known.

{alarms}

## Power: mixed tasks that are flagged, in percent (normal scatter of 0.2)

A ratio of 2 is the limit itself; 5 % of the jobs is the least that counts, and a share found counts if it is
not significantly less.

{power}
"""

REAL = """
## Real tasks

{real}
"""


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=200)
    parser.add_argument("--panda", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/mixture.md"))
    options = parser.parse_args()
    versions = f"Python {platform.python_version()}, numpy {version('numpy')}, scipy {version('scipy')}"
    page = TEXT.format(
        versions=versions,
        alarms="\n".join(false_alarm_table(options.toys)),
        power="\n".join(power_table(options.toys)),
    )
    if options.panda:
        page += REAL.format(real="\n".join(real_table(options.panda)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
