"""Series of jobs made comparable: a value per node and instant, as many samples of each job."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from esjobs.core.metrics import metric
from esjobs.records.series.blocks import Block

N_SAMPLES = 500
"""Samples of every job that is compared."""

_MOST_MISSING = 0.5
"""A metric of which a larger part of the samples is missing is not there."""

_LARGEST = 1e18
"""Samples beyond are broken, as they are in records; their sums over units would leave float32."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PreparedJob:
    """A job's series, (``N_SAMPLES``, metrics) as float32; None where it lacks one of the metrics.

    ``length_s``: of the series; ``nodes``: those that units name, None where series are of the job in one.
    """

    source: str
    job_id: str
    length_s: float
    nodes: int | None
    values: npt.NDArray[np.float32] | None


def prepared(block: Block, metrics: Sequence[str]) -> Iterator[PreparedJob]:
    """The jobs of a block in some metrics, rates as log(1 + value), gaps bridged by straight lines."""
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
    """Which of the metrics a job of a block has samples enough of."""
    return tuple(name for name in metrics if _of_a_node(block, row, name, 1) is not None)


def resampled(values: Floats, n_samples: int) -> Floats:
    """Means over ``n_samples`` equal parts of the time; a sample lasts until the next.

    >>> resampled(np.array([1.0, 3.0, 5.0]), 2).round(3).tolist()
    [1.667, 4.333]
    """
    total = np.r_[0.0, np.cumsum(values)]
    edges = np.linspace(0, len(values), n_samples + 1)
    return np.diff(np.interp(edges, np.arange(len(total)), total)) * n_samples / len(values)


def _nodes(block: Block, row: int) -> int | None:
    """How many nodes the units of a job name."""
    named = {
        unit.split("/", 1)[0]
        for name, listed in block.units.items()
        if block.scopes[name][row] != "job"
        for unit in listed[row]
        if unit
    }
    return len(named) or None


def _of_a_node(block: Block, row: int, name: str, nodes: int) -> Floats | None:
    """What one node does on average, at ``N_SAMPLES`` instants; None where too little is measured."""
    values = block.values[name][row].astype(np.float64)
    present = np.abs(values) <= _LARGEST
    counts = present.sum(axis=0)
    known = counts > 0
    if not len(values) or not known.any() or np.mean(~known) > _MOST_MISSING:
        return None
    means = np.where(present, values, 0.0).sum(axis=0)[known] / counts[known]
    described = metric(name)
    if described.over_units == "sum":
        # of units that are missing at an instant the mean of the others stands in
        means *= len(block.units[name][row]) / nodes
    instants = np.arange(len(known))
    bridged = np.interp(instants, instants[known], means)
    if described.unit.endswith("/s"):
        bridged = np.log1p(np.maximum(bridged, 0.0))
    return resampled(bridged, N_SAMPLES)
