"""Bursts of metadata operations, which slow down shared file systems (PIKA)."""

import numpy as np

from esjobs.issues.detectors.detector import COUNT, Detector, Range
from esjobs.issues.detectors.measured import NONE, Measured, Values, measured
from esjobs.issues.detectors.runs import run_around
from esjobs.issues.detectors.samples import LARGEST, Samples, samples


def congestion(operations: Values | Samples, *, level: float = 40.0) -> Measured:
    """Largest rate of files opened and closed, summed over nodes, in operations per second.

    Numbers: ``mean`` (1/s), ``units``. Evidence: the node with the highest rate at the peak, and the interval
    around it with a sum of at least ``level``; ``share``: all time at or above it. Missing nodes are not
    added, so the sum is never too high.
    """
    operations = samples(operations)
    jobs = operations.shape[0]
    value, mean = np.zeros(jobs), np.zeros(jobs)
    unit, begin, end, high = (np.zeros(jobs, np.int64) for _ in range(4))
    for rows, total in operations.totals():
        peak = np.argmax(total, axis=1)
        value[rows] = total[np.arange(len(peak)), peak]
        congested = total >= level
        begin[rows], end[rows] = run_around(congested, peak)
        high[rows] = np.count_nonzero(congested, axis=1)
        # -1 marks instants that do not count
        mean[rows] = np.maximum(total, 0).sum(axis=1)
        nodes = operations.values[rows][np.arange(len(peak)), :, peak]
        # a sample that is a gap by its value has been left out of the sum
        valid = (nodes >= 0) & (nodes <= LARGEST) & operations.present[rows]
        unit[rows] = np.argmax(np.where(valid, nodes, -1.0), axis=1)
    n, some = np.maximum(operations.n, 1), value > 0
    return measured(
        operations.reason,
        value,
        unit=np.where(some, unit, NONE),
        begin=np.where(some, begin, NONE),
        end=np.where(some, end, NONE),
        share=high / n,
        numbers={"mean": mean / n, "units": operations.n_units},
    )


CONGESTION = Detector(
    "metadata-congestion",
    "largest rate of files opened and closed, over all nodes",
    "1/s",
    ("metadata_ops_s",),
    {"mean": Range("1/s"), "units": COUNT},
    measure=lambda batch, _: congestion(batch.block.values["metadata_ops_s"]),
    low=0.0,
)
