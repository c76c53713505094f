"""CPU models of queues, and the factor of their mix: rows of ``mixes``, columns of ``factors``."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

import fitters
from esjobs.core.words import ALL_TYPES
from esjobs.publish.publication import finite
from esjobs.records.names.sites import Sites
from esjobs.speed.factors import Factors, Fit

# Sums of jobs, CPU time and core time by queue and CPU model (None where the records name none)
Mix = Mapping[tuple[str, str | None], Mapping[str, float]]
LEAST_QUEUES = 5  # Queues that tell how far they run from their CPU models
_MOST_TAKEN_UP = 3.0  # Where models are as many as queues, what they take up is not known any better
LEAST_SHARE = 0.5  # Of the CPU time of a queue; on fewer models with a factor its mix predicts nothing


@dataclass(frozen=True)
class Predicted:
    """Predicted factor of a mix, its standard error, and the share of CPU time it rests on."""

    k: float | None
    k_err: float | None
    share: float


def mix_rows(mix: Mix, fits: Sequence[Factors], sites: Sites) -> Iterator[dict[str, object]]:
    """Yield a row per queue and CPU model; factors of models are on the scale of queues.

    A queue outside the largest component has another scale: its models have no factor.
    """
    factors, queues, scale = comparable(fits, "cpu_model"), comparable(fits, "queue"), _scale(mix, fits)
    totals = _totals(mix, "core_s")
    for (name, model), sums in mix.items():
        k, k_err = factors.get(model or "", (None, None)) if scale and name in queues else (None, None)
        yield {
            "queue": name,
            "site": sites.of(name).name,
            "cpu_model": model,
            "n_jobs": int(sums["n_jobs"]),
            "core_s": sums["core_s"],
            "share": sums["core_s"] / totals[name] if totals[name] > 0 else None,
            "k": None if k is None or scale is None else k * scale,
            "k_err": None if k_err is None or scale is None else k_err * scale,
        }


def predicted(mix: Mix, fits: Sequence[Factors]) -> dict[str, Predicted]:
    """Return the factor that its CPU models predict, by queue.

    Events per CPU time add up by CPU time: the factor of a mix is the mean over its models, weighted with CPU
    time. The two levels have different scales: the median queue of the largest component runs as predicted.
    Queues outside that component have no prediction.
    """
    queues, scale = comparable(fits, "queue"), _scale(mix, fits)
    return {
        name: _scaled(each, scale if name in queues else None) for name, each in _unscaled(mix, fits).items()
    }


def _scale(mix: Mix, fits: Sequence[Factors]) -> float | None:
    queues = comparable(fits, "queue")
    ratios = [
        queues[name][0] / each.k for name, each in _unscaled(mix, fits).items() if each.k and name in queues
    ]
    return median(ratios) if ratios else None


def _unscaled(mix: Mix, fits: Sequence[Factors]) -> dict[str, Predicted]:
    models, totals = comparable(fits, "cpu_model"), _totals(mix, "cpu_s")
    parts: dict[str, list[tuple[float, float, float]]] = {name: [] for name in totals}
    for (name, model), sums in mix.items():
        if (model or "") in models and sums["cpu_s"] > 0:
            parts[name].append((sums["cpu_s"], *models[model or ""]))
    return {name: _mean(of_queue, totals[name]) for name, of_queue in parts.items()}


def _mean(parts: Sequence[tuple[float, float, float]], total: float) -> Predicted:
    weight = math.fsum(cpu_s for cpu_s, _, _ in parts)
    share = weight / total if total > 0 else 0.0
    if share < LEAST_SHARE:
        return Predicted(None, None, share)
    k = math.fsum(cpu_s * k for cpu_s, k, _ in parts) / weight
    k_err = math.sqrt(math.fsum((cpu_s * k_err) ** 2 for cpu_s, _, k_err in parts)) / weight
    return Predicted(k, k_err, share)


def with_queue_scatter(item: Fit, of_all: Fit, mix: Mix, fits: Sequence[Factors]) -> Fit:
    """Add to the errors of CPU models what queues do to all of their CPU models.

    Queues run faster or slower than their CPU models by s. With the share w_q of the CPU time of a model in
    queue q, and W_q of that of all models, the variance of its ln k grows by s^2 sum (w_q - W_q)^2.
    ``of_all``: the fit of all types. Nothing is added where too few queues tell s.
    """
    s = _scatter_beside_models(mix, [*fits, of_all.factors])
    if not s:
        return item
    queues, factors = comparable(fits, "queue"), item.factors
    model_of = {str(name): number for number, name in enumerate(factors.name)}
    queue_of = {name: number for number, name in enumerate(queues)}
    cpu_s = np.zeros((len(factors.name), len(queue_of)))
    for (queue, model), sums in mix.items():
        if queue in queue_of and (model or "") in model_of:
            cpu_s[model_of[model or ""], queue_of[queue]] += sums["cpu_s"]
    of_model = cpu_s.sum(axis=1, keepdims=True)
    shares = np.divide(cpu_s, of_model, out=np.zeros_like(cpu_s), where=of_model > 0)
    shift = s * np.sqrt(((shares - cpu_s.sum(axis=0) / max(cpu_s.sum(), 1e-300)) ** 2).sum(axis=1))
    of_queues = factors.k * np.where(of_model[:, 0] > 0, shift, 0.0)
    k_err, k_err_int = (np.hypot(error, of_queues) for error in (factors.k_err, factors.k_err_int))
    return replace(item, factors=replace(factors, k_err=k_err, k_err_int=k_err_int, k_err_queues=of_queues))


def _scatter_beside_models(mix: Mix, fits: Sequence[Factors]) -> float | None:
    """Return the scatter of ln k of queues beside their CPU models, robust; None with too few queues."""
    queues, models = comparable(fits, "queue"), comparable(fits, "cpu_model")
    predictions = {name: each for name, each in _unscaled(mix, fits).items() if each.k and name in queues}
    n, dof = len(predictions), len(predictions) - len(models)
    if n < LEAST_QUEUES:
        return None
    beside = np.array([math.log(queues[name][0] / (each.k or 1.0)) for name, each in predictions.items()])
    of_fit = np.array([(queues[name][1] / queues[name][0]) ** 2 for name in predictions])
    square = (fitters.MAD_FACTOR * float(np.median(np.abs(beside - np.median(beside))))) ** 2
    # models take up a part of what queues do, and errors of fits are no scatter
    return math.sqrt(max(square * n / max(dof, n / _MOST_TAKEN_UP) - float(np.median(of_fit)), 0.0))


def _scaled(each: Predicted, scale: float | None) -> Predicted:
    if each.k is None or each.k_err is None or scale is None:
        return Predicted(None, None, each.share)
    return Predicted(each.k * scale, each.k_err * scale, each.share)


def comparable(fits: Sequence[Factors], level: str) -> dict[str, tuple[float, float]]:
    """Return factors with errors (0 if none) of the largest component of a level, all types, by name.

    A factor without an error counts as one without an error.
    """
    for item in fits:
        if item.level == level and item.processing_type == ALL_TYPES:
            numbers = zip(item.name, item.k, item.k_err, item.main, strict=True)
            return {
                str(name): (float(k), finite(k_err) or 0.0)
                for name, k, k_err, main in numbers
                if main and finite(k) is not None
            }
    return {}


def _totals(mix: Mix, column: str) -> dict[str, float]:
    totals: dict[str, float] = {}
    for (name, _), sums in mix.items():
        totals[name] = totals.get(name, 0.0) + sums[column]
    return totals
