"""States of SMT that records tell, and the speed of a CPU model in each of them."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import fitters
from esjobs.core.query import Sum
from esjobs.core.window import Window
from esjobs.core.words import ALL_TYPES
from esjobs.flags.decomposition.machines import Machines
from esjobs.records.jobs.resolution import aggregate
from esjobs.records.names.cpu_models import resolve
from esjobs.records.references.values import Range, ReferenceScore
from esjobs.store.base import JobStore

LEAST_RECORDED = 0.2  # Share of the CPU time of a queue on a model that must tell the state of SMT
USUAL_GAIN: Range = (1.15 / 2, 1.35 / 2)
"""Speed of a thread with SMT on over that of a core with it off: HEPiX servers, HS06 and HS23."""
MOSTLY = 0.9  # Share of the recorded CPU time in one state that makes it the state of a queue on a model
_LARGEST_ERROR = 0.1  # Of ln of a measured gain that is used


@dataclass(frozen=True)
class SmtStates:
    """Recorded states.

    ``seconds``: by queue and model, CPU seconds with SMT on, those that tell the state, and all.
    """

    seconds: Mapping[str, Mapping[str, tuple[float, float, float]]]

    def here(self, queue: str, model: str) -> float | None:
        """Return the share of a queue on a model; None if too few jobs record the state."""
        on, recorded, total = self.seconds.get(queue, {}).get(model, (0.0, 0.0, 0.0))
        return on / recorded if recorded > LEAST_RECORDED * total else None

    def elsewhere(self, queue: str, model: str) -> float | None:
        """Return the share of all other queues on a model."""
        others = [models[model] for name, models in self.seconds.items() if name != queue and model in models]
        recorded = sum(part[1] for part in others)
        return sum(part[0] for part in others) / recorded if recorded > 0 else None

    def state(self, queue: str, model: str) -> bool | None:
        """Return the state of a queue on a model; None if it is not recorded, or mixed."""
        on = self.here(queue, model)
        return None if on is None or 1.0 - MOSTLY < on < MOSTLY else on > 0.5

    def never_on(self, model: str) -> bool:
        """True if records tell the state of a model, and it never is on: it may not have SMT."""
        parts = [models[model] for models in self.seconds.values() if model in models]
        return sum(part[1] for part in parts) > 0 and not sum(part[0] for part in parts)


def read_states(store: JobStore, window: Window) -> SmtStates:
    """Read the recorded states; one query to the jobs of the window."""
    answer = aggregate(store, ("queue", "cpu_raw", "smt"), (Sum("cpu_s", "cpu_s"),), window=window)
    seconds: dict[str, dict[str, tuple[float, float, float]]] = defaultdict(dict)
    for row in answer.table.to_pylist():
        model = resolve(row["cpu_raw"])
        if model is None or not row["cpu_s"]:
            continue
        on, recorded, total = seconds[row["queue"]].get(model.name, (0.0, 0.0, 0.0))
        smt = model.smt if row["smt"] is None else row["smt"]
        if smt is not None:
            on, recorded = on + row["cpu_s"] * smt, recorded + row["cpu_s"]
        seconds[row["queue"]][model.name] = (on, recorded, total + row["cpu_s"])
    return SmtStates(seconds)


@dataclass(frozen=True)
class Gain:
    """Speed of a CPU model with SMT on over that with it off, per slot, as its queues tell; ln and its error.

    ``queues``: by state, queues that run it in that state, with their jobs.
    """

    model: str
    gain: float
    error: float
    queues: Mapping[bool, Mapping[str, int]]

    @property
    def usable(self) -> Range | None:
        """Range of one error; None where the gain is not known well enough."""
        if self.error > _LARGEST_ERROR or abs(self.gain) < 2.0 * self.error:
            return None
        return math.exp(self.gain - self.error), math.exp(self.gain + self.error)


def measured_gains(machines: Machines, states: SmtStates, scatter: float) -> list[Gain]:
    """Return the gains of CPU models that queues run in both states.

    Models are split by the state of each queue and all effects are fitted together, queues as random with
    ``scatter`` beside their models.
    """
    buckets = machines.buckets
    sums, linked = buckets.sums, machines.effects.weight > 0
    pairs = np.unique(np.stack([sums.queue[linked], sums.model[linked]]), axis=1).T.tolist()
    state_of = {(q, m): states.state(sums.queues[q], sums.models[m]) for q, m in pairs}
    both = {m for _, m in pairs if {state_of[q, n] for q, n in pairs if n == m} >= {True, False}}
    if not both:
        return []
    n_models = len(sums.models)
    split = np.zeros((len(sums.queues), n_models), np.int32)
    for (queue, model), state in state_of.items():
        split[queue, model] = 0 if model not in both or state is None else 1 + state
    of_class = sums.model + n_models * split[sums.queue, sums.model]
    mixed = fitters.fit_mixed(
        sums.unit[linked],
        sums.queue[linked],
        of_class[linked].astype(np.int32),
        buckets.value[linked],
        buckets.variance[linked],
        machines.effects.interaction,
        scatter,
        len(sums.queues),
        3 * n_models,
    )
    jobs = np.zeros(split.shape)
    np.add.at(jobs, (sums.queue[linked], sums.model[linked]), sums.sums["n_jobs"][linked])
    gains = []
    for model in sorted(both):
        weights = np.zeros(3 * n_models)
        weights[[model + n_models, model + 2 * n_models]] = -1.0, 1.0
        gain, error = mixed.contrast(np.zeros(len(sums.queues)), weights)
        queues: dict[bool, dict[str, int]] = {True: {}, False: {}}
        for (queue, of), state in state_of.items():
            if of == model and state is not None:
                queues[state][sums.queues[queue]] = int(jobs[queue, model])
        gains.append(Gain(sums.models[model], gain, error, queues))
    return gains


def speed_rows(
    machines: Machines,
    states: SmtStates,
    gains: list[Gain],
    scores: Mapping[str, ReferenceScore],
    factors: Mapping[str, float],
) -> Iterator[dict[str, Any]]:
    """Yield a row per CPU model and state, where records tell both states, or one and tables the other.

    ``factors``: k of the CPU models. The factor of a model is that of its jobs, whatever their state: with
    the share p of CPU time on it is k = k_off (1 + p (gain - 1)).
    """
    measured = {gain.model: gain for gain in gains}
    for model in machines.models:
        own = measured.get(model)
        tabled = scores[model].smt_gain if model in scores else None
        parts = [of_queue[model] for of_queue in states.seconds.values() if model in of_queue]
        recorded = sum(part[1] for part in parts)
        gain = math.exp(own.gain) if own is not None else None if tabled is None else sum(tabled) / 2
        if gain is None or not recorded or model not in factors:
            continue
        off = factors[model] / (1.0 + sum(part[0] for part in parts) / recorded * (gain - 1.0))
        for state in (True, False):
            queues = {} if own is None else own.queues[state]
            yield {
                "level": "cpu_model",
                "processing_type": ALL_TYPES,
                "name": model,
                "smt": state,
                "k": off * gain if state else off,
                "gain": gain,
                "gain_err": math.exp(own.gain) * own.error if own is not None else None,
                "table_gain_low": None if tabled is None else tabled[0],
                "table_gain_high": None if tabled is None else tabled[1],
                "source": "records" if own is not None else "reference tables",
                "n_queues": len(queues),
                "n_jobs": sum(queues.values()),
            }


def gain_ranges(
    machines: Machines, scores: Mapping[str, ReferenceScore], gains: list[Gain]
) -> dict[str, Range]:
    """Return the range of the gain of each CPU model: of tables, else as measured, else the usual one."""
    measured = {gain.model: gain.usable for gain in gains}
    ranges = {}
    for model in machines.models:
        tabled = scores[model].smt_gain if model in scores else None
        ranges[model] = tabled or measured.get(model) or USUAL_GAIN
    return ranges
