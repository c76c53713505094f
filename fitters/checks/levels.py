"""Test of constant costs of tasks: levels per task and period against levels per task.

A task whose jobs change with time (other input, another release) has no level: names that ran it early and
late then differ by what the task did meanwhile.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from fitters.fit.two_way import TwoWay
from fitters.layout.arrays import Floats, Ints, group_sums, without_means
from fitters.layout.kernels import unit_roots
from fitters.threads import one_blas_thread

_SWEEPS, _FLAT = 60, 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class TimeCheck:
    """Result of the test."""

    p: float  # NaN without degrees of freedom
    effect: float  # Root mean square of what tasks change by between periods, in ln a
    # Change of ln k with levels per period, where the median unit does not change; NaN for units that these
    # do not link; shape (n_units,)
    shift: Floats


@one_blas_thread()
def time_check(
    unit: Ints, task: Ints, period: Ints, value: Floats, variance: Floats, interaction: float, n_units: int
) -> TimeCheck:
    """Test whether the levels of tasks differ between periods.

    One row per (task, unit, period): ``value`` is ln a, ``variance`` that of its jobs, ``interaction`` the
    scatter of unit and task. Means of (task, unit) are taken out, so that the interaction is, too; F of the
    levels (task, period) in what is left, weighted with 1 / variance. For the shifts the rows of a pair have
    one interaction in common: they weigh together what their pair does, 1 / (v + interaction^2).
    """
    order = np.lexsort((unit, period, task))
    unit, task, period = unit[order], task[order], period[order]
    value, variance = value[order], variance[order]
    pairs, pair = np.unique(task * n_units + unit, return_inverse=True)
    slots, slot = np.unique(task * (int(period.max(initial=0)) + 1) + period, return_inverse=True)
    weight = 1.0 / variance
    of_pair = 1.0 / group_sums(pair, weight, pairs.size)
    _, dense = np.unique(task, return_inverse=True)
    joint = weight * (of_pair / (of_pair + interaction**2))[pair]
    before = TwoWay(unit, dense, joint, n_units, int(dense.max(initial=-1)) + 1).solve(value)
    after = TwoWay(unit, slot, joint, n_units, slots.size).solve(value)
    shift = after - before
    p, effect = _f_test(pair, slot, value, weight)
    # the two solutions have scales of their own: only changes beside the median unit mean anything
    return TimeCheck(p, effect, shift - np.nanmedian(shift) if np.isfinite(shift).any() else shift)


def _f_test(pair: Ints, slot: Ints, value: Floats, weight: Floats) -> tuple[float, float]:
    several = np.bincount(pair)[pair] > 1
    # a pair seen in one period says nothing of changes
    _, pair = np.unique(pair[several], return_inverse=True)
    _, slot = np.unique(slot[several], return_inverse=True)
    n, n_pairs, n_slots = pair.size, int(pair.max(initial=-1)) + 1, int(slot.max(initial=-1)) + 1
    order = np.argsort(pair, kind="stable")
    ptr = np.searchsorted(pair[order], np.arange(n_pairs + 1)).astype(np.int64)
    roots = unit_roots(ptr, slot[order].astype(np.int32), n_slots)
    # each connected set of slots has one level that is already in the means of its pairs
    rank = n_slots - np.unique(roots).size
    dof = n - n_pairs - rank
    if rank < 1 or dof < 1:
        return float("nan"), float("nan")
    value, weight = value[several], weight[several]
    alone = without_means(value, weight, ((pair, n_pairs),), 1, 0.0)
    both = without_means(alone, weight, ((slot, n_slots), (pair, n_pairs)), _SWEEPS, _FLAT)
    left = float(weight @ both**2)
    explained = max(float(weight @ alone**2) - left, 0.0)
    noise = left / dof
    if noise <= 0:
        return float("nan"), float("nan")
    effect = np.sqrt(max(explained - rank * noise, 0.0) / float(weight.sum()))
    return float(special.fdtrc(rank, dof, explained / rank / noise)), float(effect)
