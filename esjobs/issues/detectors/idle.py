"""Idle time of cores and GPUs (PIKA)."""

from dataclasses import replace

import numpy as np

from esjobs.issues.detectors.detector import COUNT, DURATION, SHARE, Detector
from esjobs.issues.detectors.measured import NONE, Measured, Values, measured, steps
from esjobs.issues.detectors.runs import longest_run
from esjobs.issues.detectors.samples import Device, Samples, samples


def idle(load: Values | Samples, step_s: Values | float, device: Device = "cpu") -> Measured:
    """Share of unit time that is idle: a core below a load of 0.01, a GPU at 0.

    Numbers: ``idle_s`` (step x idle samples; NaN without a step), ``idle_samples``, ``units``, ``busy`` (mean
    number of busy units), ``unit_share`` (of the most idle unit). Evidence: that unit and its longest idle
    interval.

    ``load``: (n_jobs, n_units, n_samples), per core with hardware threads merged, or per GPU. ``step_s``:
    seconds between samples.
    """
    load = samples(load)
    jobs, _, n = load.shape
    active = load.survey(device)
    count = active.idle.sum(axis=1)
    # of the samples of each unit: one with gaps is not the less idle
    unit_share = active.idle / np.maximum(load.unit_n, 1)
    unit = np.argmax(unit_share, axis=1)
    at = (np.arange(jobs), unit)
    # of the most idle unit alone: all bits would be eight times as large unpacked
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
            "busy": load.n_units * (1 - share),
            "unit_share": unit_share[at],
        },
    )


_NUMBERS = {
    "idle_s": DURATION,
    **dict.fromkeys(("idle_samples", "units", "busy"), COUNT),
    "unit_share": SHARE,
}
CPU_IDLE = Detector(
    "cpu-idle",
    "part of the cores' time with a load below 0.01",
    "1",
    ("cpu_load",),
    _NUMBERS,
    measure=lambda batch, _: idle(batch.raw_load, batch.step_s),
    low=0.0,
    high=1.0,
)
GPU_IDLE = replace(
    CPU_IDLE,
    name="gpu-idle",
    meaning="part of the GPUs' time with a load of 0",
    metrics=("gpu_load",),
    measure=lambda batch, _: idle(batch.gpu_load, batch.step_s, "gpu"),
)
