"""Allocated units that a job does not use (PIKA)."""

from dataclasses import replace

import numpy as np

from esjobs.issues.detectors.detector import COUNT, Detector
from esjobs.issues.detectors.measured import NONE, Mask, Measured, Values, measured
from esjobs.issues.detectors.samples import LEAST_SAMPLES, Device, Samples, samples

# share of busy samples: a job of days has many blips of monitoring and start scripts
_LENIENT = 0.01


def unused(load: Values | Samples, device: Device = "cpu") -> Measured:
    """Share of units with at most one busy sample: a start script may blip.

    Numbers: ``unused``, ``used``, ``units``, ``unused_lenient`` (at most 1 % busy samples, for long jobs).
    Evidence: the first unused unit. Busy samples count also at instants that another unit's gap excludes.
    """
    load = samples(load)
    _, _, n = load.shape
    idle_units = unused_units(load, device)
    count = idle_units.sum(axis=1)
    some = count > 0
    # never stricter than the published rule
    lenient = unused_units(load, device, busy=max(1, int(_LENIENT * n)))
    return measured(
        load.reason,
        count / np.maximum(load.n_units, 1),
        unit=np.where(some, np.argmax(idle_units, axis=1), NONE),
        begin=np.where(some, 0, NONE),
        end=np.where(some, n, NONE),
        share=some.astype(np.float64),
        numbers={
            "unused": count,
            "used": load.n_units - count,
            "units": load.n_units,
            "unused_lenient": lenient.sum(axis=1),
        },
    )


def unused_units(load: Samples, device: Device, busy: int = 1) -> Mask:
    """Return the mask of units with at most ``busy`` busy samples, (n_jobs, n_units)."""
    active = load.survey(device)
    idle_enough = active.idle >= load.unit_n - busy
    found: Mask = (
        load.present & idle_enough & (active.busy <= busy) & (load.unit_n >= max(LEAST_SAMPLES, busy + 1))
    )
    return found


CPU_UNUSED = Detector(
    "cpu-unused",
    "part of the cores with one busy sample at most",
    "1",
    ("cpu_load",),
    dict.fromkeys(("unused", "used", "units", "unused_lenient"), COUNT),
    measure=lambda batch, _: unused(batch.raw_load),
    low=0.0,
    high=1.0,
)
GPU_UNUSED = replace(
    CPU_UNUSED,
    name="gpu-unused",
    meaning="part of the GPUs with one busy sample at most",
    metrics=("gpu_load",),
    measure=lambda batch, _: unused(batch.gpu_load, "gpu"),
)
