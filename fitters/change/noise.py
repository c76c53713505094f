"""Scatter of daily values without a change: a white part and one that lasts for days.

A value per day has an error from the jobs of that day, which is new every day, and one from what the name
does to single tasks, which lasts as long as these run. The second makes neighbouring days similar, which
looks like a change: how similar two days are follows from the tasks that they share.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from fitters.layout.arrays import Floats, Ints

# Correlation of the lasting part from one day to the next, where nobody knows what days share
ASSUMED_MEMORY = 0.6
_QUANTILES = (0.5, 0.8)  # Of the differences of days: what most of them do, and what a few wide ones add
_EXPECTED = special.ndtri((1.0 + np.array(_QUANTILES)) / 2.0)
# Days between two that are compared, and values from which on: a step moves as many differences
_LAGS = ((1, 0), (3, 20))
_PRIOR_DAYS = 20.0  # Differences that a scale of 1 counts for


def fading(day: Ints, memory: float = ASSUMED_MEMORY) -> Floats:
    """Correlation of the lasting parts of days that forget by the same share every day, shape (n, n).

    >>> fading(np.array([0, 1, 3]), 0.5).tolist()
    [[1.0, 0.5, 0.125], [0.5, 1.0, 0.25], [0.125, 0.25, 1.0]]
    """
    matrix: Floats = memory ** np.abs(day[:, None] - day[None, :]).astype(np.float64)
    return matrix


def shared(tasks: Sequence[ArrayLike], parts: Sequence[ArrayLike]) -> Floats:
    """Return the correlation of the lasting parts of days from their common tasks, shape (n, n).

    ``tasks``: task numbers of each day; ``parts``: influence of each on the value of the day. The effect of a
    name on a task is the same on all days and independent between tasks: errors of two days correlate by the
    cosine of their parts.

    >>> shared([[1, 2], [2, 3]], [[3.0, 4.0], [1.0, 0.0]]).round(3).tolist()
    [[1.0, 0.8], [0.8, 1.0]]
    """
    sizes = [np.size(of_day) for of_day in tasks]
    # the 0 in front makes it work for no tasks at all
    _, column = np.unique(np.concatenate([[0.0], *tasks]), return_inverse=True)
    weight = np.zeros((len(sizes), int(column.max()) + 1))
    np.add.at(weight, (np.repeat(np.arange(len(sizes)), sizes), column[1:]), np.concatenate([[], *parts]))
    norm = np.sqrt(np.einsum("ij,ij->i", weight, weight))
    weight /= np.where(norm > 0, norm, 1.0)[:, None]
    matrix: Floats = weight @ weight.T
    # a day without tasks, too, correlates with itself
    np.fill_diagonal(matrix, 1.0)
    return matrix


def covariance(white: Floats, lasting: Floats, correlation: Floats) -> Floats:
    """Return the covariance of daily values from both parts of their errors, shape (n, n)."""
    return np.diag(white**2) + np.outer(lasting, lasting) * correlation


def error_scale(value: Floats, white: Floats, lasting: Floats, correlation: Floats) -> float:
    """Return the factor by which the errors of a name are too small, at least 1.

    From the differences of days one and three apart, which a step or two hardly move: their medians, and the
    fifth that is widest, for errors that are too small are so for some tasks, not for all. Few days know it
    badly: they are drawn to 1.
    """
    n = len(value)
    matrix = covariance(white, lasting, correlation)
    variance = np.diagonal(matrix)
    square = 1.0
    for lag, least in _LAGS:
        if n < max(least, lag + 2):
            continue
        expected = variance[lag:] + variance[:-lag] - 2.0 * np.diagonal(matrix, lag)
        off = np.abs(value[lag:] - value[:-lag]) / np.sqrt(expected)
        for ratio in ((np.quantile(off, _QUANTILES) / _EXPECTED) ** 2).tolist():
            square = max(square, (_PRIOR_DAYS + len(off) * ratio) / (_PRIOR_DAYS + len(off)))
    return float(np.sqrt(square))
