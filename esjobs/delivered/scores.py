"""Score per core of queues: declared at a time, and measured by a run of speed factors."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from esjobs.core.query import In
from esjobs.core.window import Window
from esjobs.core.words import HALF_WIDTH_90, INTERVAL_LEVEL
from esjobs.publish.latest import latest_first, latest_run
from esjobs.publish.publication import read_table
from esjobs.publish.stored import StoredRun, of_headline, stored_runs
from esjobs.schema.declared import COREPOWER
from esjobs.schema.speed import FLAGS, LINES, SPEED
from esjobs.store.base import JobStore


@dataclass(frozen=True)
class Measured:
    """Measured score per core of a queue: the value with which it would lie on the line of the others.

    ``own``: relative standard error of the queue alone; ``line``: that of the line, common to all queues.
    """

    score: float
    benchmark: str
    own: float
    line: float


def run_for(store: JobStore, window: Window) -> StoredRun | None:
    """Return the complete unrestricted run that shares most with a window, else the latest one; or None.

    Shared time over the time of both together, so that the spelling of a window decides nothing.
    """
    runs = (run for run in stored_runs(store, SPEED) if run.complete and not run.restriction)
    shares = [(run, _shared(run.window, window)) for run in runs]
    best = max((share for _, share in shares), default=0.0)
    if not best:
        return latest_run(store, SPEED)
    return latest_first(run for run, share in shares if share == best)[0]


def _shared(one: Window, other: Window) -> float:
    both = min(one.end, other.end) - max(one.start, other.start)
    either = max(one.end, other.end) - min(one.start, other.start)
    return max(both / either, 0.0)


def measured_scores(store: JobStore, run: StoredRun, level: str = "queue") -> dict[str, Measured]:
    """Return the measured scores of the names of a run; names without an estimate are absent."""
    where = of_headline(run, level)
    lines = read_table(store, LINES, where, ["benchmark", "slope", "slope_err"]).to_pylist()
    line = {row["benchmark"]: row["slope_err"] / row["slope"] for row in lines if row["slope"]}
    columns = ["name", "estimate", "estimate_low", "estimate_high", "estimate_benchmark"]
    rows = read_table(store, FLAGS, where, columns).to_pylist()
    return {row["name"]: _measured(row, line) for row in rows if row["estimate"] is not None}


def _measured(row: Mapping[str, object], line: Mapping[str, float]) -> Measured:
    low, high = float(str(row["estimate_low"])), float(str(row["estimate_high"]))
    assert INTERVAL_LEVEL == 0.90, "the half-width below is that of 90 %"  # noqa: S101
    # the stored interval holds both errors; that of the line is known from its slope
    total = math.log(high / low) / (2 * HALF_WIDTH_90)
    benchmark = str(row["estimate_benchmark"])
    # not more than all of it, or nothing would be left to take a root of
    common = min(line.get(benchmark, 0.0), total)
    own = math.sqrt(total**2 - common**2)
    return Measured(float(str(row["estimate"])), benchmark, own, common)


def pieces(store: JobStore, window: Window) -> Iterator[Window]:
    """Yield the parts of a window within which no imported declared value changes."""
    rows = read_table(store, COREPOWER, [In("level", ("queue",))], ["valid_from"]).to_pylist()
    yield from parts(window, (row["valid_from"] for row in rows))


def parts(window: Window, changes: Iterable[datetime | None]) -> Iterator[Window]:
    """Yield the parts of a window between the times at which a value changes."""
    inside = sorted({moment for moment in changes if moment and window.start < moment < window.end})
    for start, end in pairwise([window.start, *inside, window.end]):
        yield Window(start, end)
