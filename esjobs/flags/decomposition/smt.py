"""Effects of SMT on queues, from the state in the records and the cost per job in reference tables.

With two threads per core a job slot is a thread: slower than a core alone, by the ratio in the tables for
each CPU model. A queue in another state than others with the same models is faster or slower by that; a queue
that declares the tables' value for the other state deviates by that. Where no record tells the state,
declared value and speed may: a queue that declares the value without SMT and is as fast as one with it.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from esjobs.core.query import Sum
from esjobs.core.window import Window
from esjobs.flags.decomposition.machines import Machines
from esjobs.records.declared.of_models import smt_of
from esjobs.records.jobs.resolution import aggregate
from esjobs.records.names.cpu_models import resolve
from esjobs.records.references.values import ReferenceScore
from esjobs.store.base import JobStore

# Share of the CPU time of a queue that must be on models whose state and scores are known
LEAST_COVERED = 0.5
NEAR = 0.08  # How near, in ln, a declared value must be to what the tables give for the other state
LIKELY = 0.8  # Probability from which a state that no record tells counts
# Prior of an inferred state: half of the deviations have another cause. Then they scatter by 0.4 in ln, and
# the declared value is one of the tables' or, half as often, any within 0.5.
_OTHER_CAUSE, _ANY_DEVIATION, _ANY_VALUE = 0.5, 0.4, 0.5


@dataclass(frozen=True)
class SmtStates:
    """Use of simultaneous multithreading (SMT) by queue and CPU model, from records that state it.

    ``seconds``: CPU seconds with SMT on, and those of records that state it.
    """

    seconds: Mapping[str, Mapping[str, tuple[float, float]]]

    def here(self, queue: str, model: str) -> float | None:
        """Return the share of a queue on a model; None if too few jobs record the state."""
        on, recorded = self.seconds.get(queue, {}).get(model, (0.0, 0.0))
        return on / recorded if recorded > 0 else None

    def elsewhere(self, queue: str, model: str) -> float | None:
        """Return the share of all other queues on a model."""
        others = [models[model] for name, models in self.seconds.items() if name != queue and model in models]
        recorded = sum(part[1] for part in others)
        return sum(part[0] for part in others) / recorded if recorded > 0 else None


@dataclass(frozen=True)
class SmtEffect:
    """Effect in ln with its error."""

    effect: float
    error: float
    on: float  # Share of the CPU time of the queue with SMT on
    probability: float | None = None  # Of a state that no record tells; None: recorded


def read_states(store: JobStore, window: Window) -> SmtStates:
    """Read the recorded states; one query to the jobs of the window."""
    answer = aggregate(
        store, ("queue", "cpu_raw", "smt"), (Sum("cpu_s", "cpu_s"),), window=window, books=False
    )
    seconds: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in answer.table.to_pylist():
        model = resolve(row["cpu_raw"])
        if model is None or not row["cpu_s"]:
            continue
        on, recorded = seconds[row["queue"]].get(model.name, (0.0, 0.0))
        smt = smt_of(row, model)
        if smt is not None:
            on, recorded = on + row["cpu_s"] * smt, recorded + row["cpu_s"]
        seconds[row["queue"]][model.name] = (on, recorded)
    return SmtStates(seconds)


def against_others(
    queue: str, machines: Machines, states: SmtStates, scores: Mapping[str, ReferenceScore]
) -> SmtEffect | None:
    """Return the effect on a queue of its own state of SMT relative to the same CPU models elsewhere.

    ``scores``: by CPU model. None if states or tables cover too little.
    """
    weights = machines.gradient(machines.mix[queue])
    effect = spread = covered = on = 0.0
    for model, weight in weights.items():
        gain = scores[model].smt_gain if model in scores else None
        here, elsewhere = states.here(queue, model), states.elsewhere(queue, model)
        if gain is None or here is None or elsewhere is None:
            continue
        low, high = (_ratio(value, here, elsewhere) for value in gain)
        effect += weight * (low + high) / 2
        spread += weight * abs(high - low) / 2
        covered += weight
        on += weight * here
    if covered < LEAST_COVERED:
        return None
    # the range of the tables as a uniform distribution: models of one table share its error
    return SmtEffect(effect, spread / math.sqrt(3.0), on / covered)


def _ratio(gain: float, here: float, elsewhere: float) -> float:
    # speeds add up by CPU time, so that a share of it with SMT on takes the speed down in proportion
    return math.log((1.0 + (gain - 1.0) * here) / (1.0 + (gain - 1.0) * elsewhere))


def in_declaration(
    queue: str, corepower: float, machines: Machines, states: SmtStates, scores: Mapping[str, ReferenceScore]
) -> SmtEffect | None:
    """Return the deviation of a declared value that is that of the other state of SMT; None if it is not.

    It must be near the tables' value for the mix in that state, and nearer than to its own state.
    """
    mix = machines.mix[queue]
    values = {True: 0.0, False: 0.0}
    spread = covered = on = 0.0
    for model, by_smt in _of_both_states(mix, scores).items():
        share, here = mix[model], states.here(queue, model)
        if here is None:
            continue
        for state in values:
            low, high = by_smt[state]
            values[state] += share * (low + high) / 2
            spread += share * (high - low) / 2 / (low + high)
        covered += share
        on += share * here
    # a queue of both states has neither of the two values
    if covered < LEAST_COVERED or 0.1 < on / covered < 0.9:
        return None
    state = on / covered > 0.5
    own, other = values[state] / covered, values[not state] / covered
    if abs(math.log(corepower / other)) > min(NEAR, abs(math.log(corepower / own))):
        return None
    return SmtEffect(math.log(own / other), spread / covered / math.sqrt(3.0), on / covered)


def inferred(
    corepower: float,
    deviation: float,
    error: float,
    mix: Mapping[str, float],
    scores: Mapping[str, ReferenceScore],
) -> SmtEffect | None:
    """Return the effect of a state of SMT that no record tells, if declared value and speed show it.

    Bayes' theorem with three causes of a deviation (``deviation``, ``error`` in ln): SMT on and the value of
    SMT off declared, the reverse, anything else. ``mix``: shares of CPU time by model whose state is not
    recorded. None below a probability of 0.8, or if the tables cover less than half of all CPU time.
    """
    both = _of_both_states(mix, scores)
    covered = sum(mix[model] for model in both)
    if covered < LEAST_COVERED:
        return None
    values, widths = {}, []
    for state in (True, False):
        low, high = (
            sum(mix[model] * by_smt[state][end] for model, by_smt in both.items()) / covered for end in (0, 1)
        )
        values[state] = (low + high) / 2
        widths.append((high - low) / (high + low))
    spread = math.hypot(*widths) / math.sqrt(3.0)
    near = math.hypot(NEAR, spread)
    declares = {state: _normal(math.log(corepower / value), near) for state, value in values.items()}
    effects = {state: math.log(values[state] / values[not state]) for state in values}
    runs = {state: _normal(deviation - effect, math.hypot(error, near)) for state, effect in effects.items()}
    # the value that another cause declares: one of the tables', or anything near
    middle = math.sqrt(values[True] * values[False])
    any_value = (sum(declares.values()) + _normal(math.log(corepower / middle), _ANY_VALUE)) / 3
    weights = {state: (1 - _OTHER_CAUSE) / 2 * declares[not state] * runs[state] for state in values}
    total = sum(weights.values()) + _OTHER_CAUSE * any_value * _normal(deviation, _ANY_DEVIATION)
    state = max(weights, key=weights.__getitem__)
    if not total or weights[state] < LIKELY * total:
        return None
    return SmtEffect(effects[state], spread, float(state), weights[state] / total)


def _of_both_states(
    mix: Mapping[str, float], scores: Mapping[str, ReferenceScore]
) -> dict[str, Mapping[bool | None, tuple[float, float]]]:
    # Lowest and highest score by state of SMT, of the CPU models that the tables give both ways.
    return {
        model: scores[model].by_smt for model in mix if model in scores and scores[model].smt_gain is not None
    }


def _normal(distance: float, width: float) -> float:
    return math.exp(-0.5 * (distance / width) ** 2) / (width * math.sqrt(2 * math.pi))
