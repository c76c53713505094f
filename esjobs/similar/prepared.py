"""Series of jobs made comparable: a value per node and instant, equally many samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.metrics import metric
from esjobs.records.series.blocks import Block
from fitters.layout.arrays import Floats

N_SAMPLES = 500
"""Samples of every job."""

LEAST_S = 1800.0
"""Least length of series."""
BAND = N_SAMPLES // 10
"""Samples that a path of dynamic time warping may be off the diagonal."""
DURATION = (0.5, 2.0)
"""Accepted ratios of durations."""

_MOST_MISSING = 0.5  # Share of missing samples beyond which a metric counts as not measured

_LARGEST = 1e18  # Samples beyond are broken; their sums over units would leave float32

Floats32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PreparedJob:
    """Series of a job, (``N_SAMPLES``, metrics) as float32; None if it lacks a metric.

    ``length_s``: of the series; ``nodes``: from the units, None for series of scope job.
    """

    source: str
    job_id: str
    length_s: float
    nodes: int | None
    values: Floats32 | None


def prepared(block: Block, metrics: Sequence[str]) -> Iterator[PreparedJob]:
    """Yield the jobs of a block; rates as log(1 + value), gaps interpolated."""
    sources, ids = (block.jobs.column(name).to_pylist() for name in ("source", "job_id"))
    for row, (source, job_id) in enumerate(zip(sources, ids, strict=True)):
        nodes = _nodes(block, row)
        columns: list[Floats] = []
        for name in metrics:
            column = _of_a_node(block, row, name, nodes or 1)
            if column is None:
                break
            columns.append(column)
        values = np.stack(columns, axis=1).astype(np.float32) if len(columns) == len(metrics) else None
        yield PreparedJob(source, job_id, float(block.step_s[row]) * block.n_samples, nodes, values)


def measured(block: Block, row: int, metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics of which a job has enough samples."""
    return tuple(name for name in metrics if _of_a_node(block, row, name, 1) is not None)


def resampled(values: Floats, n_samples: int) -> Floats:
    """Return means over ``n_samples`` equal intervals; a sample lasts until the next.

    >>> resampled(np.array([1.0, 3.0, 5.0]), 2).round(3).tolist()
    [1.667, 4.333]
    """
    # the integral is linear inside a sample, so that its differences are exact means
    total = np.r_[0.0, np.cumsum(values)]
    edges = np.linspace(0, len(values), n_samples + 1)
    return np.diff(np.interp(edges, np.arange(len(total)), total)) * n_samples / len(values)


def _nodes(block: Block, row: int) -> int | None:
    named = {
        unit.split("/", 1)[0]
        for name, listed in block.units.items()
        if block.scopes[name][row] != "job"
        for unit in listed[row]
        if unit
    }
    return len(named) or None


def _of_a_node(block: Block, row: int, name: str, nodes: int) -> Floats | None:
    """Return the mean of one node at ``N_SAMPLES`` instants, None with too few samples."""
    values = block.values[name][row].astype(np.float64)
    present = np.abs(values) <= _LARGEST
    counts = present.sum(axis=0)
    measured_at = counts > 0
    if not len(values) or not measured_at.any() or np.mean(~measured_at) > _MOST_MISSING:
        return None
    means = np.where(present, values, 0.0).sum(axis=0)[measured_at] / counts[measured_at]
    described = metric(name)
    if described.over_units == "sum":
        # of units that are missing at an instant the mean of the others stands in
        means *= len(block.units[name][row]) / nodes
    instants = np.arange(len(measured_at))
    bridged = np.interp(instants, instants[measured_at], means)
    # rates span orders of magnitude: by ratio, and 0 stays 0
    if described.unit.endswith("/s"):
        bridged = np.log1p(np.maximum(bridged, 0.0))
    return resampled(bridged, N_SAMPLES)


def node_class(nodes: int) -> int:
    """Return the class of a number of nodes: 1, 2, 3 to 4, 5 to 8, ... as 0, 1, 2, 3, ..."""
    return (nodes - 1).bit_length()


@dataclass(frozen=True)
class Scale:
    """Median and spread of each metric."""

    middle: Floats32
    spread: Floats32

    def apply(self, values: Floats32) -> None:
        """Scale values (..., metrics) in place."""
        values -= self.middle
        values /= self.spread


def scale_of(values: Floats32) -> Scale:
    """Return the scale of samples (jobs, samples, metrics).

    Nearly constant metrics use their standard deviation, or 1.
    """
    middles, spreads = [], []
    for number in range(values.shape[2]):
        column = values[:, :, number]
        low, middle, high = np.quantile(column, (0.25, 0.5, 0.75)).tolist()
        # what differs by less than float32 can tell is rounding
        least = 1e-5 * max(abs(low), abs(high))
        spread = high - low if high - low > least else float(column.std(dtype=np.float64))
        middles.append(middle)
        spreads.append(spread if spread > least else 1.0)
    return Scale(np.array(middles, np.float32), np.array(spreads, np.float32))
