"""The fit of speed factors, from buckets to a result."""

import time
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from fitters.errors import SettingError, require_option
from fitters.fit.covariance import propagate
from fitters.fit.interaction import ASSUMED_SIGMA_INT, SigmaInt, chi2_of, complete_rel_var, estimate_sigma_int
from fitters.fit.migrad import MinuitMinimum, lower_minimum, minimise_by_minuit
from fitters.fit.result_tables import Outcome, Pooled, component_table, unit_table
from fitters.fit.results import FitResult, Fitted, Settings
from fitters.fit.solve import MODES, Solution, minimise
from fitters.fit.weighting import Weighting, find_weights
from fitters.layout.arrays import EMPTY, Floats
from fitters.layout.buckets import Buckets
from fitters.layout.components import Part, Partition, partition
from fitters.threads import one_blas_thread

NO_MATRIX: Floats = np.empty((0, 0))


class Stopwatch:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def stop(self, stage: str) -> None:
        """Count the time since the last stop for `stage`."""
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
    search: Literal["own", "minuit"] = "own",
) -> FitResult:
    """Fit a speed factor to every unit and a level to every task.

    The model is value = A_task / k_unit times an error of constant relative size (Matskovskaya & Sciaba, "The
    dependence of sites speed factor from the declared HS06", 2018). Only ratios of factors of one component
    mean anything; per component they sum to their number. The levels are eliminated exactly. Time about
    linear in the buckets, plus the cube of the units; memory about six matrices units x units.

    ``objective``: ``paper`` is sum w (a k / A - 1)^2, the article's; ``gamma`` is 2 sum w (x - ln x - 1), x =
    a k / A, convex and unbiased where relative errors differ between units. ``weights``: ``none``; ``jobs``;
    ``floor``, the inverse relative variance from the scatter of jobs and a common part (see `weighting`);
    ``variance``, the same with the given rel_var. With weights ``paper`` is biased by up to the variance of a
    bucket. ``robust``: ``reject`` excludes buckets beyond 4 robust standard deviations in ln x, at a loss of
    up to 6 % of the information. ``sigma_int``: relative interaction scatter; None: estimated from 10 degrees
    of freedom on, else 0.10. ``search``: ``minuit`` takes the minimum that MIGRAD finds from k = 1, with the
    errors of HESSE, unless our own search finds a lower one (see `migrad`); ``own`` is ten times faster.

    Data never make this fail: a unit, task or component that cannot be fitted has a status, a reason and NaN.
    Raises :class:`SettingError` for an unknown option or a missing column of the weights.

    >>> tasks, units = ["t1", "t1", "t2", "t2", "t3", "t3"], ["A", "B", "A", "B", "A", "B"]
    >>> values = [10.0, 20.0, 3.0, 6.0, 1.0, 2.0]
    >>> result = fit_speed_factors(Buckets.from_columns(tasks, units, values))
    >>> result.units.k.round(6).tolist(), result.units.status.tolist(), result.dof
    ([1.333333, 0.666667], ['ok', 'ok'], 2)
    """
    settings = _settings(buckets, Settings(objective, weights, sigma_int, search, robust))
    with one_blas_thread():
        return _fit(buckets, settings)


def _fit(source: Buckets, settings: Settings) -> FitResult:
    watch = Stopwatch()
    mode = MODES[settings.objective]
    all_rel_var, n_imputed = complete_rel_var(source)
    weighting = find_weights(
        source, all_rel_var, settings.weights, settings.robust, mode=mode, sigma_int=settings.sigma_int
    )
    watch.stop("weights")
    buckets, weight, rel_var = source, weighting.weight, all_rel_var
    if weighting.kept is not None:
        buckets = source.keep(weighting.kept)
        weight, rel_var = (column[weighting.kept] if column.size else EMPTY for column in (weight, rel_var))
    split = partition(buckets, weight, rel_var)
    watch.stop("layout")
    solutions = tuple(minimise(part, mode) for part in split.parts)
    watch.stop("solve")
    by_minuit: tuple[MinuitMinimum | None, ...] = (None,) * len(solutions)
    if settings.search == "minuit":
        by_minuit, solutions = _by_minuit(split.parts, solutions, mode)
        watch.stop("minuit")
    pooled = _pooled(split, solutions, settings, weighting)
    watch.stop("interaction")
    outcomes = []
    for part, solution, found in zip(split.parts, solutions, by_minuit, strict=True):
        propagation = propagate(part, solution, pooled.scatter.value) if solution.converged else None
        if propagation is not None and found is not None and found.found_by == "minuit":
            propagation = propagation.with_errors(found.ln_k_err, found.variance)
        watch.stop("covariance")
        bare = replace(solution, factor=None, hessian=NO_MATRIX, scores=NO_MATRIX)
        outcomes.append(Outcome(part, bare, propagation, found, _reduced_chi2(part, bare, pooled.scatter)))
    fitted = {
        outcome.part.number: Fitted(outcome.part, outcome.solution, outcome.propagation)
        for outcome in outcomes
        if outcome.propagation is not None and not outcome.failure
    }
    dropped = _dropped(buckets, split)
    result = FitResult(
        units=unit_table(buckets, split, outcomes, pooled),
        components=component_table(buckets, split, outcomes),
        S=float(np.sqrt(pooled.variance)),
        dof=pooled.dof,
        sigma_int=pooled.scatter,
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


def _by_minuit(
    parts: tuple[Part, ...], solutions: tuple[Solution, ...], mode: int
) -> tuple[tuple[MinuitMinimum, ...], tuple[Solution, ...]]:
    variance = _variance(parts, solutions)
    pairs = [
        lower_minimum(part, mode, minimise_by_minuit(part, mode, variance), own)
        for part, own in zip(parts, solutions, strict=True)
    ]
    return tuple(found for found, _ in pairs), tuple(solution for _, solution in pairs)


def _variance(parts: tuple[Part, ...], solutions: tuple[Solution, ...]) -> float:
    # S^2 pooled over the components that were fitted; NaN without degrees of freedom.
    converged = [pair for pair in zip(parts, solutions, strict=True) if pair[1].converged]
    dof = sum(part.dof for part, _ in converged)
    return sum(solution.squares for _, solution in converged) / dof if dof > 0 else float("nan")


def _pooled(
    split: Partition, solutions: tuple[Solution, ...], settings: Settings, weighting: Weighting
) -> Pooled:
    converged = [pair for pair in zip(split.parts, solutions, strict=True) if pair[1].converged]
    parts = tuple(part for part, _ in converged)
    near = weighting.floor if weighting.source == "estimated" else ASSUMED_SIGMA_INT
    scatter = estimate_sigma_int(
        parts, tuple(solution for _, solution in converged), settings.sigma_int, near
    )
    return Pooled(_variance(split.parts, solutions), sum(part.dof for part in parts), scatter)


def _dropped(buckets: Buckets, split: Partition) -> dict[str, int]:
    dropped = dict(buckets.dropped)
    if split.bucket_used is not None:
        rows = ~split.bucket_used if buckets.rows is None else buckets.rows[~split.bucket_used]
        dropped["task with one unit"] = int(rows.sum())
    return dropped


def _settings(buckets: Buckets, chosen: Settings) -> Settings:
    require_option("objective", chosen.objective, ("paper", "gamma"))
    require_option("weights", chosen.weights, ("none", "jobs", "floor", "variance"))
    require_option("robust", chosen.robust, ("none", "reject"))
    require_option("search", chosen.search, ("own", "minuit"))
    if chosen.weights == "jobs" and buckets.jobs is None:
        raise SettingError("weights='jobs' requires buckets made with a jobs column")
    if chosen.weights in ("floor", "variance") and buckets.jobs is None and buckets.rel_var is None:
        raise SettingError(f"weights={chosen.weights!r} requires buckets made with a jobs or rel_var column")
    if chosen.sigma_int is not None and not (np.isfinite(chosen.sigma_int) and chosen.sigma_int >= 0):
        raise SettingError(f"sigma_int is {chosen.sigma_int}; expected a finite number >= 0, or None")
    return chosen


def _reduced_chi2(part: Part, solution: Solution, scatter: SigmaInt) -> float:
    if part.rel_var.size == 0 or part.dof <= 0 or not solution.converged or not np.isfinite(scatter.value):
        return float("nan")
    outcome = chi2_of(part, solution.theta, scatter.value**2)
    return float("nan") if outcome is None else outcome[0] / part.dof
