"""Idle time of cores and GPUs (PIKA): samples at which a unit does nothing, added up over units."""

import numpy as np

from esjobs.issues.detectors.measured import NONE, Measured, Values, measured, steps
from esjobs.issues.detectors.runs import longest_run
from esjobs.issues.detectors.samples import Device, Samples, samples


def idle(load: Values | Samples, step_s: Values | float, device: Device = "cpu") -> Measured:
    """Share of the time of all units at which they were idle: a core below a load of 0.01, a GPU at 0.

    The value is idle samples / samples, over all units. Numbers: ``idle_s`` (step x idle samples, seconds of
    units; NaN without a length of the step), ``idle_samples``, ``units``, ``unit_share`` (of the unit that
    was idle most). That unit, and the longest time it was idle without a break, are the evidence.

    Parameters
    ----------
    load
        Shape (n_jobs, n_units, n_samples): per core with its hardware threads merged, or per GPU.
    step_s
        Seconds between samples, per job.
    """
    load = samples(load)
    jobs, _, n = load.shape
    active = load.survey(device)
    count = active.idle.sum(axis=1)
    unit_share = active.idle / np.maximum(load.unit_n, 1)
    unit = np.argmax(unit_share, axis=1)
    at = (np.arange(jobs), unit)
    bits = np.unpackbits(active.idle_bits[at], axis=1, count=n).astype(bool)
    begin, end = longest_run(bits)
    share = count / np.maximum(load.unit_n.sum(axis=1), 1)
    return measured(
        load.reason,
        share,
        unit=np.where(count > 0, unit, NONE),
        begin=begin,
        end=end,
        share=share,
        numbers={
            "idle_s": count * steps(step_s, jobs),
            "idle_samples": count,
            "units": load.n_units,
            "unit_share": unit_share[at],
        },
    )
