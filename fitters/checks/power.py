"""Test of CPU time that is linear in the events: the trend of slopes inside buckets.

A fixed cost and a power of the events can have one slope at the mean length. They differ in how the
elasticity inside buckets moves with the mean length of their jobs: towards 1 with a fixed cost, not at all
with a power. And a fixed cost makes no elasticity larger than 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from fitters.fit.two_way import TwoWay
from fitters.layout.arrays import Floats, Ints, group_sums, without_means
from fitters.threads import one_blas_thread

LEAST_TASKS = 10
_LOWEST_COST = -0.6  # Of the mean length: a power above 1 looks like a negative fixed cost
_HIGHEST_SLOPE, _LOWEST_SLOPE = 1.0 / (1.0 + _LOWEST_COST), 0.02
_LEAST_REACH = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class PowerCheck:
    """Result of the test."""

    p: float  # NaN with fewer than 10 tasks that tell
    # Trend of the elasticity with ln(mean events), beside that of a fixed cost: below 0 for powers below 1
    slope: float
    power: float  # Power of the events that the elasticities have on average; NaN where none tells

    @property
    def size(self) -> float:
        """The trend, or by how much the power exceeds 1, whichever is larger."""
        return float(max(abs(self.slope), self.power - 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    # Buckets that tell, by task: elasticities, those expected of a fixed cost, ln of the mean events
    unit: Ints
    task: Ints
    elasticity: Floats
    weight: Floats
    expected: Floats
    ln_length: Floats

    @property
    def reach(self) -> Floats:
        # By how much another ln(cost) moves the expected elasticity; divided by it, costs are levels
        reach = self.expected * (1.0 - self.expected)
        return np.where(np.abs(reach) < _LEAST_REACH, _LEAST_REACH, reach)

    @property
    def n_tasks(self) -> int:
        return int(self.task.max()) + 1


@one_blas_thread()
def power_check(
    unit: Ints, task: Ints, elasticity: Floats, error: Floats, length: Floats, n_units: int
) -> PowerCheck:
    """Test whether a fixed cost explains the elasticities; rows sorted by task, NaN where one does not tell.

    With e = n / (n + rho), rho of the task from its own elasticities, the rest of the elasticity is regressed
    on ln(n), n the mean events of the bucket: with a free change of rho (a term e (1 - e)) for every task and
    unit, and for every task only. Errors are clustered by task, then also by unit, with Student's t of one
    degree of freedom less than clusters. The mean elasticity is tested against 1 in the same way. ``p`` is
    three times the smallest.
    """
    telling = np.isfinite(elasticity) & np.isfinite(error) & (error > 0)
    weight = error[telling] ** -2.0
    power = float(weight @ elasticity[telling] / weight.sum()) if telling.any() else float("nan")
    if np.unique(task[telling]).size < LEAST_TASKS:
        return PowerCheck(float("nan"), float("nan"), power)
    rows = _rows(unit[telling], task[telling], elasticity[telling], weight, length[telling])
    tests = [_within_units(rows, n_units), _over_units(rows)]
    p, slope = min(tests, key=lambda test: test[0])
    # three tests, of which the most significant counts (Bonferroni)
    return PowerCheck(min(1.0, 3.0 * min(p, _above_one(rows, power))), slope, power)


def _rows(unit: Ints, task: Ints, elasticity: Floats, weight: Floats, length: Floats) -> _Rows:
    used, dense = np.unique(task, return_inverse=True)
    total = group_sums(dense, weight, used.size)
    slope = group_sums(dense, weight * elasticity, used.size) / total
    typical = np.exp(group_sums(dense, weight * np.log(length), used.size) / total)
    cost = typical * (1.0 / np.clip(slope, _LOWEST_SLOPE, _HIGHEST_SLOPE) - 1.0)
    expected = length / (length + cost[dense])
    return _Rows(unit, dense, elasticity, weight, expected, np.log(length / typical[dense]))


def _within_units(rows: _Rows, n_units: int) -> tuple[float, float]:
    reach = rows.reach
    system = TwoWay(rows.unit, rows.task, rows.weight * reach**2, n_units, rows.n_tasks)
    rest = system.residuals((rows.elasticity - rows.expected) / reach) * reach
    trend = system.residuals(rows.ln_length / reach) * reach
    return _slope(rows.weight, rest, trend, [rows.task])


def _over_units(rows: _Rows) -> tuple[float, float]:
    # Costs that differ by unit, whatever its lengths, are errors that its buckets share.
    reach = rows.reach
    tasks = ((rows.task, rows.n_tasks),)
    weight = rows.weight * reach**2
    rest = without_means((rows.elasticity - rows.expected) / reach, weight, tasks, 1, 0.0) * reach
    trend = without_means(rows.ln_length / reach, weight, tasks, 1, 0.0) * reach
    return _slope(rows.weight, rest, trend, [rows.task, rows.unit])


def _slope(weight: Floats, rest: Floats, trend: Floats, clusterings: Sequence[Ints]) -> tuple[float, float]:
    # Two-sided p and the slope of ``rest`` on ``trend``
    information = float(weight @ trend**2)
    if information <= 0:
        return 1.0, 0.0
    slope = float((weight * trend) @ rest) / information
    error, dof = _clustered(weight * trend * (rest - slope * trend), clusterings)
    # few rows that are nearly fitted exactly cannot know it better than their own errors say
    error = max(error, float(np.sqrt(information)))
    return float(2.0 * special.stdtr(dof, -abs(slope) * information / error)), slope


def _above_one(rows: _Rows, mean: float) -> float:
    # No fixed cost makes CPU time grow faster than the events do, not even one that differs by unit.
    error, dof = _clustered(rows.weight * (rows.elasticity - mean), [rows.task, rows.unit])
    total = float(rows.weight.sum())
    return float(special.stdtr(dof, (1.0 - mean) * total / max(error, np.sqrt(total))))


def _clustered(score: Floats, clusterings: Sequence[Ints]) -> tuple[float, int]:
    # Error of a sum of scores, the largest that a clustering tells, and the degrees of freedom
    error, least = 0.0, score.size
    for codes in clusterings:
        _, dense = np.unique(codes, return_inverse=True)
        n = int(dense.max()) + 1
        sums = group_sums(dense, score, n)
        least = min(least, n)
        if n > 1:
            error = max(error, float(np.sqrt(sums @ sums * n / (n - 1.0))))
    return error, least - 1
