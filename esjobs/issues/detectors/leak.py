"""Memory that grows along a straight line for the whole length of a job: suspicion of a leak (PIKA).

PIKA draws a corridor around the line through normalised memory and time, whose width follows from a point P
below the line. All distances share a factor, so that the geometry collapses: with y = memory / its maximum,
t from 0 to 1 and the least-squares line y = m t + b,

    leak  <=>  0.01 <= m <= 1  and  max |y - (m t + b)| < min(0.1, m)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.measured import (
    NONE,
    Bools,
    Floats,
    Ints,
    Measured,
    Reason,
    Values,
    measured,
    steps,
)
from esjobs.issues.detectors.samples import LARGEST, LEAST_SAMPLES, LEAST_SHARE, chunks, plain

SLOPES = (0.01, 1.0)
"""Of a leak, both included."""
CORRIDOR = 0.1
"""Half-width of the corridor at most; less where the line is flatter."""
TRIM = 0.02
"""Share of the samples that the ``trim`` variant drops at either end."""

_ARRAYS = 4
"""So many arrays of the size of the samples are in use at a time."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The line through the memory of each node, shape (n_jobs, n_nodes) each; NaN where there is none.

    Attributes
    ----------
    slope, intercept
        m and b of the normalised line.
    residual
        Largest distance of a sample from it, along y.
    peak_b
        Largest sample, which y is divided by.
    first, last
        First and last sample that the line is through; -1: none.
    """

    slope: Floats
    intercept: Floats
    residual: Floats
    peak_b: Floats
    first: Ints
    last: Ints

    @property
    def ratio(self) -> Floats:
        """Residual over half-width of the corridor: below 1 all samples are inside; NaN where m <= 0."""
        growing = self.slope > 0
        half = np.where(growing, np.minimum(self.slope, CORRIDOR), 1.0)
        return np.where(growing, self.residual / half, np.nan)

    @property
    def leaking(self) -> Bools:
        """Nodes that the published rule suspects."""
        suspected: Bools = (self.slope >= SLOPES[0]) & (self.slope <= SLOPES[1]) & (self.ratio < 1)
        return suspected


def leak(memory_b: Values, step_s: Values | float, *, trim: float | tuple[float, float] = 0.0) -> Measured:
    """Slope m of the normalised memory, of the node with the largest one.

    Nodes that the rule suspects go before others. Numbers: ``residual``, ``ratio`` (residual / min(0.1, m); a
    leak needs less than 1), ``intercept``, ``bytes_per_hour`` (m x maximum / hours: how bad it is),
    ``peak_b``, ``leaking`` (nodes that the rule suspects), ``leaking_bytes_per_hour`` (sum over them).
    Evidence: the node, and the samples that the line is through.

    Parameters
    ----------
    memory_b
        Memory in use, shape (n_jobs, n_nodes, n_samples). Gaps of a node concern that node alone; it needs
        half of its samples.
    step_s
        Seconds between samples, per job.
    trim
        Share of the samples to leave out at the beginning and at the end, or one of each: five samples of
        warm-up, or a last one after everything was freed, hide a leak. 0 is the published rule.
    """
    memory_b = plain(memory_b)
    jobs, _, n = memory_b.shape
    lines, reason = memory_lines(memory_b, trim)
    step = steps(step_s, jobs)
    hours = np.where(lines.last > lines.first, lines.last - lines.first, np.nan) * step[:, None] / 3600
    rate = lines.slope * lines.peak_b / hours
    leaking = lines.leaking
    # suspected nodes first, then by slope: slopes stay below the number of samples
    order = np.where(np.isnan(lines.slope), -np.inf, lines.slope) + np.where(leaking, 2.0 * n + 2.0, 0.0)
    node = np.argmax(order, axis=1)
    at = (np.arange(jobs), node)
    return measured(
        reason,
        lines.slope[at],
        unit=node,
        begin=lines.first[at],
        end=lines.last[at] + 1,
        share=(lines.last[at] + 1 - lines.first[at]) / n,
        numbers={
            "residual": lines.residual[at],
            "ratio": lines.ratio[at],
            "intercept": lines.intercept[at],
            "bytes_per_hour": rate[at],
            "peak_b": lines.peak_b[at],
            "leaking": leaking.sum(axis=1),
            "leaking_bytes_per_hour": np.where(leaking, rate, 0.0).sum(axis=1),
        },
    )


def memory_lines(memory_b: Values, trim: float | tuple[float, float] = 0.0) -> tuple[Lines, NDArray[np.int8]]:
    """The line of each node, and why a job has none."""
    memory_b = plain(memory_b)
    jobs, nodes, n = memory_b.shape
    start, stop = _kept(n, trim)
    kept = memory_b[:, :, start:stop]
    slope, intercept, residual, peak = (np.full((jobs, nodes), np.nan) for _ in range(4))
    first, last = np.full((jobs, nodes), NONE), np.full((jobs, nodes), NONE)
    reason = np.full(jobs, Reason.TOO_FEW_SAMPLES, np.int8)
    for rows in chunks(jobs if kept.shape[2] else 0, _ARRAYS * nodes * max(kept.shape[2], 1)):
        y = np.array(kept[rows], dtype=np.float64, order="C")
        known = (y >= 0) & (y <= LARGEST)
        count = np.count_nonzero(known, axis=2)
        fits = (count >= LEAST_SAMPLES) & (count >= LEAST_SHARE * kept.shape[2])
        reason[rows] = _reasons(count, fits)
        *numbers, i, j = _line(y, known, count)
        for column, number in zip((slope, intercept, residual, peak), numbers, strict=True):
            column[rows] = np.where(fits, number, np.nan)
        first[rows], last[rows] = np.where(fits, i + start, NONE), np.where(fits, j + start, NONE)
    return Lines(slope, intercept, residual, peak, first, last), reason


def _kept(n: int, trim: float | tuple[float, float]) -> tuple[int, int]:
    at_start, at_end = trim if isinstance(trim, tuple) else (trim, trim)
    # 2 % of 100 are 2, although 0.02 * 100 is a little more in floating point
    return int(np.ceil(at_start * n - 1e-9)), max(n - int(np.ceil(at_end * n - 1e-9)), 0)


def _reasons(count: Ints, fits: Bools) -> NDArray[np.int8]:
    most = count.max(axis=1)
    why = np.where(most < LEAST_SAMPLES, Reason.TOO_FEW_SAMPLES, Reason.GAPS)
    why = np.where(most == 0, Reason.NO_DATA, why)
    return np.where(fits.any(axis=1), Reason.ASSESSED, why).astype(np.int8)


def _line(y: Floats, known: Bools, count: Ints) -> tuple[Floats, Floats, Floats, Floats, Ints, Ints]:
    """Slope, intercept, residual, maximum, first and last sample, along the last axis."""
    n = y.shape[2]
    index = np.arange(n)
    complete = bool((count == n).all())
    first, last = np.zeros((1, 1), np.int64), np.full((1, 1), n - 1)
    if not complete:
        first, last = np.argmax(known, axis=2), n - 1 - np.argmax(known[:, :, ::-1], axis=2)
        y = np.where(known, y, 0.0)
    count = count.clip(min=1)
    peak = y.max(axis=2)
    y /= np.where(peak > 0, peak, 1.0)[:, :, None]
    t = (index - first[:, :, None]) / np.maximum(last - first, 1)[:, :, None]
    t_mean = (t if complete else known * t).sum(axis=2) / count
    y_mean = y.sum(axis=2) / count
    t_off, y_off = t - t_mean[:, :, None], y - y_mean[:, :, None]
    if not complete:
        t_off, y_off = known * t_off, known * y_off
    square = (t_off * t_off).sum(axis=2)
    slope = (t_off * y_off).sum(axis=2) / np.where(square > 0, square, 1.0)
    # measured from the middle of the line, which goes through both means
    y_off -= slope[:, :, None] * t_off
    residual = np.abs(y_off, out=y_off).max(axis=2)
    first, last = np.broadcast_to(first, peak.shape), np.broadcast_to(last, peak.shape)
    return slope, y_mean - slope * t_mean, residual, peak, first, last
