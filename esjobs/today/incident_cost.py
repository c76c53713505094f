"""Cost of an incident at a site: hours beyond what the same work usually took there. Pure.

Strata are kinds of work: processing type and core class. Usual hours of a day follow from the CPU time of its
finished jobs and the usual efficiency of each stratum at the site; what all other sites show on that day is
taken out. Source of the method: ratio estimator by strata, days as independent units, t-intervals of 90 %.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from esjobs.core.arrays import Floats, Mask

LEAST_DAYS = 3
"""Days of a baseline; fewer show no spread."""
_LEVEL = 0.95  # Of each end of an interval of 90 %
_PRIOR = 100.0  # Core-hours by which the usual efficiency of a stratum is drawn to that of the grid
_BACK_SD = 2.0


@dataclass(frozen=True)
class Estimate:
    """Core-hours with the half width of their 90 % interval, NaN if nothing shows it."""

    value: float
    half: float

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value + other.value, float(np.hypot(self.half, other.half)))


@dataclass(frozen=True)
class Cost:
    """Core-hours of a window in parts that add up, and whether a day is like the baseline.

    ``usual``: of the finished work; ``excess``: of finished jobs beyond it; ``failed_usual`` and ``failed``:
    of jobs that did not finish, as usual and beyond. ``is_usual``: False without finished work.
    """

    usual: float
    excess: Estimate
    failed_usual: float
    failed: Estimate
    is_usual: Mask


def cost_of(
    cpu: Floats, hours: Floats, failed: Floats, site: int, window: Mask, baseline: Mask
) -> Cost | None:
    """Return the cost at a site; None with fewer than 3 days of baseline that have finished work.

    ``cpu``, ``hours``: CPU hours and core-hours of finished jobs by site, stratum and day; ``failed``:
    core-hours of the jobs of the site that did not finish, by day. ``window``, ``baseline``: days. A day is
    not part of the baseline that it is compared with.
    """
    usual = usual_hours(cpu, hours, baseline)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(hours.sum(axis=1) / usual)
    shift = _median_of_others(log_ratio, np.sqrt(usual), site)
    own, expected = log_ratio[site] - shift, usual[site] * np.exp(shift)
    days = baseline & np.isfinite(own)
    n = int(days.sum())
    if n < LEAST_DAYS:
        return None
    weight = np.sqrt(usual[site][days])
    mean, spread = _mean_and_spread(own[days], weight)
    expected = expected * np.exp(mean)
    total = float(expected[window].sum())
    width = float("nan")
    if total > 0:
        # effective number of days of the window
        m = total**2 / float((expected[window] ** 2).sum())
        width = float(special.stdtrit(n - 1, _LEVEL)) * total * float(np.sqrt(1 / m + 1 / n))
    share = float(failed[days].sum() / expected[days].sum())
    _, share_spread = _mean_and_spread(failed[days] / expected[days], weight)
    excess = Estimate(float(hours[site][:, window].sum()) - total, width * spread)
    beyond = Estimate(float(failed[window].sum()) - share * total, width * share_spread)
    with np.errstate(invalid="ignore"):
        # more hours than usual are worse; a day that is better than usual is no incident
        is_usual = own - mean <= _BACK_SD * spread
    return Cost(total, excess, share * total, beyond, is_usual)


def usual_hours(cpu: Floats, hours: Floats, baseline: Mask) -> Floats:
    """Return the core-hours that the finished work of each site and day usually takes.

    The usual efficiency of a stratum is that of the site on the days of the baseline but the day itself,
    drawn to that of the grid times the site's factor at its own mix.
    """
    # by site, stratum and day: the baseline without that day
    cpu_before = cpu[:, :, baseline].sum(axis=2)[:, :, None] - np.where(baseline, cpu, 0.0)
    hours_before = hours[:, :, baseline].sum(axis=2)[:, :, None] - np.where(baseline, hours, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        everything = cpu_before.sum(axis=(0, 1)) / hours_before.sum(axis=(0, 1))
        grid = cpu_before.sum(axis=0) / hours_before.sum(axis=0)
        # a kind of work without any past counts as the mean of all
        grid = np.where(np.isfinite(grid), grid, everything)
        at_own_mix = (hours_before * grid).sum(axis=1)
        factor = np.where(at_own_mix > 0, cpu_before.sum(axis=1) / at_own_mix, np.nan)
        prior = grid[None] * factor[:, None]
        efficiency = (cpu_before + _PRIOR * prior) / (hours_before + _PRIOR)
        needed = np.where(cpu > 0, cpu / efficiency, 0.0)
    total: Floats = needed.sum(axis=1)
    return total


def _median_of_others(log_ratio: Floats, weight: Floats, site: int) -> Floats:
    """Return the weighted median over the other sites by day; 0 where no other site has work.

    A median: the incident of another site must not move it.
    """
    # the site itself weighs nothing
    others = np.arange(len(log_ratio))[:, None] != site
    values = np.where(others, log_ratio, np.nan)
    weights = np.where(np.isfinite(values), weight, 0.0)
    # the order has NaN last, which weigh nothing
    order = np.argsort(values, axis=0)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    first = (reached < reached[-1:] / 2).sum(axis=0)[None]
    found: Floats = np.take_along_axis(np.take_along_axis(values, order, axis=0), first, axis=0)[0]
    return np.nan_to_num(found)


def _mean_and_spread(values: Floats, weight: Floats) -> tuple[float, float]:
    mean = float(np.average(values, weights=weight))
    variance = float(np.average((values - mean) ** 2, weights=weight))
    return mean, float(np.sqrt(variance * len(values) / (len(values) - 1)))
