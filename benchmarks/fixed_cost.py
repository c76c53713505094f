"""What the start-up time of jobs does to factors, and how well it is taken out, on toys and on real jobs.

    python -m benchmarks.fixed_cost [--toys 40] [--panda FOLDER] [--out benchmarks/results/fixed_cost.md]

Every cell of a table rests on the same number of toys unless it says otherwise. With `--panda`, the folder of
the four real tasks, the tables about them are written, too. Two minutes.
"""

import argparse
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fitters import Buckets, FixedCosts, correct_fixed_cost, estimate_fixed_cost, fit_speed_factors
from tests.fitters.job_toys import Sums, ToyJobs, make_jobs
from tests.fitters.panda_jobs import read_jobs, sum_jobs

Floats = NDArray[np.float64]

COSTS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
SIBLINGS = {
    "IN2P3-CC_CL7, _HIMEM, _VVL": ("IN2P3-CC_CL7", "IN2P3-CC_CL7_HIMEM", "IN2P3-CC_CL7_VVL"),
    "INFN-T1-CINECA _HIMEM, _UCORE": ("INFN-T1-CINECA-SL7_HIMEM", "INFN-T1-CINECA-SL7_UCORE"),
}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a Markdown table."""
    for line in (header, ["---"] * len(header), *rows):
        yield "| " + " | ".join(line) + " |"


def always(costs: FixedCosts) -> FixedCosts:
    """The same, corrected wherever rho is known, whatever the rule says."""
    decision = np.where(np.isfinite(costs.tasks.rho), "apply", costs.tasks.decision).astype(object)
    return replace(costs, tasks=replace(costs.tasks, decision=decision))


def pulls(toy: ToyJobs, sums: Sums, events: Floats, rel_var: Floats) -> tuple[Floats, Floats]:
    """ln k minus truth, and that in units of its statistical error."""
    buckets = Buckets.from_columns(sums.task, sums.unit, cpu_s=sums.cpu_s, events=events, rel_var=rel_var)
    units = fit_speed_factors(buckets, "gamma", sigma_int=0.0).units
    off = np.log(units.k) - toy.ln_k
    return off, off * units.k / units.k_err_stat


@dataclass
class Row:
    """What toys of one planted cost gave, by way of treating it."""

    off: dict[str, list[Floats]]
    pull: dict[str, list[Floats]]
    decisions: Counter[str]

    def bias(self, way: str) -> str:
        return f"{100 * np.abs(np.mean(self.off[way], axis=0)).max():.2f} %"

    def width(self, way: str) -> str:
        return f"{np.std(self.pull[way]):.2f}"


def planted(rho: float, toys: int, form: str, seed: int, **options: Any) -> Row:
    """Fit toys raw, by the rule, and always corrected."""
    rng = np.random.default_rng(seed)
    row = Row({}, {}, Counter())
    for _ in range(toys):
        toy = make_jobs(rng, rho=rho, **options)
        sums = toy.sums()
        columns = sums.columns()
        if form == "jobs":
            costs = estimate_fixed_cost(toy.task, toy.unit, toy.events, toy.cpu_s)
        else:
            costs = estimate_fixed_cost(**columns)
        row.decisions.update(costs.tasks.decision.tolist())
        rule, all_of_them = correct_fixed_cost(costs, **columns), correct_fixed_cost(always(costs), **columns)
        for way, events, rel_var in (
            ("raw", sums.events, rule.rel_var_raw),
            ("rule", rule.events_eff, rule.rel_var),
            ("always", all_of_them.events_eff, all_of_them.rel_var),
        ):
            off, pull = pulls(toy, sums, events, rel_var)
            row.off.setdefault(way, []).append(off)
            row.pull.setdefault(way, []).append(pull)
    return row


def bias_table(toys: int) -> Iterator[str]:
    """Bias and pulls of k, 12 units, 8 tasks, about 100 jobs a bucket."""
    rows = []
    for form, number in (("buckets", toys), ("jobs", max(toys // 3, 3))):
        for rho in COSTS if form == "buckets" else (5.0, 50.0):
            shape = {"units": 12, "tasks": 8, "per_bucket": 100}
            found = planted(rho, number if rho else 4 * toys, form, int(rho) + 1, **shape)
            applied = found.decisions["apply"] / found.decisions.total()
            ways = ("raw", "rule", "always")
            cells = *map(found.bias, ways), *map(found.width, ways)
            rows.append((f"{rho:.0f}", form, str(len(found.off["raw"])), f"{applied:.0%}", *cells))
    header = ["rho", "from", "toys", "corrected by the rule", "bias raw", "by the rule", "always"]
    yield from table([*header, "width raw", "by the rule", "always"], rows)


def shape_table(toys: int) -> Iterator[str]:
    """The same for other shapes of the data."""
    rows = []
    for name, options in (
        ("events uniform", {"law": "uniform"}),
        ("events gamma", {"law": "gamma"}),
        ("jobs scatter by 40 %", {"sigma": 0.4}),
        ("one task", {"tasks": 1}),
        ("4 units", {"units": 4}),
        ("20 jobs a bucket", {"per_bucket": 20, "units": 30}),
        ("lengths differ by 16", {"lengths": 4.0}),
    ):
        shape: dict[str, Any] = {"units": 12, "tasks": 8, "per_bucket": 100}
        found = planted(20.0, toys, "buckets", 7, **(shape | options))
        rows.append((name, *map(found.bias, ("raw", "rule")), *map(found.width, ("raw", "rule"))))
    yield from table(["rho = 20", "bias raw", "corrected", "width raw", "corrected"], rows)


def error_table(tasks: int) -> Iterator[str]:
    """Pulls of rho itself."""
    rows = []
    for law in ("log-normal", "gamma", "uniform"):
        for rho in (5.0, 20.0, 100.0):
            cells = []
            for units, per_bucket in ((3, 60), (10, 50), (30, 50)):
                rng = np.random.default_rng(int(rho))
                toy = make_jobs(rng, units, tasks, per_bucket, rho, law=law)
                forms = [estimate_fixed_cost(**toy.sums().columns()).tasks]
                if units < 30:
                    some = toy.task < max(tasks // 10, 5)
                    columns = (column[some] for column in (toy.task, toy.unit, toy.events, toy.cpu_s))
                    forms.append(estimate_fixed_cost(*columns).tasks)
                for found in forms:
                    pull = (found.rho - rho) / found.rho_err
                    cells.append(f"{np.median(found.rho):.1f}, {np.std(pull):.2f}")
            rows.append((f"{rho:.0f}", law, *cells))
    header = ["rho", "events", "3 x 60 buckets", "jobs", "10 x 50 buckets", "jobs", "30 x 50 buckets"]
    yield from table(header, rows)


def power_table(tasks: int) -> Iterator[str]:
    """Share of tasks that the rule corrects, from buckets."""
    rows = []
    for jobs in (60, 120, 250, 500, 1000, 4000):
        cells = []
        for rho in (0.0, 2.0, 5.0, 10.0, 20.0, 50.0):
            rng = np.random.default_rng(jobs)
            toy = make_jobs(rng, 4, min(tasks, 400_000 // jobs), jobs // 4, rho)
            decision = estimate_fixed_cost(**toy.sums().columns()).tasks.decision
            cells.append(f"{np.mean(decision == 'apply'):.1%}")
        rows.append((str(jobs), *cells))
    yield from table(["jobs of the task", "rho = 0", "2", "5", "10", "20", "50"], rows)


def real_tables(folder: Path) -> Iterator[str]:
    """Estimates, siblings and strata of the real tasks."""
    jobs = pd.concat([read_jobs(path) for path in sorted(folder.glob("job_records_*.csv.gz"))])
    sums = sum_jobs(jobs)
    costs = {
        "jobs": estimate_fixed_cost(jobs["task"], jobs["unit"], jobs["events"], jobs["cpu_s"]),
        "buckets": estimate_fixed_cost(**sums),
    }
    rows: list[tuple[str, ...]] = []
    numbers = {"n_jobs": 0, "n_trimmed": 0, "rho": 1, "rho_err": 1, "slope": 3, "slope_err": 3}
    for form, found in costs.items():
        for name in found.tasks.name:
            row = found.tasks.row(name)
            cells = (f"{row[key]:.{digits}f}" for key, digits in (numbers | {"events_ratio": 2}).items())
            rows.append((str(name), form, *cells, row["decision"], row["reason"]))
    header = ["task", "from", "jobs", "trimmed", "rho", "error", "slope", "error", "lengths differ"]
    yield from table([*header, "decision", "reason"], rows)
    yield ""
    one = jobs[jobs["task"] == "15350577 single"]
    sums = sum_jobs(one)
    k: dict[str, pd.Series] = {"raw": sums["events"] / sums["cpu_s"]}
    for form, found in costs.items():
        k[form] = pd.Series(correct_fixed_cost(found, **sums).events_eff) / sums["cpu_s"]
    k = {form: pd.Series(column.to_numpy(), sums["unit"]) for form, column in k.items()}
    rows = [
        (name, *(f"{column[list(queues)].max() / column[list(queues)].min():.3f}" for column in k.values()))
        for name, queues in SIBLINGS.items()
    ]
    many = sums.loc[sums["n_jobs"] >= 50, "unit"]
    for strata in (12, 20):
        reference = stratified(one, strata)[many]
        ratios = [np.log(column[many] / reference) for column in k.values()]
        worst = [float((ratio - ratio.median()).abs().max()) for ratio in ratios]
        usual = [float((ratio - ratio.median()).abs().median()) for ratio in ratios]
        pairs = zip(worst, usual, strict=True)
        cells = (f"{100 * most:.1f} % ({100 * half:.1f} %)" for most, half in pairs)
        rows.append((f"{strata} strata, {len(many)} queues of 50 jobs: largest (median) difference", *cells))
    yield from table(["15350577", "raw", "rho from jobs", "rho from buckets"], rows)


def stratified(jobs: pd.DataFrame, strata: int) -> pd.Series:
    """Factors from strata of events per job, each a task of its own: no model of the start-up time."""
    edges = np.unique(np.quantile(jobs["events"], np.arange(1, strata) / strata))
    cut = sum_jobs(jobs.assign(task=np.searchsorted(edges, jobs["events"])))
    columns = {name: cut[name] for name in ("cpu_s", "events")}
    buckets = Buckets.from_columns(cut["task"], cut["unit"], **columns, jobs=cut["n_jobs"])
    units = fit_speed_factors(buckets, "gamma", "jobs").units
    return pd.Series(units.k, units.name)


TEXT = """# Start-up time per job

Written by `python -m benchmarks.fixed_cost`; {versions}.
Made-up jobs take A (n + rho) / k seconds for n events, 20 on average, from 10 at one unit to 40 at another,
log-normal with a spread of 0.5 inside a unit; CPU time scatters by 20 %.

## Factors: largest bias of a unit, and width of the pulls of ln k (12 units, 8 tasks, 100 jobs a bucket)

"By the rule" is corrected where a start-up time above 0 or its error can move factors by more than 2 %,
whether it can be told from none or not; half of the tasks without any are, within their errors. "Always" is
corrected wherever rho is known. With {toys} toys a bias of 0.3 % to 0.6 % is what the toys' own statistics
give.

{bias}

{shapes}

## rho itself: median, width of its pulls

{errors}

## How many jobs it takes: share of tasks that the rule corrects (4 units)

{power}
"""

REAL = """
## Real tasks

Siblings are queues of one site with one declared value, largest over smallest factor. Strata of events per
job, each a task of its own, need no model; in the widest one jobs still differ by a factor.

{real}
"""


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=40)
    parser.add_argument("--panda", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fixed_cost.md"))
    options = parser.parse_args()
    names = ("numpy", "scipy", "numba")
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in names)])
    toys: int = options.toys
    page = TEXT.format(
        versions=versions,
        toys=toys,
        bias="\n".join(bias_table(toys)),
        shapes="\n".join(shape_table(toys)),
        errors="\n".join(error_table(5 * toys)),
        power="\n".join(power_table(16 * toys)),
    )
    if options.panda:
        page += REAL.format(real="\n".join(real_tables(options.panda)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
