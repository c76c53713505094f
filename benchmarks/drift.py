"""False alarms and found steps of the search for drift, night after night, on made-up grids.

    python -m benchmarks.drift [--seeds 31,32] [--out benchmarks/results/drift.md]

Every night asks all names again for steps in the days up to it, as ``esjobs drift`` does. Inputs: the daily
factors of made-up grids where nothing changes, those of the demo and others (``drift_grids``); toys with
the errors of the demo's factors, whose lasting part comes from tasks that live one to six days; the same
toys with a hundredth of the days wrong by 65 %. A step of 15 % is planted into the daily factors of a grid,
for one name at a time, and looked for on the five nights from its first day on.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esjobs
from benchmarks.drift_grids import GRIDS
from benchmarks.machine import describe
from esjobs.core.window import Window
from esjobs.demo.grid import LAST_DAY, Grid
from fitters import Series, align_days, find_steps, shared

OUT = Path(__file__).parent / "results" / "drift.md"
DAYS, WINDOW_DAYS, HISTORY, FIRST_NIGHT = 45, 30, 60, 12
THRESHOLDS = (3.5, 3.75, 4.0, 4.5)
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


def told(days: Days, night: int, names: list[int] | None = None) -> Iterator[tuple[int, int, float, float]]:
    """Name, day, size and significance of what a night finds at the lowest of the thresholds."""
    first = max(0, night - HISTORY + 1)
    seen = slice(first, night + 1)
    value, white, lasting = days.value[seen], days.white[seen], days.lasting[seen]
    aligned = align_days(value, np.hypot(white, lasting))
    for name in range(value.shape[1]) if names is None else names:
        known = np.isfinite(aligned[:, name])
        if known.sum() < 8:
            continue
        series = Series(
            np.arange(first, night + 1),
            aligned[:, name],
            white[:, name],
            lasting[:, name],
            days.alike[name, seen, seen],
        ).keep(known)
        for step in find_steps(series, series.scale, THRESHOLDS[0]):
            if abs(step.size) >= SMALLEST:
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
            session.drift(window)
        rows = session.arrow.show("daily_factors").to_pylist()
    return {level: _matrix([row for row in rows if row["level"] == level]) for level in ("site", "cpu_model")}


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


def false_alarms(grids: list[Days]) -> tuple[int, dict[float, tuple[int, int]]]:
    """Site-nights; by threshold, changes that are told for the first time, and site-nights with any."""
    n_nights = 0
    counts = {threshold: [0, 0] for threshold in THRESHOLDS}
    for days in grids:
        seen: dict[float, list[tuple[int, int]]] = {threshold: [] for threshold in THRESHOLDS}
        for night in range(FIRST_NIGHT, len(days.value)):
            n_nights += days.value.shape[1]
            found = list(told(days, night))
            for threshold in THRESHOLDS:
                sure = [(name, day) for name, day, _, sigmas in found if sigmas >= threshold]
                counts[threshold][1] += len({name for name, _ in sure})
                for name, day in sure:
                    if not any(name == other and abs(day - at) <= 5 for other, at in seen[threshold]):
                        counts[threshold][0] += 1
                        seen[threshold].append((name, day))
    return n_nights, {threshold: (first, some) for threshold, (first, some) in counts.items()}


def found_steps(grids: list[Days]) -> tuple[int, dict[float, list[int]]]:
    """Planted steps; by threshold, the nights after which each of those found was told first, 1 to 5."""
    planted = 0
    nights: dict[float, list[int]] = {threshold: [] for threshold in THRESHOLDS}
    for days in grids:
        for since in STEP_DAYS:
            for name in range(days.value.shape[1]):
                size = STEP if (name + since) % 2 else -STEP
                value = days.value.copy()
                value[since:, name] += size
                planted += 1
                left = set(THRESHOLDS)
                for night in range(since + 2, since + 5):
                    for _, day, change, sigmas in told(replace(days, value=value), night, [name]):
                        if change * size > 0 and abs(day - since) <= 2:
                            for threshold in [item for item in left if sigmas >= item]:
                                left.remove(threshold)
                                nights[threshold].append(night - since + 1)
    return planted, nights


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[31, 32]
    )
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    began = time.perf_counter()
    found = {label: [grid_days(grid(seed)) for seed in args.seeds] for label, grid in GRIDS.items()}
    sites = {label: [levels["site"] for levels in of_seeds] for label, of_seeds in found.items()}
    demo = sites["demo"]
    errors = np.concatenate([np.nanmedian(np.hypot(d.white, d.lasting), axis=0) for d in demo])
    rng = np.random.default_rng(7)
    inputs = {
        **{f"{label}: queues": of_seeds for label, of_seeds in sites.items()},
        "demo: CPU models": [levels["cpu_model"] for levels in found["demo"]],
        "toys": [toy(rng, demo[number % len(demo)], 0.0) for number in range(TOY_GRIDS)],
        "toys with bad days": [toy(rng, demo[number % len(demo)], 0.01) for number in range(TOY_GRIDS)],
    }
    heads = [f"{part}, {t:g}" for part in ("told first", "standing") for t in THRESHOLDS]
    lines = [
        "# Drift: false alarms and found steps",
        "",
        f"{describe()['cpu']}; `python -m benchmarks.drift`. Grids of {DAYS} days, each with the seeds "
        f"{', '.join(map(str, args.seeds))} (the method was tuned on others); the demo's has 10,000 jobs a "
        f"day and 60 queues, whose factor of one day has an error of {100 * np.median(errors):.1f} % in the "
        f"median, and below {100 * np.quantile(errors, 0.9):.1f} % at 90 % of them.",
        "",
        "False alarms per 1000 site-nights, every night from the 13th on asking all names again:",
        "",
        f"| input | site-nights | {' | '.join(heads)} |",
        "|---|---|" + "---|" * len(heads),
    ]
    for label, grids in inputs.items():
        n_nights, counts = false_alarms(grids)
        cells = [f"{1000 * counts[t][part] / n_nights:.2f}" for part in (0, 1) for t in THRESHOLDS]
        lines.append(f"| {label} | {n_nights:,} | {' | '.join(cells)} |")
        sys.stderr.write(f"{lines[-1]} {time.perf_counter() - began:.0f} s\n")
    lines += [
        "",
        "Steps of 15 % up or down, planted into the daily factors of one queue at a time, told within five "
        "nights, their first day included:",
        "",
        f"| grid | steps | {' | '.join(f'found, {t:g}' for t in THRESHOLDS)} |",
        "|---|---|" + "---|" * len(THRESHOLDS),
    ]
    for label, grids in sites.items():
        planted, nights = found_steps(grids)
        shares = [f"{100 * len(nights[t]) / planted:.1f} %" for t in THRESHOLDS]
        lines.append(f"| {label} | {planted} | {' | '.join(shares)} |")
        sys.stderr.write(f"{lines[-1]} {time.perf_counter() - began:.0f} s\n")
        if label == "demo":
            of_demo = planted, nights
    planted, nights = of_demo
    lines += [
        "",
        "Those of the demo, by night:",
        "",
        "| significance | after 3 nights | after 4 | after 5 |",
        "|---|---|---|---|",
    ]
    for threshold, when in nights.items():
        shares = [f"{100 * sum(night <= last for night in when) / planted:.1f} %" for last in (3, 4, 5)]
        lines.append(f"| {threshold:g} | {' | '.join(shares)} |")
    lines += [
        "",
        "told first: a change that no earlier night told; standing: site-nights with any change.",
        "",
    ]
    args.out.write_text("\n".join(lines))
    sys.stderr.write("\n".join(lines))


if __name__ == "__main__":
    main()
