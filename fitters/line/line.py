"""Line through the origin k = s c, and deviations from it.

With relative errors in k and c the slope is a location problem in ln(k / c). The line is where the honest
declarations lie, so that wrong ones, even a third of all, or one tiny error cannot drag it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fitters.errors import SettingError
from fitters.layout.arrays import Floats
from fitters.line.correlation import Correlation, correlate
from fitters.line.declarations import DeclarationMixture, Doubt, OtherGroup, fit_declarations, robust_tau
from fitters.line.deviations import (
    LEAST_ENTRIES,
    LineColumns,
    LineEntries,
    LinePoints,
    line_entries,
    line_points,
)

USUAL_LIMIT = 0.20


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope s of k = s c and its error; NaN if it cannot be had."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class LineResult:
    """A line through the origin."""

    status: str  # ``ok``, or ``too few`` (fewer than 3 entries: no line, all numbers NaN)
    # slope, slope_err: s = exp(m) and s sigma_m, m where honest declarations lie
    slope: float
    slope_err: float
    tau: float  # Scatter of honest declarations beyond the errors, relative; at least 2 %
    # n_points, n_entries, n_groups: Points in the line, different (group, c) among them, and groups
    n_points: int
    n_entries: int
    n_groups: int
    # ols, wls: Least squares with equal weights and with 1 / k_err^2, for the plot only
    ols: Slope
    wls: Slope
    # correlation_points, correlation_groups: Between points of the line, and groups (geometric means)
    correlation_points: Correlation
    correlation_groups: Correlation
    points: LinePoints
    # Why the line does not tell who is wrong, empty if it does; the largest group beside the honest one
    doubt: Doubt
    others: OtherGroup | None


def fit_line(
    k: ArrayLike,
    k_err: ArrayLike,
    c: ArrayLike,
    c_err: ArrayLike | None = None,
    *,
    group: object = None,
    name: Sequence[Any] | NDArray[Any] | None = None,
    in_line: ArrayLike | None = None,
    limit: float = USUAL_LIMIT,
    min_groups: int = 10,
) -> LineResult:
    """Fit k = s c robustly and find the deviation of each point from the line through the others.

    ``k``, ``k_err``: factors of one component. ``c``, ``c_err``: declared values (c_err None: exact), NaN if
    not declared. ``group``: label of points left out together, one entry per (group, c); a point without one
    is a group. ``in_line``: False for a point that gets a deviation only (a default). ``limit``: relative
    deviation of the verdicts. ``min_groups``: below, all verdicts are ``undecided``.

    y = ln(k / c) of an entry is the line, what its declaration is off by, and its error; see
    ``fitters.line.declarations`` for the probabilities ``p_off`` and for the line, which is repeated without
    each group. Points of one entry are averaged with weights 1 / (their variance + 0.05^2). O(entries x
    nodes).

    Raises :class:`InputError`: lengths differ, no rows, text in a number; :class:`SettingError`: limit not
    positive.

    >>> line = fit_line([1.0, 2.0, 3.3], [0.01, 0.02, 0.03], [10.0, 20.0, 30.0])
    >>> round(line.slope, 3), line.points.verdict.tolist()
    (0.103, ['undecided', 'undecided', 'undecided'])
    """
    if not (np.isfinite(limit) and limit > 0):
        raise SettingError(f"limit is {limit}; expected a finite number above 0")
    columns = LineColumns.read(k, k_err, c, c_err, group, name, in_line)
    entries = line_entries(columns)
    n_groups = int(np.unique(entries.group).size)
    mixture = None
    if entries.y.size >= LEAST_ENTRIES:
        mixture = fit_declarations(entries.y, entries.variance)
    doubt: Doubt = "few honest" if mixture is None else mixture.doubt()
    points = line_points(
        columns, entries, mixture, limit, n_groups=n_groups, min_groups=min_groups, trusted=not doubt
    )
    used = columns.used
    return LineResult(
        status="too few" if mixture is None else "ok",
        **_slope(mixture),
        n_points=int(used.sum()),
        n_entries=int(entries.y.size),
        n_groups=n_groups,
        ols=_least_squares(columns.k[used], columns.c[used], np.ones(int(used.sum()))),
        wls=_least_squares(columns.k[used], columns.c[used], columns.k_err[used]),
        correlation_points=correlate(columns.k[used], columns.c[used]),
        correlation_groups=correlate(*_group_means(entries)),
        points=points,
        doubt=doubt,
        others=None if mixture is None else mixture.other_group(),
    )


def _slope(mixture: DeclarationMixture | None) -> dict[str, float]:
    if mixture is None:
        return dict.fromkeys(("slope", "slope_err", "tau"), float("nan"))
    mean, error = mixture.line()
    return {
        "slope": float(np.exp(mean)),
        "slope_err": float(np.exp(mean) * error),
        "tau": robust_tau(mixture.y, mixture.variance, mixture.memberships()),
    }


def _least_squares(k: Floats, c: Floats, sigma: Floats) -> Slope:
    # Weights 1 / sigma^2; the error comes from the residuals if all sigma are equal.
    if k.size < 2 or not np.all(sigma > 0):
        return Slope(float("nan"), float("nan"))
    weight = (sigma.min() / sigma) ** 2
    scale = float(np.sum(weight * c * c))
    slope = float(np.sum(weight * c * k)) / scale
    if np.all(sigma == sigma[0]):
        spread = float(np.sum((k - slope * c) ** 2)) / (k.size - 1)
        return Slope(slope, float(np.sqrt(spread / scale)))
    return Slope(slope, float(sigma.min() / np.sqrt(scale)))


def _group_means(entries: LineEntries) -> tuple[Floats, Floats]:
    groups, index = np.unique(entries.group, return_inverse=True)
    count = np.bincount(index, minlength=groups.size)
    k = np.exp(np.bincount(index, np.log(entries.k), groups.size) / count)
    return k, np.exp(np.bincount(index, np.log(entries.c), groups.size) / count)
