"""Uneven load of cores or GPUs (PIKA)."""

from dataclasses import replace

import numpy as np

from esjobs.issues.detectors.detector import COUNT, SHARE, Detector
from esjobs.issues.detectors.measured import NONE, Floats, Mask, Measured, Values, measured
from esjobs.issues.detectors.runs import longest_run
from esjobs.issues.detectors.samples import Device, Samples, masked_spread, over_time, samples
from esjobs.issues.detectors.unused import unused_units


def imbalance(load: Values | Samples, device: Device = "cpu", *, level: float = 0.2) -> Measured:
    """Mean over time of the standard deviation (n - 1) of the load across units; 0 of one unit.

    With n it could not exceed 0.5 on loads of 0 to 1, and PIKA's tables show more; loads up to 2 (two
    hardware threads) allow 1.42.

    Numbers: ``used_only`` (without unused units; 0 of fewer than two), ``lost`` (share of unit time in which
    used units were less busy than the busiest), ``largest`` (of any instant), ``mean_load``. Evidence, of
    used units: the one furthest from the mean, and the longest interval above ``level``; ``share``: all time
    above it.
    """
    load = samples(load)
    survey = load.survey(device)
    # of all units, as published; used ones follow from it where some are not used
    value = over_time(survey.spread, load.n)
    without = unused_units(load, device)
    spread, used_only = _of_used(load, without, survey.spread, value)
    above = spread > level
    begin, end = longest_run(above)
    # the busiest of those that worked; where fewer than two did there is nothing uneven in them
    worked = load.present & ~without
    means = np.where(worked, survey.unit_mean, np.nan)
    n_worked = worked.sum(axis=1)
    some = np.maximum(n_worked, 1)
    middle = np.where(worked, survey.unit_mean, 0.0).sum(axis=1) / some
    busiest = np.fmax.reduce(means, axis=1)
    lost = np.where(busiest > 0, 1 - middle / np.where(busiest > 0, busiest, 1.0), 0.0)
    off = np.where(worked, np.abs(np.nan_to_num(means) - middle[:, None]), -1.0)
    return measured(
        load.reason,
        value,
        unit=np.where(used_only > 0, np.argmax(off, axis=1), NONE),
        begin=begin,
        end=end,
        share=np.count_nonzero(above, axis=1) / np.maximum(load.n, 1),
        numbers={
            "used_only": used_only,
            "lost": np.maximum(lost, 0.0) * n_worked / np.maximum(load.n_units, 1),
            "largest": np.fmax.reduce(survey.spread, axis=1, initial=0.0),
            "mean_load": over_time(survey.mean, load.n),
        },
    )


def _of_used(load: Samples, without: Mask, spread: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Return deviation per instant and its mean over time, of used units; 0 of fewer than two."""
    rows = np.flatnonzero(without.any(axis=1))
    if not len(rows):
        return spread, value
    spread, value = spread.copy(), value.copy()
    # in float64 with a mask beside: some jobs at a time
    for few in np.array_split(rows, max(len(rows) // 64, 1)):
        values, used = load.used(few)
        spread[few] = masked_spread(values, used & ~without[few][:, :, None])
        value[few] = over_time(spread[few], np.count_nonzero(~np.isnan(spread[few]), axis=1))
    return spread, value


CPU_IMBALANCE = Detector(
    "cpu-imbalance",
    "mean over time of the standard deviation of the load across cores",
    "1",
    ("cpu_load",),
    {"used_only": COUNT, "lost": SHARE, "largest": COUNT, "mean_load": COUNT},
    measure=lambda batch, _: imbalance(batch.load),
    low=0.0,
    per_core=True,
)
GPU_IMBALANCE = replace(
    CPU_IMBALANCE,
    name="gpu-imbalance",
    meaning="mean over time of the standard deviation of the load across GPUs",
    metrics=("gpu_load",),
    measure=lambda batch, _: imbalance(batch.gpu_load, "gpu"),
    per_core=False,
)
