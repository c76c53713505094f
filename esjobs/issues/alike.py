"""Blocks of jobs that have the same metrics: detectors then look at nothing that is not there."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from esjobs.records.series.blocks import Block


def alike(block: Block) -> Iterator[Block]:
    """The jobs of a block in blocks of those that have the same metrics, with as many units as these need."""
    metrics = tuple(block.values)
    n_units = np.array([[len(units) for units in block.units[metric]] for metric in metrics], np.int64)
    kinds, kind = np.unique((n_units > 0).T, axis=0, return_inverse=True)
    for number, present in enumerate(kinds):
        rows = np.flatnonzero(kind.reshape(-1) == number)
        there = [metric for metric, has in zip(metrics, present, strict=True) if has]
        if there:
            yield _part(block, rows, there)


def _part(block: Block, rows: npt.NDArray[np.int64], metrics: list[str]) -> Block:
    units = {metric: tuple(block.units[metric][row] for row in rows) for metric in metrics}
    everything = len(rows) == len(block.step_s)
    values = {}
    for metric in metrics:
        most = max(map(len, units[metric]))
        array = block.values[metric][:, :most]
        values[metric] = array if everything else array[rows]
    return Block(
        jobs=block.jobs.take(pa.array(rows)),
        start_time=block.start_time[rows],
        step_s=block.step_s[rows],
        values=values,
        units=units,
        scopes={metric: tuple(block.scopes[metric][row] for row in rows) for metric in metrics},
        resampled=block.resampled[rows],
    )
