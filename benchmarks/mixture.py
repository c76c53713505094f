"""How often mixed tasks are found, and tasks of one kind taken for mixed ones, by what is known of the jobs.

    python -m benchmarks.mixture [--toys 200] [--panda FOLDER] [--out benchmarks/results/mixture.md]

Two minutes. With `--panda`, the folder of the four real tasks, the table about them is written, too.
"""

import argparse
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from fitters import (
    LogSums,
    Mixtures,
    estimate_fixed_cost,
    find_mixtures,
    find_mixtures_in_buckets,
    fixed_cost_residuals,
)
from tests.fitters.job_toys import SHAPES, MixedJobs, make_mixed
from tests.fitters.panda_jobs import LOGS, read_jobs, sum_jobs

SIZES = ((5, 100), (10, 500), (40, 2000))
RATIOS = (2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
SHARES = (0.05, 0.2, 0.5)
FORMS = ("jobs", "counted", "logs", "squares", "kinds")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a Markdown table."""
    for line in (header, ["---"] * len(header), *rows):
        yield "| " + " | ".join(line) + " |"


def flagged(found: Mixtures) -> float:
    """Share of tasks that are not kept as they are."""
    _, first = np.unique(found.tasks.name, return_index=True)
    return float(np.mean(found.tasks.decision[first] != "keep"))


def rates(toys: MixedJobs) -> dict[str, float]:
    """Share of flagged tasks in every form."""
    sums = toys.sums("task", "unit")
    logs = LogSums(*(sums.pop(name) for name in LOGS))
    daily, kinds = toys.sums("task", "unit", "day"), toys.sums("task", "unit", "kind")
    for columns in (daily, kinds):
        for name in (*LOGS, "day"):
            columns.pop(name, None)
    costs = estimate_fixed_cost(**sums)
    residual = fixed_cost_residuals(costs, toys.task, toys.events, toys.cpu_s)
    found = {
        "jobs": find_mixtures(toys.task, toys.unit, residual),
        "counted": counted(toys, costs.tasks.rho),
        "logs": find_mixtures_in_buckets(costs, **sums, logs=logs),
        "squares": find_mixtures_in_buckets(costs, **daily),
        "kinds": find_mixtures_in_buckets(costs, **kinds),
    }
    return {name: flagged(mixtures) for name, mixtures in found.items()}


def counted(toys: MixedJobs, rho: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Mixtures:
    """The form of jobs, from counts in quarter octaves of events and CPU time."""
    bins = np.stack([np.floor(4 * np.log2(toys.events)), np.floor(4 * np.log2(toys.cpu_s))]).astype(int)
    keys, row = np.unique(np.vstack([[toys.task, toys.unit], bins]), axis=1, return_inverse=True)
    row = row.ravel()
    number, events, cpu_s = np.bincount(row), np.bincount(row, toys.events), np.bincount(row, toys.cpu_s)
    residual = np.log(cpu_s / (events + np.nan_to_num(rho)[keys[0]] * number))
    return find_mixtures(keys[0], keys[1], residual, n_jobs=number)


def false_alarm_table(toys: int) -> Iterator[str]:
    """Tasks of one kind that are flagged, by the shape of their scatter."""
    rng = np.random.default_rng(1)
    rows = []
    for shape in SHAPES:
        for sigma in (0.15, 0.3):
            for units, jobs in SIZES:
                tasks = min(toys, 200_000 // jobs)
                found = rates(make_mixed(rng, tasks, units, jobs, 0.0, 1.0, shape=shape, sigma=sigma))
                cells = (f"{found[form]:.1%}" for form in FORMS)
                rows.append((shape, f"{sigma}", f"{units} x {jobs // units}", str(tasks), *cells))
    yield from table(["scatter", "sigma", "units x jobs", "tasks", *FORMS], rows)


def power_table(toys: int) -> Iterator[str]:
    """Mixed tasks that are flagged."""
    rng = np.random.default_rng(2)
    rows = []
    for units, jobs in SIZES:
        for share in SHARES:
            cells: dict[str, list[str]] = {form: [] for form in FORMS}
            for ratio in RATIOS:
                tasks = min(max(toys // 6, 10), 60_000 // jobs)
                found = rates(make_mixed(rng, tasks, units, jobs, share, ratio))
                for form in FORMS:
                    cells[form].append(f"{100 * found[form]:.0f}")
            rows += [(f"{units} x {jobs // units}", f"{share:.0%}", form, *cells[form]) for form in FORMS]
    header = ["units x jobs", "second kind", "from", *(f"ratio {ratio:g}" for ratio in RATIOS)]
    yield from table(header, rows)


def real_table(folder: Path) -> Iterator[str]:
    """The real tasks; the kind is made up from CPU time per event where there are two."""
    jobs = pd.concat([read_jobs(path) for path in sorted(folder.glob("job_records_*.csv.gz"))])
    quick = (jobs["task"] == "13743294 single") & (jobs["cpu_s"] / jobs["events"] < 0.25)
    jobs = jobs.assign(kind=np.where(quick, "merge", "simul"))
    sums = sum_jobs(jobs, logs=True)
    logs = LogSums(*(sums[name] for name in LOGS))
    sums = sums.drop(columns=list(LOGS))
    costs = estimate_fixed_cost(**sums)
    residual = fixed_cost_residuals(costs, jobs["task"], jobs["events"], jobs["cpu_s"])
    found = {
        "jobs": find_mixtures(jobs["task"], jobs["unit"], residual),
        "logs": find_mixtures_in_buckets(costs, **sums, logs=logs),
        "kinds": find_mixtures_in_buckets(costs, **sum_jobs(jobs, ("task", "unit", "kind"))),
    }
    rows = []
    for form, mixtures in found.items():
        one = mixtures.tasks
        for place, name in enumerate(one.name):
            kind = one.kind[place] or ""
            cells = (f"{one.n_jobs[place]:.0f}", f"{one.ratio[place]:.2f}", f"{one.sigma[place]:.2f}")
            rows.append((str(name), str(kind), form, *cells, one.decision[place], one.reason[place]))
    yield from table(["task", "kind", "from", "jobs", "ratio", "sigma", "decision", "reason"], rows)


TEXT = """# Mixed tasks

Written by `python -m benchmarks.mixture`; {versions}.
Made-up tasks with a fixed cost of 20 events, mean events per job from 10 to 40 by unit, units of different
size and speed. The second kind takes so many times less CPU time. What is known of the jobs:

- jobs: every job; two modes, or a wide unit;
- counted: number of jobs, events and CPU time in quarter octaves of events and CPU time, by unit;
- logs: sums of ln(events), ln(CPU time), their squares and product, by unit;
- squares: sums of events, CPU time, their squares and product, by unit and day (ten days);
- kinds: those sums by unit and kind, where the records name the kind.

rho is estimated from the mixed buckets, as it would be.

## False alarms: tasks of one kind that are flagged

"two CPUs": each unit has two that differ by 1.6x; "stuck jobs": 1 % take 3 to 30 times as long. Two CPUs that
differ by more than a factor of two are two kinds of work to this test: give every CPU model as a unit of its
own where it is known.

{alarms}

## Power: mixed tasks that are flagged, in percent (normal scatter of 0.2)

A ratio of 2 is the limit itself; 5 % of the jobs is the least that counts, and a share found counts if it is
not significantly less. A kind that is named is compared with the other inside every unit, so that a few jobs
will do.

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
