"""How values of successive days scatter where nothing changes: a white part and one that lasts for days.

A value per day has an error from the jobs of that day, which is new every day, and one from what the name
does to single tasks, which lasts as long as these run. The second makes neighbouring days alike, and so looks
like a change: its memory is measured from all names together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitters.layout.arrays import Floats
from fitters.robust import MAD_FACTOR

ASSUMED_MEMORY = 0.6
"""Correlation of the lasting part from one day to the next, where the data cannot tell."""
MEMORY_RANGE = (0.5, 0.9)
"""Tasks run for days: less is taken for a fluctuation; more could not be told from changes."""

_LEAST_DAYS = 15
_LEAST_NAMES = 10
_CLIP = 3.0
_PRIOR_DAYS = 20.0
_LEAST_SHARE = 0.05
_SWEEPS = 5


@dataclass(frozen=True, slots=True)
class Noise:
    """What values do without any change.

    ``memory``: correlation of the lasting part from one day to the next. ``scale``: per name, by how much its
    errors are too small, at least 1.
    """

    memory: float
    scale: Floats


def measure_noise(day: NDArray[np.int64], values: Floats, white: Floats, lasting: Floats) -> Noise:
    """Memory of the grid and scale of each name, from values that mostly do not change.

    Parameters
    ----------
    day
        Day numbers, ascending, shape (n_days,).
    values, white, lasting
        Values in ln and the two parts of their errors, shape (n_days, n_names); NaN where a name has none.
    """
    total = np.hypot(white, lasting)
    with np.errstate(invalid="ignore", divide="ignore"):
        pull = np.clip((values - _median(values)) / total, -_CLIP, _CLIP)
        share = lasting / total
    memory = _memory(day, pull, share)
    names = range(values.shape[1])
    scale = [_scale(day, values[:, at], white[:, at], lasting[:, at], memory) for at in names]
    return Noise(memory, np.array(scale))


def covariance(day: NDArray[np.int64], white: Floats, lasting: Floats, memory: float, scale: float) -> Floats:
    """Covariance of the values of one name on these days, shape (n_days, n_days)."""
    apart = np.abs(day[:, None] - day[None, :])
    matrix: Floats = scale**2 * (np.diag(white**2) + np.outer(lasting, lasting) * memory**apart)
    return matrix


def _memory(day: NDArray[np.int64], pull: Floats, share: Floats) -> float:
    n_days, n_names = pull.shape
    follows = np.flatnonzero(np.diff(day) == 1)
    if n_names < _LEAST_NAMES or len(follows) < _LEAST_DAYS:
        return ASSUMED_MEMORY
    products, shares = pull[follows] * pull[follows + 1], share[follows] * share[follows + 1]
    told = np.isfinite(products).sum(axis=0) >= _LEAST_DAYS // 2
    if told.sum() < _LEAST_NAMES:
        return ASSUMED_MEMORY
    possible = _trimmed_mean(np.nanmean(shares[:, told], axis=0))
    if possible <= _LEAST_SHARE:
        return ASSUMED_MEMORY
    raw = _trimmed_mean(np.nanmean(products[:, told], axis=0))
    memory = ASSUMED_MEMORY
    for _ in range(_SWEEPS):
        # the mean of the days was taken out, and with it the variance of that mean
        lost = (1.0 - possible + possible * (1.0 + memory) / (1.0 - memory)) / n_days
        memory = float(np.clip((raw + lost) / possible, *MEMORY_RANGE))
    return memory


def _trimmed_mean(values: Floats) -> float:
    """Without the tenth at either end: a name that did change is alike on all its days."""
    cut = len(values) // 10
    return float(np.mean(np.sort(values)[cut : len(values) - cut]))


def _scale(day: NDArray[np.int64], value: Floats, white: Floats, lasting: Floats, memory: float) -> float:
    """From the differences of neighbouring days, which one change or another does not move.

    Few days know it badly: they are drawn to 1.
    """
    known = np.isfinite(value)
    value, white, lasting, day = value[known], white[known], lasting[known], day[known]
    if len(value) < 3:
        return 1.0
    steps = np.diff(value)
    alike = memory ** np.diff(day)
    expected = white[1:] ** 2 + white[:-1] ** 2 + lasting[1:] ** 2 + lasting[:-1] ** 2
    expected -= 2.0 * alike * lasting[1:] * lasting[:-1]
    ratio = (MAD_FACTOR * np.median(np.abs(steps) / np.sqrt(expected))) ** 2
    drawn = (_PRIOR_DAYS + len(steps) * ratio) / (_PRIOR_DAYS + len(steps))
    return float(np.sqrt(max(drawn, 1.0)))


def _median(values: Floats) -> Floats:
    """Per name; NaN for a name without any."""
    medians = np.full(values.shape[1], np.nan)
    some = np.isfinite(values).any(axis=0)
    medians[some] = np.nanmedian(values[:, some], axis=0)
    return medians
