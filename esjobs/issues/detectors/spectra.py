"""Series of jobs and their spectra, for the search for periodic phases.

Computed in the precision of the samples, in chunks of jobs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from esjobs.issues.detectors.measured import Floats, Mask, Values
from esjobs.issues.detectors.samples import Samples, chunks, samples

COMPLETE = 0.95
"""Share of instants that must have values; others are interpolated."""

# Loads are off by so much in float32 and float64, and so is their range; by bytes of a number
_SNAP = {4: 2e-7, 8: 1e-9}
# Amplitudes below this share of n times the largest sample are rounding
_FLAT = {4: 1e-6, 8: 1e-9}
# A train of short pulses has harmonics of one height: the lowest is its frequency, rounding picks any
_SAME_PEAK = {4: 1e-5, 8: 1e-9}


@dataclass(frozen=True, eq=False)
class LoadPhases:
    """Load of jobs prepared for comparison with partners; made by :func:`load_phases`.

    ``rounded``: mean load per instant to one decimal, divided by its maximum, mean removed, (n_jobs,
    n_samples); ``size``: its length as a vector. ``spectrum``: amplitudes without k = 0, maximum 1.
    ``valid``: instants with a value, None: all. ``mean``, ``spread``: mean and range of the load. ``flat``:
    constant load.
    """

    samples: Samples
    rounded: Values
    spectrum: Values
    valid: Mask | None
    mean: Floats
    spread: Floats
    size: Values
    flat: Mask


def load_phases(load: Values | Samples) -> LoadPhases:
    """Return the rounded mean load of each job over time, with its spectrum."""
    load = samples(load)
    jobs, _, n = load.shape
    series, valid = job_series(load)
    kind = load.values.dtype
    rounded, spectrum = np.empty((jobs, n), kind), np.empty((jobs, n // 2), kind)
    flat, size = np.empty(jobs, bool), np.empty(jobs, kind)
    for rows in chunks(jobs, 2 * n):
        # jitter of the load is not a phase: as published, one decimal
        c = np.round(series[rows], 1)
        spectrum[rows], flat[rows] = amplitudes(c)
        rounded[rows], size[rows] = c, _length(c)
    return LoadPhases(
        load,
        rounded,
        spectrum,
        valid,
        snapped(mean_of(series, valid), kind),
        snapped(range_of(series), kind),
        size,
        flat,
    )


def job_series(load_samples: Samples) -> tuple[Values, Mask | None]:
    """Return the mean over units per instant, gaps interpolated, and the mask of measured instants (None:
    all).
    """
    kind = load_samples.values.dtype
    if load_samples.regular:
        return (
            load_samples.values[:, 0] if load_samples.shape[1] == 1 else load_samples.mean.astype(kind)
        ), None
    series = load_samples.means(COMPLETE)
    valid = ~np.isnan(series)
    n = series.shape[1]
    index = np.arange(n)
    before = np.maximum.accumulate(np.where(valid, index, -1), axis=1)
    after = np.minimum.accumulate(np.where(valid, index, n)[:, ::-1], axis=1)[:, ::-1]
    # before the first value and after the last, that value
    before, after = np.where(before < 0, after, before), np.where(after >= n, before, after)
    before, after = before.clip(0, n - 1), after.clip(0, n - 1)
    left, right = np.take_along_axis(series, before, 1), np.take_along_axis(series, after, 1)
    part = (index - before) / np.maximum(after - before, 1)
    filled = np.where(valid, series, left + (right - left) * part)
    return np.where(np.isnan(filled), 0.0, filled).astype(kind), valid


def mean_of(series: Values, valid: Mask | None) -> Floats:
    """Return the mean of each row over its valid samples; 0 without any."""
    count = series.shape[1] if valid is None else np.maximum(valid.sum(axis=1), 1)
    zero = series.dtype.type(0)
    sums: Floats = (series if valid is None else np.where(valid, series, zero)).sum(axis=1)
    mean: Floats = sums.astype(np.float64) / count
    return mean


def range_of(series: Values) -> Floats:
    """Return the largest minus the smallest value of each row."""
    spread: Floats = series.max(axis=1).astype(np.float64) - series.min(axis=1)
    return spread


def amplitudes(series: Values) -> tuple[Values, Mask]:
    """Return amplitudes (maximum 1) and the mask of constant series.

    In place: the largest sample becomes 1, so that squares fit float32; the mean 0.
    """
    n = series.shape[1]
    size = series.max(axis=1)
    series /= np.where(size > 0, size, series.dtype.type(1))[:, None]
    series -= (series.sum(axis=1) / n)[:, None]
    # without k = 0: the mean is gone
    amplitude: Values = np.abs(fft.rfft(series, axis=1, workers=1)[:, 1:])
    largest = amplitude.max(axis=1, initial=0.0)
    flat: Mask = largest <= _FLAT[series.itemsize] * n
    amplitude /= np.where(flat, series.dtype.type(np.inf), largest)[:, None]
    return amplitude, flat


def dominant(summed: Values) -> tuple[Values, Values, Values]:
    """Return the largest sum of amplitudes, its frequency index (from 1), and the median; sorts the sums."""
    peak = summed.max(axis=1)
    # the first that is as high as the highest
    index = np.argmax(summed >= (peak - _SAME_PEAK[summed.itemsize])[:, None], axis=1) + 1
    n = summed.shape[1]
    summed.sort(axis=1)
    return peak, index, (summed[:, (n - 1) // 2] + summed[:, n // 2]) / 2


def correlation(rounded: Values, size: Values, y: Values) -> Values:
    """Return Pearson's r of centred series; ``size``: norm of the first; 0 for constant series."""
    scale = size * _length(y)
    r: Values = np.einsum("jn,jn->j", rounded, y) / np.where(scale > 0, scale, 1.0)
    clipped: Values = np.clip(r, -1.0, 1.0)
    return clipped


def snapped(number: Floats, kind: np.dtype[np.floating]) -> Floats:
    """Round numbers that differ from six decimals by rounding errors only: limits are written so."""
    near = np.round(number, 6)
    return np.where(np.abs(number - near) <= _SNAP[kind.itemsize], near, number)


def _length(series: Values) -> Values:
    length: Values = np.sqrt(np.einsum("jn,jn->j", series, series))
    return length
