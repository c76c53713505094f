"""Jobs whose work begins long after the job."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from esjobs.issues.detectors.detector import COUNT, DURATION, SHARE, Detector
from esjobs.issues.detectors.measured import NONE, Ints, Measured, Reason, Values, measured, steps
from esjobs.issues.detectors.samples import Device, Samples, samples

# by the value of a byte: which of its bits is the first that is set
_LEADING_ZEROS = np.array([8 - int(byte).bit_length() for byte in range(256)])


def late_start(load: Values | Samples, step_s: Values | float, device: Device = "cpu") -> Measured:
    """Share of the time before any unit works.

    A unit works from its first busy sample, or from its second if idle ones lie between: one busy sample may
    be a start script. Units with at most one busy sample never work; without any other the job is not
    assessed (idle time).

    Numbers: ``wait_s``, ``last_share`` and ``last_s`` (until the last unit works), ``never`` (units that
    never work). Evidence: the first unit that works, and the time before; gaps are not waiting.
    """
    load = samples(load)
    jobs, _, n = load.shape
    active = load.survey(device)
    first, bits = _pop_first(active.busy_bits, n)
    second, _ = _pop_first(bits, n)
    # one busy sample alone is the start script, two in a row are work
    begins = np.where(second > first + 1, second, first)
    works = load.present & (active.busy > 1)
    earliest = np.where(works, begins, n)
    unit = np.argmin(earliest, axis=1)
    start = earliest[np.arange(jobs), unit]
    last = np.where(works, begins, NONE).max(axis=1)
    waited, waited_last = _instants_before(load, start), _instants_before(load, last)
    reason = load.reason.copy()
    reason[(reason == Reason.ASSESSED) & ~works.any(axis=1)] = Reason.NEVER_BUSY
    n_known = np.maximum(load.n, 1)
    step = steps(step_s, jobs)
    late = waited > 0
    return measured(
        reason,
        waited / n_known,
        unit=np.where(late, unit, NONE),
        begin=np.where(late, 0, NONE),
        end=np.where(late, start, NONE),
        share=waited / n_known,
        numbers={
            "wait_s": waited * step,
            "last_share": waited_last / n_known,
            "last_s": waited_last * step,
            "never": (load.present & ~works).sum(axis=1),
        },
    )


def _instants_before(load: Samples, sample: Ints) -> Ints:
    # without gaps every sample before counts; only the others are looked at
    counted = np.maximum(sample, 0)
    gappy = np.flatnonzero(load.even_units == 0)
    before = np.arange(load.shape[2]) < sample[gappy, None]
    counted[gappy] = (before & ~np.isnan(load.mean[gappy])).sum(axis=1)
    return counted


def _pop_first(bits: NDArray[np.uint8], n: int) -> tuple[Ints, NDArray[np.uint8]]:
    """Return the first set bit of each row (n: none), and the bits without it."""
    byte = np.argmax(bits != 0, axis=-1)[..., None]
    value = np.take_along_axis(bits, byte, axis=-1)
    bit = _LEADING_ZEROS[value]
    # a new array: the bits belong to the survey that other detectors read
    rest = bits.copy()
    np.put_along_axis(rest, byte, value & ~(np.uint8(128) >> np.minimum(bit, 7).astype(np.uint8)), axis=-1)
    return np.where(value > 0, byte * 8 + bit, n)[..., 0], rest


LATE_START = Detector(
    "late-start",
    "part of the time before any core worked",
    "1",
    ("cpu_load",),
    {"wait_s": DURATION, "last_share": SHARE, "last_s": DURATION, "never": COUNT},
    measure=lambda batch, _: late_start(batch.raw_load, batch.step_s),
    low=0.0,
    high=1.0,
)
GPU_LATE_START = replace(
    LATE_START,
    name="gpu-late-start",
    meaning="part of the time before any GPU worked",
    metrics=("gpu_load",),
    measure=lambda batch, _: late_start(batch.gpu_load, batch.step_s, "gpu"),
)
