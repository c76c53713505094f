"""Changes of the factor of a name from some of its own buckets: halves of its tasks and time, its strays."""

from dataclasses import dataclass

import numpy as np

import fitters
from esjobs.core.words import DIFFERENT_HALVES, HALVES, STRAYS
from esjobs.speed.factors import Fit
from fitters.layout.arrays import Floats, Ints, Mask

_TASKS, _TIME = HALVES
_DIFFER = 3.0  # Standard errors between two halves of the time that are no chance
# What is changed, in words, and ln k under it minus ln k, per unit of the response; NaN without a factor
Changed = list[tuple[str, Floats]]


@dataclass(frozen=True)
class _Own:
    """Buckets of the names of a response, strays among them. ``change``: of ln k of the name if it had this
    one alone, at the levels of the fit. ``of_jobs``: relative variance, of strays as if they
    were not rejected.
    """

    row: Ints  # Of the input
    unit: Ints
    stray: Mask
    change: Floats
    of_jobs: Floats
    interaction: float
    n_units: int

    @classmethod
    def of(cls, fit: Fit, response: fitters.LinearResponse) -> "_Own | None":
        table, result = fit.buckets, fit.result
        if table is None or result is None:
            return None
        index = np.full(len(result.units), -1)
        index[response.units] = np.arange(response.units.size)
        unit = index[result.source.unit]
        mine = np.flatnonzero(
            (unit >= 0) & np.isin(table.status, ("used", "rejected")) & np.isfinite(table.ratio)
        )
        row = fit.rows[mine]
        change = -np.log(table.ratio[mine].astype(float))
        sigma = float(np.nan_to_num(result.sigma_int.value))
        stray = table.status[mine] == "rejected"
        return cls(row, unit[mine], stray, change, fit.data.rel_var[row], sigma, response.units.size)

    def mean(self, chosen: Mask) -> Floats:
        """Return the change of ln k of each name from the chosen buckets; NaN without any."""
        variance = self.of_jobs + self.interaction**2
        # A bucket of unknown variance counts like the mean bucket
        usual = np.nanmean(variance) if np.isfinite(variance).any() else 1.0
        weight = chosen / np.where(np.isfinite(variance) & (variance > 0), variance, usual)
        return _weighted(self.unit, weight, self.change, self.n_units)


def _weighted(unit: Ints, weight: Floats, change: Floats, n_units: int) -> Floats:
    total = np.bincount(unit, weight, n_units)
    summed = np.bincount(unit, weight * change, n_units)
    mean: Floats = np.divide(summed, total, out=np.full(n_units, np.nan), where=total > 0)
    return mean


def changes_of_own_buckets(
    fit: Fit, response: fitters.LinearResponse, min_name_jobs: int
) -> dict[str, Changed]:
    """Return changes of ln k of each name from some of its own buckets, at the levels of the fit.

    Halves of the tasks: every second one, in the order of their keys. Halves of the time: the periods before
    and after the middle of the window; each needs ``min_name_jobs`` of the name.
    """
    own = _Own.of(fit, response)
    if own is None:
        return {}
    unit, kept = own.unit, ~own.stray
    order = np.argsort(unit[kept], kind="stable")
    place = np.arange(order.size) - np.searchsorted(unit[kept][order], unit[kept][order])
    even = np.zeros(unit.size, np.bool_)
    even[np.flatnonzero(kept)[order]] = place % 2 == 0
    base = own.mean(kept)
    several = np.bincount(unit[kept], minlength=len(base)) > 1
    halves = [
        (f"{which} half of its tasks", np.where(several, own.mean(part & kept) - base, np.nan))
        for which, part in (("first", even), ("second", ~even))
    ]
    has_strays = np.bincount(unit[own.stray], minlength=len(base)) > 0
    return {
        _TASKS: halves,
        **_halves_of_time(fit, own, base, min_name_jobs),
        STRAYS: [("strays put back", np.where(has_strays, own.mean(np.ones_like(kept)) - base, np.nan))],
    }


def _halves_of_time(fit: Fit, own: _Own, base: Floats, min_name_jobs: int) -> dict[str, Changed]:
    """Return both halves, and once more those of names whose halves differ beyond errors."""
    data, cells = fit.data, fit.data.cells
    if cells is None:
        return {}
    place = np.full(len(data), -1)
    place[own.row[~own.stray]] = np.flatnonzero(~own.stray)
    inside = np.flatnonzero(place[cells.row] >= 0)
    row, bucket = cells.row[inside], place[cells.row[inside]]
    jobs = cells.n_jobs[inside]
    part = np.log(cells.cpu_s[inside]) - np.log(cells.events[inside] + data.rho[row] * jobs)
    change = own.change[bucket] + np.log(data.cpu_s[row] / data.events_eff[row]) - part
    variance = own.of_jobs[bucket] * data.n_jobs[row] / jobs + own.interaction**2
    usable = np.isfinite(variance) & (variance > 0)
    unit, later = own.unit[bucket], 2 * cells.period[inside] > cells.period.max(initial=0)
    weights = [(usable & half) / np.where(usable, variance, 1.0) for half in (~later, later)]
    halves = [_weighted(unit, weight, change, own.n_units) for weight in weights]
    least = np.minimum(*(np.bincount(unit, jobs * half, own.n_units) for half in (~later, later)))
    of_time = {
        f"{which} half of the time": np.where(least >= min_name_jobs, half - base, np.nan)
        for which, half in zip(("first", "second"), halves, strict=True)
    }
    # what a name does to a task is the same in both halves, so that this error is rather too large
    total = [np.maximum(np.bincount(unit, weight, own.n_units), 1e-300) for weight in weights]
    differ = np.abs(halves[0] - halves[1]) > _DIFFER * np.sqrt(1 / total[0] + 1 / total[1])
    return {
        _TIME: list(of_time.items()),
        DIFFERENT_HALVES: [(what, np.where(differ, change, np.nan)) for what, change in of_time.items()],
    }
