"""Phases that come back in a period and in which the cores wait: I/O blocking, synchronous offloading (PIKA).

Two series of a job, the mean load of its cores and what they may wait for, are inverse and periodic if their
spectra have one frequency in common that stands out and they are anticorrelated:

1. c = load rounded to one decimal; y = I/O with values strictly below its mean set to 0, or the mean load of
GPUs. 2. Means removed, A = |rfft(c)|, B = |rfft(y)| without k = 0, each divided by its maximum; S = A + B. 3.
``peak`` = S at k* = argmax S, ``median`` = median of S, ``r`` = Pearson correlation of c and y,
   ``periods`` = k* / (n dt) x duration.

Published limits (``pika``): peak of 1.8 to 2, median <= 0.1, r <= -0.4, periods >= 10, and of the series as
they came: mean load >= 0.1, its range >= 0.7, mean I/O >= 1 MB/s (1e6 B) or 1 operation/s. The median of
spectra falls with the number of samples, so that short jobs with a little jitter are missed: ``adaptive``
allows 0.1 sqrt(480 / n) where n < 480, which is the same as 0.1 on ``median_adaptive`` = median / max(1,
sqrt(480 / n)).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from esjobs.detect.detectors.limits import PUBLISHED, Limit, passed
from esjobs.detect.detectors.measured import Floats, Ints, Measured, Reason, Values, measured, steps
from esjobs.detect.detectors.runs import first_and_last
from esjobs.detect.detectors.samples import Samples, over_time, samples

Partner = Literal["io", "gpu"]

ADAPTIVE_BELOW = 480
"""Samples of jobs from which on both variants are the same."""
_COMPLETE = 0.95
"""Share of the instants that must have values; the others are filled in on a line."""
_FLAT = 1e-9
_SAME_PEAK = 1e-9
"""A train of short pulses has harmonics of one height: the lowest is its frequency, rounding picks any."""
_SNAP = 1e-9
_SNAP_SINGLE = 2e-7
"""Loads that float32 holds are off by so much, and so is their range."""


@dataclass(frozen=True)
class LoadPhases:
    """The load of jobs as :func:`inverse_phases` takes it; several partners share it.

    Attributes
    ----------
    samples
        Of the load, per core.
    rounded
        Mean load per instant, to one decimal, its mean removed, shape (n_jobs, n_samples).
    spectrum
        Its amplitudes without k = 0, the largest 1; 0 where it does not change.
    known
        Instants with a value.
    mean, spread
        Mean, and largest minus smallest, of what was there.
    size
        Length of ``rounded`` as a vector.
    flat
        Jobs whose load does not change.
    """

    samples: Samples
    rounded: Floats
    spectrum: Floats
    known: NDArray[np.bool_]
    mean: Floats
    spread: Floats
    size: Floats
    flat: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Phases:
    """I/O blocking of a job: with each kind of I/O, and with the one that shows it best.

    ``strongest.numbers["pair"]`` is the index of that kind in ``pairs``.
    """

    strongest: Measured
    pairs: Mapping[str, Measured]


def io_blocking(
    load: Values | Samples | LoadPhases,
    io: Mapping[str, Values | Samples],
    step_s: Values | float,
    *,
    duration_s: Values | float | None = None,
    limits: tuple[Limit, ...] = PUBLISHED["io_blocking"],
) -> Phases:
    """Periods in which cores wait for I/O: the largest number of any kind of I/O that passes the limits.

    Where none passes, the kind that fails fewest limits is given. ``io``: rates by name, summed over nodes
    here; of names that end with ``ops_s``, the least mean is 1 a second, of others 1e6 (``io_ratio`` is the
    mean over it). Others as in :func:`inverse_phases`.
    """
    phases = load if isinstance(load, LoadPhases) else load_phases(load)
    pairs = {
        name: inverse_phases(phases, rates, step_s, least=_least(name), duration_s=duration_s)
        for name, rates in io.items()
    }
    best, pair = None, None
    for index, found in enumerate(pairs.values()):
        score = _closeness(found, limits)
        if best is None or pair is None:
            best, pair = score, np.full(len(score), index)
        else:
            pair = np.where(score > best, index, pair)
            best = np.maximum(score, best)
    if pair is None:
        raise ValueError("io names no series")
    return Phases(_chosen(list(pairs.values()), pair), pairs)


def synchronous_offloading(
    load: Values | Samples | LoadPhases,
    gpu_load: Values | Samples,
    step_s: Values | float,
    *,
    duration_s: Values | float | None = None,
) -> Measured:
    """Periods in which cores wait for GPUs and GPUs for cores; ``gpu_load`` per GPU, 0 to 1.

    Further numbers: ``other_range`` (of the mean load of the GPUs), for which the limits of the load hold as
    well.
    """
    phases = load if isinstance(load, LoadPhases) else load_phases(load)
    return inverse_phases(phases, gpu_load, step_s, partner="gpu", duration_s=duration_s)


def load_phases(load: Values | Samples) -> LoadPhases:
    """What all partners of a load share."""
    load = samples(load)
    series, known = _filled(load)
    rounded = np.round(series, 1)
    spectrum, flat = _spectrum(rounded)
    snap = _SNAP_SINGLE if load.values.dtype == np.float32 else _SNAP
    return LoadPhases(
        load,
        rounded,
        spectrum,
        known,
        _snapped(_mean_known(series, known), snap),
        _snapped(series.max(axis=1) - series.min(axis=1), snap),
        np.sqrt(np.einsum("jn,jn->j", rounded, rounded)),
        flat,
    )


def inverse_phases(
    load: Values | Samples | LoadPhases,
    other: Values | Samples,
    step_s: Values | float,
    *,
    partner: Partner = "io",
    least: float = 1e6,
    duration_s: Values | float | None = None,
) -> Measured:
    """Number of periods in which load and another series take turns, rounded.

    Numbers: ``peak``, ``median``, ``median_adaptive``, ``r``, ``frequency_index`` (k*), ``periods`` (not
    rounded), ``period_s``, ``load_mean``, ``load_range``, ``other_mean``, ``other_range``, ``io_ratio`` (mean
    / least). Whether these are phases is for limits to say: k* of noise is a number as well. Evidence: from
    the first to the last sample with I/O above its mean (a GPU above its mean load), and the unit with most
    of it; ``share`` is the part of the time with it.

    Not assessed: fewer than 95 % of the instants, or a series that does not change.

    Parameters
    ----------
    load
        Of the cores, shape (n_jobs, n_units, n_samples).
    other
        I/O per node, or load per GPU; equally many jobs and samples, at the same times.
    step_s, duration_s
        Seconds between samples, and length of the job where the samples do not span it; per job.
    """
    load = load if isinstance(load, LoadPhases) else load_phases(load)
    other = samples(other)
    if (other.shape[0], other.shape[2]) != (load.samples.shape[0], load.samples.shape[2]):
        raise ValueError("load and its partner need equally many jobs and samples")
    jobs, _, n = other.shape
    series, known = _filled(other)
    if partner == "io":
        # the mean over nodes that report, times nodes: a node that is silent once is no dip
        series = series * other.n_units[:, None]
    mean = _mean_known(series, known)
    spread = series.max(axis=1) - series.min(axis=1)
    phase = series >= mean[:, None]
    y = series.copy() if partner == "gpu" else np.where(phase, series, 0.0)
    summed, flat = _spectrum(y)
    summed += load.spectrum
    peak = summed.max(axis=1, initial=0.0)
    k = np.argmax(summed >= peak[:, None] - _SAME_PEAK, axis=1) + 1 if n > 1 else np.ones(jobs, np.int64)
    middle = _median(summed)
    span = n * steps(step_s, jobs)
    length = span if duration_s is None else steps(duration_s, jobs)
    with np.errstate(invalid="ignore"):
        periods = k * np.where(np.isfinite(span) & np.isfinite(length), length / span, 1.0)
    reason = _reason(load, other, known, flat)
    begin, end = first_and_last(phase)
    unit_mean = np.where(other.there & np.isfinite(other.unit_mean), other.unit_mean, -1.0)
    return measured(
        reason,
        np.round(periods),
        unit=np.argmax(unit_mean, axis=1),
        begin=begin,
        end=end,
        share=np.count_nonzero(phase, axis=1) / n,
        numbers={
            "peak": peak,
            "median": middle,
            "median_adaptive": middle / max(1.0, float(np.sqrt(ADAPTIVE_BELOW / n))),
            "r": _correlation(load, y),
            "frequency_index": k,
            "periods": periods,
            "period_s": span / k,
            "load_mean": load.mean,
            "load_range": load.spread,
            "other_mean": _snapped(mean, _SNAP_SINGLE) if partner == "gpu" else mean,
            "other_range": _snapped(spread, _SNAP_SINGLE) if partner == "gpu" else spread,
            "io_ratio": mean / least if partner == "io" else np.full(jobs, np.nan),
        },
    )


def _least(name: str) -> float:
    return 1.0 if name.endswith("ops_s") else 1e6


def _filled(given: Samples) -> tuple[Floats, NDArray[np.bool_]]:
    """Mean over units per instant, gaps on a line between their neighbours; and where a value was."""
    series = given.means(_COMPLETE) if (given.even_units == 0).any() else given.mean
    known = ~np.isnan(series)
    if known.all():
        return series, known
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
    return np.where(np.isnan(filled), 0.0, filled), known


def _mean_known(series: Floats, known: NDArray[np.bool_]) -> Floats:
    return over_time(np.where(known, series, np.nan), known.sum(axis=1))


def _snapped(number: Floats, tolerance: float) -> Floats:
    """A number that is off by no more than rounding, on the decimals that limits are written with."""
    near = np.round(number, 6)
    return np.where(np.abs(number - near) <= tolerance, near, number)


def _spectrum(series: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Amplitudes of series, the largest 1, and which do not change. Takes the means out of the series."""
    n = series.shape[1]
    size = series.max(axis=1)
    series -= (series.sum(axis=1) / n)[:, None]
    amplitude: Floats = np.abs(fft.rfft(series, axis=1, workers=1)[:, 1:])
    largest = amplitude.max(axis=1, initial=0.0)
    flat = largest <= _FLAT * n * size
    amplitude /= np.where(flat, np.inf, largest)[:, None]
    return amplitude, flat


def _median(spectra: Floats) -> Floats:
    n = spectra.shape[1]
    if n == 0:
        return np.zeros(len(spectra))
    ordered = np.sort(spectra, axis=1)
    middle: Floats = (ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2
    return middle


def _correlation(load: LoadPhases, y: Floats) -> Floats:
    """Pearson's r of load and a series without mean; 0 where one does not change."""
    scale = load.size * np.sqrt(np.einsum("jn,jn->j", y, y))
    r: Floats = np.einsum("jn,jn->j", load.rounded, y) / np.where(scale > 0, scale, 1.0)
    return np.clip(r, -1.0, 1.0)


def _reason(
    load: LoadPhases, other: Samples, known: NDArray[np.bool_], flat: NDArray[np.bool_]
) -> NDArray[np.int8]:
    both = (load.known & known).mean(axis=1)
    reason = np.where(load.flat | flat, Reason.FLAT, Reason.ASSESSED)
    reason = np.where(both < _COMPLETE, Reason.GAPS, reason)
    for of in (other, load.samples):
        reason = np.where(of.reason != Reason.ASSESSED, of.reason, reason)
    return reason.astype(np.int8)


def _closeness(found: Measured, limits: tuple[Limit, ...]) -> Floats:
    """Orders pairs: those that were assessed, by limits passed, then by periods, from 0 to 1."""
    met = np.sum([passed(found, limit) for limit in limits], axis=0) if limits else np.zeros(len(found.value))
    periods = np.nan_to_num(found.numbers["frequency_index"]) / (1e12)
    return np.where(found.reason == Reason.ASSESSED, met + 1 + periods, 0.0)


def _chosen(pairs: list[Measured], pair: Ints) -> Measured:
    """The entry of one of several answers, per job."""

    def choose(columns: list[Values]) -> Values:
        chosen: Values = np.take_along_axis(np.stack(columns), pair[None, :], axis=0)[0]
        return chosen

    assessed = choose([each.reason for each in pairs]) == Reason.ASSESSED
    names = list(pairs[0].numbers)
    return Measured(
        value=choose([each.value for each in pairs]),
        unit=choose([each.unit for each in pairs]),
        begin=choose([each.begin for each in pairs]),
        end=choose([each.end for each in pairs]),
        share=choose([each.share for each in pairs]),
        reason=choose([each.reason for each in pairs]),
        numbers={name: choose([each.numbers[name] for each in pairs]) for name in names}
        | {"pair": np.where(assessed, pair, np.nan)},
    )
