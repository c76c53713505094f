"""Memory that grows linearly over the whole job: suspected leak (PIKA).

PIKA draws a corridor around the line through normalised memory and time. All distances share a factor, so the
geometry reduces to: with y = memory / maximum, t from 0 to 1 and the least-squares line y = m t + b,

leak <=> 0.01 <= m <= 1 and max abs(y - (m t + b)) < min(0.1, m)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.detector import COUNT, Detector, Range
from esjobs.issues.detectors.measured import (
    NONE,
    Floats,
    Ints,
    Mask,
    Measured,
    Reason,
    Values,
    measured,
    steps,
)
from esjobs.issues.detectors.samples import LARGEST, LEAST_SAMPLES, LEAST_SHARE, chunks, plain

SLOPES = (0.01, 1.0)
"""Slopes of a leak, inclusive."""
CORRIDOR = 0.1
"""Largest half-width of the corridor; flatter lines have a smaller one."""
TRIM = 0.02
"""Share of samples dropped at either end by the ``trim`` variant."""
# share that ``trim-start`` drops at the beginning
_TRIM_START = 0.15

# So many arrays of the size of the samples are in use at a time
_ARRAYS = 4


@dataclass(frozen=True, slots=True)
class Lines:
    """Line through the memory of each node, arrays (n_jobs, n_nodes), NaN if there is none.

    ``slope``, ``intercept``: m and b of the normalised line; ``residual``: largest distance of a sample along
    y; ``peak_b``: largest sample; ``first``, ``last``: samples at its ends, -1 if there is none.
    """

    slope: Floats
    intercept: Floats
    residual: Floats
    peak_b: Floats
    first: Ints
    last: Ints

    @property
    def ratio(self) -> Floats:
        """Residual / half-width of the corridor: below 1 all samples are inside; NaN if m <= 0."""
        growing = self.slope > 0
        half = np.where(growing, np.minimum(self.slope, CORRIDOR), 1.0)
        return np.where(growing, self.residual / half, np.nan)

    @property
    def leaking(self) -> Mask:
        """Mask of nodes that the published rule suspects."""
        suspected: Mask = (self.slope >= SLOPES[0]) & (self.slope <= SLOPES[1]) & (self.ratio < 1)
        return suspected


def leak(memory_b: Values, step_s: Values | float, *, trim: float | tuple[float, float] = 0.0) -> Measured:
    """Slope m of the normalised memory, of the node with the largest one; suspected nodes first.

    Numbers: ``residual``, ``ratio`` (residual / min(0.1, m), below 1 for a leak), ``intercept``,
    ``bytes_per_hour`` (m x maximum / hours), ``peak_b``, ``leaking`` (suspected nodes),
    ``leaking_bytes_per_hour`` (their sum). Evidence: the node and the samples of the line.

    ``memory_b``: (n_jobs, n_nodes, n_samples); a node needs half of its samples. ``trim``: share of samples
    dropped at both ends, or one of each: warm-up, or a last sample after memory was freed, hide a leak. 0 is
    the published rule.
    """
    memory_b = plain(memory_b)
    jobs, _, n = memory_b.shape
    lines, reason = memory_lines(memory_b, trim)
    step = steps(step_s, jobs)
    hours = np.where(lines.last > lines.first, lines.last - lines.first, np.nan) * step[:, None] / 3600
    # the slope is that of a line from 0 to 1 in both directions
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
    """Return the line of each node, and reason codes of jobs without one."""
    memory_b = plain(memory_b)
    jobs, nodes, n = memory_b.shape
    start, stop = _kept(n, trim)
    kept = memory_b[:, :, start:stop]
    slope, intercept, residual, peak = (np.full((jobs, nodes), np.nan) for _ in range(4))
    first, last = np.full((jobs, nodes), NONE), np.full((jobs, nodes), NONE)
    reason = np.full(jobs, Reason.TOO_FEW_SAMPLES, np.int8)
    for rows in chunks(jobs if kept.shape[2] else 0, _ARRAYS * nodes * max(kept.shape[2], 1)):
        y = np.array(kept[rows], dtype=np.float64, order="C")
        valid = (y >= 0) & (y <= LARGEST)
        count = np.count_nonzero(valid, axis=2)
        fits = (count >= LEAST_SAMPLES) & (count >= LEAST_SHARE * kept.shape[2])
        reason[rows] = _reasons(count, fits)
        *numbers, i, j = _line(y, valid, count)
        for column, number in zip((slope, intercept, residual, peak), numbers, strict=True):
            column[rows] = np.where(fits, number, np.nan)
        first[rows], last[rows] = np.where(fits, i + start, NONE), np.where(fits, j + start, NONE)
    return Lines(slope, intercept, residual, peak, first, last), reason


def _kept(n: int, trim: float | tuple[float, float]) -> tuple[int, int]:
    at_start, at_end = trim if isinstance(trim, tuple) else (trim, trim)
    # 2 % of 100 are 2, although 0.02 * 100 is a little more in floating point
    return int(np.ceil(at_start * n - 1e-9)), max(n - int(np.ceil(at_end * n - 1e-9)), 0)


def _reasons(count: Ints, fits: Mask) -> NDArray[np.int8]:
    most = count.max(axis=1)
    why = np.where(most < LEAST_SAMPLES, Reason.TOO_FEW_SAMPLES, Reason.GAPS)
    why = np.where(most == 0, Reason.NO_DATA, why)
    return np.where(fits.any(axis=1), Reason.ASSESSED, why).astype(np.int8)


def _line(y: Floats, valid: Mask, count: Ints) -> tuple[Floats, Floats, Floats, Floats, Ints, Ints]:
    """Return slope, intercept, residual, maximum, first and last sample, along the last axis."""
    n = y.shape[2]
    index = np.arange(n)
    complete = bool((count == n).all())
    first, last = np.zeros((1, 1), np.int64), np.full((1, 1), n - 1)
    if not complete:
        first, last = np.argmax(valid, axis=2), n - 1 - np.argmax(valid[:, :, ::-1], axis=2)
        y = np.where(valid, y, 0.0)
    # a unit without samples: its line is blanked later
    count = count.clip(min=1)
    peak = y.max(axis=2)
    y /= np.where(peak > 0, peak, 1.0)[:, :, None]
    t = (index - first[:, :, None]) / np.maximum(last - first, 1)[:, :, None]
    t_mean = (t if complete else valid * t).sum(axis=2) / count
    y_mean = y.sum(axis=2) / count
    t_off, y_off = t - t_mean[:, :, None], y - y_mean[:, :, None]
    if not complete:
        t_off, y_off = valid * t_off, valid * y_off
    square = (t_off * t_off).sum(axis=2)
    slope = (t_off * y_off).sum(axis=2) / np.where(square > 0, square, 1.0)
    # measured from the middle of the line, which goes through both means
    y_off -= slope[:, :, None] * t_off
    residual = np.abs(y_off, out=y_off).max(axis=2)
    first, last = np.broadcast_to(first, peak.shape), np.broadcast_to(last, peak.shape)
    return slope, y_mean - slope * t_mean, residual, peak, first, last


_TRIMS: dict[str, float | tuple[float, float]] = {
    "pika": 0.0,
    "trim": TRIM,
    "trim-start": (_TRIM_START, TRIM),
}
MEMORY_LEAK = Detector(
    "memory-leak",
    "slope of the memory in use, of a job of length 1 and a largest value of 1",
    "1",
    ("mem_used_b",),
    {
        "residual": COUNT,
        "ratio": COUNT,
        "intercept": Range("1", -np.inf),
        "bytes_per_hour": Range("B/h", -np.inf),
        "peak_b": Range("B"),
        "leaking": COUNT,
        "leaking_bytes_per_hour": Range("B/h"),
    },
    variants=tuple(_TRIMS),
    measure=lambda batch, variant: leak(batch.block.values["mem_used_b"], batch.step_s, trim=_TRIMS[variant]),
)
