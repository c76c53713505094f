"""Steps in a series of daily values with errors: where, how large, how sure.

Generalised least squares with the covariance of the days: for a step before each day its size and error
follow from one projection, and the day of the largest |size / error| is the candidate (the likelihood ratio
scan of D. M. Hawkins, J. Am. Stat. Assoc. 72 (1977) 180, for correlated errors). Candidates above a threshold
are taken one after the other (forward selection: binary segmentation with the other steps fitted along), and
all are fitted again together. The interval of the day holds those whose log-likelihood is close enough to the
best; 2 ln L has the distribution function (1 - exp(-x/2))^2 there (D. Siegmund, Stat. Sci. 3 (1988) 116).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fitters.change.noise import covariance, error_scale
from fitters.layout.arrays import Floats
from fitters.threads import one_blas_thread

THRESHOLD = 3.5
"""|size / error| from which a step is told; what it costs: ``benchmarks/results/drift.md``."""
SURE = 2.0
"""Errors by which a step is larger than what matters, to be said to matter."""
LEAST_DAYS = 3
"""Days with a value before a step, between two, and after one."""
DAY_LEVEL = 0.90
"""How often the interval of the day holds the true one."""

_MOST_STEPS = 5
_STRAY = 5.0
"""Pulls from its neighbours at which a day that stands alone counts for nothing."""
_SURVIVES = (0.75, 0.5)
"""Of the threshold, what a step must keep without one day, and without two."""
_NEAR = 10
"""Days on either side that are left out one by one."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a series.

    ``day``: the first day at the new level; ``day_low``, ``day_high``: its 90 % interval. ``size``: in ln,
    with its standard ``error`` for the day as it is given; ``significance``: their ratio, without sign.
    """

    day: int
    day_low: int
    day_high: int
    size: float
    error: float
    significance: float

    def exceeds(self, smallest: float) -> bool:
        """Whether it is larger than what matters, in ln, by two errors: that it is no noise is not enough.

        >>> Step(12, 11, 12, -0.06, 0.01, 6.0).exceeds(0.05), Step(12, 11, 12, -0.14, 0.03, 4.7).exceeds(0.05)
        (False, True)
        """
        return abs(self.size) - SURE * self.error >= smallest


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one name: ascending day numbers, values in ln, the white and the lasting part of errors.

    ``alike``: correlation of the lasting parts, shape (n, n): :func:`fitters.shared` where one knows what
    days share, else :func:`fitters.fading`.
    """

    day: NDArray[np.int64]
    value: Floats
    white: Floats
    lasting: Floats
    alike: Floats

    def keep(self, rows: NDArray[np.bool_]) -> "Series":
        """Some of the days."""
        alike = self.alike[np.ix_(rows, rows)]
        return Series(self.day[rows], self.value[rows], self.white[rows], self.lasting[rows], alike)

    @property
    def scale(self) -> float:
        """By how much the errors are too small: :func:`fitters.change.noise.error_scale`."""
        return error_scale(self.value, self.white, self.lasting, self.alike)


def find_steps(series: Series, scale: float = 1.0, threshold: float = THRESHOLD) -> tuple[Step, ...]:
    """The steps of a series in the order of their days.

    A day that stands alone, far from days on both sides that agree, is left out. A step must survive without
    any one and any two of the days near it, so that a bad day or two make none.

    Parameters
    ----------
    series
        Days without a value are left out of it.
    scale
        By how much the errors are too small; mostly ``series.scale``.
    threshold
        Significance from which a step counts.

    >>> from fitters import fading
    >>> day = np.arange(20)
    >>> value = np.where(day < 12, 0.0, 0.15) + 0.001 * (-1.0) ** day
    >>> error = np.full(20, 0.02)
    >>> series = Series(day, value, error, error, fading(day, 0.5))
    >>> [(step.day, round(step.size, 2)) for step in find_steps(series)]
    [(12, 0.15)]
    """
    series = series.keep(~stray_days(series, scale))
    if len(series.day) < 2 * LEAST_DAYS:
        return ()
    with one_blas_thread():
        return _found(series, scale, threshold)


def _found(series: Series, scale: float, threshold: float) -> tuple[Step, ...]:
    scan = _Scan(series, scale)
    places: list[int] = []
    while len(places) < _MOST_STEPS:
        best, pull = scan.best(places)
        if best is None or pull < threshold:
            break
        if not _survives(series, places, best, scale, threshold):
            break
        places.append(best)
    places = _settled(scan, sorted(places), threshold)
    return tuple(scan.step([other for other in places if other != place], place) for place in places)


def stray_days(series: Series, scale: float) -> NDArray[np.bool_]:
    """Days far from the days on both their sides, which agree with each other."""
    stray = np.zeros(len(series.day), np.bool_)
    total = np.hypot(series.white, series.lasting)
    for place in _off_what_follows(series.value, scale * total):
        before = [at for at in range(max(place - 2, 0), place) if not stray[at]]
        after = list(range(place + 1, min(place + 3, len(series.day))))
        if not before:
            continue
        error = scale * math.hypot(total[place], float(total[[*before, *after]].max()))
        middle = series.value[place]
        off = [(middle - float(np.mean(series.value[side]))) / error for side in (before, after)]
        stray[place] = min(map(abs, off)) > _STRAY and off[0] * off[1] > 0
    return stray


def _off_what_follows(value: Floats, error: Floats) -> list[int]:
    """Days, but for the first and the last, far from the two that follow: few, and only they can be stray."""
    if len(value) < 3:
        return []
    last = np.minimum(np.arange(1, len(value) - 1) + 2, len(value) - 1)
    middle, following = value[1:-1], (value[2:] + value[last]) / 2
    spread = np.hypot(error[1:-1], np.maximum(error[2:], error[last]))
    # a little below the limit: rounding is left to who looks at each
    chosen: list[int] = (1 + np.flatnonzero(np.abs(middle - following) > 0.999 * _STRAY * spread)).tolist()
    return chosen


class _Scan:
    """A step before each day of a whitened series."""

    def __init__(self, series: Series, scale: float) -> None:
        n = len(series.day)
        matrix = scale**2 * covariance(series.white, series.lasting, series.alike)
        root = linalg.cholesky(matrix, lower=True)
        # column t: 1 from day t on; column 0 is the level
        steps = np.tril(np.ones((n, n)))
        self.day = series.day
        whitened = linalg.solve_triangular(root, np.column_stack([steps, series.value]), lower=True)
        self._steps: Floats = whitened[:, :-1]
        self._value: Floats = whitened[:, -1]

    def _fitted(self, places: list[int], *, anywhere: bool = False) -> tuple[Floats, Floats]:
        """Size and error of a further step at each day, the others and the level fitted along.

        ``anywhere``: also where days before or after it are too few.
        """
        basis, _ = linalg.qr(self._steps[:, [0, *places]], mode="economic")
        value = self._value - basis @ (basis.T @ self._value)
        steps = self._steps - basis @ (basis.T @ self._steps)
        norm = np.einsum("ij,ij->j", steps, steps)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = steps.T @ value / norm
            error = 1.0 / np.sqrt(norm)
        allowed = norm > 1e-9 if anywhere else self._allowed(places)
        return np.where(allowed, size, 0.0), np.where(allowed, error, np.inf)

    def _allowed(self, places: list[int]) -> NDArray[np.bool_]:
        n = len(self.day)
        allowed = np.ones(n, np.bool_)
        for edge in (0, *places, n):
            allowed[max(edge - LEAST_DAYS + 1, 0) : edge + LEAST_DAYS] = False
        return allowed

    def pulls(self, places: list[int], *, anywhere: bool = False) -> Floats:
        """|size / error| of a further step at each day; 0 where there is no room for one."""
        size, error = self._fitted(places, anywhere=anywhere)
        return np.abs(size) / error

    def best(self, places: list[int]) -> tuple[int | None, float]:
        """Where a further step is most significant, and how much so; None where none has room."""
        pulls = self.pulls(places)
        most = float(pulls.max(initial=0.0))
        return (int(np.argmax(pulls)) if most > 0 else None), most

    def step(self, others: list[int], place: int) -> Step:
        """A step with its interval, the others fitted along."""
        size, error = self._fitted(others)
        pulls = np.abs(size) / error
        width = -2.0 * math.log(1.0 - math.sqrt(DAY_LEVEL))
        near = np.flatnonzero((pulls**2 >= pulls[place] ** 2 - width) & (size * size[place] > 0))
        return Step(
            day=int(self.day[place]),
            day_low=int(self.day[near[0]]),
            day_high=int(self.day[near[-1]]),
            size=float(size[place]),
            error=float(error[place]),
            significance=float(pulls[place]),
        )


def _settled(scan: _Scan, places: list[int], threshold: float) -> list[int]:
    """Steps at their best days given the others, without those that are none beside the others."""
    for _ in range(3):
        for number, place in enumerate(places):
            others = [other for other in places if other != place]
            moved, _ = scan.best(others)
            low = places[number - 1] if number else 0
            high = places[number + 1] if number + 1 < len(places) else len(scan.day)
            if moved is not None and low < moved < high:
                places[number] = moved
        weakest = min(
            places, key=lambda at: scan.pulls([other for other in places if other != at])[at], default=None
        )
        if weakest is None:
            break
        others = [other for other in places if other != weakest]
        if scan.pulls(others)[weakest] < threshold:
            places = others
    return places


def _survives(series: Series, places: list[int], best: int, scale: float, threshold: float) -> bool:
    """Whether a step stays without the day that speaks most for it, and then without the next one."""
    for least in _SURVIVES:
        n = len(series.day)
        pulls = np.full(n, np.inf)
        for day in range(max(best - _NEAR, 0), min(best + _NEAR, n)):
            scan = _Scan(series.keep(np.arange(n) != day), scale)
            left = scan.pulls([place - (place > day) for place in places], anywhere=True)
            at = best - (best > day)
            pulls[day] = left[max(at - 1, 1) : at + 2].max(initial=0.0)
        worst = int(np.argmin(pulls))
        if pulls[worst] < least * threshold:
            return False
        series = series.keep(np.arange(n) != worst)
        places = [place - (place > worst) for place in places]
        best -= best > worst
    return True
