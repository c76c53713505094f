"""Queues that no task links with most others, put on the common scale through their CPU models.

Of such a queue nothing tells its own effect but that of others: it runs as its CPU models do elsewhere, give
or take the scatter of queues beside their CPU models.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import fitters
from esjobs.records.tasks.machines import MachineSums
from esjobs.records.tasks.memory import release_memory
from esjobs.records.tasks.solved import job_variance
from esjobs.speed.factors import MIXED_TASK, Factors, Fit
from esjobs.speed.fit_input import FitInput
from fitters.layout.arrays import Codes, Floats, Ints, Mask

LEAST_SHARE = 0.5
"""Of the jobs of a component that must be on CPU models of the largest one."""
_GROUPS = 8  # Of tasks, left out in turn for the error of the scatter of queues
_TINY = 1e-300


def with_via_models(item: Fit, read: Callable[[], MachineSums], min_name_jobs: int) -> Fit:
    """Add the factors of queues outside the largest component that their CPU models tell.

    ``read``: the sums by CPU model, not called where all queues are comparable. ``min_name_jobs``: jobs that
    such a queue needs.
    """
    factors = item.factors
    apart = ~factors.main & (factors.n_jobs >= min_name_jobs) & (factors.status != MIXED_TASK)
    if item.result is None or not factors.main.any() or not apart.any():
        return item
    rows = _rows(item.data, item.entered, read())
    placed = None if rows is None else _placed(factors, apart, rows)
    return item if placed is None else replace(item, factors=placed)


@dataclass(frozen=True)
class _Rows:
    """Sums of the units in the fit, with ln of the CPU time per event and its variance."""

    sums: MachineSums
    value: Floats
    variance: Floats

    def keep(self, rows: Mask) -> "_Rows":
        return _Rows(self.sums.keep(rows), self.value[rows], self.variance[rows])

    @property
    def codes(self) -> tuple[Codes, Codes, Codes]:
        return self.sums.unit, self.sums.queue, self.sums.model

    @property
    def mix(self) -> Floats:
        """CPU time by queue and CPU model."""
        mix = np.zeros((len(self.sums.queues), len(self.sums.models)))
        np.add.at(mix, (self.sums.queue, self.sums.model), self.sums.sums["cpu_s"])
        return mix


def _rows(data: FitInput, entered: Mask, sums: MachineSums) -> _Rows | None:
    # Rows of the units that the fit holds as they are; parts of a split task have no sums by CPU model.
    unit_of: dict[tuple[str | None, ...], int] = {unit: number for number, unit in enumerate(sums.units)}
    queue_of = {name: number for number, name in enumerate(sums.queues)}
    unit = np.array([-1 if key[3] else unit_of.get(key[:3], -1) for key in data.keys.listed()], np.int64)
    queue = np.array([queue_of.get(str(name), -1) for name in data.name.names], np.int64)
    unit, queue = unit[data.task.names[data.task.codes]], queue[data.name.codes]
    inside = entered & (unit >= 0) & (queue >= 0)
    rho = np.full((len(sums.units), len(sums.queues)), np.nan)
    rho[unit[inside], queue[inside]] = data.rho[inside]
    kept = np.isfinite(rho[sums.unit, sums.queue]) & (sums.sums["cpu_s"] > 0) & (sums.sums["events"] > 0)
    if not kept.any():
        return None
    sums = sums.keep(kept)
    n_jobs = sums.sums["n_jobs"]
    effective = sums.sums["events"] + rho[sums.unit, sums.queue] * n_jobs
    scatter = fitters.job_scatter(sums.unit, sums.kind_of_unit, n_jobs, job_variance(sums.sums, effective))
    value = np.log(sums.sums["cpu_s"] / effective)
    # the other sums have done their duty, and are most of the memory
    sums = replace(sums, sums={name: sums.sums[name] for name in ("n_jobs", "cpu_s")})
    return _Rows(sums, value, np.nan_to_num(scatter.per_job, nan=1.0) / n_jobs)


def _placed(factors: Factors, apart: Mask, rows: _Rows) -> Factors | None:
    number_of = {name: number for number, name in enumerate(rows.sums.queues)}
    queue = np.array([number_of.get(str(name), -1) for name in factors.name], np.int64)
    sizes = len(rows.sums.queues), len(rows.sums.models)
    effects = fitters.fit_effects(*rows.codes, rows.value, rows.variance, *sizes)
    linked = effects.weight > 0
    apart = apart & (queue >= 0) & _on_common_models(factors, queue, rows, linked)
    common = factors.main & np.isin(queue, rows.sums.queue[linked])
    scatter = _scatter(rows, effects) if apart.any() and common.any() else None
    if scatter is None:
        return None
    chosen = rows.keep(linked | np.isin(rows.sums.queue, queue[apart]))
    mixed = fitters.fit_mixed(
        *chosen.codes, chosen.value, chosen.variance, effects.interaction, scatter, *sizes
    )
    of_class = np.where(mixed.determined, mixed.of_class, 0.0)
    part = np.where(mixed.determined, rows.mix, 0.0)
    # CPU time adds up, so the speed of a mix is the mean of its models' by their shares of CPU time
    speed = part @ np.exp(of_class) / np.maximum(part.sum(axis=1), _TINY)
    weights = part * np.exp(of_class)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), _TINY)
    beside = mixed.unit + np.log(np.maximum(speed, _TINY))
    level = float(np.mean(np.log(factors.k[common]) - beside[queue[common]]))
    k, k_err = (np.full(len(factors.name), np.nan) for _ in range(2))
    for index in np.flatnonzero(apart).tolist():
        units = np.bincount(queue[common], minlength=sizes[0]) / -common.sum()
        units[queue[index]] += 1.0
        _, error = mixed.contrast(units, weights[queue[index]] - weights[queue[common]].mean(axis=0))
        k[index] = math.exp(level + beside[queue[index]])
        k_err[index] = k[index] * error
    return replace(factors, k_via=k, k_via_err=k_err)


def _scatter(rows: _Rows, effects: fitters.Effects) -> float | None:
    """Scatter of queues beside their CPU models, in ln; None with too few comparable queues."""
    # the shares need more than anything before them
    release_memory()
    shares = fitters.variance_shares(*rows.codes, rows.value, effects.weight, rows.mix, _GROUPS)
    if shares is None:
        return None
    # where no scatter is seen, so much of it as its error allows
    return math.sqrt(max(shares.units.value, float(np.nan_to_num(shares.units.error))))


def _on_common_models(factors: Factors, queue: Ints, rows: _Rows, linked: Mask) -> Mask:
    """Return the mask of names of components with enough jobs on CPU models of the largest one."""
    sums = rows.sums
    seen = np.isin(sums.model, sums.model[linked])
    jobs = np.append(np.bincount(sums.queue, sums.sums["n_jobs"] * seen, len(sums.queues)), 0.0)
    on_seen, every = (np.bincount(factors.component, number) for number in (jobs[queue], factors.n_jobs))
    return np.asarray((on_seen >= LEAST_SHARE * every)[factors.component] & (jobs[queue] > 0), np.bool_)
