"""Does CPU time grow in proportion to events, after a fixed cost? The trend of slopes inside buckets.

A fixed cost and a power of the events can have one slope at the mean length. They differ in how the
elasticity inside buckets moves with the mean length of their jobs: towards 1 with a fixed cost, not at all
with a power.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from fitters.fit.two_way import TwoWay
from fitters.layout.arrays import Floats, Ints, group_sums
from fitters.threads import one_blas_thread

LEAST_TASKS = 3
_LOWEST_COST = -0.6  # Of the mean length: a power above 1 looks like a negative fixed cost
_HIGHEST_SLOPE, _LOWEST_SLOPE = 1.0 / (1.0 + _LOWEST_COST), 0.02
_LEAST_REACH = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class PowerCheck:
    """Result of the test."""

    p: float  # NaN with fewer than 3 tasks that tell
    # Trend of the elasticity with ln(mean events), beside that of a fixed cost: below 0 for powers below 1
    slope: float
    power: float  # Power of the events that the elasticities have on average; NaN where none tells


@one_blas_thread()
def power_check(
    unit: Ints, task: Ints, elasticity: Floats, error: Floats, length: Floats, n_units: int
) -> PowerCheck:
    """Test whether a fixed cost explains the elasticities; rows sorted by task, NaN where one does not tell.

    With e = n / (n + rho), rho of the task from its own elasticities, the rest of the elasticity is regressed
    on ln(n), n the mean events of the bucket, with a free change of rho for every task and unit (terms e (1 -
    e)). Its error is clustered by task: Student's t with tasks - 1 degrees of freedom.
    """
    telling = np.isfinite(elasticity) & np.isfinite(error) & (error > 0)
    unit, task = unit[telling], task[telling]
    elasticity, length = elasticity[telling], length[telling]
    weight = error[telling] ** -2.0
    power = float(weight @ elasticity / weight.sum()) if telling.any() else float("nan")
    used, dense = np.unique(task, return_inverse=True)
    if used.size < LEAST_TASKS:
        return PowerCheck(float("nan"), float("nan"), power)
    total = group_sums(dense, weight, used.size)
    slope = group_sums(dense, weight * elasticity, used.size) / total
    typical = np.exp(group_sums(dense, weight * np.log(length), used.size) / total)
    cost = typical * (1.0 / np.clip(slope, _LOWEST_SLOPE, _HIGHEST_SLOPE) - 1.0)
    expected = length / (length + cost[dense])
    reach = expected * (1.0 - expected)
    reach = np.where(np.abs(reach) < _LEAST_REACH, _LEAST_REACH, reach)
    # divided by the reach, the free changes are levels of tasks and units
    system = TwoWay(unit, dense, weight * reach**2, n_units, used.size)
    rest = system.residuals((elasticity - expected) / reach) * reach
    trend = system.residuals(np.log(length / typical[dense]) / reach) * reach
    information = float(weight @ trend**2)
    if information <= 0:
        return PowerCheck(float("nan"), float("nan"), power)
    found = float((weight * trend) @ rest) / information
    score = group_sums(dense, weight * trend * (rest - found * trend), used.size)
    deviation = np.sqrt(float(score @ score) * used.size / (used.size - 1.0)) / information
    if deviation <= 0:
        return PowerCheck(float("nan"), found, power)
    return PowerCheck(float(2.0 * special.stdtr(used.size - 1, -abs(found) / deviation)), found, power)
