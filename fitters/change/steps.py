"""Steps and slopes in a series of daily values with errors: day, size, significance.

Generalised least squares with the covariance of the days: for a step before each day its size and error
follow from one projection, and the day of the largest |size / error| is the candidate (the likelihood ratio
scan of D. M. Hawkins, J. Am. Stat. Assoc. 72 (1977) 180, for correlated errors). Candidates above a threshold
are taken one after the other (forward selection: binary segmentation with the other steps fitted along), and
all are fitted again together. The interval of the day holds those whose log-likelihood is close enough to the
best; 2 ln L has the distribution function (1 - exp(-x/2))^2 there (D. Siegmund, Stat. Sci. 3 (1988) 116).

A slope is the change of a name that goes on. It takes the place of steps where the Bayesian information
criterion (G. Schwarz, Ann. Stat. 6 (1978) 461) prefers it, with a margin and not only since this week: a
young step looks like a slope.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fitters.change.noise import covariance, error_scale
from fitters.layout.arrays import Floats, Ints, Mask
from fitters.threads import one_blas_thread

THRESHOLD = 3.5  # |size / error| from which a step is told; what it costs: ``benchmarks/results/drift.md``
SURE = 2.0  # Errors by which a step is larger than what matters, to be said to matter
LEAST_DAYS = 3  # Days with a value before a step, between two, and after one
DAY_LEVEL = 0.90  # How often the interval of the day holds the true one
_INTERVAL = -2.0 * math.log(1.0 - math.sqrt(DAY_LEVEL))  # Of 2 ln L within the interval of the day
_MOST_STEPS = 5
_STRAY = 5.0  # Pulls from its neighbours at which a day that stands alone counts for nothing
_SURVIVES = (0.75, 0.5)  # Of the threshold, what a step must keep without one day, and without two
_NEAR = 10  # Days on either side that are left out in turn
_SLOPE_WITHIN = 45  # Days before the end that a slope is looked for in
_SLOPE_LASTS = 14  # Days that a slope lasts at least
_SLOPE_STANDS = 7  # Days before the end at which a slope describes the series about as well as steps do
# By how much the criterion of a slope is better than that of steps, and of no change
_OVER_STEPS, _OVER_LEVEL = 4.0, 8.0


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
        """True if the step exceeds ``smallest`` (in ln) by two standard errors.

        >>> Step(12, 11, 12, -0.06, 0.01, 6.0).exceeds(0.05), Step(12, 11, 12, -0.14, 0.03, 4.7).exceeds(0.05)
        (False, True)
        """
        return abs(self.size) - SURE * self.error >= smallest


@dataclass(frozen=True, slots=True)
class Slope(Step):
    """A change that goes on at the end of a series.

    ``day``: its first day; ``size``: the change in ln until the last day; ``per_day``: in ln.
    """

    per_day: float


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one name: ascending day numbers, values in ln, the white and the lasting part of errors.

    ``correlation``: of the lasting parts, shape (n, n): :func:`fitters.shared` if the tasks of the days are
    recorded, else :func:`fitters.fading`.
    """

    day: Ints
    value: Floats
    white: Floats
    lasting: Floats
    correlation: Floats

    def keep(self, rows: Mask) -> "Series":
        """Return the series of some days."""
        correlation = self.correlation[np.ix_(rows, rows)]
        return Series(self.day[rows], self.value[rows], self.white[rows], self.lasting[rows], correlation)

    @property
    def scale(self) -> float:
        """Factor by which the errors are too small, see :func:`fitters.change.noise.error_scale`."""
        return error_scale(self.value, self.white, self.lasting, self.correlation)


@one_blas_thread()
def find_steps(series: Series, scale: float = 1.0, threshold: float = THRESHOLD) -> tuple[Step, ...]:
    """Return the steps of a series in the order of their days.

    ``scale``: factor on the errors, mostly ``series.scale``. ``threshold``: significance of a step. Single
    days far from both neighbours are excluded. A step must survive without any one and any two of the days
    near it.

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
    return tuple(scan.step(_without(places, index), index) for index in places)


@one_blas_thread()
def find_slope(series: Series, scale: float = 1.0, threshold: float = THRESHOLD) -> Slope | None:
    """Return the slope at the end of a series; None where steps or no change describe it as well.

    Arguments: see :func:`find_steps`. Of the last 45 days; a slope lasts 14, and was about as good a week
    ago.

    >>> from fitters import fading
    >>> day = np.arange(40)
    >>> value = np.maximum(day - 10, 0) * -0.005 + 0.001 * (-1.0) ** day
    >>> error = np.full(40, 0.01)
    >>> slope = find_slope(Series(day, value, error, error, fading(day, 0.5)))
    >>> slope.day, round(slope.size, 3), round(slope.per_day, 4)
    (11, -0.145, -0.005)
    """
    series = series.keep(~stray_days(series, scale))
    # young steps look like slopes: a week ago it must have been at least nearly as good as steps
    now = _slope(series, scale, threshold)
    if now is None:
        return None
    before = _slope(series.keep(series.day <= series.day[-1] - _SLOPE_STANDS), scale, 0.0, 0.0, -_OVER_STEPS)
    return now if before is not None and before.size * now.size > 0 else None


def _slope(
    series: Series,
    scale: float,
    threshold: float,
    over_level: float = _OVER_LEVEL,
    over_steps: float = _OVER_STEPS,
) -> Slope | None:
    # of one look: the best slope, if its criterion is better by so much
    if not len(series.day):
        return None
    series = series.keep(series.day > series.day[-1] - _SLOPE_WITHIN)
    if len(series.day) < 2 * LEAST_DAYS or series.day[-1] - series.day[0] < _SLOPE_LASTS:
        return None
    scan = _Scan(series, scale)
    slope, free = scan.slope()
    per_free = math.log(len(series.day))  # Of Schwarz's criterion
    gain = slope.significance**2 - free * per_free
    steps, of_steps = list[int](), [0.0]
    while len(steps) < _MOST_STEPS:
        best, pull = scan.best(steps)
        if best is None:
            break
        steps.append(best)
        # a step has two parameters, size and day
        of_steps.append(of_steps[-1] + pull**2 - 2 * per_free)
    better = gain > over_level and gain - max(of_steps) > over_steps
    return slope if better and slope.significance >= threshold else None


def stray_days(series: Series, scale: float) -> Mask:
    """Return the mask of days far from both neighbours, which agree with each other."""
    stray = np.zeros(len(series.day), np.bool_)
    total = np.hypot(series.white, series.lasting)
    for index in _off_what_follows(series.value, scale * total):
        before = [at for at in range(max(index - 2, 0), index) if not stray[at]]
        after = list(range(index + 1, min(index + 3, len(series.day))))
        if not before:
            continue
        error = scale * math.hypot(total[index], float(total[[*before, *after]].max()))
        middle = series.value[index]
        off = [(middle - float(np.mean(series.value[side]))) / error for side in (before, after)]
        stray[index] = min(map(abs, off)) > _STRAY and off[0] * off[1] > 0
    return stray


def _off_what_follows(value: Floats, error: Floats) -> list[int]:
    # Only a day far from the two that follow can be stray: a cheap preselection.
    if len(value) < 3:
        return []
    last = np.minimum(np.arange(1, len(value) - 1) + 2, len(value) - 1)
    middle, following = value[1:-1], (value[2:] + value[last]) / 2
    spread = np.hypot(error[1:-1], np.maximum(error[2:], error[last]))
    # a little below the limit: rounding is left to who looks at each
    return (1 + np.flatnonzero(np.abs(middle - following) > 0.999 * _STRAY * spread)).tolist()


class _Scan:
    """A step before each day of a whitened series."""

    def __init__(self, series: Series, scale: float) -> None:
        n = len(series.day)
        matrix = scale**2 * covariance(series.white, series.lasting, series.correlation)
        root = linalg.cholesky(matrix, lower=True)
        # column t: 1 from day t on; column 0 is the level
        steps = np.tril(np.ones((n, n)))
        self.day = series.day
        self._root = root
        whitened = linalg.solve_triangular(root, np.column_stack([steps, series.value]), lower=True)
        self._steps: Floats = whitened[:, :-1]
        self._value: Floats = whitened[:, -1]

    def _fitted(self, places: list[int], *, anywhere: bool = False) -> tuple[Floats, Floats]:
        # of a further step at each day; anywhere: also within `LEAST_DAYS` of another one or of an end
        size, error = self._fitted_with(self._steps, places)
        if not anywhere:
            size, error = _where(self._allowed(places), size, error)
        return size, error

    def _fitted_with(self, columns: Floats, places: list[int]) -> tuple[Floats, Floats]:
        # of each column alone, beside the level and the steps at some days
        basis, _ = linalg.qr(self._steps[:, [0, *places]], mode="economic")
        value = self._value - basis @ (basis.T @ self._value)
        columns = columns - basis @ (basis.T @ columns)
        norm = np.einsum("ij,ij->j", columns, columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            # a column that the level and the other steps describe already has nothing left
            return _where(norm > 1e-9, columns.T @ value / norm, 1.0 / np.sqrt(norm))

    def _allowed(self, places: list[int]) -> Mask:
        n = len(self.day)
        allowed = np.ones(n, np.bool_)
        for edge in (0, *places, n):
            allowed[max(edge - LEAST_DAYS + 1, 0) : edge + LEAST_DAYS] = False
        return allowed

    def pulls(self, places: list[int], *, anywhere: bool = False) -> Floats:
        """Return |size / error| of a further step at each day; 0 where no step is allowed."""
        size, error = self._fitted(places, anywhere=anywhere)
        return np.abs(size) / error

    def best(self, places: list[int]) -> tuple[int | None, float]:
        """Return the most significant further step and its significance; None if no step is allowed."""
        pulls = self.pulls(places)
        most = float(pulls.max(initial=0.0))
        return (int(np.argmax(pulls)) if most > 0 else None), most

    def step(self, others: list[int], index: int) -> Step:
        """Return a step with its interval, fitted with the others."""
        size, error = self._fitted(others)
        pulls = np.abs(size) / error
        near = np.flatnonzero((pulls**2 >= pulls[index] ** 2 - _INTERVAL) & (size * size[index] > 0))
        return Step(
            day=int(self.day[index]),
            day_low=int(self.day[near[0]]),
            day_high=int(self.day[near[-1]]),
            size=float(size[index]),
            error=float(error[index]),
            significance=float(pulls[index]),
        )

    def slope(self) -> tuple[Slope, int]:
        """Return the most significant slope until the end, and the number of its parameters."""
        ago = self.day - self.day[0]
        starts = np.flatnonzero(self.day[-1] - self.day >= _SLOPE_LASTS)
        ramps = np.maximum(ago[:, None] - ago[starts], 0).astype(np.float64)
        size, error = self._fitted_with(linalg.solve_triangular(self._root, ramps, lower=True), [])
        square = (size / error) ** 2
        best = int(np.argmax(square))
        near = np.flatnonzero((square >= square[best] - _INTERVAL) & (size * size[best] > 0))
        lasted = float(self.day[-1] - self.day[starts[best]])
        found = Slope(
            day=int(self.day[starts[best]]) + 1,
            day_low=int(self.day[starts[near[0]]]) + 1,
            day_high=int(self.day[starts[near[-1]]]) + 1,
            size=float(size[best]) * lasted,
            error=float(error[best]) * lasted,
            significance=math.sqrt(square[best]),
            per_day=float(size[best]),
        )
        # a slope over all days has no first day to choose
        return found, 2 if best else 1


def _settled(scan: _Scan, places: list[int], threshold: float) -> list[int]:
    """Move steps to their best days given the others; drop those that are no longer significant."""
    for _ in range(3):
        for number, index in enumerate(places):
            best, _ = scan.best(_without(places, index))
            bounds = [0, *places, len(scan.day)]
            if best is not None and bounds[number] < best < bounds[number + 2]:
                places[number] = best
        pulls = [float(scan.pulls(_without(places, index))[index]) for index in places]
        if not pulls:
            break
        if min(pulls) < threshold:
            del places[pulls.index(min(pulls))]
    return places


def _where(usable: Mask, size: Floats, error: Floats) -> tuple[Floats, Floats]:
    return np.where(usable, size, 0.0), np.where(usable, error, np.inf)


def _without(places: list[int], index: int) -> list[int]:
    return [other for other in places if other != index]


def _survives(series: Series, places: list[int], best: int, scale: float, threshold: float) -> bool:
    # The step must stay without the day that supports it most, and then without the next one.
    for least in _SURVIVES:
        n = len(series.day)
        pulls = np.full(n, np.inf)
        for day in range(max(best - _NEAR, 0), min(best + _NEAR, n)):
            scan = _Scan(series.keep(np.arange(n) != day), scale)
            left = scan.pulls([index - (index > day) for index in places], anywhere=True)
            # without the day the step may be best one day off
            at = best - (best > day)
            pulls[day] = left[max(at - 1, 1) : at + 2].max(initial=0.0)
        worst = int(np.argmin(pulls))
        if pulls[worst] < least * threshold:
            return False
        series = series.keep(np.arange(n) != worst)
        places = [index - (index > worst) for index in places]
        best -= best > worst
    return True
