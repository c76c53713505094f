"""Load that is spread unevenly over the cores or GPUs of a job (PIKA)."""

import numpy as np

from esjobs.detect.detectors.measured import NONE, Floats, Measured, Values, measured
from esjobs.detect.detectors.runs import longest_run
from esjobs.detect.detectors.samples import Device, Samples, masked_spread, over_time, samples
from esjobs.detect.detectors.unused import unused_units


def imbalance(load: Values | Samples, device: Device = "cpu", *, level: float = 0.2) -> Measured:
    """Mean over time of the standard deviation (n - 1) of the load across units; 0 of one unit.

    With n instead of n - 1 it could not pass 0.5 on loads of 0 to 1, and PIKA's tables show more; loads up to
    2 (two hardware threads added up) allow up to 1.42.

    Numbers: ``used_only`` (the same without unused units; 0 where fewer than two are left), ``largest`` (of
    any instant), ``mean_load``. Evidence: the unit whose mean is furthest from that of all, and the longest
    time at which the deviation was above ``level``; ``share`` is the part of all time at which it was.
    """
    load = samples(load)
    survey = load.survey(device)
    spread = survey.spread
    value = over_time(spread, load.n)
    above = spread > level
    begin, end = longest_run(above)
    mean = over_time(survey.mean, load.n)
    off = np.where(load.there, np.abs(np.where(load.there, survey.unit_mean, 0.0) - mean[:, None]), -1.0)
    return measured(
        load.reason,
        value,
        unit=np.where(value > 0, np.argmax(off, axis=1), NONE),
        begin=begin,
        end=end,
        share=np.count_nonzero(above, axis=1) / np.maximum(load.n, 1),
        numbers={
            "used_only": _used_only(load, device, value),
            "largest": np.fmax.reduce(spread, axis=1, initial=0.0),
            "mean_load": mean,
        },
    )


def _used_only(load: Samples, device: Device, value: Floats) -> Floats:
    out = value.copy()
    without = unused_units(load, device)
    rows = np.flatnonzero(without.any(axis=1))
    for few in np.array_split(rows, max(len(rows) // 64, 1)):
        values, used = load.used(few)
        spread = masked_spread(values, used & ~without[few][:, :, None])
        known = ~np.isnan(spread)
        out[few] = over_time(spread, known.sum(axis=1))
    return out
