"""Samples of one metric of a batch of jobs: which count, and shared intermediate results.

A sample that is not finite, negative, or impossibly large is a gap. A unit with fewer than half of its
samples is treated as absent. An instant counts if every unit has a value; if that excludes more than half of
the instants, it counts if half of the units have one, and each unit is judged by its own samples.

Jobs without gaps, nearly all, take a fast path in their own precision; others a general one in float64. The
path of a job depends on its samples alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.measured import Floats, Ints, Mask, Reason, Values

Device = Literal["cpu", "gpu"]

LEAST_SAMPLES = 3
LEAST_SHARE = 0.5
"""Required share of a unit's samples, of units at an instant, of a job's instants."""
CPU_IDLE_BELOW = 0.01
"""Load below which a core is idle; a GPU is idle at 0."""
LARGEST = 1e18
"""Largest value of a unit; larger ones are sensor faults. Squares below it fit float32."""

# So many squares add up in float32 to a few parts in a million
_FEW_UNITS = 256
# Samples that are worked on at a time: these stay in the caches of a core
_CHUNK_VALUES = 1 << 17


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of loads from one pass over the samples.

    ``mean``, ``spread``: mean and standard deviation (n - 1) across units, (n_jobs, n_samples), NaN at
    instants that do not count. ``unit_mean``, ``idle``: over samples that count, (n_jobs, n_units); ``busy``:
    all busy samples. ``idle_bits``, ``busy_bits``: one bit per sample (:func:`numpy.packbits`), (n_jobs,
    n_units, bytes).
    """

    mean: Floats
    spread: Floats
    unit_mean: Floats
    idle: Ints
    busy: Ints
    idle_bits: NDArray[np.uint8]
    busy_bits: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of a metric, of jobs with equally many; made by :func:`samples`.

    ``values``: (n_jobs, n_units, n_samples). ``even_units``: leading units without gaps if the others are
    absent, 0 for a job with gaps. ``present``: mask of units; ``n``: instants that count; ``n_units``:
    present units; ``unit_n``: samples of each unit that count. ``reason``: reason codes of jobs that no
    detector can assess.
    """

    values: Values
    even_units: Ints
    present: Mask
    n: Ints
    n_units: Ints
    unit_n: Ints
    reason: NDArray[np.int8]
    _surveys: dict[Device, Survey] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of jobs, units and samples."""
        jobs, units, n = self.values.shape
        return jobs, units, n

    @cached_property
    def regular(self) -> bool:
        """True if every job has all units and no gap."""
        return bool((self.even_units == self.shape[1]).all())

    @cached_property
    def mean(self) -> Floats:
        """Mean over units per instant (n_jobs, n_samples); NaN where it does not count."""
        survey = next(iter(self._surveys.values()), None)
        return self.means(LEAST_SHARE) if survey is None else survey.mean

    def totals(self) -> Iterator[tuple[slice | Ints, Values]]:
        """Yield chunks of jobs with the sum over units per instant; -1 where it does not count."""
        for rows, values in self._even():
            single = values.shape[1] == 1
            yield rows, values[:, 0] if single else np.add.reduce(values, axis=1, dtype=np.float64)
        for gappy in self._gappy():
            values, used = self.used(gappy)
            yield gappy, np.where(used.any(axis=1), np.where(used, values, 0.0).sum(axis=1), -1.0)

    def means(self, complete: float) -> Floats:
        """Return ``mean``, requiring another share of complete instants."""
        jobs, _, n = self.shape
        out = np.empty((jobs, n))
        for rows, values in self._even():
            out[rows] = _mean(values)
        for gappy in self._gappy():
            out[gappy] = _masked_mean(*self.used(gappy, complete))
        return out

    @cached_property
    def unit_mean(self) -> Floats:
        """Mean of each unit over samples that count; NaN of absent units."""
        survey = next(iter(self._surveys.values()), None)
        if survey is not None:
            return survey.unit_mean
        jobs, units, n = self.shape
        out = np.full((jobs, units), np.nan)
        for rows, values in self._even():
            out[rows, : values.shape[1]] = np.add.reduce(values, axis=2) / n
        for gappy in self._gappy():
            out[gappy] = _masked_mean(*self.used(gappy), axis=2)
        return out

    def survey(self, device: Device) -> Survey:
        """Return the statistics shared by detectors of loads."""
        if device not in self._surveys:
            self._surveys[device] = self._survey(device)
        return self._surveys[device]

    def _survey(self, device: Device) -> Survey:
        jobs, units, n = self.shape
        # what was asked for before the first survey is there already
        cached: Floats | None = self.__dict__.get("mean")
        mean, spread = np.empty((jobs, n)), np.zeros((jobs, n))
        unit_mean = np.full((jobs, units), np.nan)
        # whole words, so that bits are counted eight bytes at a time
        n_bytes = (n + 7) // 8
        idle_bits = np.zeros((jobs, units, (n_bytes + 7) // 8 * 8), np.uint8)
        busy_bits = np.zeros_like(idle_bits)
        all_bits = np.packbits(np.ones(n, bool))
        # in the precision of the samples: a stored 0.01 is not below 0.01
        limit = self.values.dtype.type(CPU_IDLE_BELOW)
        for rows, values in self._even():
            width = values.shape[1]
            bits = np.packbits(values < limit if device == "cpu" else values <= 0, axis=2)
            idle_bits[rows, :width, :n_bytes] = bits
            busy_bits[rows, :width, :n_bytes] = bits ^ all_bits
            unit_mean[rows, :width] = np.add.reduce(values, axis=2) / n
            mean[rows] = _mean(values) if cached is None else cached[rows]
            if width > 1:
                spread[rows] = _spread(values, mean[rows])
        for gappy in self._gappy():
            values, used = self.used(gappy)
            idle = values < limit if device == "cpu" else values <= 0
            idle_bits[gappy, :, :n_bytes] = np.packbits(idle & used, axis=2)
            busy_bits[gappy, :, :n_bytes] = np.packbits(~idle & np.isfinite(values), axis=2)
            unit_mean[gappy] = _masked_mean(values, used, axis=2)
            mean[gappy] = _masked_mean(values, used) if cached is None else cached[gappy]
            spread[gappy] = masked_spread(values, used)
        return Survey(mean, spread, unit_mean, _count(idle_bits), _count(busy_bits), idle_bits, busy_bits)

    def used(self, rows: Ints, complete: float = LEAST_SHARE) -> tuple[Floats, Mask]:
        """Return samples of some jobs in float64, NaN at gaps, and the mask of those that count."""
        values = cleaned(self.values[rows])
        return values, _counting(values, self.present[rows], complete)

    def _even(self) -> Iterator[tuple[slice | Ints, Values]]:
        """Yield chunks of jobs without gaps, with the samples of present units."""
        _, units, n = self.shape
        if self.regular:
            for rows in chunks(len(self.values), units * n):
                yield rows, self.values[rows]
            return
        for width in np.unique(self.even_units[self.even_units > 0]):
            jobs = np.flatnonzero(self.even_units == width)
            for part in chunks(len(jobs), int(width) * n):
                yield jobs[part], self.values[jobs[part], :width]

    def _gappy(self) -> Iterator[Ints]:
        jobs = np.flatnonzero(self.even_units == 0)
        for part in chunks(len(jobs), self.shape[1] * self.shape[2]):
            yield jobs[part]


def samples(values: Values | Samples) -> Samples:
    """Determine which samples count; the result is shared by detectors.

    ``values``: (n_jobs, n_units, n_samples), NaN without a sample or unit.
    """
    if isinstance(values, Samples):
        return values
    values = plain(values)
    jobs, units, n = values.shape
    even_units = np.empty(jobs, np.int64)
    for part in chunks(jobs, units * n):
        even_units[part] = _even_units(values[part])
    present = np.arange(units) < even_units[:, None]
    unit_n = np.where(present, n, 0)
    counted = np.full(jobs, n)
    some = np.ones(jobs, bool)
    gappy = np.flatnonzero(even_units == 0)
    for part in chunks(len(gappy), units * n):
        rows = gappy[part]
        clean = cleaned(values[rows])
        valid = np.isfinite(clean).sum(axis=2)
        some[rows] = valid.any(axis=1)
        present[rows] = (valid > 0) & (valid >= LEAST_SHARE * n)
        used = _counting(clean, present[rows], LEAST_SHARE)
        unit_n[rows] = used.sum(axis=2)
        counted[rows] = used.any(axis=1).sum(axis=1)
    reason = np.full(jobs, Reason.ASSESSED, np.int8)
    reason[counted < LEAST_SHARE * n] = Reason.GAPS
    reason[(counted > 0) & (counted < LEAST_SAMPLES)] = Reason.TOO_FEW_SAMPLES
    if n < LEAST_SAMPLES:
        reason[:] = Reason.TOO_FEW_SAMPLES
    # last, as the most certain reason
    reason[~some] = Reason.NO_DATA
    return Samples(values, even_units, present, counted, present.sum(axis=1), unit_n, reason)


def masked_spread(values: Floats, used: Mask) -> Floats:
    """Return the standard deviation (n - 1) across used units per instant; 0 of one, NaN of none."""
    mean = _masked_mean(values, used)
    off = np.where(used, values - mean[:, None, :], 0.0)
    count = used.sum(axis=1)
    spread = np.sqrt((off * off).sum(axis=1) / np.maximum(count - 1, 1))
    return np.where(count > 0, spread, np.nan)


def over_time(series: Floats, n: Ints) -> Floats:
    """Return the mean over instants that count (others are NaN); 0 without any."""
    sums: Floats = series.sum(axis=1)
    gaps = np.flatnonzero(np.isnan(sums))
    sums[gaps] = np.where(np.isnan(series[gaps]), 0.0, series[gaps]).sum(axis=1)
    return sums / np.maximum(n, 1)


def plain(values: Values) -> Values:
    """Return contiguous float32 or float64 with at least one unit and one sample."""
    values = np.asarray(values)
    # as stored: twice the width would take twice the time
    kind = np.float32 if values.dtype in (np.float32, np.float16) else np.float64
    values = np.ascontiguousarray(values, dtype=kind)
    jobs, units, n = values.shape
    return values if units and n else np.full((jobs, max(units, 1), max(n, 1)), np.nan, kind)


def _even_units(values: Values) -> Ints:
    """Return the number of leading units without gaps if all others are empty, else 0."""
    jobs, units, _ = values.shape
    # as bits: negative numbers, NaN and infinities are all larger than any sample that counts
    as_integers = values.view(f"u{values.itemsize}")
    largest = values.dtype.type(LARGEST).view(f"u{values.itemsize}")
    width = np.full(jobs, units)
    rest = np.flatnonzero(as_integers.reshape(jobs, -1).max(axis=1) > largest)
    even = as_integers[rest].max(axis=2) <= largest
    first = np.argmin(even, axis=1)
    empty = np.isnan(values[rest]).all(axis=2)
    width[rest] = np.where((empty | (np.arange(units) < first[:, None])).all(axis=1), first, 0)
    return width


def cleaned(values: Values) -> Floats:
    """Return samples in float64, with NaN for impossible ones."""
    values = values.astype(np.float64)
    values[~((values >= 0) & (values <= LARGEST))] = np.nan
    return values


def _counting(values: Floats, present: Mask, complete: float) -> Mask:
    """Return the mask of samples that count: see the module."""
    valid = np.isfinite(values) & present[:, :, None]
    n_units = present.sum(axis=1)[:, None]
    reporting = valid.sum(axis=1)
    every = (reporting == n_units) & (n_units > 0)
    half = (reporting >= LEAST_SHARE * n_units) & (n_units > 0)
    # one unit with gaps must not make the others look absent
    most = every.sum(axis=1) >= complete * values.shape[2]
    counts: Mask = valid & np.where(most[:, None], every, half)[:, None, :]
    return counts


def _mean(values: Values) -> Floats:
    mean: Floats = np.add.reduce(values, axis=1, dtype=np.float64)
    mean /= values.shape[1]
    return mean


def _spread(values: Values, mean: Floats) -> Floats:
    units = values.shape[1]
    off = values - mean[:, None, :].astype(values.dtype)
    np.multiply(off, off, out=off)
    # squares of deviations, not of values: nothing cancels
    kind = values.dtype if units <= _FEW_UNITS else np.float64
    spread: Floats = np.sqrt(np.add.reduce(off, axis=1, dtype=kind) / (units - 1))
    return spread


def _masked_mean(values: Floats, used: Mask, axis: int = 1) -> Floats:
    count = used.sum(axis=axis)
    sums = np.where(used, values, 0.0).sum(axis=axis)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _count(bits: NDArray[np.uint8]) -> Ints:
    count: Ints = np.bitwise_count(bits.view(np.uint64)).sum(axis=2, dtype=np.int64)
    return count


def chunks(jobs: int, job_values: int) -> Iterator[slice]:
    """Yield slices of jobs that fit into the cache of a core."""
    size = max(_CHUNK_VALUES // job_values, 1)
    return (slice(begin, begin + size) for begin in range(0, jobs, size))
