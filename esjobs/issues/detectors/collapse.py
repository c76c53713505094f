"""Work that stops while the job goes on: a hang, a crashed node, exhausted input.

After the homogeneity of XDMoD and the catastrophe of TACC stats: the smallest ratio of the rate after an
instant to that before, over instants and nodes.
"""

from dataclasses import replace

import numpy as np

from esjobs.issues.detectors.detector import COUNT, SHARE, Detector
from esjobs.issues.detectors.measured import Floats, Ints, Mask, Measured, Reason, Values, measured
from esjobs.issues.detectors.runs import longest_run
from esjobs.issues.detectors.samples import LEAST_SAMPLES, LEAST_SHARE, Samples, chunks, cleaned, samples

# samples: a single one may be a glitch of the monitor
_LEAST_SIDE = 2
# Share of the mean before the split below which a job pauses
_QUIET = 0.1
# In float64 a chunk leaves the nearest cache; smaller ones cost more in calls than they save
_ARRAYS = 1


def collapse(rates: Values | Samples, *, before: float = 0.01, after: float = 0.05) -> Measured:
    """Smallest ratio of the mean after a sample to the mean before it, over samples and units.

    1: steady; 0: no work afterwards. Numbers: ``before``, ``after`` (means), ``job`` (ratio of the mean over
    units), ``job_begin`` (its sample), ``job_share`` (share of the time after it), ``job_pause`` (that of
    the longest pause before it, since the first work: a periodic job may end in a pause). Evidence: the unit,
    from the split to the end.

    ``rates``: load, FLOP/s or memory bandwidth, (n_jobs, n_units, n_samples); gaps of a unit affect that unit
    alone. ``before``, ``after``: share of samples, at least 2, required on either side of the split: the end
    of a job is quiet.
    """
    rates = samples(rates)
    jobs, units, n = rates.shape
    # 1 % of 100 is 1, although 0.01 * 100 may be a little more in floating point
    sides = tuple(max(_LEAST_SIDE, int(np.ceil(share * n - 1e-9))) for share in (before, after))
    ratio, split = np.full((jobs, units), np.inf), np.zeros((jobs, units), np.int64)
    means = np.full((2, jobs, units), np.nan)
    count = np.zeros((jobs, units), np.int64)
    for rows in chunks(jobs, _ARRAYS * units * n):
        values = rates.values[rows].astype(np.float64)
        present = None
        # without gaps nothing is masked: half the time
        if not (rates.even_units[rows] == units).all():
            values = cleaned(values)
            present = ~np.isnan(values)
        count[rows], ratio[rows], split[rows], means[0][rows], means[1][rows] = _smallest(
            values, present, sides
        )
    # a unit of few samples would win: its ratios scatter most
    fits = (count >= max(LEAST_SAMPLES, sum(sides))) & (count >= LEAST_SHARE * n)
    ratio = np.where(fits, ratio, np.inf)
    unit = np.argmin(ratio, axis=1)
    at = (np.arange(jobs), unit)
    value, begin = ratio[at], split[at]
    # of one unit the job is the unit
    job, job_begin, job_before, mean = value, begin, means[0][at], rates.mean
    if units > 1:
        _, smallest, split_at, left, _ = _smallest(mean[:, None, :], ~np.isnan(mean[:, None, :]), sides)
        job, job_begin, job_before = smallest[:, 0], split_at[:, 0], left[:, 0]
    valid = np.isfinite(job)
    pause = _longest_pause(mean, _QUIET * job_before, job_begin) / n
    return measured(
        _reasons(rates, count, fits, np.isfinite(value), sum(sides)),
        value,
        unit=unit,
        begin=begin,
        end=n,
        share=(n - begin) / n,
        numbers={
            "before": means[0][at],
            "after": means[1][at],
            "job": np.where(valid, job, np.nan),
            "job_begin": np.where(valid, job_begin, np.nan),
            "job_share": np.where(valid, (n - job_begin) / n, np.nan),
            "job_pause": np.where(valid, pause, np.nan),
        },
    )


def _longest_pause(rates: Values, quiet: Floats, until: Ints) -> Ints:
    """Return the samples of the longest run below ``quiet``, from the first one above it to ``until``."""
    with np.errstate(invalid="ignore"):
        low, high = rates <= quiet[:, None], rates > quiet[:, None]
    index = np.arange(rates.shape[1])
    low &= (index < until[:, None]) & (index >= np.argmax(high, axis=1)[:, None])
    begin, end = longest_run(low)
    return end - begin


def _reasons(rates: Samples, count: Ints, fits: Values, assessed: Values, least: int) -> Values:
    most = count.max(axis=1)
    why = np.where(most < max(LEAST_SAMPLES, least), Reason.TOO_FEW_SAMPLES, Reason.GAPS)
    why = np.where(fits.any(axis=1), Reason.NEVER_BUSY, why)
    why = np.where(most == 0, Reason.NO_DATA, why)
    if rates.shape[2] < LEAST_SAMPLES:
        why = np.where(most == 0, Reason.NO_DATA, Reason.TOO_FEW_SAMPLES)
    return np.where(assessed, Reason.ASSESSED, why).astype(np.int8)


def _smallest(
    rates: Floats, valid: Mask | None, sides: tuple[int, ...]
) -> tuple[Ints, Floats, Ints, Floats, Floats]:
    """Per unit: number of samples, smallest ratio (inf: none), its sample, means before and after.

    ``valid``: mask of samples; None: all.
    """
    shape, n = rates.shape[:2], rates.shape[2]
    count = np.full(shape, n) if valid is None else np.count_nonzero(valid, axis=2)
    blank = np.full(shape, np.nan)
    if n < sum(sides):
        return count, np.full(shape, np.inf), np.zeros(shape, np.int64), blank, blank
    complete = bool((count == n).all())
    if complete or valid is None:
        counts = np.arange(1, n + 1)[None, None, :]
    else:
        rates = np.where(valid, rates, 0.0)
        counts = np.cumsum(valid, axis=2)
    sums = np.cumsum(rates, axis=2)
    # splits with so many samples of the job on either side, and of the unit as well
    s = slice(sides[0] - 1, n - sides[1])
    n_before, n_after = counts[:, :, s], counts[:, :, -1:] - counts[:, :, s]
    total, below = sums[:, :, -1:], sums[:, :, s]
    with np.errstate(divide="ignore", invalid="ignore"):
        # (total - below) / n_after over below / n_before
        # in place, as the arrays are as large as the samples
        ratio = total / below
        ratio -= 1.0
        ratio *= n_before / n_after
    if not complete:
        ratio[(n_before < sides[0]) | (n_after < sides[1])] = np.inf
    # a unit that never worked has not stopped working
    ratio[total[:, :, 0] == 0] = np.inf
    at = np.argmin(ratio, axis=2)[:, :, None]
    found, left, before, after = (
        np.take_along_axis(np.broadcast_to(each, ratio.shape), at, 2)[:, :, 0]
        for each in (ratio, below, n_before, n_after)
    )
    # rounding may leave a little less than nothing
    right = np.maximum(total[:, :, 0] - left, 0.0) / np.maximum(after, 1)
    left = left / np.maximum(before, 1)
    exact = right / np.where(left > 0, left, 1.0)
    return count, np.where(np.isfinite(found), exact, np.inf), at[:, :, 0] + sides[0], left, right


COLLAPSE = Detector(
    "collapse",
    "smallest ratio of the load after an instant to before it",
    "1",
    ("cpu_load",),
    {
        **dict.fromkeys(("before", "after", "job", "job_begin"), COUNT),
        **dict.fromkeys(("job_share", "job_pause"), SHARE),
    },
    measure=lambda batch, _: collapse(batch.raw_load),
    low=0.0,
)
GPU_COLLAPSE = replace(
    COLLAPSE,
    name="gpu-collapse",
    meaning="smallest ratio of the load of GPUs after an instant to before it",
    metrics=("gpu_load",),
    measure=lambda batch, _: collapse(batch.gpu_load),
)
