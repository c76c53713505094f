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

from esjobs.issues.detectors.limits import PUBLISHED, Limit, passed
from esjobs.issues.detectors.measured import Bools, Floats, Ints, Measured, Reason, Values, measured, steps
from esjobs.issues.detectors.runs import first_and_last
from esjobs.issues.detectors.samples import LEAST_SAMPLES, Samples, chunks, samples
from esjobs.issues.detectors.spectra import (
    COMPLETE,
    LoadPhases,
    amplitudes,
    correlation,
    dominant,
    job_series,
    load_phases,
    mean_of,
    range_of,
    snapped,
)

Partner = Literal["io", "gpu"]

ADAPTIVE_BELOW = 480
"""Samples of jobs from which on both variants are the same."""


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
    series, known = job_series(other)
    # of I/O the mean over nodes that report, times nodes: a node that is silent once is no dip
    nodes = other.n_units if partner == "io" else np.ones(jobs)
    mean = mean_of(series, known)
    kind = np.promote_types(load.rounded.dtype, other.values.dtype)
    numbers = {name: np.full(jobs, np.nan) for name in ("peak", "median", "r")}
    k, flat = np.ones(jobs, np.int64), np.ones(jobs, bool)
    begin, end, phases = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    for rows in chunks(jobs if n >= LEAST_SAMPLES else 0, 2 * n):
        phase = series[rows] >= mean[rows, None].astype(series.dtype)
        y = np.multiply(series[rows], phase if partner == "io" else 1, dtype=kind)
        summed, flat[rows] = amplitudes(y)
        summed += load.spectrum[rows]
        numbers["peak"][rows], k[rows], numbers["median"][rows] = dominant(summed)
        numbers["r"][rows] = correlation(load.rounded[rows], load.size[rows], y)
        begin[rows], end[rows] = first_and_last(phase)
        phases[rows] = np.count_nonzero(phase, axis=1)

    span = n * steps(step_s, jobs)
    length = span if duration_s is None else steps(duration_s, jobs)
    periods = k * np.where(np.isfinite(span) & np.isfinite(length), length / span, 1.0)
    is_load = partner == "gpu"
    unit_mean = np.where(other.there & np.isfinite(other.unit_mean), other.unit_mean, -1.0)
    return measured(
        _reason(load, other, known, flat),
        np.round(periods),
        unit=np.argmax(unit_mean, axis=1),
        begin=begin,
        end=end,
        share=phases / n,
        numbers=numbers
        | {
            "median_adaptive": numbers["median"] / max(1.0, float(np.sqrt(ADAPTIVE_BELOW / n))),
            "frequency_index": k,
            "periods": periods,
            "period_s": span / k,
            "load_mean": load.mean,
            "load_range": load.spread,
            "other_mean": snapped(mean, kind) if is_load else mean * nodes,
            "other_range": snapped(range_of(series), kind) if is_load else np.full(jobs, np.nan),
            "io_ratio": np.full(jobs, np.nan) if is_load else mean * nodes / least,
        },
    )


def _least(name: str) -> float:
    return 1.0 if name.endswith("ops_s") else 1e6


def _reason(load: LoadPhases, other: Samples, known: Bools | None, flat: Bools) -> NDArray[np.int8]:
    reason = np.where(load.flat | flat, Reason.FLAT, Reason.ASSESSED)
    if load.known is not None or known is not None:
        both = np.ones(other.shape[::2], bool)
        for each in (load.known, known):
            both &= True if each is None else each
        reason = np.where(both.mean(axis=1) < COMPLETE, Reason.GAPS, reason)
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
