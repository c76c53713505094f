"""The ten nearest of many jobs, and one job against 1,500, beside dtaidistance without bounds.

    python -m benchmarks.similar --jobs 100000 --out benchmarks/results/similar.md

Needs ``dtaidistance`` (``benchmarks/requirements.txt``). Made-up families of jobs of 500 samples and 8
metrics; a query of a family is like something known, a novel one is a family of its own. Seconds are of the
clock, for people wait for them; processor seconds stand beside them. Memory is the peak of the process.
"""

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import describe, load, publish
from fitters import WarpedSeries
from fitters.warping.costs import Search
from fitters.warping.search import _envelope

SAMPLES, METRICS, BAND, TOP = 500, 8, 50, 10
DISTANCE = 0.3
"""Jobs of a family are nearer, others are not."""
_OF_FAMILY = 50
_QUERIES = 5

Floats32 = npt.NDArray[np.float32]


def family(seed: int, members: int) -> Floats32:
    """Jobs of one program: levels, steps and swings of its own, each moved a little, with noise."""
    rng = np.random.default_rng(seed)
    at = np.arange(SAMPLES)[:, None] / SAMPLES
    levels = rng.normal(size=(1, METRICS))
    swings = rng.exponential(0.5, (1, METRICS))
    periods = rng.uniform(1, 30, (1, METRICS))
    steps = rng.normal(size=(1, METRICS)) * 0.7
    begins = rng.uniform(size=(1, METRICS))
    jobs = np.empty((members, SAMPLES, METRICS), np.float32)
    for job in range(members):
        moved = at + rng.normal(scale=0.02)
        shape = levels + swings * np.sin(2 * np.pi * periods * moved) + steps * (moved > begins)
        jobs[job] = shape + rng.normal(scale=0.1, size=shape.shape)
    return jobs


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The answer, seconds of the clock, processor seconds."""
    clock, cpu = time.perf_counter(), time.process_time()
    answer = work()
    return answer, time.perf_counter() - clock, time.process_time() - cpu


def brute(query: Floats32, series: Floats32) -> npt.NDArray[np.float64]:
    """Distances by dtaidistance, pair by pair, nothing excluded."""
    from dtaidistance import dtw_ndim

    wide = query.astype(np.float64)
    distances = [dtw_ndim.distance_fast(wide, one.astype(np.float64), window=BAND + 1) for one in series]
    found: npt.NDArray[np.float64] = np.array(distances) / np.sqrt(query.size)
    return found


def measure(jobs: int, compared: int) -> list[dict[str, Any]]:
    """A row per measurement; the answers are compared with those of dtaidistance."""
    series = np.empty((jobs, SAMPLES, METRICS), np.float32)
    for begin in range(0, jobs, _OF_FAMILY):
        part = series[begin : begin + _OF_FAMILY]
        part[:] = family(begin, len(part))
    small = WarpedSeries(series[:compared], BAND)
    known = family(0, _OF_FAMILY + 1)[-1]
    small.nearest(known, 1)
    theirs, clock, cpu = timed(lambda: brute(known, small.series))
    rows = [row(f"1 against {compared:,}, dtaidistance", clock, cpu, compared)]
    for top, what in ((compared, "all"), (TOP, f"top {TOP}")):
        nearest, clock, cpu = timed(partial(small.nearest, known, top))
        np.testing.assert_allclose(nearest.distances, np.sort(theirs)[:top], rtol=1e-5)
        rows.append(row(f"1 against {compared:,}, esjobs, {what}", clock, cpu, nearest.n_warped))
    search = Search(small.series, small.band, small.largest, known, _envelope(known, BAND))
    rough, clock, cpu = timed(lambda: search.rough(np.arange(compared), np.inf))
    np.testing.assert_allclose(np.sqrt(rough / known.size), theirs, rtol=1e-4)
    rows.append(row(f"1 against {compared:,}, esjobs, all, in float32", clock, cpu, compared))
    everything, clock, cpu = timed(lambda: WarpedSeries(series, BAND))
    rows.append(row(f"preparing {jobs:,}", clock, cpu, 0))
    for what, first in (("like something known", 0), ("novel", 10**9)):
        for number in range(_QUERIES):
            query = family(first + number * _OF_FAMILY, _OF_FAMILY + 1)[-1]
            nearest, clock, cpu = timed(partial(everything.nearest, query, TOP))
            rows.append(row(f"top {TOP} of {jobs:,}, {what}", clock, cpu, nearest.n_warped))
            inside, clock, cpu = timed(partial(everything.within, query, DISTANCE))
            told = f"within {DISTANCE} of {jobs:,}, {what}: {len(inside.places)}"
            rows.append(row(told, clock, cpu, inside.n_warped))
    return rows


def row(what: str, clock: float, cpu: float, warped: int) -> dict[str, Any]:
    """One measurement."""
    return {"what": what, "seconds": clock, "processor_s": cpu, "warped": warped}


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--compared", type=int, default=1_500)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/similar.md"))
    given = parser.parse_args()
    before = load()
    rows = measure(given.jobs, given.compared)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    machine = describe("dtaidistance", "numba")
    lines = [
        "# The nearest of many jobs",
        "",
        f"`python -m benchmarks.similar --jobs {given.jobs}`; "
        f"{SAMPLES} samples x {METRICS} metrics, band {BAND}; "
        f"dtaidistance {machine['dtaidistance']}, numba {machine['numba']}; {machine['cpu']}, "
        f"{machine['cores']} cores; {before[0]:.1f} other processes ran. "
        f"Peak memory {peak:.2f} GB.",
        "",
        "| what | seconds | processor s | paths looked for |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row['what']} | {row['seconds']:.3f} | {row['processor_s']:.3f} | {row['warped']:,} |"
            for row in rows
        ),
    ]
    publish(given.out, "\n".join(lines) + "\n", {"machine": machine, "load": before, "rows": rows})


if __name__ == "__main__":
    main()
