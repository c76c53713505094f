"""Series of one job made small enough to look at: the mean of all units, and how far they are apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from esjobs.core.metrics import METRICS
from esjobs.records.series.blocks import Block

Floats = npt.NDArray[np.float64]
_UNITS = {metric.name: metric.unit for metric in METRICS}
_SPARKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Plot:
    """One metric of a job over time.

    ``mean``: over the units that have a sample; ``low``, ``high``: smallest and largest of them; ``shown``:
    of the units that findings are about, by name. One value for each of equal pieces of the time from
    ``start`` to ``end``, NaN where no unit has a sample.
    """

    metric: str
    measure: str
    scope: str
    n_units: int
    start: datetime
    end: datetime
    mean: Floats
    low: Floats
    high: Floats
    shown: tuple[tuple[str, Floats], ...] = ()

    @property
    def largest(self) -> float:
        """The largest value of any unit; NaN when there is none."""
        known = self.high[np.isfinite(self.high)]
        return float(known.max()) if len(known) else float("nan")

    def place(self, moment: datetime) -> float:
        """Where a moment lies: 0 at the start, 1 at the end."""
        return min(1.0, max(0.0, (moment - self.start) / (self.end - self.start)))


def plots(block: Block, row: int, units: Sequence[tuple[str, str]], points: int) -> Iterator[Plot]:
    """The series of a job of a block. ``units``: metric and unit of findings, drawn by themselves."""
    step = float(block.step_s[row])
    start = block.start_time[row].astype("datetime64[us]").item().replace(tzinfo=UTC)
    # a sample stands for the time until the next one
    end = start + timedelta(seconds=max(step, 1e-3) * max(1, block.n_samples))
    for metric, values in block.values.items():
        names = block.units[metric][row]
        if not names:
            continue
        samples = values[row, : len(names)].astype(np.float64)
        low, mean, high = _pieces(samples, points)
        chosen = dict.fromkeys(
            unit for of, unit in units if of == metric and unit in names and len(names) > 1
        )
        shown = tuple((unit, _pieces(samples[[names.index(unit)]], points)[1]) for unit in chosen)
        scope = block.scopes[metric][row]
        yield Plot(metric, _UNITS.get(metric, ""), scope, len(names), start, end, mean, low, high, shown)


def _pieces(samples: Floats, points: int) -> tuple[Floats, Floats, Floats]:
    """Smallest, mean and largest value of each of at most ``points`` pieces of the time."""
    n = samples.shape[1]
    edges = np.linspace(0, n, min(points, n) + 1).astype(np.int64)
    low, mean, high = (np.full(len(edges) - 1, np.nan) for _ in range(3))
    for place, (begin, end) in enumerate(pairwise(edges)):
        piece = samples[:, begin:end]
        known = piece[np.isfinite(piece)]
        if len(known):
            low[place], mean[place], high[place] = known.min(), known.mean(), known.max()
    return low, mean, high


def sparkline(values: Floats, top: float) -> str:
    """A line of blocks from 0 to ``top``; a gap is a space.

    >>> sparkline(np.array([0.0, 0.5, 1.0, np.nan]), 1.0)
    '▁▅█ '
    """
    scale = top if top > 0 else 1.0
    return "".join(
        _SPARKS[min(7, max(0, round(7 * value / scale)))] if np.isfinite(value) else " " for value in values
    )


def underline(begin: float, until: float, width: int) -> str:
    """A line below the part of the time from ``begin`` to ``until`` (0 to 1), at least one sign long.

    >>> underline(0.5, 1.0, 8)
    '    ━━━━'
    """
    first = min(width - 1, int(begin * width))
    last = min(width, max(first + 1, round(until * width)))
    return " " * first + "━" * (last - first)
