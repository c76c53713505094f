"""The series of a job as periodic phases are looked for in them, and their spectra.

Everything is worked out in the precision of the samples, a chunk of jobs at a time.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from esjobs.issues.detectors.measured import Bools, Floats, Values
from esjobs.issues.detectors.samples import Samples, chunks, samples

COMPLETE = 0.95
"""Share of the instants that must have values; the others are filled in on a line."""

_SNAP = {4: 2e-7, 8: 1e-9}
"""Loads are off by so much in float32 and float64, and so is their range; by bytes of a number."""
_FLAT = {4: 1e-6, 8: 1e-9}
"""Amplitudes below this share of n times the largest sample are rounding."""
_SAME_PEAK = {4: 1e-5, 8: 1e-9}
"""A train of short pulses has harmonics of one height: the lowest is its frequency, rounding picks any."""


@dataclass(frozen=True, eq=False)
class LoadPhases:
    """The load of jobs as their partners take it; made by :func:`load_phases`, several partners share it.

    Attributes
    ----------
    samples
        Of the load, per core.
    rounded
        Mean load per instant, to one decimal, over the largest of them and without its mean; shape (n_jobs,
        n_samples).
    spectrum
        Its amplitudes without k = 0, the largest 1; 0 where it does not change.
    known
        Instants with a value; None: all.
    mean, spread
        Mean, and largest minus smallest, of what was there.
    size
        Length of ``rounded`` as a vector.
    flat
        Jobs whose load does not change.
    """

    samples: Samples
    rounded: Values
    spectrum: Values
    known: Bools | None
    mean: Floats
    spread: Floats
    size: Values
    flat: Bools


def load_phases(load: Values | Samples) -> LoadPhases:
    """What all partners of a load share."""
    load = samples(load)
    jobs, _, n = load.shape
    series, known = job_series(load)
    kind = load.values.dtype
    rounded, spectrum = np.empty((jobs, n), kind), np.empty((jobs, n // 2), kind)
    flat, size = np.empty(jobs, bool), np.empty(jobs, kind)
    for rows in chunks(jobs, 2 * n):
        c = np.round(series[rows], 1)
        spectrum[rows], flat[rows] = amplitudes(c)
        rounded[rows], size[rows] = c, _length(c)
    return LoadPhases(
        load,
        rounded,
        spectrum,
        known,
        snapped(mean_of(series, known), kind),
        snapped(range_of(series), kind),
        size,
        flat,
    )


def job_series(given: Samples) -> tuple[Values, Bools | None]:
    """Mean over units per instant, gaps filled on a line; and where it was known, None: everywhere."""
    kind = given.values.dtype
    if given.regular:
        return (given.values[:, 0] if given.shape[1] == 1 else given.mean.astype(kind)), None
    series = given.means(COMPLETE)
    known = ~np.isnan(series)
    n = series.shape[1]
    index = np.arange(n)
    before = np.maximum.accumulate(np.where(known, index, -1), axis=1)
    after = np.minimum.accumulate(np.where(known, index, n)[:, ::-1], axis=1)[:, ::-1]
    # before the first value and after the last, that value
    before, after = np.where(before < 0, after, before), np.where(after >= n, before, after)
    before, after = before.clip(0, n - 1), after.clip(0, n - 1)
    left, right = np.take_along_axis(series, before, 1), np.take_along_axis(series, after, 1)
    part = (index - before) / np.maximum(after - before, 1)
    filled = np.where(known, series, left + (right - left) * part)
    return np.where(np.isnan(filled), 0.0, filled).astype(kind), known


def mean_of(series: Values, known: Bools | None) -> Floats:
    """Mean over the instants that had a value."""
    count = series.shape[1] if known is None else np.maximum(known.sum(axis=1), 1)
    zero = series.dtype.type(0)
    sums: Floats = (series if known is None else np.where(known, series, zero)).sum(axis=1)
    mean: Floats = sums.astype(np.float64) / count
    return mean


def range_of(series: Values) -> Floats:
    """Largest minus smallest; what was filled in lies between its neighbours."""
    spread: Floats = series.max(axis=1).astype(np.float64) - series.min(axis=1)
    return spread


def amplitudes(series: Values) -> tuple[Values, Bools]:
    """Amplitudes of series, the largest 1, and which do not change.

    Works in place: the largest sample becomes 1, so that no square leaves the range of float32; the mean 0.
    """
    n = series.shape[1]
    size = series.max(axis=1)
    series /= np.where(size > 0, size, series.dtype.type(1))[:, None]
    series -= (series.sum(axis=1) / n)[:, None]
    amplitude: Values = np.abs(fft.rfft(series, axis=1, workers=1)[:, 1:])
    largest = amplitude.max(axis=1, initial=0.0)
    flat: Bools = largest <= _FLAT[series.itemsize] * n
    amplitude /= np.where(flat, series.dtype.type(np.inf), largest)[:, None]
    return amplitude, flat


def dominant(summed: Values) -> tuple[Values, Values, Values]:
    """Largest sum of amplitudes, its frequency index from 1 on, and the median. Sorts the sums."""
    peak = summed.max(axis=1)
    index = np.argmax(summed >= (peak - _SAME_PEAK[summed.itemsize])[:, None], axis=1) + 1
    n = summed.shape[1]
    summed.sort(axis=1)
    return peak, index, (summed[:, (n - 1) // 2] + summed[:, n // 2]) / 2


def correlation(rounded: Values, size: Values, y: Values) -> Values:
    """Pearson's r of series without means, ``size`` the length of the first; 0 where one does not change."""
    scale = size * _length(y)
    r: Values = np.einsum("jn,jn->j", rounded, y) / np.where(scale > 0, scale, 1.0)
    clipped: Values = np.clip(r, -1.0, 1.0)
    return clipped


def snapped(number: Floats, kind: np.dtype[np.floating]) -> Floats:
    """Numbers that are off by rounding only, on the decimals that limits are written with."""
    near = np.round(number, 6)
    return np.where(np.abs(number - near) <= _SNAP[kind.itemsize], near, number)


def _length(series: Values) -> Values:
    length: Values = np.sqrt(np.einsum("jn,jn->j", series, series))
    return length
