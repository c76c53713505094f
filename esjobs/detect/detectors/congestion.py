"""Bursts of metadata operations, which slow a shared file system down for everybody (PIKA)."""

import numpy as np

from esjobs.detect.detectors.measured import NONE, Measured, Values, measured
from esjobs.detect.detectors.runs import run_around
from esjobs.detect.detectors.samples import LARGEST, Samples, over_time, samples


def congestion(operations: Values | Samples, *, level: float = 40.0) -> Measured:
    """Largest rate of files opened and closed, summed over the nodes of the job, in operations a second.

    Numbers: ``mean`` (operations a second), ``units``. Evidence: the node with the highest rate at that
    instant, and the time around it at which the sum was at least ``level``; ``share`` is the part of all time
    at which it was. Where nodes are missing at an instant the sum is of the others, and so never too high.
    """
    operations = samples(operations)
    jobs, _, _ = operations.shape
    total = operations.total
    known = total if operations.regular else np.where(total >= 0, total, -1.0)
    peak = np.argmax(known, axis=1)
    at = (np.arange(jobs), peak)
    value = np.maximum(known[at], 0.0)
    nodes = operations.values[at[0], :, peak].astype(np.float64)
    # a sample that is a gap by its value has been left out of the sum
    nodes = np.where((nodes >= 0) & (nodes <= LARGEST) & operations.there, nodes, -1.0)
    high = known >= level
    begin, end = run_around(high, peak)
    some = value > 0
    return measured(
        operations.reason,
        value,
        unit=np.where(some, np.argmax(nodes, axis=1), NONE),
        begin=np.where(some, begin, NONE),
        end=np.where(some, end, NONE),
        share=np.count_nonzero(high, axis=1) / np.maximum(operations.n, 1),
        numbers={"mean": over_time(total, operations.n), "units": operations.n_units},
    )
