"""False alarms and found steps of the search for drift, night after night, on made-up grids.

    python -m benchmarks.drift [--seeds 61,62,71,72,81,82] [--processes 2] [--out benchmarks/results/drift.md]

Every night asks all names again for steps in the days up to it, as ``esjobs drift`` does. Inputs: the daily
factors of made-up grids where nothing changes, those of the demo and others (``drift_grids``); toys with
the errors of the demo's factors, whose lasting part comes from tasks that live one to six days; the same
toys with a hundredth of the days wrong by 65 %. A step of 15 % is planted into the daily factors of a grid,
for one name at a time, and looked for on the five nights from its first day on. Beside what was found stands
what a search could find that is told the day of the step, and whose errors are exactly those of the factors.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import esjobs
from benchmarks.drift_grids import GRIDS
from benchmarks.machine import describe
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY, Grid
from fitters import Series, align_days, find_steps, shared
from fitters.change.noise import covariance
from fitters.change.steps import SURE

OUT = Path(__file__).parent / "results" / "drift.md"
DAYS, WINDOW_DAYS, HISTORY, FIRST_NIGHT = 45, 30, 60, 12
THRESHOLDS = (3.5, 3.75, 4.0)
"""The lowest is the default."""
SMALLEST = math.log(1.05)
STEP = math.log(1.15)
STEP_DAYS = (20, 30)
TOY_GRIDS, TOY_DAYS = 4, 90

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Days:
    """Daily factors in ln and the two parts of their errors, days x names; NaN where there is none.

    ``alike``: correlation of the lasting parts of the days of each name, names x days x days.
    """

    value: Floats
    white: Floats
    lasting: Floats
    alike: Floats


def series_of(days: Days, night: int, names: list[int] | None = None) -> Iterator[tuple[int, Series]]:
    """Name and series of each name that a night looks at."""
    first = max(0, night - HISTORY + 1)
    seen = slice(first, night + 1)
    value, white, lasting = days.value[seen], days.white[seen], days.lasting[seen]
    aligned = align_days(value, np.hypot(white, lasting))
    for name in range(value.shape[1]) if names is None else names:
        known = np.isfinite(aligned[:, name])
        if known.sum() < 8:
            continue
        alike = days.alike[name, seen, seen]
        series = Series(
            np.arange(first, night + 1), aligned[:, name], white[:, name], lasting[:, name], alike
        )
        yield name, series.keep(known)


def told(days: Days, night: int, names: list[int] | None = None) -> Iterator[tuple[int, int, float, float]]:
    """Name, day, size and significance of what a night finds at the lowest of the thresholds."""
    for name, series in series_of(days, night, names):
        for step in find_steps(series, series.scale, THRESHOLDS[0]):
            if step.exceeds(SMALLEST):
                yield name, step.day, step.size, step.significance


def grid_days(grid: Grid) -> dict[str, Days]:
    """The daily factors of a grid where nothing changes, by level."""
    first = LAST_DAY - timedelta(days=DAYS - 1)
    with esjobs.open("duckdb::memory:") as session:
        for number in range(DAYS):
            session.store.put_jobs(grid.jobs(first + timedelta(days=number)), f"day {number}")
        for last in range(WINDOW_DAYS - 1, DAYS, 15):
            window = Window.of_days(
                first + timedelta(days=last - WINDOW_DAYS + 1), first + timedelta(days=last)
            )
            session.run(window)
            session.flags.drift(window)
        rows = session.tables.daily_factors().rows.to_pylist()
    return {
        level: _matrix([row for row in rows if row["level"] == level]) for level in ("queue", "cpu_model")
    }


def _matrix(rows: list[Mapping[str, Any]]) -> Days:
    days = sorted({row["day"] for row in rows})
    names = sorted({row["name"] for row in rows})
    found = [np.full((len(days), len(names)), np.nan) for _ in range(3)]
    for row in rows:
        place = days.index(row["day"]), names.index(row["name"])
        for matrix, value in zip(
            found,
            (math.log(row["k"]), row["k_err_stat"] / row["k"], row["k_err_int"] / row["k"]),
            strict=True,
        ):
            matrix[place] = value
    lists: list[list[tuple[list[float], list[float]]]] = [[([], []) for _ in days] for _ in names]
    for row in rows:
        lists[names.index(row["name"])][days.index(row["day"])] = row["tasks"], row["task_parts"]
    alike = [shared([tasks for tasks, _ in of_name], [parts for _, parts in of_name]) for of_name in lists]
    value, white, lasting = found
    return Days(value, white, lasting, np.array(alike))


def toy(rng: np.random.Generator, like: Days, stray: float) -> Days:
    """Noise with the errors of a grid; ``stray``: share of the days that are wrong."""
    white, lasting = (np.nanmedian(part, axis=0) for part in (like.white, like.lasting))
    shape = (TOY_DAYS, len(white))
    life = rng.integers(1, 7, (TOY_DAYS + 6, len(white), 6))
    of_task = rng.standard_normal(life.shape)
    # parts of the tasks born on the six days up to each, in the order of their ages
    born = [slice(6 - age, 6 - age + TOY_DAYS) for age in range(6)]
    share = np.stack([np.clip(life[rows] - age, 0, None) / life[rows] for age, rows in enumerate(born)])
    drawn = np.stack([of_task[rows] for rows in born])
    total, norm = (share * drawn).sum(axis=(0, 3)), np.sqrt((share**2).sum(axis=(0, 3)))
    value = white * rng.standard_normal(shape) + lasting * total / norm
    value += np.where(rng.random(shape) < stray, rng.choice([-0.5, 0.5], shape), 0.0)
    number = np.stack([np.arange(life.size).reshape(life.shape)[rows] for rows in born])
    alike = [
        shared(
            *(part[:, :, name].transpose(1, 0, 2).reshape(TOY_DAYS, -1).tolist() for part in (number, share))
        )
        for name in range(len(white))
    ]
    return Days(value, np.broadcast_to(white, shape), np.broadcast_to(lasting, shape), np.array(alike))


@dataclass(frozen=True)
class Alarms:
    """Site-nights; by threshold, changes that are told for the first time, and site-nights with any."""

    n_nights: int
    first: Counter[float]
    standing: Counter[float]

    def __add__(self, other: "Alarms") -> "Alarms":
        return Alarms(
            self.n_nights + other.n_nights, self.first + other.first, self.standing + other.standing
        )

    @property
    def cells(self) -> list[str]:
        """Per 1000 site-nights."""
        return [
            f"{1000 * count[t] / self.n_nights:.2f}"
            for count in (self.first, self.standing)
            for t in THRESHOLDS
        ]


@dataclass(frozen=True)
class Found:
    """Planted steps, those that could be found, and those told, by threshold and nights after the step."""

    planted: int
    possible: float
    nights: Counter[tuple[float, int]]

    def __add__(self, other: "Found") -> "Found":
        return Found(self.planted + other.planted, self.possible + other.possible, self.nights + other.nights)

    def told(self, threshold: float, last: int = 5) -> float:
        """Share of the steps that were told after so many nights or fewer."""
        return sum(self.nights[threshold, night] for night in range(1, last + 1)) / self.planted

    @property
    def cells(self) -> list[str]:
        """In percent, with the standard error of the first."""
        shares = [self.told(threshold) for threshold in THRESHOLDS]
        error = math.sqrt(shares[0] * (1.0 - shares[0]) / self.planted)
        rest = [f"{100 * share:.1f} %" for share in shares[1:]]
        first = f"{100 * shares[0]:.1f} ± {100 * error:.1f} %"
        return [str(self.planted), f"{100 * self.possible / self.planted:.1f} %", first, *rest]


def false_alarms(days: Days) -> Alarms:
    """What is told where nothing changes."""
    names = days.value.shape[1]
    first, standing = Counter[float](), Counter[float]()
    seen: dict[float, list[tuple[int, int]]] = {threshold: [] for threshold in THRESHOLDS}
    nights = range(FIRST_NIGHT, len(days.value))
    for night in nights:
        found = list(told(days, night))
        for threshold in THRESHOLDS:
            sure = [(name, day) for name, day, _, sigmas in found if sigmas >= threshold]
            standing[threshold] += len({name for name, _ in sure})
            for name, day in sure:
                if not any(name == other and abs(day - at) <= 5 for other, at in seen[threshold]):
                    first[threshold] += 1
                    seen[threshold].append((name, day))
    return Alarms(names * len(nights), first, standing)


def found_steps(days: Days) -> Found:
    """What is told of steps that are planted, one at a time."""
    planted, possible = 0, 0.0
    nights = Counter[tuple[float, int]]()
    for since in STEP_DAYS:
        for name in range(days.value.shape[1]):
            size = STEP if (name + since) % 2 else -STEP
            value = days.value.copy()
            value[since:, name] += size
            planted += 1
            possible += _possible(days, name, since)
            left = set(THRESHOLDS)
            for night in range(since + 2, since + 5):
                for _, day, change, sigmas in told(replace(days, value=value), night, [name]):
                    if change * size > 0 and abs(day - since) <= 2:
                        for threshold in [item for item in left if sigmas >= item]:
                            left.remove(threshold)
                            nights[threshold, night - since + 1] += 1
    return Found(planted, possible, nights)


def _possible(days: Days, name: int, since: int) -> float:
    """How probably a step is told by a search that knows its day and the errors, after five nights."""
    seen = slice(0, since + 5)
    known = np.isfinite(days.value[seen, name])
    after = np.arange(since + 5)[known] >= since
    if not after.any() or after.all():
        return 0.0
    alike = days.alike[name, seen, seen][np.ix_(known, known)]
    matrix = covariance(days.white[seen, name][known], days.lasting[seen, name][known], alike)
    design = np.column_stack([np.ones(len(after)), after])
    error = math.sqrt(np.linalg.inv(design.T @ np.linalg.solve(matrix, design))[1, 1])
    needed = max(THRESHOLDS[0] * error, SMALLEST + SURE * error)
    return float(special.ndtr((STEP - needed) / error))


@dataclass(frozen=True)
class Measured:
    """What one grid gave; ``days``: its queues."""

    days: Days
    queues: Alarms
    models: Alarms
    found: Found


def measured(label: str, seed: int) -> Measured:
    """A grid of one seed."""
    levels = grid_days(GRIDS[label](seed))
    days = levels["queue"]
    return Measured(days, false_alarms(days), false_alarms(levels["cpu_model"]), found_steps(days))


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--seeds",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[61, 62, 71, 72, 81, 82],
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    seeds: list[int] = args.seeds
    with ProcessPoolExecutor(args.processes) as pool:
        asked = {(label, seed): pool.submit(measured, label, seed) for label in GRIDS for seed in seeds}
        by_seed = [asked["demo", seed].result() for seed in seeds]
        rng = np.random.default_rng(7)
        toys = {
            label: [
                pool.submit(false_alarms, toy(rng, by_seed[number % len(seeds)].days, stray))
                for number in range(TOY_GRIDS)
            ]
            for label, stray in (("toys", 0.0), ("toys with bad days", 0.01))
        }
        grids = {label: [asked[label, seed].result() for seed in seeds] for label in GRIDS}
        of_toys = {label: [one.result() for one in made] for label, made in toys.items()}
    args.out.write_text(_page(seeds, grids, of_toys))


def _page(seeds: list[int], grids: Mapping[str, list[Measured]], toys: Mapping[str, list[Alarms]]) -> str:
    """The tables in Markdown."""
    demo = grids["demo"]
    errors = np.concatenate([np.nanmedian(np.hypot(g.days.white, g.days.lasting), axis=0) for g in demo])
    alarms = {
        **{f"{label}: queues": [one.queues for one in made] for label, made in grids.items()},
        "demo: CPU models": [one.models for one in demo],
        **toys,
    }
    found = {label: [one.found for one in made] for label, made in grids.items()}
    of_demo = sum(found["demo"][1:], found["demo"][0])
    return "\n".join(
        [
            "# Drift: false alarms and found steps",
            "",
            f"{describe()['cpu']}; `python -m benchmarks.drift`. Grids of {DAYS} days, each with the seeds "
            f"{', '.join(map(str, seeds))} (the method was tuned on others); the demo's has 10,000 jobs a "
            f"day and 60 queues, whose factor of one day has an error of {100 * np.median(errors):.1f} % in "
            f"the median, and below {100 * np.quantile(errors, 0.9):.1f} % at 90 % of them.",
            "",
            "False alarms per 1000 site-nights, every night from the 13th on asking all names again:",
            "",
            *_head("input", "site-nights", *_by_threshold("told first"), *_by_threshold("standing")),
            *(
                _line(label, f"{total.n_nights:,}", *total.cells)
                for label, made in alarms.items()
                for total in (sum(made[1:], made[0]),)
            ),
            "",
            "Steps of 15 % up or down, planted into the daily factors of one queue at a time, told within "
            "five nights, their first day included. *Possible*: expected of a search that is told the "
            f"day, and whose errors are exactly those of the factors, at {THRESHOLDS[0]:g}.",
            "",
            *_head("grid", "steps", "possible", *_by_threshold("found")),
            *(_line(label, *sum(made[1:], made[0]).cells) for label, made in found.items()),
            "",
            "The demo by seed:",
            "",
            *_head(
                "seed",
                *_by_threshold("told first"),
                *_by_threshold("status_shown"),
                "steps",
                "possible",
                *_by_threshold("found"),
            ),
            *(
                _line(str(seed), *one.queues.cells, *one.found.cells)
                for seed, one in zip(seeds, demo, strict=True)
            ),
            "",
            "Steps of the demo by night:",
            "",
            *_head("significance", "after 3 nights", "after 4", "after 5"),
            *(
                _line(f"{t:g}", *(f"{100 * of_demo.told(t, last):.1f} %" for last in (3, 4, 5)))
                for t in THRESHOLDS
            ),
            "",
            "told first: a change that no earlier night told; standing: site-nights with any change.",
            "",
        ]
    )


def _by_threshold(what: str) -> list[str]:
    return [f"{what}, {threshold:g}" for threshold in THRESHOLDS]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*cells: str) -> list[str]:
    return [_line(*cells), "|" + "---|" * len(cells)]


if __name__ == "__main__":
    main()
