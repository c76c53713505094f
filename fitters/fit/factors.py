"""The fit of speed factors, from buckets to a result."""

import time
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from fitters.errors import SettingError, require_option
from fitters.fit.covariance import Propagation, propagate
from fitters.fit.interaction import ASSUMED_SIGMA_INT, SigmaInt, chi2_of, complete_rel_var, estimate_sigma_int
from fitters.fit.judge import Verdict, ask_minuit
from fitters.fit.result_tables import Outcome, Pooled, component_table, unit_table
from fitters.fit.results import FitResult, Fitted, Settings
from fitters.fit.solve import MODES, Solution, minimise
from fitters.fit.weighting import find_weights
from fitters.layout.arrays import EMPTY, Floats
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part, partition
from fitters.threads import one_blas_thread

NO_MATRIX: Floats = np.empty((0, 0))


class Stopwatch:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def stop(self, stage: str) -> None:
        """Book the time since the last stop on `stage`."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


def fit_speed_factors(
    buckets: Buckets,
    objective: Literal["paper", "gamma"] = "paper",
    weights: Literal["none", "jobs", "floor", "variance"] = "none",
    *,
    robust: Literal["none", "reject"] = "none",
    sigma_int: float | None = None,
    judge: Literal["migrad", "hesse", "none"] = "migrad",
) -> FitResult:
    """Fit a speed factor to every unit and a level to every task.

    The model is value = A_task / k_unit times an error of constant relative size (Matskovskaya & Sciaba, "The
    dependence of sites speed factor from the declared HS06", 2018). Only ratios of factors of one component
    mean anything; per component they are scaled to sum to their number.

    Parameters
    ----------
    buckets
        From `Buckets.from_columns`.
    objective
        ``paper``: sum w (a k / A - 1)^2, the article's. ``gamma``: 2 sum w (x - ln x - 1), x = a k / A,
        convex and without the bias that the former has where relative errors differ between units.
    weights
        w: ``none`` is 1, ``jobs`` the number of jobs, ``floor`` the inverse relative variance from the
        scatter of jobs and what does not average with them (see `weighting`; needs rel_var or jobs),
        ``variance`` the same with rel_var as it is given, for buckets of few jobs from `job_scatter`. With
        weights prefer ``gamma``: ``paper`` is biased by up to the variance of a bucket where they differ.
    robust
        ``reject`` leaves out buckets more than 4 robust standard deviations off in ln x. It starts from
        medians and loses up to 6 % of the information of clean data. Which were rejected says `bucket_table`.
    sigma_int
        Relative interaction scatter; None: estimated with 10 degrees of freedom or more, otherwise 0.10 is
        assumed.
    judge
        ``migrad``: Minuit looks at the minimum; ``hesse``: its HESSE works out the errors again, too, which
        takes the cube of the units; ``none``: Minuit is not asked.

    Returns
    -------
    FitResult
        With a status for every unit, task and component. Nothing here fails because of data: what cannot be
        fitted has a status and a reason, and its numbers are NaN.

    Raises
    ------
    SettingError
        Unknown option, weights without the columns they need, sigma_int not a finite number >= 0.

    Notes
    -----
    The levels are eliminated exactly, so that the search runs in the factors only. The time is about linear
    in the buckets, plus the cube of the units; memory about six matrices units x units beside the buckets.

    >>> tasks, units = ["t1", "t1", "t2", "t2", "t3", "t3"], ["A", "B", "A", "B", "A", "B"]
    >>> values = [10.0, 20.0, 3.0, 6.0, 1.0, 2.0]
    >>> result = fit_speed_factors(Buckets.from_columns(tasks, units, values))
    >>> result.units.k.round(6).tolist(), result.units.status.tolist(), result.dof
    ([1.333333, 0.666667], ['ok', 'ok'], 2)
    """
    settings = _settings(buckets, Settings(objective, weights, sigma_int, judge, robust))
    with one_blas_thread():
        return _fit(buckets, settings)


def _fit(source: Buckets, settings: Settings) -> FitResult:
    watch = Stopwatch()
    mode = MODES[settings.objective]
    all_rel_var, n_imputed = complete_rel_var(source)
    rel_var = all_rel_var
    weighting = find_weights(
        source,
        rel_var,
        settings.weights,
        settings.robust,
        mode=mode,
        sigma_int=settings.sigma_int,
    )
    watch.stop("weights")
    buckets, weight = source, weighting.weight
    if weighting.kept is not None:
        buckets = source.keep(weighting.kept)
        weight, rel_var = (column[weighting.kept] if column.size else EMPTY for column in (weight, rel_var))
    split = partition(buckets, weight, rel_var)
    watch.stop("layout")
    solutions = tuple(minimise(part, mode) for part in split.parts)
    watch.stop("solve")
    sound = [index for index, solution in enumerate(solutions) if solution.converged]
    sound_parts = tuple(split.parts[index] for index in sound)
    near = weighting.floor if weighting.source == "estimated" else ASSUMED_SIGMA_INT
    scatter = estimate_sigma_int(
        sound_parts, tuple(solutions[index] for index in sound), settings.sigma_int, near
    )
    watch.stop("interaction")
    dof = sum(part.dof for part in sound_parts)
    squares = sum(solutions[index].squares for index in sound)
    variance = squares / dof if dof > 0 else float("nan")
    outcomes = []
    for part, solution in zip(split.parts, solutions, strict=True):
        propagation = propagate(part, solution, scatter.value) if solution.converged else None
        watch.stop("covariance")
        verdict = _verdict(part, solution, propagation, variance, settings)
        watch.stop("judge")
        bare = replace(solution, factor=None, hessian=NO_MATRIX, scores=NO_MATRIX)
        outcomes.append(Outcome(part, bare, propagation, verdict, _reduced_chi2(part, bare, scatter)))
    pooled = Pooled(variance, dof, scatter)
    units = unit_table(buckets, source, split, outcomes, pooled)
    fitted = {
        outcome.part.number: Fitted(outcome.part, outcome.solution, outcome.propagation)
        for outcome in outcomes
        if outcome.propagation is not None and not outcome.failure
    }
    dropped = dict(buckets.dropped)
    if split.bucket_used is not None:
        rows = ~split.bucket_used if buckets.rows is None else buckets.rows[~split.bucket_used]
        dropped["task with one unit"] = int(rows.sum())
    result = FitResult(
        units=units,
        components=component_table(buckets, split, outcomes),
        S=float(np.sqrt(variance)),
        dof=dof,
        dof_effective=_effective(dof, sound_parts),
        sigma_int=scatter,
        weighting=weighting,
        n_imputed=n_imputed,
        settings=settings,
        dropped=MappingProxyType(dropped),
        n_rows=buckets.n_rows,
        n_used=buckets.n_rows - sum(dropped.values()),
        timings=MappingProxyType(watch.seconds),
        buckets=buckets,
        source=source,
        rel_var=all_rel_var,
        partition=split,
        fitted=MappingProxyType(fitted),
    )
    watch.stop("tables")
    return result


def _effective(dof: int, parts: tuple[Part, ...]) -> float:
    weights = [part.weight for part in parts if part.weight.size]
    if not weights:
        return float(dof)
    sums = sum(float(w.sum()) for w in weights), sum(float(w @ w) for w in weights)
    return dof * sums[0] ** 2 / sums[1] / sum(w.size for w in weights)


def _settings(buckets: Buckets, asked: Settings) -> Settings:
    require_option("objective", asked.objective, ("paper", "gamma"))
    require_option("weights", asked.weights, ("none", "jobs", "floor", "variance"))
    require_option("robust", asked.robust, ("none", "reject"))
    require_option("judge", asked.judge, ("migrad", "hesse", "none"))
    if asked.weights == "jobs" and buckets.jobs is None:
        raise SettingError("weights='jobs' needs buckets made with a jobs column")
    if asked.weights in ("floor", "variance") and buckets.jobs is None and buckets.rel_var is None:
        raise SettingError(f"weights={asked.weights!r} needs buckets made with a jobs or rel_var column")
    if asked.sigma_int is not None and not (np.isfinite(asked.sigma_int) and asked.sigma_int >= 0):
        raise SettingError(f"sigma_int is {asked.sigma_int}; a finite number >= 0 or None is needed")
    return asked


def _verdict(
    part: Part, solution: Solution, propagation: Propagation | None, variance: float, settings: Settings
) -> Verdict | None:
    if propagation is None or settings.judge == "none":
        return None
    scale, hesse = variance if np.isfinite(variance) else 1.0, settings.judge == "hesse"
    return ask_minuit(part, solution, propagation, scale, mode=MODES[settings.objective], hesse=hesse)


def _reduced_chi2(part: Part, solution: Solution, scatter: SigmaInt) -> float:
    if part.rel_var.size == 0 or part.dof <= 0 or not solution.converged or not np.isfinite(scatter.value):
        return float("nan")
    outcome = chi2_of(part, solution.theta, scatter.value**2)
    return float("nan") if outcome is None else outcome[0] / part.dof
