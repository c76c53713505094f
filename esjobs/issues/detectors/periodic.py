"""Periodic phases in which cores wait: I/O blocking, synchronous offloading (PIKA).

Two series, the mean core load and what it may wait for, are inverse and periodic if their spectra share one
dominant frequency and they are anticorrelated:

1. c = load rounded to one decimal; y = I/O with values below its mean set to 0, or the mean GPU load. 2.
Means removed, A = |rfft(c)|, B = |rfft(y)| without k = 0, each divided by its maximum; S = A + B. 3. ``peak``
= S at k* = argmax S, ``median`` = median of S, ``r`` = Pearson correlation of c and y, ``periods`` = k* / (n
dt) x duration.

Published limits (``pika``): peak 1.8 to 2, median <= 0.1, r <= -0.4, periods >= 10, and of the raw series:
mean load >= 0.1, range >= 0.7, mean I/O >= 1 MB/s (1e6 B) or 1 operation/s. The median falls with the number
of samples, so short jobs with jitter are missed: ``adaptive`` allows 0.1 sqrt(480 / n) for n < 480, the same
as 0.1 on ``median_adaptive`` = median / max(1, sqrt(480 / n)).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.batch import Batch
from esjobs.issues.detectors.detector import COUNT, DURATION, Detector, Range
from esjobs.issues.detectors.limits import PUBLISHED, Limit, passed
from esjobs.issues.detectors.measured import Floats, Ints, Mask, Measured, Reason, Values, measured, steps
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

_COLUMNS = ("value", "unit", "begin", "end", "share", "reason")
ADAPTIVE_BELOW = 480
"""Samples from which both variants are equal."""


@dataclass(frozen=True, slots=True)
class Phases:
    """I/O blocking by kind of I/O; ``strongest.numbers["pair"]`` is the index in ``pairs``."""

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
    """Periods in which cores wait for I/O: the largest number of any kind that passes the limits.

    If none passes, the kind that fails fewest limits. ``io``: rates by name; the least mean is 1/s for names
    ending with ``ops_s``, else 1e6 (``io_ratio``: mean over it). Others as in :func:`inverse_phases`.
    """
    phases = load if isinstance(load, LoadPhases) else load_phases(load)
    pairs = {
        name: inverse_phases(phases, rates, step_s, least=_least(name), duration_s=duration_s)
        for name, rates in io.items()
    }
    best, pair = None, None
    for index, found in enumerate(pairs.values()):
        score = _closeness(found, limits)
        # the first of equals stays: kinds are in the order of the detector
        if best is None or pair is None:
            best, pair = score, np.full(len(score), index)
        else:
            pair = np.where(score > best, index, pair)
            best = np.maximum(score, best)
    if pair is None:
        raise ValueError("io has no series")
    return Phases(_chosen(list(pairs.values()), pair), pairs)


def synchronous_offloading(
    load: Values | Samples | LoadPhases,
    gpu_load: Values | Samples,
    step_s: Values | float,
    *,
    duration_s: Values | float | None = None,
) -> Measured:
    """Periods in which cores and GPUs wait for each other; ``gpu_load`` per GPU, 0 to 1.

    The limits of the load also apply to ``other_range``, of the mean GPU load.
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
    """Number of periods, rounded, in which load and another series alternate.

    Numbers: ``peak``, ``median``, ``median_adaptive``, ``r``, ``frequency_index`` (k*), ``periods`` (not
    rounded), ``period_s``, ``load_mean``, ``load_range``, ``other_mean``, ``other_range``, ``io_ratio`` (mean
    / least). Limits decide whether these are phases: noise has a k*, too. Evidence: first to last sample with
    I/O (GPU load) above its mean, and the unit with most of it. Not assessed: fewer than 95 % of the
    instants, or a constant series.

    ``other``: I/O per node or load per GPU, at the times of ``load``. ``duration_s``: length of the job if
    samples do not span it.
    """
    load = load if isinstance(load, LoadPhases) else load_phases(load)
    other = samples(other)
    if (other.shape[0], other.shape[2]) != (load.samples.shape[0], load.samples.shape[2]):
        raise ValueError("load and its partner must have equal numbers of jobs and samples")
    jobs, _, n = other.shape
    series, valid = job_series(other)
    # of I/O the mean over nodes that report, times nodes: a node that is silent once is no dip
    nodes = other.n_units if partner == "io" else np.ones(jobs)
    mean = mean_of(series, valid)
    kind = np.promote_types(load.rounded.dtype, other.values.dtype)
    numbers = {name: np.full(jobs, np.nan) for name in ("peak", "median", "r")}
    k, flat = np.ones(jobs, np.int64), np.ones(jobs, bool)
    begin, end, phases = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    for rows in chunks(jobs if n >= LEAST_SAMPLES else 0, 2 * n):
        # in the precision of the series, or the mean of equal samples would be above them
        phase = series[rows] >= mean[rows, None].astype(series.dtype)
        # I/O below its mean is background: only the phases above it may alternate with the load
        y = np.multiply(series[rows], phase if partner == "io" else 1, dtype=kind)
        summed, flat[rows] = amplitudes(y)
        summed += load.spectrum[rows]
        numbers["peak"][rows], k[rows], numbers["median"][rows] = dominant(summed)
        numbers["r"][rows] = correlation(load.rounded[rows], load.size[rows], y)
        begin[rows], end[rows] = first_and_last(phase)
        phases[rows] = np.count_nonzero(phase, axis=1)

    span = n * steps(step_s, jobs)
    length = span if duration_s is None else steps(duration_s, jobs)
    # k counts periods in the samples; the job may have gone on before or after them
    periods = k * np.where(np.isfinite(span) & np.isfinite(length), length / span, 1.0)
    is_load = partner == "gpu"
    unit_mean = np.where(other.present & np.isfinite(other.unit_mean), other.unit_mean, -1.0)
    return measured(
        _reason(load, other, valid, flat),
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


def _reason(load: LoadPhases, other: Samples, valid: Mask | None, flat: Mask) -> NDArray[np.int8]:
    reason = np.where(load.flat | flat, Reason.FLAT, Reason.ASSESSED)
    if load.valid is not None or valid is not None:
        # instants at which both series have a value
        both = np.ones(other.shape[::2], bool)
        for each in (load.valid, valid):
            both &= True if each is None else each
        reason = np.where(both.mean(axis=1) < COMPLETE, Reason.GAPS, reason)
    for of in (other, load.samples):
        reason = np.where(of.reason != Reason.ASSESSED, of.reason, reason)
    return reason.astype(np.int8)


def _closeness(found: Measured, limits: tuple[Limit, ...]) -> Floats:
    """Order pairs by assessed, limits passed, periods."""
    met = np.sum([passed(found, limit) for limit in limits], axis=0) if limits else np.zeros(len(found.value))
    # far below 1: periods decide between pairs that pass as many limits
    periods = np.nan_to_num(found.numbers["frequency_index"]) / 1e12
    return np.where(found.reason == Reason.ASSESSED, met + 1 + periods, 0.0)


def _chosen(pairs: list[Measured], pair: Ints) -> Measured:
    """Return the entry of one of several answers per job."""

    def choose(columns: list[Values]) -> Values:
        chosen: Values = np.take_along_axis(np.stack(columns), pair[None, :], axis=0)[0]
        return chosen

    columns = {name: choose([getattr(each, name) for each in pairs]) for name in _COLUMNS}
    numbers = {name: choose([each.numbers[name] for each in pairs]) for name in pairs[0].numbers}
    numbers["pair"] = np.where(columns["reason"] == Reason.ASSESSED, pair, np.nan)
    return Measured(**columns, numbers=numbers)


_NUMBERS = {
    **dict.fromkeys(("peak", "median", "median_adaptive"), Range("1", 0.0, 2.0)),
    "r": Range("1", -1.0, 1.0),
    **dict.fromkeys(("frequency_index", "periods"), COUNT),
    "period_s": DURATION,
    **dict.fromkeys(("load_mean", "load_range"), COUNT),
    **dict.fromkeys(("other_mean", "other_range"), Range(None)),
    "io_ratio": COUNT,
}


def _measure_io(batch: Batch, variant: str) -> Measured:
    rates = {metric: batch.block.values[metric] for metric in batch.present(IO_BLOCKING.any_metrics)}
    limits = PUBLISHED["io_blocking" if variant == "pika" else "io_blocking adaptive"]
    return io_blocking(batch.phases, rates, batch.step_s, limits=limits).strongest


IO_BLOCKING = Detector(
    "io-blocking",
    "periods in which the cores wait for I/O",
    "periods",
    ("cpu_load",),
    {**_NUMBERS, "pair": COUNT},
    ("read_b_s", "write_b_s", "metadata_ops_s"),
    ("pika", "adaptive"),
    measure=_measure_io,
    low=0.0,
    per_core=True,
)
SYNC_OFFLOADING = Detector(
    "sync-offloading",
    "periods in which cores and GPUs wait for each other",
    "periods",
    ("gpu_load", "cpu_load"),
    _NUMBERS,
    measure=lambda batch, _: synchronous_offloading(batch.phases, batch.gpu_load, batch.step_s),
    low=0.0,
    per_core=True,
)
