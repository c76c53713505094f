"""Series of a job reduced for plots: mean over units, and their range."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from esjobs.core.arrays import Floats
from esjobs.core.metrics import METRICS
from esjobs.records.series.blocks import Block

_UNITS = {metric.name: metric.unit for metric in METRICS}
_SPARKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Plot:
    """One metric of a job over time, in equal intervals from ``start`` to ``end``.

    ``mean``, ``low``, ``high``: over units that have samples, NaN without any; ``shown``: units with
    findings, by name.
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
        """Largest value of any unit; NaN if there is none."""
        finite = self.high[np.isfinite(self.high)]
        return float(finite.max()) if len(finite) else float("nan")

    def position(self, moment: datetime) -> float:
        """Return the position of a moment: 0 at the start, 1 at the end."""
        return min(1.0, max(0.0, (moment - self.start) / (self.end - self.start)))


def plots(block: Block, row: int, units: Sequence[tuple[str, str]], points: int) -> Iterator[Plot]:
    """Yield the series of a job; ``units``: metric and unit of findings, shown individually."""
    step = float(block.step_s[row])
    start = block.start_time[row].astype("datetime64[us]").item().replace(tzinfo=UTC)
    # a sample stands for the time until the next one
    # and a step of 0 would leave no time to draw in
    end = start + timedelta(seconds=max(step, 1e-3) * max(1, block.n_samples))
    for metric, values in block.values.items():
        names = block.units[metric][row]
        if not names:
            continue
        samples = values[row, : len(names)].astype(np.float64)
        low, mean, high = _pieces(samples, points)
        # of a single unit the mean is the unit
        chosen = dict.fromkeys(
            unit for of, unit in units if of == metric and unit in names and len(names) > 1
        )
        shown = tuple((unit, _pieces(samples[[names.index(unit)]], points)[1]) for unit in chosen)
        scope = block.scopes[metric][row]
        yield Plot(metric, _UNITS.get(metric, ""), scope, len(names), start, end, mean, low, high, shown)


def _pieces(samples: Floats, points: int) -> tuple[Floats, Floats, Floats]:
    """Return minimum, mean and maximum of at most ``points`` intervals."""
    n = samples.shape[1]
    edges = np.linspace(0, n, min(points, n) + 1).astype(np.int64)
    low, mean, high = (np.full(len(edges) - 1, np.nan) for _ in range(3))
    for place, (begin, end) in enumerate(pairwise(edges)):
        piece = samples[:, begin:end]
        finite = piece[np.isfinite(piece)]
        if len(finite):
            low[place], mean[place], high[place] = finite.min(), finite.mean(), finite.max()
    return low, mean, high


def sparkline(values: Floats, top: float) -> str:
    """Return a line of block characters from 0 to ``top``; a gap is a space.

    >>> sparkline(np.array([0.0, 0.5, 1.0, np.nan]), 1.0)
    '▁▅█ '
    """
    scale = top if top > 0 else 1.0
    return "".join(
        _SPARKS[min(7, max(0, round(7 * value / scale)))] if np.isfinite(value) else " " for value in values
    )


def underline(begin: float, until: float, width: int) -> str:
    """Return a line below an interval of the time (0 to 1), at least one character long.

    >>> underline(0.5, 1.0, 8)
    '    ━━━━'
    """
    first = min(width - 1, int(begin * width))
    last = min(width, max(first + 1, round(until * width)))
    return " " * first + "━" * (last - first)
