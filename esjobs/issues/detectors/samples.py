"""The samples of one metric of a batch of jobs: which of them count, and what several detectors need of them.

A sample that is not finite, negative, or larger than anything a machine can do is a gap. A unit with fewer
than half of its samples is taken for one that is not there. An instant counts if every unit has a value;
where that would cost more than half of the instants (many nodes, each with gaps of its own), an instant
counts if half of the units have one, and each unit is judged by its own samples.

Jobs without any gap, nearly all, take a short way in the precision in which they come; others a general one
in float64. The way of a job depends on its own samples alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.measured import Bools, Floats, Ints, Reason, Values

Device = Literal["cpu", "gpu"]

LEAST_SAMPLES = 3
LEAST_SHARE = 0.5
"""Of the samples of a unit, of the units at an instant, of the instants of a job."""
CPU_IDLE_BELOW = 0.01
"""A core with less load is idle; a GPU only at 0."""
LARGEST = 1e18
"""Larger values of a unit are faults of a sensor. Float32 can add up squares of those below."""

_FEW_UNITS = 256
"""So many squares add up in float32 to a few parts in a million."""
_CHUNK_VALUES = 1 << 17
"""Samples that are worked on at a time: these stay in the caches of a core."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What the detectors of loads need, worked out in one pass over the samples.

    Attributes
    ----------
    mean, spread
        Mean and standard deviation (n - 1) across units at each instant, shape (n_jobs, n_samples); NaN where
        it does not count, spread 0 of one unit.
    unit_mean
        Mean over the samples that count, shape (n_jobs, n_units); NaN of a unit that is not there.
    idle
        Idle samples of each unit among those that count, shape (n_jobs, n_units).
    busy
        Busy samples of each unit, all of its own.
    idle_bits, busy_bits
        The same, a bit per sample (:func:`numpy.packbits`), with zeros behind them; shape (n_jobs, n_units,
        bytes).
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
    """The samples of a metric, of jobs with equally many; made by :func:`samples`.

    Attributes
    ----------
    values
        As they came, shape (n_jobs, n_units, n_samples).
    even_units
        Units of a job without any gap, whose other units, after them, are not there; 0: a job with gaps.
    there
        Units that are there, shape (n_jobs, n_units).
    n
        Instants that count, per job.
    n_units
        Units that are there, per job.
    unit_n
        Samples of each unit that count, shape (n_jobs, n_units).
    reason
        Why nothing can be said of a job, whatever a detector is about.
    """

    values: Values
    even_units: Ints
    there: Bools
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
        """Whether every job has all units and no gap."""
        return bool((self.even_units == self.shape[1]).all())

    @cached_property
    def mean(self) -> Floats:
        """Mean over units at each instant, shape (n_jobs, n_samples); NaN where it does not count."""
        known = next(iter(self._surveys.values()), None)
        return self.means(LEAST_SHARE) if known is None else known.mean

    def totals(self) -> Iterator[tuple[slice | Ints, Values]]:
        """Jobs, a chunk at a time, with the sum over the units that have a value at each of their instants.

        -1 where the instant does not count.
        """
        for rows, values in self._even():
            single = values.shape[1] == 1
            yield rows, values[:, 0] if single else np.add.reduce(values, axis=1, dtype=np.float64)
        for odd in self._odd():
            values, used = self.used(odd)
            yield odd, np.where(used.any(axis=1), np.where(used, values, 0.0).sum(axis=1), -1.0)

    def means(self, complete: float) -> Floats:
        """As ``mean``, for who wants so large a share of instants at which every unit has a value."""
        jobs, _, n = self.shape
        out = np.empty((jobs, n))
        for rows, values in self._even():
            out[rows] = _mean(values)
        for odd in self._odd():
            out[odd] = _masked_mean(*self.used(odd, complete))
        return out

    @cached_property
    def unit_mean(self) -> Floats:
        """Mean over the samples that count, of each unit; NaN of a unit that is not there."""
        known = next(iter(self._surveys.values()), None)
        if known is not None:
            return known.unit_mean
        jobs, units, n = self.shape
        out = np.full((jobs, units), np.nan)
        for rows, values in self._even():
            out[rows, : values.shape[1]] = np.add.reduce(values, axis=2) / n
        for odd in self._odd():
            out[odd] = _unit_means(*self.used(odd))
        return out

    def survey(self, device: Device) -> Survey:
        """What detectors of loads share: a core is idle below 0.01, a GPU at 0."""
        if device not in self._surveys:
            self._surveys[device] = self._survey(device)
        return self._surveys[device]

    def _survey(self, device: Device) -> Survey:
        jobs, units, n = self.shape
        # what was asked for before the first survey is there already
        known: Floats | None = self.__dict__.get("mean")
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
            mean[rows] = _mean(values) if known is None else known[rows]
            if width > 1:
                spread[rows] = _spread(values, mean[rows])
        for odd in self._odd():
            values, used = self.used(odd)
            idle = values < limit if device == "cpu" else values <= 0
            idle_bits[odd, :, :n_bytes] = np.packbits(idle & used, axis=2)
            busy_bits[odd, :, :n_bytes] = np.packbits(~idle & np.isfinite(values), axis=2)
            unit_mean[odd] = _unit_means(values, used)
            mean[odd] = _masked_mean(values, used) if known is None else known[odd]
            spread[odd] = masked_spread(values, used)
        return Survey(mean, spread, unit_mean, _count(idle_bits), _count(busy_bits), idle_bits, busy_bits)

    def used(self, rows: Ints, complete: float = LEAST_SHARE) -> tuple[Floats, Bools]:
        """Samples of some jobs in float64, NaN at gaps, and which of them count."""
        values = cleaned(self.values[rows])
        return values, _counting(values, self.there[rows], complete)

    def _even(self) -> Iterator[tuple[slice | Ints, Values]]:
        """Jobs without gaps, and the samples of the units that are there, a chunk at a time."""
        _, units, n = self.shape
        if self.regular:
            for rows in chunks(len(self.values), units * n):
                yield rows, self.values[rows]
            return
        for width in np.unique(self.even_units[self.even_units > 0]):
            jobs = np.flatnonzero(self.even_units == width)
            for part in chunks(len(jobs), int(width) * n):
                yield jobs[part], self.values[jobs[part], :width]

    def _odd(self) -> Iterator[Ints]:
        """Jobs with gaps, a chunk at a time."""
        jobs = np.flatnonzero(self.even_units == 0)
        for part in chunks(len(jobs), self.shape[1] * self.shape[2]):
            yield jobs[part]


def samples(values: Values | Samples) -> Samples:
    """Sort out which samples count; given once per batch, several detectors share what it works out.

    ``values``: shape (n_jobs, n_units, n_samples), NaN where there is no sample or no such unit.
    """
    if isinstance(values, Samples):
        return values
    values = plain(values)
    jobs, units, n = values.shape
    even_units = np.empty(jobs, np.int64)
    for part in chunks(jobs, units * n):
        even_units[part] = _even_units(values[part])
    there = np.arange(units) < even_units[:, None]
    unit_n = np.where(there, n, 0)
    counted = np.full(jobs, n)
    some = np.ones(jobs, bool)
    odd = np.flatnonzero(even_units == 0)
    for part in chunks(len(odd), units * n):
        rows = odd[part]
        clean = cleaned(values[rows])
        known = np.isfinite(clean).sum(axis=2)
        some[rows] = known.any(axis=1)
        there[rows] = (known > 0) & (known >= LEAST_SHARE * n)
        used = _counting(clean, there[rows], LEAST_SHARE)
        unit_n[rows] = used.sum(axis=2)
        counted[rows] = used.any(axis=1).sum(axis=1)
    reason = np.full(jobs, Reason.ASSESSED, np.int8)
    reason[counted < LEAST_SHARE * n] = Reason.GAPS
    reason[(counted > 0) & (counted < LEAST_SAMPLES)] = Reason.TOO_FEW_SAMPLES
    if n < LEAST_SAMPLES:
        reason[:] = Reason.TOO_FEW_SAMPLES
    reason[~some] = Reason.NO_DATA
    return Samples(values, even_units, there, counted, there.sum(axis=1), unit_n, reason)


def masked_spread(values: Floats, used: Bools) -> Floats:
    """Standard deviation (n - 1) across the units that are used, at each instant; 0 of one, NaN of none."""
    mean = _masked_mean(values, used)
    off = np.where(used, values - mean[:, None, :], 0.0)
    count = used.sum(axis=1)
    spread = np.sqrt((off * off).sum(axis=1) / np.maximum(count - 1, 1))
    return np.where(count > 0, spread, np.nan)


def over_time(series: Floats, n: Ints) -> Floats:
    """Mean over the instants that count, of series with NaN at the others; 0 where none counts."""
    sums: Floats = series.sum(axis=1)
    gaps = np.flatnonzero(np.isnan(sums))
    sums[gaps] = np.where(np.isnan(series[gaps]), 0.0, series[gaps]).sum(axis=1)
    return sums / np.maximum(n, 1)


def plain(values: Values) -> Values:
    """Contiguous float32 or float64 of this machine, with at least one unit and one sample."""
    values = np.asarray(values)
    kind = np.float32 if values.dtype in (np.float32, np.float16) else np.float64
    values = np.ascontiguousarray(values, dtype=kind)
    jobs, units, n = values.shape
    return values if units and n else np.full((jobs, max(units, 1), max(n, 1)), np.nan, kind)


def _even_units(values: Values) -> Ints:
    """Units of each job without a gap, if none after them has any sample; else 0.

    Without a gap: 0 or more, and not too large. Read as integers, floats of one sign are
    in the order of their size, and negative ones and NaN come after every finite one: the largest integer
    tells everything in one pass.
    """
    jobs, units, _ = values.shape
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
    """Samples in float64, those that cannot be NaN."""
    values = values.astype(np.float64)
    values[~((values >= 0) & (values <= LARGEST))] = np.nan
    return values


def _counting(values: Floats, there: Bools, complete: float) -> Bools:
    """Which samples count: see the top of the module."""
    known = np.isfinite(values) & there[:, :, None]
    n_units = there.sum(axis=1)[:, None]
    reporting = known.sum(axis=1)
    every = (reporting == n_units) & (n_units > 0)
    half = (reporting >= LEAST_SHARE * n_units) & (n_units > 0)
    most = every.sum(axis=1) >= complete * values.shape[2]
    counts: Bools = known & np.where(most[:, None], every, half)[:, None, :]
    return counts


def _mean(values: Values) -> Floats:
    mean: Floats = np.add.reduce(values, axis=1, dtype=np.float64)
    mean /= values.shape[1]
    return mean


def _spread(values: Values, mean: Floats) -> Floats:
    units = values.shape[1]
    off = values - mean[:, None, :].astype(values.dtype)
    np.multiply(off, off, out=off)
    kind = values.dtype if units <= _FEW_UNITS else np.float64
    spread: Floats = np.sqrt(np.add.reduce(off, axis=1, dtype=kind) / (units - 1))
    return spread


def _unit_means(values: Floats, used: Bools) -> Floats:
    count = used.sum(axis=2)
    sums = np.where(used, values, 0.0).sum(axis=2)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _masked_mean(values: Floats, used: Bools) -> Floats:
    count = used.sum(axis=1)
    sums = np.where(used, values, 0.0).sum(axis=1)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _count(bits: NDArray[np.uint8]) -> Ints:
    count: Ints = np.bitwise_count(bits.view(np.uint64)).sum(axis=2, dtype=np.int64)
    return count


def chunks(jobs: int, job_values: int) -> Iterator[slice]:
    """Jobs, of so many samples each, that fit into the caches of a core together."""
    size = max(_CHUNK_VALUES // job_values, 1)
    return (slice(begin, begin + size) for begin in range(0, jobs, size))
