"""Variants of each factor under uncertain inputs, the stability test of ``flag``.

The changes: the other objective; the start-up time by two errors either way, and left in if not significant;
each processing type and core class alone; each task left out; the start-up time of the name like that of the
others; each half of its tasks and of the time; its stray buckets put back. All but the first are one linear
step from the fit (:class:`fitters.LinearResponse`); the last three change one name at levels that stay
(``own_buckets``). A verdict needs the extremes only: per name and kind of change the lowest and the highest
factor are kept, with their cause.
"""

from collections.abc import Iterator

import numpy as np

import fitters
from esjobs.core.words import VARIED
from esjobs.publish.publication import finite
from esjobs.speed.factors import METHODS, Fit, of_other_objective
from esjobs.speed.own_buckets import Changed, changes_of_own_buckets
from fitters.layout.arrays import Floats, Texts

_OBJECTIVE, _FIXED_COST, _ONE_TYPE, _ONE_CORE_CLASS, _TASK_LEFT_OUT, _OWN_COST = VARIED[:6]
RHO_ERRORS = 2.0  # By how many of its errors a start-up time is changed


def variant_rows(fit: Fit, min_name_jobs: int) -> Iterator[dict[str, object]]:
    """Yield one row per name of the largest component and kind of change that gives it a factor.

    A part of the jobs counts for a name if it has ``min_name_jobs`` of them.
    """
    result = fit.result
    if result is None or 0 not in result.fitted:
        return
    response = fitters.LinearResponse(result)
    names, k = result.units.name[response.units], result.units.k[response.units]
    kinds = {
        _OBJECTIVE: _other_objective(fit, names),
        _FIXED_COST: _other_fixed_costs(fit, response),
        **_parts(fit, response, min_name_jobs),
        _OWN_COST: _without_own_cost(fit, response),
        **changes_of_own_buckets(fit, response, min_name_jobs),
    }
    for kind, changed in kinds.items():
        if not changed:
            continue
        table = np.stack([change for _, change in changed])
        valid = np.isfinite(table)
        number = valid.sum(axis=0)
        lowest = np.where(valid, table, np.inf).argmin(axis=0)
        highest = np.where(valid, table, -np.inf).argmax(axis=0)
        for index in np.flatnonzero(number):
            low, high = lowest[index], highest[index]
            yield {
                "name": names[index],
                "change": kind,
                "n_variants": int(number[index]),
                "k_low": float(k[index] * np.exp(table[low, index])),
                "low_change": changed[low][0],
                "k_high": float(k[index] * np.exp(table[high, index])),
                "high_change": changed[high][0],
            }
    yield from _tasks_left_out(fit, result, response, k)


def _other_objective(fit: Fit, names: Texts) -> Changed:
    change = np.array([np.log1p(fit.shift.get(name, (np.nan, 0.0))[0]) for name in names])
    if not np.isfinite(change).any():
        return []
    how = of_other_objective(METHODS[fit.factors.method])
    # as the other changes, in the gauge in which the median name does not move
    return [(f"objective {how.objective}", change - np.nanmedian(change))]


def _other_fixed_costs(fit: Fit, response: fitters.LinearResponse) -> Changed:
    # All tasks move the same way: so their errors would add up.
    rows, data = fit.input_rows(response), fit.data
    rho = data.rho[rows]
    if not METHODS[fit.factors.method].corrected or not (rho > 0).any():
        return []
    events, jobs = data.events[rows], data.n_jobs[rows]
    spread = np.where(rho > 0, np.nan_to_num(data.rho_err[data.task.names[data.task.codes[rows]]]), 0.0)
    others = {
        "start-up times two errors higher": rho + RHO_ERRORS * spread,
        "start-up times two errors lower": np.maximum(rho - RHO_ERRORS * spread, 0.0),
        "insignificant start-up times not corrected": np.where(rho > RHO_ERRORS * spread, rho, 0.0),
    }
    before = np.log(data.events_eff[rows])
    return [
        (what, response.with_values(before - np.log(events + jobs * other))) for what, other in others.items()
    ]


def _parts(fit: Fit, response: fitters.LinearResponse, min_name_jobs: int) -> dict[str, Changed]:
    rows, data = fit.input_rows(response), fit.data
    keys = data.task.names[data.task.codes[rows]]
    unit = response.unit
    found: dict[str, Changed] = {}
    for kind, column, usable in (
        (_ONE_TYPE, data.keys.processing_type, "{} only"),
        (_ONE_CORE_CLASS, data.keys.core_class, "{}-core jobs only"),
    ):
        values = np.array([value or "" for value in column], object)[keys].astype(str)
        listed = np.unique(values)
        for value in listed if len(listed) > 1 else ():
            chosen = values == value
            jobs = np.bincount(unit[chosen], data.n_jobs[rows][chosen], len(response.units))
            change = np.where(jobs >= min_name_jobs, response.of_part(chosen), np.nan)
            stray = _of_strays(fit, response, column, value, min_name_jobs)
            change = np.where(jobs == 0, stray, change)
            found.setdefault(kind, []).append((usable.format(value or "jobs without a type"), change))
    return found


def _of_strays(
    fit: Fit, response: fitters.LinearResponse, column: Texts, value: str, min_name_jobs: int
) -> Floats:
    """Change of ln k from a part whose buckets at a name were all rejected; NaN if they have few jobs.

    If two types contradict each other, rejection removes one of them: it must stay visible here.
    """
    change = np.full(len(response.units), np.nan)
    table = fit.buckets
    if fit.result is None or table is None or not fit.result.weighting.n_rejected:
        return change
    index = np.full(len(fit.result.units), -1)
    index[response.units] = np.arange(response.units.size)
    stray = np.flatnonzero(table.status == "rejected")
    stray = stray[index[fit.result.source.unit[stray]] >= 0]
    of_part = np.array([(column[key] or "") == value for key in table.task[stray]], np.bool_)
    stray = stray[of_part]
    unit, jobs = index[fit.result.source.unit[stray]], fit.data.n_jobs[fit.rows[stray]]
    total = np.bincount(unit, jobs, len(change))
    mean = np.bincount(unit, -jobs * np.log(table.ratio[stray].astype(float)), len(change))
    enough = total >= min_name_jobs
    change[enough] = mean[enough] / total[enough]
    return change


def _without_own_cost(fit: Fit, response: fitters.LinearResponse) -> Changed:
    """Change of ln k of each name whose start-up time has a factor of its own, with that factor at 1."""
    rows, data = fit.input_rows(response), fit.data
    costs = data.name_costs
    if costs is None or not costs.corrected or not METHODS[fit.factors.method].corrected:
        return []
    factor = costs.factor[data.name.codes[rows]]
    plain = data.events[rows] + data.n_jobs[rows] * data.rho[rows] / factor
    shift = np.log(data.events_eff[rows] / plain)
    unit = response.unit
    change = np.full(len(response.units), np.nan)
    # one name at a time: what the others' start-up times do to it is another question
    for number in np.unique(unit[shift != 0]):
        change[number] = response.with_values(np.where(unit == number, shift, 0.0))[number]
    return [("start-up time as elsewhere", change)]


def _tasks_left_out(
    fit: Fit, result: fitters.FitResult, response: fitters.LinearResponse, k: Floats
) -> Iterator[dict[str, object]]:
    left, keys = response.without_tasks(), result.buckets.task_names

    def without(task: int) -> str | None:
        return None if task < 0 else f"without task {fit.data.keys.readable(keys[task])}"

    for index, name in enumerate(result.units.name[response.units]):
        yield {
            "name": name,
            "change": _TASK_LEFT_OUT,
            "n_variants": int(left.n_tasks[index]),
            "k_low": finite(k[index] * np.exp(left.low[index])),
            "low_change": without(left.low_task[index]),
            "k_high": finite(k[index] * np.exp(left.high[index])),
            "high_change": without(left.high_task[index]),
            "disconnecting_task": without(left.lost_task[index]),
        }
