"""Units that a job was given and did not use (PIKA)."""

import numpy as np

from esjobs.issues.detectors.measured import NONE, Bools, Measured, Values, measured
from esjobs.issues.detectors.samples import LEAST_SAMPLES, Device, Samples, samples

_LENIENT = 0.01


def unused(load: Values | Samples, device: Device = "cpu") -> Measured:
    """Share of the units that were idle at all samples but one at most: a script that starts may blip.

    The value is unused units / units that are there. Numbers: ``unused``, ``used``, ``units`` (both), and
    ``unused_lenient`` (units with at most 1 % busy samples, for jobs of many hours). The first of the unused
    ones is the evidence.

    A busy sample counts even at an instant that is left out because another unit has a gap.
    """
    load = samples(load)
    _, _, n = load.shape
    idle_units = unused_units(load, device)
    count = idle_units.sum(axis=1)
    some = count > 0
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


def unused_units(load: Samples, device: Device, busy: int = 1) -> Bools:
    """Units with at most so many ``busy`` samples, shape (n_jobs, n_units)."""
    active = load.survey(device)
    idle_enough = active.idle >= load.unit_n - busy
    found: Bools = (
        load.there & idle_enough & (active.busy <= busy) & (load.unit_n >= max(LEAST_SAMPLES, busy + 1))
    )
    return found
