"""Effects of CPU models and of queues from the same buckets, and the CPU mix.

Factors of CPU models alone would not do: a model at a single queue would have the queue's own effect. Both
effects are fitted together.

Factors of CPU models alone would not do: a model that a single queue has would be as slow as that queue is,
and the queue would deviate by nothing of its own. Both effects are fitted together instead.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import fitters
from esjobs.core.query import Days, Present, Query, Sum
from esjobs.core.window import Window
from esjobs.records.tasks.solved import KnownOfTasks, job_variance
from esjobs.records.tasks.sums import SUMS
from esjobs.schema.jobs import BUCKETS
from esjobs.store.base import JobStore
from fitters.layout.arrays import Codes, Floats, Mask

LEAST_SHARE = 0.05  # Of the CPU time of a queue that a CPU model needs to be one that it runs
LEAST_KNOWN = 0.5  # Of the CPU time of a queue that must name CPU models, so that these speak for it
_KEYS = ("task_id", "core_class", "processing_type", "queue", "cpu_model")


@dataclass(frozen=True)
class Machines:
    """Effects of queues and CPU models, and the CPU time of every pair. ``mix``: by queue, shares of CPU time
    by model; empty if too few jobs name one. ``pairs``: the fitted queues and CPU models.
    """

    queues: Mapping[str, int]
    models: Mapping[str, int]
    effects: fitters.Effects
    mix: Mapping[str, Mapping[str, float]]
    pairs: tuple["Pair", ...] = ()

    def own(self, queue: str) -> tuple[float, float] | None:
        """Return the effect of a queue without its CPU models, with its error; None if they cannot be
        separated.
        """
        number = self.queues.get(queue)
        if number is None or queue not in self.mix or not np.isfinite(self.effects.unit[number]):
            return None
        weights = self._units(number)
        error = math.sqrt(self.effects.variance(weights, np.zeros(len(self.models))))
        return float(self.effects.unit[number]), error

    def of_mix(self, mix: Mapping[str, float]) -> float:
        """Return ln of the speed of a mix (shares of CPU time by model), up to a common constant. CPU time
        adds up: the mean of speeds counts.
        """
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

    def _units(self, number: int) -> Floats:
        solved = np.isfinite(self.effects.unit)
        weights = np.where(solved, -1.0 / solved.sum(), 0.0)
        weights[number] += 1.0
        return weights


@dataclass(frozen=True)
class Pair:
    """A CPU model at a queue: ``relative`` is ln of its speed there over its mean over ``n_queues`` queues,
    ``error`` the standard error.
    """

    queue: str
    model: str
    relative: float
    error: float
    n_queues: int
    n_jobs: int
    n_tasks: int


@dataclass(frozen=True)
class _Coded:
    names: list[str]
    codes: Codes


def read_machines(store: JobStore, window: Window, solved: KnownOfTasks) -> Machines | None:
    """Fit the effects from the buckets of a window; None without a CPU model. One query."""
    metrics = tuple(Sum(name, name) for name in SUMS)
    where = (Days.of_window(window), Present("cpu_model"))
    rows = store.aggregate(Query(_KEYS, metrics, where=where, over=BUCKETS)).table
    if not rows.num_rows:
        return None
    listed = [rows.column(name).to_pylist() for name in _KEYS]
    # engines give groups in any order, some with dictionary-encoded texts, which Arrow does not sort
    rows = rows.take(sorted(range(rows.num_rows), key=lambda at: [column[at] or "" for column in listed]))
    keys = [rows.column(name).to_pylist() for name in _KEYS]
    sums = {name: np.asarray(rows.column(name).to_numpy(), np.float64) for name in SUMS}
    tasks = list(zip(*keys[:3], strict=True))
    usable = (
        np.array([task not in solved.aside for task in tasks]) & (sums["cpu_s"] > 0) & (sums["events"] > 0)
    )
    if not usable.any():
        return None
    rho = np.array([solved.rho.get(task, 0.0) for task in tasks])[usable]
    sums = {name: values[usable] for name, values in sums.items()}
    task, kind = _codes(tasks, usable), _codes([key[1:] for key in tasks], usable)
    queue, model = (_codes(column, usable) for column in keys[3:])
    n_jobs = sums["n_jobs"]
    effective = sums["events"] + rho * n_jobs
    scatter = fitters.job_scatter(task.codes, kind.codes, n_jobs, job_variance(sums, effective))
    value = np.log(sums["cpu_s"] / effective)
    variance = np.nan_to_num(scatter.per_job, nan=1.0) / n_jobs
    effects = fitters.fit_effects(
        task.codes, queue.codes, model.codes, value, variance, len(queue.names), len(model.names)
    )
    return Machines(
        {name: number for number, name in enumerate(queue.names)},
        {name: number for number, name in enumerate(model.names)},
        effects,
        _mixes(keys[3], keys[4], np.asarray(rows.column("cpu_s").to_numpy(), np.float64)),
        tuple(_pairs(effects, task, _codes(keys[0], usable).codes, queue, model, n_jobs)),
    )


def _pairs(
    effects: fitters.Effects, unit: _Coded, task: Codes, queue: _Coded, model: _Coded, n_jobs: Floats
) -> Iterator[Pair]:
    """Yield each queue and CPU model, relative to the mean of the model over its queues.

    The speed of a pair is that of its queue and model, minus the mean residual of its buckets. Its error
    comes from the scatter of its units (task x core class x type), but not below their variances.
    """
    kept = effects.weight > 0
    codes = queue.codes[kept].astype(np.int64) * len(model.names) + model.codes[kept]
    pair, index = np.unique(codes, return_inverse=True)
    weight, off = effects.weight[kept], effects.residual[kept]
    total = np.bincount(index, weight)
    beyond = np.bincount(index, weight * off) / total
    # buckets of a unit at a queue are one draw
    cluster, within = np.unique(np.stack([index, unit.codes[kept]]), axis=1, return_inverse=True)
    scores = np.bincount(np.ravel(within), weight * (off - beyond[index]))
    n_units = np.bincount(cluster[0], minlength=len(pair))
    n_tasks = np.bincount(np.unique(np.stack([index, task[kept]]), axis=1)[0], minlength=len(pair))
    scatter = np.bincount(cluster[0], scores**2, len(pair)) / total**2
    scatter *= n_units / np.maximum(n_units - 1, 1)
    variance = np.maximum(1.0 / total, scatter)
    own, of_class = pair // len(model.names), pair % len(model.names)
    speed = effects.unit[own] - beyond
    jobs = np.bincount(index, n_jobs[kept])
    for at in range(len(model.names)):
        here = np.flatnonzero((of_class == at) & np.isfinite(speed))
        if len(here) < 2:
            continue
        share = (1.0 / variance[here]) / (1.0 / variance[here]).sum()
        mean = float(share @ speed[here])
        for number, part in zip(here.tolist(), share.tolist(), strict=True):
            # against a mean that it is a part of itself
            error = math.sqrt(max(variance[number] * (1.0 - part), 0.0))
            yield Pair(
                queue.names[own[number]],
                model.names[at],
                float(speed[number]) - mean,
                error,
                len(here),
                int(jobs[number]),
                int(n_tasks[number]),
            )


def _codes(values: Sequence[object], chosen: Mask) -> _Coded:
    inside = [value for value, yes in zip(values, chosen.tolist(), strict=True) if yes]
    names = sorted(set(inside), key=repr)
    number = {name: index for index, name in enumerate(names)}
    return _Coded(
        [str(name) for name in names], np.fromiter((number[value] for value in inside), np.int32, len(inside))
    )


def _mixes(queues: list[str], models: list[str], cpu_s: Floats) -> dict[str, dict[str, float]]:
    mixes: dict[str, dict[str, float]] = {}
    for queue, model, seconds in zip(queues, models, cpu_s.tolist(), strict=True):
        mix = mixes.setdefault(queue, {})
        mix[model] = mix.get(model, 0.0) + seconds
    return {
        queue: {model: seconds / total for model, seconds in mix.items()}
        for queue, mix in mixes.items()
        for total in [sum(mix.values())]
        if total > 0
    }
