"""Errors of a factor that more tasks of one kind do not average away.

Three of them, beside the interaction of name and task: with a processing type, with a core class, and in the
start-up time of jobs. Each is added to the variance of ln k of the names that it concerns.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

import fitters
from esjobs.core.numbers import percent
from esjobs.core.words import CHANGED_SPEED
from esjobs.speed.fit_input import FitInput
from fitters.layout.arrays import Floats, Ints, Mask, Texts

_MOSTLY = 0.5  # Share of the scatter of a name's tasks that makes a change of its speed likely
_LEAST_BUCKETS = 10
_MOST_SCATTER = 2.0  # How many times as much as their errors say the buckets of a name may scatter
_FAR = 5.0  # Standard deviations beyond which a bucket says nothing about common effects


@dataclass(frozen=True)
class SharedEffects:
    """Variances of ln k by code of the name, and the scatters behind them.

    ``sigma_int``: interaction of name and task alone. ``by_type``, ``by_class``: of name and processing type,
    of name and core class; the latter None if it cannot be estimated.
    """

    sigma_int: float
    by_type: fitters.KindScatter
    by_class: fitters.KindScatter | None
    only_type: str  # The type of all jobs, where it is one
    of_type: Floats
    of_class: Floats
    of_cost: Floats
    # Why the buckets of a name are in doubt, empty where they are not; by code of the name
    outlier_buckets: Texts


@dataclass(frozen=True)
class _Rows:
    """Buckets that carry information on k, with the weights of the fit."""

    name: Ints
    task: Ints
    kind: Ints
    of_jobs: Floats
    weight: Floats
    residual: Floats

    def __getitem__(self, chosen: Mask) -> "_Rows":
        codes = (self.name[chosen], self.task[chosen], self.kind[chosen])
        return _Rows(*codes, self.of_jobs[chosen], self.weight[chosen], self.residual[chosen])


def shared_effects(
    data: FitInput, entered: Mask, result: fitters.FitResult, *, corrected: bool
) -> SharedEffects:
    """Estimate the effects of names on all tasks of a kind from the residuals of a fit.

    The sigma_int of the fit contains all of it; it is estimated anew inside the cells of name, type and core
    class. A fit of one type takes the scatter of name and type from that of all types, if known.
    """
    n_names = len(data.name.names)
    rows, chosen = _rows(data, entered, result, corrected=corrected)
    far = np.abs(rows.residual) * np.sqrt(rows.weight) > _FAR
    if corrected and data.outlier_records is not None:
        far |= (data.outlier_records != "")[rows.name]
    inside = rows[~far]
    types, n_types = _codes(data.keys.processing_type, inside.kind)
    classes, n_classes = _codes(data.keys.core_class, inside.kind)
    cell = (inside.name * max(n_types, 1) + types) * max(n_classes, 1) + classes
    sigma_int = _sigma_int(inside, cell, result)
    variance = inside.of_jobs + sigma_int**2
    by_type = fitters.kind_scatter(inside.name, types, inside.residual, variance, n_names)
    if by_type.source == "assumed" and data.sigma_type is not None:
        by_type = replace(by_type, sigma=data.sigma_type)
    by_class = None
    if n_classes > 1:
        by_class = fitters.kind_scatter(inside.name, classes, inside.residual, variance, n_names)
        by_class = None if by_class.source == "assumed" else by_class
    return SharedEffects(
        sigma_int=sigma_int,
        by_type=by_type,
        by_class=by_class,
        only_type=str(data.keys.processing_type[inside.kind[0]] or "") if n_types == 1 else "",
        of_type=by_type.unit_variance,
        of_class=np.zeros(n_names) if by_class is None else by_class.unit_variance,
        of_cost=_of_cost(data, rows, chosen) if corrected else np.zeros(n_names),
        outlier_buckets=_odd_buckets(rows, n_names, _main_period(data)[chosen]),
    )


def _odd_buckets(rows: _Rows, n_names: int, period: Ints) -> Texts:
    square = np.minimum(rows.residual**2 * rows.weight, _FAR**2)
    number = np.bincount(rows.name, minlength=n_names)
    mean = np.bincount(rows.name, square, n_names) / np.maximum(number, 1)
    reason = np.full(n_names, "", object)
    for code in np.flatnonzero((number >= _LEAST_BUCKETS) & (mean > _MOST_SCATTER**2)):
        reason[code] = f"its tasks scatter {np.sqrt(mean[code]):.1f} times as much as elsewhere"
        mine = rows.name == code
        between = _between(rows.residual[mine], rows.weight[mine], period[mine])
        if between >= _MOSTLY:
            reason[code] += f", {percent(between)} of it between weeks, {CHANGED_SPEED}"
    return reason


def _main_period(data: FitInput) -> Ints:
    """Return the period of the window in which each row has most jobs; 0 where the window has one."""
    period = np.zeros(len(data), np.int64)
    if data.cells is not None:
        # the last of equal keys stays: the period of most jobs
        order = np.argsort(data.cells.n_jobs, kind="stable")
        period[data.cells.row[order]] = data.cells.period[order]
    return period


def _between(residual: Floats, weight: Floats, period: Ints) -> float:
    """Return the share of the scatter of residuals that lies between the periods."""
    periods, group = np.unique(period, return_inverse=True)
    total = np.bincount(group, weight)
    means = np.bincount(group, weight * residual) / total
    mean = float(np.average(residual, weights=weight))
    scatter = float((weight * (residual - mean) ** 2).sum())
    return float((total * (means - mean) ** 2).sum()) / scatter if len(periods) > 1 and scatter > 0 else 0.0


def _rows(
    data: FitInput, entered: Mask, result: fitters.FitResult, *, corrected: bool
) -> tuple[_Rows, npt.NDArray[np.intp]]:
    # Rows of tasks with two names or more, their residuals, and their positions in the data.
    several = np.bincount(data.task.codes[entered], minlength=len(data.task.names)) > 1
    units = result.units
    k = np.full(len(data.name.names), np.nan)
    k[np.searchsorted(data.name.names.astype(str), units.name.astype(str))] = units.k
    chosen = np.flatnonzero(entered & several[data.task.codes] & np.isfinite(k)[data.name.codes])
    name, task = data.name.codes[chosen].astype(np.int64), data.task.codes[chosen].astype(np.int64)
    sigma = result.sigma_int.value if np.isfinite(result.sigma_int.value) else 0.0
    of_jobs = (data.rel_var if corrected else data.rel_var_raw)[chosen]
    of_jobs = np.where(np.isfinite(of_jobs), of_jobs, result.S**2 if result.dof > 0 else 1.0)
    weight = 1.0 / np.maximum(of_jobs + sigma**2, 1e-8)
    speed = data.cpu_s[chosen] / (data.events_eff if corrected else data.events)[chosen] * k[name]
    # Levels from medians first: one stray bucket would be its task's level.
    level = fitters.grouped_median(task, np.log(speed), len(data.task.names))
    residual = np.log(speed) - level[task]
    near = np.abs(residual) * np.sqrt(weight) < 2.0 * _FAR
    inner = np.where(near, weight, 0.0)
    total = np.bincount(task, inner * speed, len(level))
    norm = np.bincount(task, inner, len(level))
    mean = np.divide(total, norm, out=np.exp(level), where=norm > 0)
    residual = 3.0 * (np.cbrt(speed / mean[task]) - 1.0)
    kind = data.task.names[task].astype(np.int64)
    return _Rows(name, task, kind, of_jobs, weight, residual), chosen


def _codes(column: Texts, key: Ints) -> tuple[Ints, int]:
    used = np.flatnonzero(np.bincount(key, minlength=len(column)))
    texts, codes = np.unique([label or "" for label in column[used]], return_inverse=True)
    code_of = np.zeros(len(column), np.int64)
    code_of[used] = codes
    return code_of[key], len(texts)


def _sigma_int(rows: _Rows, cell: Ints, result: fitters.FitResult) -> float:
    # That of the fit if too few residuals are left.
    value = result.sigma_int.value
    if result.sigma_int.source != "estimated":
        return value if np.isfinite(value) else 0.0
    _, dense = np.unique(cell, return_inverse=True)
    n_cells, n_names = int(dense.max(initial=-1)) + 1, np.unique(rows.name).size
    dof = result.dof - (n_cells - n_names)
    if dof < fitters.LEAST_DOF:
        return value
    return min(fitters.inner_scatter(dense, rows.residual, rows.of_jobs, dof), value)


def _of_cost(data: FitInput, rows: _Rows, chosen: npt.NDArray[np.intp]) -> Floats:
    n_names = len(data.name.names)
    total = np.bincount(rows.name, rows.weight, n_names)
    of_name = np.bincount(rows.name, rows.weight * data.cost_doubt[chosen], n_names)
    kinds = data.keys.kinds()[rows.kind]
    cell = rows.name * (int(kinds.max(initial=0)) + 1) + kinds
    cells, dense = np.unique(cell, return_inverse=True)
    common = np.bincount(dense, rows.weight * data.cost_common[chosen], cells.size)
    of_kind = np.bincount(cells // (int(kinds.max(initial=0)) + 1), common**2, n_names)
    variance: Floats = np.divide(of_name**2 + of_kind, total**2, out=np.zeros(n_names), where=total > 0)
    return variance
