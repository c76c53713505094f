"""Work that stops while the job goes on: a hang, a crash of one node, an input that ran out.

The idea is the homogeneity of XDMoD and the catastrophe of TACC stats: the smallest ratio of the rate after
an instant to the rate before it, over instants and nodes.
"""

import numpy as np

from esjobs.detect.detectors.measured import Bools, Floats, Ints, Measured, Reason, Values, measured
from esjobs.detect.detectors.samples import LARGEST, LEAST_SAMPLES, LEAST_SHARE

_LEAST_SIDE = 2
_CHUNK_VALUES = 1 << 16


def collapse(rates: Values, *, edge: float = 0.05) -> Measured:
    """Smallest ratio of the mean after a sample to the mean before it, over samples and units.

    1: steady; 0: nothing happens after. Numbers: ``before``, ``after`` (means, in the unit of the rates),
    ``job`` (the ratio of the sum over units) and ``job_begin`` (its sample). Evidence: the unit, and the
    samples from the split to the end, whose part of the time is ``share``.

    Parameters
    ----------
    rates
        What work looks like: load of a node, floating-point operations, memory bandwidth; shape (n_jobs,
        n_units, n_samples). Of cores, one that ends early is enough; give nodes to ask for the others.
    edge
        Share of the samples, 2 at least, that must lie on either side of the split: the end of a job is
        quiet.
    """
    rates = np.asarray(rates)
    jobs, units, n = rates.shape
    side = max(_LEAST_SIDE, int(np.ceil(edge * n - 1e-9)))
    found = [np.full(jobs, np.nan) for _ in range(5)]
    unit, split = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    reason = np.full(jobs, Reason.NO_DATA, np.int8)
    if units and n:
        size = max(_CHUNK_VALUES // (units * n), 1)
        for begin in range(0, jobs, size):
            rows = slice(begin, begin + size)
            _measure(
                rates[rows].astype(np.float64),
                side,
                reason[rows],
                unit[rows],
                split[rows],
                [f[rows] for f in found],
            )
    value, before, after, job, job_begin = found
    return measured(
        reason,
        value,
        unit=unit,
        begin=split,
        end=n,
        share=(n - split) / max(n, 1),
        numbers={"before": before, "after": after, "job": job, "job_begin": job_begin},
    )


def _measure(
    rates: Floats, side: int, reason: Values, unit: Ints, split: Ints, numbers: list[Floats]
) -> None:
    """Fill the answers of a chunk of jobs in."""
    jobs, _, n = rates.shape
    known = (rates >= 0) & (rates <= LARGEST)
    rates = np.where(known, rates, 0.0)
    count = known.sum(axis=2)
    fits = (count >= max(LEAST_SAMPLES, 2 * side)) & (count >= LEAST_SHARE * n)
    ratio, at, before, after = _smallest(rates, known, side)
    ratio = np.where(fits, ratio, np.inf)
    best = np.argmin(ratio, axis=1)
    row = (np.arange(jobs), best)
    most = count.max(axis=1)
    why = np.where(most < max(LEAST_SAMPLES, 2 * side), Reason.TOO_FEW_SAMPLES, Reason.GAPS)
    why = np.where(most == 0, Reason.NO_DATA, why)
    why = np.where(fits.any(axis=1), Reason.NEVER_BUSY, why)
    reason[:] = np.where(np.isfinite(ratio[row]), Reason.ASSESSED, why)
    unit[:], split[:] = best, at[row]
    # instants at which every unit that fits has a value: a unit that is silent is no drop of the sum
    every = (known | ~fits[:, :, None]).all(axis=1, keepdims=True) & fits.any(axis=1)[:, None, None]
    summed = np.where(every, np.where(fits[:, :, None], rates, 0.0).sum(axis=1, keepdims=True), 0.0)
    job, job_at, _, _ = _smallest(summed, every, side)
    assessable = np.isfinite(job[:, 0]) & (every.sum(axis=(1, 2)) >= LEAST_SHARE * n)
    for column, number in zip(
        numbers,
        (
            ratio[row],
            before[row],
            after[row],
            np.where(assessable, job[:, 0], np.nan),
            np.where(assessable, job_at[:, 0], np.nan),
        ),
        strict=True,
    ):
        column[:] = number


def _smallest(rates: Floats, known: Bools, side: int) -> tuple[Floats, Ints, Floats, Floats]:
    """Along the last axis: the smallest ratio (inf: none), its sample, and the means before and after."""
    shape = rates.shape[:2]
    n = rates.shape[2]
    if n < 2 * side:
        blank = np.full(shape, np.nan)
        return np.full(shape, np.inf), np.zeros(shape, np.int64), blank, blank
    sums = np.cumsum(rates, axis=2)
    counts = (
        np.cumsum(known, axis=2) if not known.all() else np.broadcast_to(np.arange(1, n + 1), rates.shape)
    )
    # a split before sample s, of side .. n - side
    s = slice(side - 1, n - side)
    total, number = sums[:, :, -1:], counts[:, :, -1:]
    n_before, n_after = counts[:, :, s], number - counts[:, :, s]
    before = sums[:, :, s] / np.maximum(n_before, 1)
    after = np.maximum(total - sums[:, :, s], 0.0) / np.maximum(n_after, 1)
    usable = (before > 0) & (n_before >= side) & (n_after >= side)
    ratio = np.where(usable, after / np.where(before > 0, before, 1.0), np.inf)
    at = np.argmin(ratio, axis=2)[:, :, None]
    return (
        np.take_along_axis(ratio, at, 2)[:, :, 0],
        at[:, :, 0] + side,
        np.take_along_axis(before, at, 2)[:, :, 0],
        np.take_along_axis(after, at, 2)[:, :, 0],
    )
