"""Effects of CPU models and of queues from the same buckets, and the CPU mix.

Factors of CPU models alone would not do: a model that a single queue has would be as slow as that queue is,
and the queue would deviate by nothing of its own. Both effects are fitted together instead.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import fitters
from esjobs.core.window import Window
from esjobs.records.tasks.machines import MachineSums, machine_sums
from esjobs.records.tasks.solved import KnownOfTasks, job_variance
from esjobs.records.tasks.sums import read_sums
from esjobs.store.base import JobStore
from fitters.layout.arrays import Codes, Floats

LEAST_SHARE = 0.05  # Of the CPU time of a queue that a CPU model needs to be one that it runs
LEAST_KNOWN = 0.5  # Of the CPU time of a queue that must name CPU models, so that these speak for it


@dataclass(frozen=True)
class Machines:
    """Effects of queues and CPU models, and the CPU time of every pair.

    ``mix``: by queue, shares of CPU time by model; empty if too few jobs name one. ``pairs``: the fitted
    queues and CPU models. ``buckets``: what the effects were fitted to.
    """

    queues: Mapping[str, int]
    models: Mapping[str, int]
    effects: fitters.Effects
    mix: Mapping[str, Mapping[str, float]]
    pairs: tuple["Pair", ...]
    buckets: "Buckets"

    def own(self, queue: str) -> tuple[float, float] | None:
        """Return the effect of a queue beside its CPU models, and its error; None if inseparable."""
        number = self.queues.get(queue)
        if number is None or queue not in self.mix or not np.isfinite(self.effects.unit[number]):
            return None
        # against the mean queue: the constant of all effects is arbitrary
        solved = np.isfinite(self.effects.unit)
        weights = np.where(solved, -1.0 / solved.sum(), 0.0)
        weights[number] += 1.0
        error = math.sqrt(self.effects.variance(weights, np.zeros(len(self.models))))
        return float(self.effects.unit[number]), error

    def of_mix(self, mix: Mapping[str, float]) -> float:
        """Return ln of the speed of a mix (shares of CPU time by model), up to a common constant."""
        # events per CPU time, weighted with CPU time: the mean of speeds counts
        solved = {model: share for model, share in mix.items() if self._solved(model)}
        total = sum(solved.values())
        return float(
            np.log(sum(share / total * np.exp(self._effect(model)) for model, share in solved.items()))
        )

    def mix_error(self, queue: str) -> float:
        """Return the standard error of :meth:`of_mix` of a queue, relative to that of all queues."""
        weights = self._gradient(self.mix[queue]) - self._mean_gradient
        return math.sqrt(self.effects.variance(np.zeros(len(self.queues)), weights))

    @cached_property
    def _mean_gradient(self) -> Floats:
        mean: Floats = np.mean([self._gradient(mix) for mix in self.mix.values()], axis=0)
        return mean

    def difference_error(self, one: Mapping[str, float], other: Mapping[str, float]) -> float:
        """Return the standard error of the difference of two mixes."""
        weights = self._gradient(one) - self._gradient(other)
        return math.sqrt(self.effects.variance(np.zeros(len(self.queues)), weights))

    def runs(self, queue: str) -> list[tuple[str, float]]:
        """Return the main CPU models of a queue with ln of their speed over that of its mix."""
        here = self.of_mix(self.mix[queue])
        return [
            (model, self._effect(model) - here)
            for model, share in sorted(self.mix[queue].items(), key=lambda item: -item[1])
            if share >= LEAST_SHARE and self._solved(model)
        ]

    def gradient(self, mix: Mapping[str, float]) -> dict[str, float]:
        """Return the weight of each CPU model in a mix; they add up to 1."""
        weights = self._gradient(mix)
        return {model: float(weights[number]) for model, number in self.models.items() if weights[number]}

    def _solved(self, model: str) -> bool:
        return model in self.models and bool(np.isfinite(self._effect(model)))

    def _effect(self, model: str) -> float:
        return float(self.effects.of_class[self.models[model]])

    def _gradient(self, mix: Mapping[str, float]) -> Floats:
        weights = np.zeros(len(self.models))
        for model, share in mix.items():
            if self._solved(model):
                weights[self.models[model]] = share * np.exp(self._effect(model))
        total = weights.sum()
        return weights / total if total else weights


@dataclass(frozen=True)
class Pair:
    """A CPU model at a queue.

    ``relative``: ln of its speed there over its mean over ``n_queues`` queues; ``error``: of that.
    """

    queue: str
    model: str
    relative: float
    error: float
    n_queues: int
    n_jobs: int
    n_tasks: int


@dataclass(frozen=True)
class Buckets:
    """Sums of a unit (task x core class x type) at a queue on a CPU model, with their codes.

    ``value``: ln of the CPU time per event, corrected for start-up time; ``variance``: from the scatter of
    jobs.
    """

    sums: MachineSums
    value: Floats
    variance: Floats

    @property
    def codes(self) -> tuple[Codes, Codes, Codes]:
        """Codes of units, queues and CPU models."""
        return self.sums.unit, self.sums.queue, self.sums.model


def read_machines(store: JobStore, window: Window, solved: KnownOfTasks) -> Machines | None:
    """Fit the effects from the buckets of a window; None without a CPU model."""
    every = machine_sums(read_sums(store, window).fine)
    solvable = np.array([unit not in solved.aside for unit in every.units], np.bool_)[every.unit]
    usable = solvable & (every.sums["cpu_s"] > 0) & (every.sums["events"] > 0)
    if not usable.any():
        return None
    buckets = _buckets(every.keep(usable), solved)
    queues, models = every.queues, every.models
    effects = fitters.fit_effects(
        *buckets.codes, buckets.value, buckets.variance, n_units=len(queues), n_classes=len(models)
    )
    return Machines(
        {name: number for number, name in enumerate(queues)},
        {name: number for number, name in enumerate(models)},
        effects,
        every.mix(),
        tuple(_pairs(effects, buckets.sums)),
        buckets,
    )


def _buckets(rows: MachineSums, solved: KnownOfTasks) -> Buckets:
    rho = np.array([solved.rho.get(unit, 0.0) for unit in rows.units])[rows.unit]
    n_jobs = rows.sums["n_jobs"]
    effective = rows.sums["events"] + rho * n_jobs
    scatter = fitters.job_scatter(rows.unit, rows.kind_of_unit, n_jobs, job_variance(rows.sums, effective))
    value = np.log(rows.sums["cpu_s"] / effective)
    return Buckets(rows, value, np.nan_to_num(scatter.per_job, nan=1.0) / n_jobs)


def _pairs(effects: fitters.Effects, rows: MachineSums) -> Iterator[Pair]:
    """Yield each queue and CPU model, relative to the mean of the model over its queues.

    The speed of a pair is that of its queue and model, minus the mean residual of its buckets. Its error
    comes from the scatter of its units (task x core class x type), but not below their variances.
    """
    kept = effects.weight > 0
    n_models = len(rows.models)
    codes = rows.queue[kept].astype(np.int64) * n_models + rows.model[kept]
    pair, index = np.unique(codes, return_inverse=True)
    weight, off = effects.weight[kept], effects.residual[kept]
    total = np.bincount(index, weight)
    beyond = np.bincount(index, weight * off) / total
    # buckets of a unit at a queue are one draw
    cluster, within = np.unique(np.stack([index, rows.unit[kept]]), axis=1, return_inverse=True)
    scores = np.bincount(np.ravel(within), weight * (off - beyond[index]))
    n_units = np.bincount(cluster[0], minlength=len(pair))
    task = rows.task[kept]
    n_tasks = np.bincount(np.unique(np.stack([index, task]), axis=1)[0], minlength=len(pair))
    scatter = np.bincount(cluster[0], scores**2, len(pair)) / total**2
    scatter *= n_units / np.maximum(n_units - 1, 1)  # the usual correction of few clusters
    variance = np.maximum(1.0 / total, scatter)
    own, of_class = pair // n_models, pair % n_models
    speed = effects.unit[own] - beyond
    jobs = np.bincount(index, rows.sums["n_jobs"][kept])
    for at in range(n_models):
        here = np.flatnonzero((of_class == at) & np.isfinite(speed))
        if len(here) < 2:
            continue
        share = (1.0 / variance[here]) / (1.0 / variance[here]).sum()
        mean = float(share @ speed[here])
        for number, part in zip(here.tolist(), share.tolist(), strict=True):
            # against a mean that it is a part of itself
            error = math.sqrt(max(variance[number] * (1.0 - part), 0.0))
            yield Pair(
                rows.queues[own[number]],
                rows.models[at],
                float(speed[number]) - mean,
                error,
                len(here),
                int(jobs[number]),
                int(n_tasks[number]),
            )
