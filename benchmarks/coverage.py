"""Do the errors hold? Pulls, coverage, bias, stray values and difficult starts, on toys with a known truth.

    python -m benchmarks.coverage [--toys 100] [--out benchmarks/results/coverage.md]

Every row says how many toys it rests on; errors of a share are those between toys, since the pulls of one
toy share its scale. Small versions of all of this are tests.
"""

import argparse
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitters import Buckets, fit_speed_factors, kind_scatter
from fitters.variance.of_estimates import drawn_to_mean, paule_mandel
from tests.fitters import test_hard_starts as hard
from tests.fitters.toys import Toy, make, shape

Floats = NDArray[np.float64]
Maker = Callable[[np.random.Generator], Toy]

TASKS = (2, 3, 5, 20, 60, 200)
SIGMAS = (0.0, 0.05, 0.10, 0.20)
SLACK = 0.015


@dataclass(frozen=True)
class Row:
    """Pulls of one case, one array per toy."""

    pulls: list[Floats]
    moves: list[Floats]
    scatter: str = ""
    dof: float = float("nan")

    def share(self, limit: float) -> tuple[float, float]:
        """Share of pulls inside the limit, and its error from the differences between toys."""
        each = np.array([np.mean(np.abs(pull) < limit) for pull in self.pulls])
        return float(each.mean()), float(each.std() / np.sqrt(each.size))

    @property
    def width(self) -> float:
        return float(np.concatenate(self.pulls).std())

    @property
    def rms(self) -> float:
        return float(np.concatenate(self.moves).std())


def run(maker: Maker, toys: int, error: str = "k_err", seed: int = 1, **options: Any) -> Row:
    """Fit toys and collect the pulls of ln k."""
    rng = np.random.default_rng(seed)
    pulls, moves, sources, dof = [], [], set(), []
    for _ in range(toys):
        toy = maker(rng)
        result = fit_speed_factors(toy.buckets(), judge="none", **options)
        units = result.units
        truth = np.log(toy.k[units.name.astype(int)])
        good = np.isfinite(units.k) & np.isfinite(getattr(units, error))
        truth = truth[good] - np.log(np.mean(np.exp(truth[good])))
        move = np.log(units.k[good] / units.k[good].mean()) - truth
        if good.any():
            moves.append(move)
            pulls.append(move * units.k[good] / getattr(units, error)[good])
        sources.add(result.sigma_int.source)
        dof.append(result.dof)
    return Row(pulls, moves, "/".join(sorted(sources)), float(np.mean(dof)))


HEADLINE: dict[str, Any] = {"objective": "gamma", "weights": "variance", "robust": "reject"}


def interaction(units: int, tasks: int, sigma: float, stat: float = 0.05) -> Maker:
    """Statistical errors around 5 % and an interaction, gamma-distributed; few tasks run everywhere."""

    def maker(rng: np.random.Generator) -> Toy:
        per_task = units if tasks <= 10 else min(units, 12)
        task = np.repeat(np.arange(tasks), per_task)
        unit = np.concatenate([rng.permutation(units)[:per_task] for _ in range(tasks)])
        rel_var = stat**2 * np.exp(rng.normal(0, 0.7, task.size))
        size = np.sqrt(rel_var + sigma**2)
        toy = make(rng, units, tasks, sigma=size, layout=(task, unit), law="gamma")
        return Toy(toy.task, toy.unit, toy.value, toy.k, toy.A, None, rel_var)

    return maker


def interaction_table(toys: int) -> Iterator[str]:
    yield "| units | tasks | dof | sigma_int | source | width | inside 1 sigma | inside 1.96 sigma | holds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for units in (8, 40):
        for tasks in TASKS:
            for sigma in SIGMAS:
                row = run(interaction(units, tasks, sigma), toys, **HEADLINE)
                one, two = row.share(1.0), row.share(1.96)
                if row.scatter == "assumed":
                    holds = "0.10 assumed"
                else:
                    off = [
                        abs(one[0] - 0.6827) / (SLACK + 2 * one[1]),
                        abs(two[0] - 0.95) / (SLACK + 2 * two[1]),
                    ]
                    wide = "too wide" if one[0] > 0.6827 else "too narrow"
                    holds = "yes" if max(off) < 1 else wide
                yield (
                    f"| {units} | {tasks} | {row.dof:.0f} | {sigma:.2f} | {row.scatter} | {row.width:.3f} "
                    f"| {one[0]:.3f} +- {one[1]:.3f} | {two[0]:.3f} +- {two[1]:.3f} | {holds} |"
                )


def plain(sigma: float, law: str = "gauss", per_task: float = 8.0, tasks: int = 300) -> Maker:
    return lambda rng: make(rng, 30, tasks, per_task, sigma=sigma, law=law)


def by_jobs(floor: float, tasks: int) -> Maker:
    """Buckets of 2 to 2000 jobs whose scatter is 0.5, and a floor."""

    def maker(rng: np.random.Generator) -> Toy:
        layout = shape(rng, 30, tasks, 8.0)
        jobs = np.exp(rng.normal(np.log(60), 1.2, layout[0].size)).round() + 2
        toy = make(rng, 30, tasks, sigma=np.sqrt(0.25 / jobs + floor**2), layout=layout)
        return Toy(toy.task, toy.unit, toy.value, toy.k, toy.A, jobs)

    return maker


def by_unit(tasks: int) -> Maker:
    """Units of relative error 0.05, 0.1, 0.2 in turn; jobs are what weights 1 / S^2 need."""

    def maker(rng: np.random.Generator) -> Toy:
        layout = shape(rng, 30, tasks, 8.0)
        size = np.array([0.05, 0.1, 0.2])[layout[1] % 3]
        toy = make(rng, 30, tasks, sigma=size, layout=layout)
        return Toy(toy.task, toy.unit, toy.value, toy.k, toy.A, 1.0 / size**2, size**2)

    return maker


def stray(share: float) -> Maker:
    """Some values wrong by 3 to 30, up or down."""

    def maker(rng: np.random.Generator) -> Toy:
        toy = make(rng, 30, 60, 8.0)
        size = toy.value.size
        wrong = np.exp(rng.choice([-1, 1], size) * rng.uniform(np.log(3), np.log(30), size))
        value = np.where(rng.random(size) < share, toy.value * wrong, toy.value)
        return Toy(toy.task, toy.unit, value, toy.k, toy.A)

    return maker


def cases(long: int) -> list[tuple[str, Maker, str, int, str]]:
    """Name, toys, weights, divisor of the number of toys, kind of error."""
    return [
        ("S = 0.1, Gaussian", plain(0.1), "none", 1, "k_err_model"),
        ("S = 0.3, Gaussian", plain(0.3), "none", 1, "k_err_model"),
        ("S = 0.3, gamma-distributed", plain(0.3, "gamma"), "none", 1, "k_err_model"),
        ("2 to 4 units a task, S = 0.1", plain(0.1, per_task=2.3), "none", 1, "k_err_model"),
        ("jobs 0.5 / sqrt N, w = 1", by_jobs(0.0, 300), "none", 1, "k_err_model"),
        ("jobs 0.5 / sqrt N, w = N", by_jobs(0.0, 300), "jobs", 1, "k_err_model"),
        (f"jobs and 5 % floor, w = N ({long} tasks)", by_jobs(0.05, long), "jobs", 4, "k_err_model"),
        ("   the same, sandwich", by_jobs(0.05, long), "jobs", 4, "k_err_sandwich"),
        (f"jobs and 5 % floor, w = floor ({long} tasks)", by_jobs(0.05, long), "floor", 4, "k_err_model"),
        ("unit S = .05/.1/.2, w = 1", by_unit(300), "none", 1, "k_err_model"),
        (f"   the same, {long} tasks", by_unit(long), "none", 4, "k_err_model"),
        (f"   the same, {long} tasks, w = 1 / S_i^2", by_unit(long), "jobs", 4, "k_err_model"),
        (f"   the same, {long} tasks, errors from rel_var", by_unit(long), "none", 4, "k_err"),
    ]


def case_table(toys: int) -> Iterator[str]:
    yield "| case | toys | paper: width | 68 % | 95 % | rms | gamma: width | 68 % | 95 % | rms |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, maker, weights, less, error in cases(3000):
        number = max(toys // less, 10)
        cells = []
        for objective in ("paper", "gamma"):
            row = run(maker, number, error, objective=objective, weights=weights)
            cells.append(
                f"{row.width:.3f} | {row.share(1)[0]:.3f} | {row.share(1.96)[0]:.3f} | {row.rms:.4f}"
            )
        yield f"| {name} | {number} | {' | '.join(cells)} |"


def bias_table(toys: int) -> Iterator[str]:
    yield "| objective | weights | S = .05 | S = .1 | S = .2 |"
    yield "|---|---|---|---|---|"
    for objective in ("paper", "gamma"):
        for weights in ("none", "jobs"):
            row = run(by_unit(3000), max(toys // 4, 10), objective=objective, weights=weights)
            bias = 100 * np.mean(row.moves, axis=0).reshape(10, 3).mean(axis=0)
            label = "1" if weights == "none" else "1 / S^2"
            yield f"| {objective} | {label} | {' | '.join(f'{value:+.2f} %' for value in bias)} |"


def robust_table(toys: int) -> Iterator[str]:
    yield "| stray values | method | rms of ln k | width | inside 1 sigma | inside 1.96 sigma |"
    yield "|---|---|---|---|---|---|"
    methods = (
        ("paper", "none"),
        ("paper", "reject"),
        ("gamma", "none"),
        ("gamma", "reject"),
    )
    for share in (0.0, 0.01, 0.05):
        for objective, robust in methods:
            row = run(stray(share), toys, objective=objective, robust=robust)
            yield (
                f"| {share:.0%} | {objective}, {robust} | {row.rms:.4f} | {row.width:.3f} "
                f"| {row.share(1)[0]:.3f} | {row.share(1.96)[0]:.3f} |"
            )


SHARED_UNITS, SHARED_ERROR, SHARED_KINDS, TASKS_OF_A_KIND = 40, 0.2, 3, 5


def shared_table(toys: int) -> Iterator[str]:
    """Fixed costs of units, and what units do to all tasks of a kind: more tasks do not shrink them."""
    yield "| effect | scatter | found | inside 1 sigma | inside 1.96 sigma |"
    yield "|---|---|---|---|---|"
    for what, pulls_of in (("fixed cost of a unit", _cost_pulls), ("unit and kind", _kind_pulls)):
        for scatter in (0.0, 0.05, 0.1, 0.15, 0.3, 0.6):
            rng = np.random.default_rng([len(what), int(100 * scatter)])
            found, pulls = zip(*(pulls_of(rng, scatter) for _ in range(toys)), strict=True)
            row = Row(list(pulls), [])
            one, two = row.share(1.0), row.share(1.96)
            yield (
                f"| {what} | {scatter:.2f} | {np.mean(found):.3f} | {one[0]:.3f} +- {one[1]:.3f} "
                f"| {two[0]:.3f} +- {two[1]:.3f} |"
            )


def _cost_pulls(rng: np.random.Generator, scatter: float) -> tuple[float, Floats]:
    truth = rng.normal(0, scatter, SHARED_UNITS)
    variance = (SHARED_ERROR * np.exp(rng.normal(0, 0.15, SHARED_UNITS))) ** 2
    value = truth + rng.normal(0, np.sqrt(variance))
    found, centre, _ = paule_mandel(value, variance, np.zeros(SHARED_UNITS, np.int64), 1)
    drawn, unknown = drawn_to_mean(value - centre[0], variance, np.ones(SHARED_UNITS, bool))
    return float(found[0]), (drawn - truth + truth.mean()) / np.sqrt(unknown)


def _kind_pulls(rng: np.random.Generator, scatter: float) -> tuple[float, Floats]:
    """Pulls of the means of units over kinds that they have, statistics and interaction of 5 % included."""
    unit = np.repeat(np.arange(SHARED_UNITS), SHARED_KINDS * TASKS_OF_A_KIND)
    kind = np.tile(np.repeat(np.arange(SHARED_KINDS), TASKS_OF_A_KIND), SHARED_UNITS)
    effect = rng.normal(0, scatter, (SHARED_UNITS, SHARED_KINDS))[unit, kind]
    residual = effect + rng.normal(0, 0.07, unit.size)
    found = kind_scatter(unit, kind, residual, np.full(unit.size, 0.07**2), SHARED_UNITS)
    mean = np.bincount(unit, residual) / np.bincount(unit)
    variance = found.unit_variance + 0.07**2 / (SHARED_KINDS * TASKS_OF_A_KIND)
    return found.sigma, mean / np.sqrt(variance)


def start_table(sets: int) -> Iterator[str]:
    yield "| case | sets | worse than the best of 5 other searches | Minuit calls it valid |"
    yield "|---|---|---|---|"
    for case in (hard.wide, hard.outliers, hard.clusters, hard.sparse, hard.noisy):
        worse = valid = 0
        for seed in range(sets):
            toy = case(np.random.default_rng(5000 + seed))
            buckets: Buckets = toy.buckets()
            result = fit_speed_factors(buckets)
            found = float(np.nansum(result.components.f))
            worse += not found <= hard.best_known(toy, buckets, 3) * (1 + 1e-6) + 1e-12
            valid += result.components.verdict[0].valid
        yield f"| {case.__name__} | {sets} | {worse} | {valid} |"


TEXT = """# Do the errors hold?

Written by `python -m benchmarks.coverage`; {versions}. Widths and shares are of pulls of ln k with a known
truth; 0.683 and 0.950 are right.

## Errors from jobs and interaction, {toys} toys a cell

Headline method: gamma, weights by variance, strays rejected. Statistical errors are uneven around 5 %.
"Holds" means within 0.015 and two errors of the share. Below ten degrees of freedom 0.10 is assumed:
coverage then only says how 0.10 compares with the truth (right where that is 0.10, wide below, narrow
above), which is why such errors are marked. "Too wide" at sigma_int = 0 with few tasks: an estimate cannot
be negative, so that on average something is added where nothing is. "Too narrow" where sigma_int is about
as small as its error is the other side of this: the estimate is often 0 there.

{interaction}

## Errors from the spread of residuals

{cases}

## Bias where relative errors differ between units (3000 tasks)

A chi2 with errors proportional to the expectation lacks the ln mu term of the likelihood.

{bias}

## Stray values, wrong by a factor 3 to 30

{robust}

## Effects that more tasks do not average out, {toys} toys a row

{units} units. Fixed cost: ln f known to {cost_error:.0%} each, drawn to 1, what stays unknown averaged over
all scatters that the values allow; 100 % at none is the price of holding where 40 units cannot tell. Unit and
kind: {kinds} kinds of {tasks} tasks each, 7 % of statistics and interaction a task.

{shared}

## Difficult starts

{starts}
"""


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toys", type=int, default=100)
    parser.add_argument("--sets", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/coverage.md"))
    options = parser.parse_args()
    names = ("numpy", "scipy", "numba", "iminuit")
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in names)])
    toys: int = options.toys
    page = TEXT.format(
        versions=versions,
        toys=toys,
        interaction="\n".join(interaction_table(toys)),
        cases="\n".join(case_table(toys)),
        bias="\n".join(bias_table(toys)),
        robust="\n".join(robust_table(toys)),
        starts="\n".join(start_table(options.sets)),
        shared="\n".join(shared_table(toys)),
        units=SHARED_UNITS,
        kinds=SHARED_KINDS,
        tasks=TASKS_OF_A_KIND,
        cost_error=SHARED_ERROR,
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
