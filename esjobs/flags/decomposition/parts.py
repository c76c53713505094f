"""Decomposition of one deviation into parts that add up exactly; no I/O.

With D = ln(1 + deviation) and u the effect of the queue without its CPU models, M = D - u is the effect of
its mix of CPU models and of the declaration. The part of u explained by another state of SMT is separated;
the rest is unexplained. M is explained in this order: a declared value of the other state of SMT, a default,
hardware that changed since. What remains is that of the declared value if no CPU model of the queue is near
it, else of the mix.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from esjobs.core.numbers import declared, number, percent, signed_percent, speed
from esjobs.flags.decomposition.smt import SmtEffect
from esjobs.schema.decomposition import PARTS

SURE = 2.0  # Errors from which hardware that changed, or a value that no CPU model reaches, counts
NEARLY_ALL = 0.9  # Share of a deviation from which its largest part is nearly all of it
_CAUSES = {"cpu mix": "CPU mix", "smt": "SMT", "declared default": "default value", "rest": "unexplained"}
WHOLE_RATIO = 0.05  # Distance from a whole ratio that events counted several times explain
SCATTER = 0.05  # Distance, in ln, that honest declarations of one CPU model have anyway


@dataclass(frozen=True)
class Facts:
    """Facts about one queue.

    ``deviation``: k over the line, minus 1; ``error``: of its logarithm; ``line_error``: its part from the
    line. ``own``: effect of the queue without its CPU models with its error, None if not separable.
    ``models``: its CPU models, largest share first, with ln of speed over that of the mix. ``then``: effect
    and error of today's hardware over that of the day of its declaration, None if unknown.
    """

    name: str
    deviation: float
    error: float
    line_error: float
    corepower: float
    benchmark: str
    origin: str
    own: tuple[float, float] | None = None
    mix_error: float = 0.0
    models: Sequence[tuple[str, float]] = ()
    share: float = 0.0  # Of the CPU time at the first of ``models``
    here: SmtEffect | None = None  # Its state of SMT against that of others
    declared_other: SmtEffect | None = None  # Its declared value as that of the other state of SMT
    inferred: SmtEffect | None = None  # Both, of a state that no record tells
    then: tuple[float, float] | None = None
    declared_on: date | None = None
    why_unknown: str = ""  # Why mix and queue cannot be told apart


@dataclass(frozen=True)
class Part:
    """One part: effect in ln, its error (None: unknown), and its sentence."""

    part: str
    effect: float
    error: float | None
    sentence: str


@dataclass
class _Parts:
    effects: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    variances: dict[str, float] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)

    def add(self, part: str, effect: float, error: float, sentence: str) -> None:
        self.effects[part] += effect
        self.variances[part] = self.variances.get(part, 0.0) + error**2
        self.said.setdefault(part, []).append(sentence)


def take_apart(facts: Facts) -> list[Part]:
    """Return the parts in order, also those without effect; the effects add up to ln(1 + deviation)."""
    total = math.log1p(facts.deviation)
    parts = _Parts()
    if facts.own is None:
        part = "declared default" if facts.origin == "default" else "rest"
        said = _default(facts, None) if part == "declared default" else facts.why_unknown
        parts.add(part, total, facts.error, said)
        return _listed(parts)
    # the order decides who explains first: what records tell comes before what is inferred
    own, own_error = facts.own
    mix, mix_error = total - own, math.hypot(facts.mix_error, facts.line_error)
    predicted = facts.corepower * math.exp(mix)
    if facts.here is not None:
        effect = facts.here
        own -= effect.effect
        own_error = math.hypot(own_error, effect.error)
        if effect.effect:
            parts.add("smt", effect.effect, effect.error, _smt_here(effect))
    if facts.inferred is not None:
        effect, said = facts.inferred, _smt_inferred(facts, facts.inferred)
        parts.add("smt", effect.effect, effect.error, said)
        # Where others with its CPU models are in the same state, it is the declared value that differs.
        if abs(own - effect.effect) - abs(own) <= abs(mix - effect.effect) - abs(mix):
            own, own_error = own - effect.effect, math.hypot(own_error, effect.error)
        else:
            mix, mix_error = mix - effect.effect, math.hypot(mix_error, effect.error)
    parts.add("rest", own, own_error, _rest(own, own_error))
    if facts.declared_other is not None and _lessens(facts.declared_other.effect, mix):
        effect = facts.declared_other
        mix -= effect.effect
        mix_error = math.hypot(mix_error, effect.error)
        parts.add("smt", effect.effect, effect.error, _smt_declared(facts, effect))
    if facts.origin == "default":
        parts.add("declared default", mix, mix_error, _default(facts, predicted))
        return _listed(parts)
    effect_then, error_then = facts.then or (0.0, 0.0)
    if abs(effect_then) > SURE * error_then and _lessens(effect_then, mix):
        mix -= effect_then
        parts.add("declared older than hardware", effect_then, error_then, _older(facts, effect_then))
    # what is left of the mix: honest, if the value is one that some of its models would give
    model, distance, between = _nearest(facts, mix)
    near = abs(distance) <= max(SURE * mix_error, SCATTER)
    if near or between:
        where = f"of {model} alone" if near else "between its slowest and fastest models"
        like = f", a value {where}" if len(facts.models) > 1 else ""
        parts.add("cpu mix", mix, mix_error, _mix(facts, predicted) + like)
    else:
        parts.add("declared value", mix, mix_error, _unreached(facts, model, distance, predicted))
    return _listed(parts)


def _nearest(facts: Facts, mix: float) -> tuple[str, float, bool]:
    # The CPU model nearest to the declared value, ln of its speed over it, and whether the value lies between
    # the slowest and the fastest model.
    away = [(mix + ratio, model) for model, ratio in facts.models] or [(mix, "")]
    distance, model = min(away, key=lambda item: abs(item[0]))
    return model, distance, min(away)[0] <= 0.0 <= max(away)[0]


def largest(parts: Sequence[Part]) -> Part:
    """Return the part with the largest effect in the direction of their sum."""
    total = sum(part.effect for part in parts)
    return max(parts, key=lambda part: part.effect * math.copysign(1.0, total))


def in_one_sentence(facts: Facts, parts: Sequence[Part]) -> str:
    """Describe the deviation and its largest part."""
    if abs(math.log1p(facts.deviation)) < facts.error:
        return f"The deviation of {signed_percent(facts.deviation)} is within its error."
    first = largest(parts)
    share = first.effect / math.log1p(facts.deviation) if facts.deviation else 1.0
    how = "most" if share < NEARLY_ALL else "nearly all"
    cause = _CAUSES.get(first.part, first.part)
    sentence = f"{first.sentence[:1].upper()}{first.sentence[1:]}"
    return f"Cause: {cause} ({how} of {signed_percent(facts.deviation)}). {sentence}."


def _lessens(effect: float, mix: float) -> bool:
    """True if an effect reduces what is left to explain without reversing it."""
    return effect * mix > 0 and abs(mix - effect) < abs(mix)


def _listed(parts: _Parts) -> list[Part]:
    return [
        Part(
            name,
            parts.effects[name],
            math.sqrt(parts.variances[name]) if name in parts.variances else None,
            "; ".join(parts.said.get(name, [])),
        )
        for name in PARTS
    ]


def _mix(facts: Facts, predicted: float) -> str:
    most = f" ({facts.models[0][0]}: {percent(facts.share)})" if facts.models else ""
    return (
        f"its CPU mix{most} delivers {number(predicted)} {facts.benchmark} per core; the queue declares "
        f"{declared(facts.corepower)}"
    )


def _default(facts: Facts, predicted: float | None) -> str:
    measured = (
        "" if predicted is None else f"; its CPU mix delivers {number(predicted)} {facts.benchmark} per core"
    )
    return f"{declared(facts.corepower)} is the default of the system, not a measured value{measured}"


def _unreached(facts: Facts, model: str, effect: float, predicted: float) -> str:
    value = number(facts.corepower * math.exp(effect))
    declares = f"the queue declares {declared(facts.corepower)} {facts.benchmark} per core"
    if len(facts.models) == 1:
        return f"{declares}; its only CPU model, {model}, delivers {value}"
    nearest = f"no CPU model reaches the declared value (nearest: {model}, {value})"
    if effect > 0:
        nearest = f"even its slowest CPU model delivers more ({model}, {value})"
    return f"{declares}; its CPU mix delivers {number(predicted)}, and {nearest}"


def _older(facts: Facts, effect: float) -> str:
    since = "" if facts.declared_on is None else f" ({facts.declared_on})"
    return (
        f"its present CPU models are {speed(math.expm1(effect))} than those at the start of the "
        f"declaration{since}"
    )


def _smt_here(effect: SmtEffect) -> str:
    return (
        f"{percent(effect.on)} of its CPU time is with SMT on, unlike the same CPU models elsewhere; by "
        f"reference tables its job slots are {speed(math.expm1(effect.effect))}"
    )


def _smt_declared(facts: Facts, effect: SmtEffect) -> str:
    runs, declares = ("on", "off") if effect.on > 0.5 else ("off", "on")
    return (
        f"reference tables give the declared {declared(facts.corepower)} with SMT {declares}, but its jobs "
        f"run with SMT {runs}"
    )


def _smt_inferred(facts: Facts, effect: SmtEffect) -> str:
    runs, declares = ("on", "off") if effect.on > 0.5 else ("off", "on")
    return (
        f"reference tables give the declared {declared(facts.corepower)} with SMT {declares}, and its jobs "
        f"are as fast as with SMT {runs} ({percent(effect.probability or 0.0)} sure; no record tells the "
        "state)"
    )


def _rest(effect: float, error: float) -> str:
    if abs(effect) < error:
        return "its hosts run at normal speed for their CPU models"
    hint = (
        "check overcommit, SMT, virtual machines and power settings"
        if effect < 0
        else "check SMT, empty job slots, clock boost and the event counts of jobs"
    )
    ratio = math.exp(abs(effect))
    if round(ratio) > 1 and abs(ratio / round(ratio) - 1) < WHOLE_RATIO:
        hint += f"; events that are counted {round(ratio)} times, or not, give such a ratio ({ratio:.2f})"
    return f"its hosts run {speed(math.expm1(effect))} than the same CPU models elsewhere; {hint}"


def shares(parts: Sequence[Part]) -> Mapping[str, float | None]:
    """Return each effect over the sum of all; None if that is 0."""
    total = sum(part.effect for part in parts)
    # 0.0 added: no share is written as -0
    return {part.part: part.effect / total + 0.0 if total else None for part in parts}
