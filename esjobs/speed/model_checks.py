"""Tests of the model of a fit, and what they make of its errors.

A fit takes for granted that tasks cost the same all the time, that a queue is as fast in all of them but for
noise, and that CPU time grows in proportion to events after a start-up time. Where a test says otherwise, the
errors grow by what the factors move, nothing is proposed, and the conclusion says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

import fitters
from esjobs.core.numbers import percent
from esjobs.core.words import noun
from esjobs.publish.publication import finite
from esjobs.speed.factors import METHODS, Fit
from esjobs.speed.fit_input import FitInput
from fitters.layout.arrays import Floats, Ints

FAILED = 0.001  # p below which the model does not hold: three tests of some fifty fits
LEAST_TREND = 0.05  # Of elasticities, or distance above 1: below it a power changes nothing worth saying
LEAST_TASKS = 10  # Tasks of a name below which a pattern is taken to hit it with its whole size


@dataclass(frozen=True)
class ModelChecks:
    """Results; NaN where a test cannot be made. ``shift``: change of ln k of failed tests, added in squares,
    by name. ``doubt``: what does not hold, in words.
    """

    p_time: float = float("nan")
    shift_time: float = float("nan")
    p_factor: float = float("nan")
    sigma_factor: float = float("nan")
    p_power: float = float("nan")
    power: float = float("nan")
    doubt: str = ""
    shift: Mapping[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, object]:
        """Columns of ``fits``."""
        names = ("p_time", "shift_time", "p_factor", "sigma_factor", "p_power", "power")
        return {**{name: finite(getattr(self, name)) for name in names}, "model_doubt": self.doubt or None}


def check_model(fit: Fit) -> ModelChecks:
    """Make the three tests of the largest component of a fit."""
    result = fit.result
    if result is None or 0 not in result.fitted or METHODS[fit.factors.method].weights == "none":
        return ModelChecks()
    sample = _Sample.of(fit, result)
    time, time_doubt, by_time = _time(sample)
    pattern, pattern_doubt, by_pattern = _pattern(sample)
    power, power_doubt, by_power = _power(sample)
    shift = np.sqrt(by_time**2 + by_pattern**2 + by_power**2)
    names = result.units.name[sample.response.units]
    return ModelChecks(
        p_time=time.p,
        shift_time=float(np.nanmax(np.abs(time.shift), initial=0.0)) if np.isfinite(time.p) else np.nan,
        p_factor=pattern.p,
        sigma_factor=pattern.sigma,
        p_power=power.p,
        power=power.power,
        doubt="; ".join(filter(None, [time_doubt, pattern_doubt, power_doubt])),
        shift={str(name): float(size) for name, size in zip(names, shift, strict=True) if size > 0},
    )


def with_checks(fit: Fit, checks: ModelChecks) -> Fit:
    """Add to the errors of a fit what failed tests move its factors by."""
    factors = fit.factors
    if not checks.shift:
        return replace(fit, factors=replace(factors, model_doubt=checks.doubt))
    relative = np.array([checks.shift.get(str(name), 0.0) for name in factors.name])
    shift = factors.k * relative
    return replace(
        fit,
        factors=replace(
            factors,
            k_err=np.hypot(factors.k_err, shift),
            k_err_int=np.hypot(factors.k_err_int, shift),
            k_err_shift=shift,
            model_doubt=checks.doubt,
        ),
    )


@dataclass(frozen=True)
class _Sample:
    """Buckets of the largest component with what the tests need; aligned with the rows of the response."""

    response: fitters.LinearResponse
    data: FitInput
    row: Ints  # Of the input
    of_jobs: Floats  # Relative variance from jobs; NaN where it is unknown everywhere
    interaction: float
    level: str
    error: Floats  # Of ln k of the names of the response, before what the tests add

    @classmethod
    def of(cls, fit: Fit, result: fitters.FitResult) -> "_Sample":
        response = fitters.LinearResponse(result)
        of_jobs, kept = result.rel_var, result.weighting.kept
        if of_jobs.size:
            of_jobs = (of_jobs if kept is None else of_jobs[kept])[response.rows]
        else:
            of_jobs = np.full(response.rows.size, np.nan)
        scatter = float(np.nan_to_num(result.sigma_int.value))
        factors, names = fit.factors, result.units.name[response.units].astype(str)
        error = (factors.k_err / factors.k)[np.searchsorted(factors.name.astype(str), names)]
        return cls(response, fit.data, fit.input_rows(response), of_jobs, scatter, factors.level, error)

    @property
    def n_units(self) -> int:
        return int(self.response.units.size)

    @property
    def kinds(self) -> list[Ints]:
        """Types and core classes of the rows as numbers: their common effects are in the errors."""
        keys, of_row = self.data.keys, self.data.task.names[self.data.task.codes[self.row]]
        columns = (keys.processing_type, keys.core_class)
        return [np.unique(column[of_row].astype(str), return_inverse=True)[1] for column in columns]


def _time(sample: _Sample) -> tuple[fitters.TimeCheck, str, Floats]:
    nothing = np.zeros(sample.n_units)
    data, cells = sample.data, sample.data.cells
    if cells is None or not (sample.of_jobs > 0).all():
        return fitters.TimeCheck(np.nan, np.nan, np.full(sample.n_units, np.nan)), "", nothing
    place = np.full(len(data), -1)
    place[sample.row] = np.arange(sample.row.size)
    inside = place[cells.row] >= 0
    row, bucket = cells.row[inside], place[cells.row[inside]]
    jobs = cells.n_jobs[inside]
    value = np.log(cells.cpu_s[inside]) - np.log(cells.events[inside] + data.rho[row] * jobs)
    variance = sample.of_jobs[bucket] * data.n_jobs[row] / jobs
    response = sample.response
    found = fitters.time_check(
        response.unit[bucket],
        response.task[bucket],
        cells.period[inside],
        value,
        variance,
        sample.interaction,
        sample.n_units,
    )
    if not found.p < FAILED:
        return found, "", nothing
    # a name without a level in common with others in any period: as far as the others move
    usual = float(np.sqrt(np.nanmean(found.shift**2))) if np.isfinite(found.shift).any() else found.effect
    shift = np.where(np.isfinite(found.shift), np.abs(found.shift), usual)
    doubt = f"tasks change with time (p < {FAILED}): factors move by up to {percent(float(shift.max()))}"
    # with many jobs a change is seen that moves no factor by as much as its error
    return found, doubt if (shift > sample.error).any() else "", shift


def _pattern(sample: _Sample) -> tuple[fitters.StructureCheck, str, Floats]:
    response, nothing = sample.response, np.zeros(sample.n_units)
    if sample.level == "cpu_model":
        # models of one queue share what it does to a task: that is no pattern of theirs
        none = np.zeros(response.tasks.size)
        return fitters.StructureCheck(np.nan, np.nan, none), "", nothing
    weight = response.weight
    if np.isfinite(sample.of_jobs).all():
        weight = 1.0 / np.maximum(sample.of_jobs + sample.interaction**2, 1e-8)
    found = fitters.structure_check(
        response.unit,
        response.task,
        weight,
        response.residual,
        sample.n_units,
        response.tasks.size,
        kinds=sample.kinds,
        common=sample.data.cost_doubt[sample.row],
    )
    if not found.p < FAILED:
        return found, "", nothing
    doubt = (
        f"some tasks are faster on some {noun(sample.level)}, others on others (p < {FAILED}): a pattern of "
        f"{percent(found.sigma)}"
    )
    return found, doubt, found.sigma * _in_common(sample, found.of_task)


def _in_common(sample: _Sample, of_task: Floats) -> Floats:
    # Mean load of the tasks of a name, which its factor takes; with few tasks all of it
    response, n = sample.response, sample.n_units
    total = np.bincount(response.unit, response.weight, n)
    mean = np.bincount(response.unit, response.weight * of_task[response.task], n)
    few = np.bincount(response.unit, minlength=n) < LEAST_TASKS
    return np.where(few, 1.0, np.abs(mean) / np.where(total > 0, total, 1.0))


def mean_power(length: Floats, spread: Floats, power: float) -> Floats:
    """Return the mean of n^power over jobs, from their mean length and its squared relative scatter.

    That of lognormal lengths: exact for these, right to second order for others, positive for all. The second
    order alone is negative where lengths scatter by a factor of three.

    >>> mean_power(np.array([100.0]), np.array([0.0]), 0.5).tolist()
    [10.0]
    """
    return length**power * (1.0 + spread) ** (0.5 * power * (power - 1.0))


def _power(sample: _Sample) -> tuple[fitters.PowerCheck, str, Floats]:
    data, row, response = sample.data, sample.row, sample.response
    jobs, events = data.n_jobs[row], data.events[row]
    length = events / jobs
    found = fitters.power_check(
        response.unit,
        response.task,
        data.elasticity[row],
        data.elasticity_err[row],
        length,
        sample.n_units,
    )
    nothing = np.zeros(sample.n_units)
    if not (found.p < FAILED and found.size > LEAST_TREND):
        return found, "", nothing
    effective = jobs * mean_power(length, np.nan_to_num(data.length_var[row]), found.power)
    shift = response.with_values(np.log(data.events_eff[row]) - np.log(effective))
    doubt = (
        f"CPU time grows with the events to the power {found.power:.2f} (p < {FAILED}): factors move by up "
        f"to {percent(float(np.nanmax(np.abs(shift))))}"
    )
    return found, doubt, np.abs(np.nan_to_num(shift))
