"""How often periodic inverse phases are found in series that have them, and in series that do not.

    python -m benchmarks.scores --part rates --out benchmarks/results/scores_rates.md

Series are made up (``tests/issues/detectors/made_series.py``). Three minutes.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe, publish
from esjobs.issues.detectors import PUBLISHED, flagged, io_blocking
from tests.issues.detectors.made_series import STEP_S, Singles, bursts, periodic, step, telegraph, white

LENGTHS = (120, 240, 480, 2880)
HOURS = {120: "1 h", 240: "2 h", 480: "4 h", 2880: "24 h"}

Series = Callable[[np.random.Generator, int, int], tuple[Singles, Singles]]
POSITIVE: dict[str, dict[str, Any]] = {
    "period 10 samples": {},
    "period 7.3 (no whole number)": {"period": 7.3},
    "noise sd 0.15": {"noise": 0.15},
    "period jitter 2 %": {"jitter": 0.02},
    "period jitter 5 %": {"jitter": 0.05},
    "period jitter 10 %": {"jitter": 0.1},
}
NONE_TO_FIND: dict[str, dict[str, Any]] = {
    "in phase": {"inverse": False},
    "lagged by 1 min": {"lag": 2},
}
NOISE: dict[str, Series] = {
    "white noise": white,
    "random bursts": bursts,
    "telegraph": telegraph,
    "a step": step,
}

_MOST_VALUES = 4_000_000


def rate(make: Series, jobs: int, n: int, seed: int, *, cores: int = 16) -> tuple[float, float]:
    """Share of jobs flagged by the strict and by the adaptive variant."""
    rng = np.random.default_rng(seed)
    size = max(_MOST_VALUES // (n * cores), 1)
    strict, adaptive = 0, 0
    for begin in range(0, jobs, size):
        load, rates = make(rng, min(size, jobs - begin), n)
        found = io_blocking(load, {"write_b_s": rates}, STEP_S).strongest
        strict += int(flagged(found, PUBLISHED["io_blocking"]).sum())
        adaptive += int(flagged(found, PUBLISHED["io_blocking adaptive"]).sum())
    return strict / jobs, adaptive / jobs


def made(**options: Any) -> Series:
    """Periodic series with some options."""
    return lambda rng, jobs, n: periodic(rng, jobs, n, **options)


def table(positives: int, negatives: int) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| series | jobs | " + " | ".join(HOURS[n] for n in LENGTHS) + " |"
    yield "| --- " * (2 + len(LENGTHS)) + "|"
    for name, options in (POSITIVE | NONE_TO_FIND).items():
        yield _row(name, made(**options), positives)
    yield _row("6 periods", lambda rng, jobs, n: periodic(rng, jobs, n, period=n / 6), positives)
    for name, series in NOISE.items():
        yield _row(name, series, negatives, cores=1)


def _row(name: str, make: Series, jobs: int, *, cores: int = 16) -> str:
    cells = []
    for n in LENGTHS:
        strict, adaptive = rate(make, jobs, n, seed=n, cores=cores)
        cells.append(
            _share(strict, jobs) if n >= 480 else f"{_share(strict, jobs)} / {_share(adaptive, jobs)}"
        )
    return f"| {name} | {jobs} | " + " | ".join(cells) + " |"


def _share(value: float, jobs: int) -> str:
    return "0" if value == 0 else f"{value:.2f}" if jobs < 1000 else f"{value:.4f}"


TEXT = """# How often periodic phases are found

`python -m benchmarks.scores --part rates --positives {positives} --negatives {negatives}`. Python {python},
NumPy {numpy}, SciPy {scipy}.

Jobs of 16 cores, a sample in 30 s. I/O takes 3 of 10 samples, the cores wait meanwhile (load 0.05, else 0.9;
noise of each core 0.05, or what the row says); rates of I/O scatter by a part that differs between jobs, 0.2
in the mean. Jitter: standard deviation of each period, which moves all later ones. From "in phase" on there
is nothing to find; the last four rows have one unit.

Share of jobs that are flagged: by the strict rule (`pika`), and behind the stroke by `adaptive`, which is the
same from 480 samples on.

{table}
"""


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--positives", type=int, default=200)
    parser.add_argument("--negatives", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scores_rates.md"))
    options = parser.parse_args()
    begun = time.process_time()
    machine = describe("scipy")
    lines = list(table(options.positives, options.negatives))
    text = TEXT.format(
        positives=options.positives,
        negatives=options.negatives,
        python=machine["python"],
        numpy=machine["numpy"],
        scipy=machine["scipy"],
        table="\n".join(lines),
    )
    publish(options.out, text, {"machine": machine, "lines": lines, "cpu_s": time.process_time() - begun})


if __name__ == "__main__":
    main()
