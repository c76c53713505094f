"""Effects of SMT on queues: from records, from reference tables, and where neither tells from their size.

With two threads per core a job slot is a thread: slower than a core alone. A queue in another state than
others with the same CPU models is slower or faster by that; a queue that declares the value of the other
state deviates by that. How much it is comes from reference tables, else from queues whose records tell both
states, else from a range that most machines keep to.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import fitters
from esjobs.flags.decomposition.machines import Machines
from esjobs.flags.decomposition.smt_states import MOSTLY, SmtStates
from esjobs.records.references.values import Range, ReferenceScore

# Share of the CPU time of a queue that must be on models whose state and scores are known
LEAST_COVERED = 0.5
NEAR = 0.08  # How near, in ln, a declared value must be to what the tables give for the other state
LIKELY = 0.8  # Probability from which an effect of that size is called that of SMT


@dataclass(frozen=True)
class SmtEffect:
    """Effect in ln with its error; ``probability``: that it is SMT, where no record tells, else None."""

    effect: float
    error: float
    on: float  # Share of the CPU time of the queue with SMT on
    probability: float | None = None


def against_others(
    queue: str, machines: Machines, states: SmtStates, gains: Mapping[str, Range]
) -> SmtEffect | None:
    """Return the effect on a queue of its own state of SMT relative to the same CPU models elsewhere.

    ``gains``: by CPU model. None if the states of too few jobs are recorded.
    """
    weights = machines.gradient(machines.mix[queue])
    effect = spread = covered = on = 0.0
    for model, weight in weights.items():
        here, elsewhere = states.here(queue, model), states.elsewhere(queue, model)
        if here is None or elsewhere is None:
            continue
        low, high = (_ratio(value, here, elsewhere) for value in gains[model])
        effect += weight * (low + high) / 2
        spread += weight * abs(high - low) / 2
        covered += weight
        on += weight * here
    if covered < LEAST_COVERED:
        return None
    # the range of the tables as a uniform distribution: models of one table err alike
    return SmtEffect(effect, spread / math.sqrt(3.0), on / covered)


def _ratio(gain: float, here: float, elsewhere: float) -> float:
    return math.log((1.0 + (gain - 1.0) * here) / (1.0 + (gain - 1.0) * elsewhere))


def in_declaration(
    queue: str, corepower: float, machines: Machines, states: SmtStates, scores: Mapping[str, ReferenceScore]
) -> SmtEffect | None:
    """Return the deviation of a declared value that is that of the other state of SMT; None if it is not.

    It must be near the tables' value for the mix in that state, and nearer than to its own state.
    """
    covered, values, spread, on = _tabled(queue, machines, states, scores)
    if covered < LEAST_COVERED or 0.1 < on / covered < 0.9:
        return None
    state = on / covered > 0.5
    own, other = values[state] / covered, values[not state] / covered
    if abs(math.log(corepower / other)) > min(NEAR, abs(math.log(corepower / own))):
        return None
    return SmtEffect(math.log(own / other), spread / covered / math.sqrt(3.0), on / covered)


def _tabled(
    queue: str, machines: Machines, states: SmtStates, scores: Mapping[str, ReferenceScore]
) -> tuple[float, dict[bool, float], float, float]:
    # Share of the mix that tables and records cover, its scores by state, their spread, and the share on.
    values = {True: 0.0, False: 0.0}
    spread = covered = on = 0.0
    for model, share in machines.mix[queue].items():
        by_smt = scores[model].by_smt if model in scores else {}
        here = states.here(queue, model)
        if here is None or True not in by_smt or False not in by_smt:
            continue
        for state in values:
            low, high = by_smt[state]
            values[state] += share * (low + high) / 2
            spread += share * (high - low) / 2 / (low + high)
        covered += share
        on += share * here
    return covered, values, spread, on


@dataclass(frozen=True)
class Unrecorded:
    """Facts from which SMT may be guessed where no record tells.

    ``scatter``: of queues beside their CPU models, in ln. ``low``, ``high``: of ln of a core over a thread.
    ``on``: recorded share of the queue with SMT on, None if not recorded. ``here``: the state of this queue,
    or of others on its models, is not recorded; ``declared``: tables do not tell the values of both states.
    """

    scatter: float
    low: float
    high: float
    on: float | None
    here: bool
    declared: bool

    def beside_others(self, effect: float, error: float) -> SmtEffect | None:
        """Return what SMT explains of the effect of a queue beside its CPU models."""
        return self._likely(effect, error, self.scatter) if self.here else None

    def in_declaration(self, effect: float, error: float, scatter: float) -> SmtEffect | None:
        """Return what the other state explains of the distance of a declared value from what is delivered.

        Below 0 it declares more than a thread delivers: jobs with SMT on, benchmark with it off.
        """
        if not self.declared or (self.on is not None and abs(self.on - (effect < 0)) > 1.0 - MOSTLY):
            return None
        return self._likely(effect, error, scatter)

    def _likely(self, effect: float, error: float, scatter: float) -> SmtEffect | None:
        probability = fitters.other_state_probability(effect, error, scatter, self.low, self.high)
        if probability < LIKELY:
            return None
        middle, width = (self.low + self.high) / 2, (self.high - self.low) / 2 / math.sqrt(3.0)
        size = min(max(abs(effect), self.low), self.high)
        return SmtEffect(math.copysign(size, effect), min(width, middle), float(effect < 0), probability)


def unrecorded(
    queue: str,
    machines: Machines,
    states: SmtStates,
    scores: Mapping[str, ReferenceScore],
    gains: Mapping[str, Range],
    scatter: float,
) -> Unrecorded | None:
    """Return from what SMT may be guessed at a queue; None where its CPU models seem to have none."""
    weights = machines.gradient(machines.mix[queue])
    capable = {model: part for model, part in weights.items() if not states.never_on(model)}
    total = sum(capable.values())
    if total < LEAST_COVERED:
        return None
    bounds = [sum(part * math.log(gains[model][end]) for model, part in capable.items()) for end in (1, 0)]
    low, high = (-each / total for each in bounds)
    recorded = [(part, states.here(queue, model)) for model, part in capable.items()]
    covered = sum(part for part, share in recorded if share is not None)
    on = sum(part * share for part, share in recorded if share is not None)
    return Unrecorded(
        scatter=scatter,
        low=low,
        high=max(high, low + 0.01),
        on=on / covered if covered > LEAST_COVERED * total else None,
        here=against_others(queue, machines, states, gains) is None,
        declared=_tabled(queue, machines, states, scores)[0] < LEAST_COVERED,
    )
