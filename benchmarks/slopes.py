"""Slopes told from steps and from nothing, night after night, on the daily factors of the demo's grid.

    python -m benchmarks.slopes [--seeds 61,62] [--out benchmarks/results/slopes.md]

Planted into one queue at a time: 20 % in 40 days, steps of 10 and 15 %, and nothing. Every night from the
20th on searches the days up to it, as ``esjobs drift`` does.
"""

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.drift import SMALLEST, Days, Floats, grid_days, series_of
from benchmarks.drift_grids import GRIDS
from benchmarks.machine import describe
from fitters import Slope, find_slope, find_steps

OUT = Path(__file__).parent / "results" / "slopes.md"
SINCE, FIRST_NIGHT = 12, 20
PLANTED: dict[str, Callable[[Floats], Floats]] = {
    "nothing": np.zeros_like,
    "20 % in 40 days": lambda day: np.clip((day - SINCE) / 40.0, 0.0, 1.0) * math.log(0.8),
    "step of 10 %": lambda day: np.where(day >= SINCE + 10, math.log(0.9), 0.0),
    "step of 15 %": lambda day: np.where(day >= SINCE + 10, math.log(0.85), 0.0),
}


def first_nights(days: Days, name: int, planted: Floats) -> tuple[int | None, int | None]:
    """The first night that tells a slope of a name, and the first that tells a step."""
    value = days.value.copy()
    value[:, name] += planted
    first: dict[bool, int] = {}
    changed = replace(days, value=value)
    for night in range(FIRST_NIGHT, len(value)):
        for _, series in series_of(changed, night, [name]):
            scale = series.scale
            for found in (find_slope(series, scale), *find_steps(series, scale)):
                if found is not None and found.exceeds(SMALLEST):
                    first.setdefault(isinstance(found, Slope), night)
    return first.get(True), first.get(False)


def measured(seed: int) -> dict[str, list[tuple[int | None, int | None]]]:
    """The first nights of every queue of a grid, by what is planted."""
    days = grid_days(GRIDS["demo"](seed))["queue"]
    day = np.arange(len(days.value), dtype=np.float64)
    return {
        label: [first_nights(days, name, shape(day)) for name in range(days.value.shape[1])]
        for label, shape in PLANTED.items()
    }


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[61, 62]
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.processes) as pool:
        found = list(pool.map(measured, args.seeds))
    lines = [
        "# Slopes: told from steps and from nothing",
        "",
        f"{describe()['cpu']}; `python -m benchmarks.slopes`, seeds {', '.join(map(str, args.seeds))} (the "
        f"method was tuned on toys): days of the demo's grid, a change from day {SINCE} (steps: {SINCE + 10})"
        f" in one queue at a time, every night from the {FIRST_NIGHT}th to the last.",
        "",
        "| planted | queues | slope told | step told | first night of the slope, median | of the step |",
        "|---|---|---|---|---|---|",
    ]
    for label in PLANTED:
        nights = [each for grid in found for each in grid[label]]
        cells = [_told([pair[at] for pair in nights]) for at in (0, 1)]
        lines.append(
            f"| {label} | {len(nights)} | {cells[0][0]} | {cells[1][0]} | {cells[0][1]} | {cells[1][1]} |"
        )
    args.out.write_text("\n".join([*lines, ""]))


def _told(nights: list[int | None]) -> tuple[str, str]:
    told = [night for night in nights if night is not None]
    return f"{len(told)}", f"{np.median(told):.0f}" if told else "-"


if __name__ == "__main__":
    main()
