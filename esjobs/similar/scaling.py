"""Metrics on one scale: each around its median, in units of its interquartile range."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Scale:
    """Of each metric its middle, and the spread that is 1."""

    middle: Floats32
    spread: Floats32

    def apply(self, values: Floats32) -> None:
        """In place, of (..., metrics)."""
        values -= self.middle
        values /= self.spread


def scale_of(values: Floats32) -> Scale:
    """The scale of the samples of jobs (jobs, samples, metrics).

    A metric that is the same nearly everywhere has the spread of its standard deviation, or 1.
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
