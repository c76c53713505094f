"""Published scores as the declared values of CPU models, by the SMT state that the records tell."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from esjobs.core.query import Query, Range, SumProduct
from esjobs.core.window import Window
from esjobs.records.declared.origin import Declared
from esjobs.records.names.cpu_models import CpuModel, resolve
from esjobs.records.references.values import Range as Scores
from esjobs.records.references.values import ReferenceScore, reference_scores
from esjobs.store.base import JobStore

WIDEST = 1.5
"""Highest over lowest score per core up to which a CPU model has one, with an error below 12 %."""
CLEAR_SHARE = 0.9
"""Share of the core time with a stated SMT state that one state needs to be that of a CPU model."""
LEAST_STATED = 0.1
"""Share of the core time of a CPU model that must state SMT on or off to speak for the rest."""

_STATES = ((True, "SMT on"), (False, "SMT off"), (None, "SMT unknown"))


@dataclass(frozen=True)
class _Chosen:
    """The score of one CPU model in one benchmark; ``note`` says why there is none."""

    value: float | None
    error: float = 0.0
    note: str = ""


def declared_models(store: JobStore, window: Window, names: Iterable[str]) -> dict[str, Declared]:
    """Return what reference tables say of CPU models; those that no table names are left out.

    Benchmarks are not mixed where one has a score for most: the other serves only models without. One read;
    with references of the names one query more.
    """
    wanted = set(names)
    scores = {
        key: score for key, score in reference_scores(store, ("hs06", "hs23")).items() if key[1] in wanted
    }
    if not scores:
        return {}
    states = smt_states(store, window)
    found: dict[str, dict[str, _Chosen]] = defaultdict(dict)
    for (benchmark, model), score in scores.items():
        found[benchmark.upper()][model] = _chosen(score, states.get(model))
    n_values = {
        benchmark: sum(one.value is not None for one in of.values()) for benchmark, of in found.items()
    }
    order = sorted(found, key=lambda each: (n_values[each], each), reverse=True)
    return {model: _declared(model, order, found) for model in sorted({model for _, model in scores})}


def smt_states(store: JobStore, window: Window) -> dict[str, bool]:
    """Return the SMT state of CPU models whose records agree on one; one query over their CPU strings.

    The field ``smt`` of a record counts before its CPU string. Pilots write the state into that on part of
    the machines only: the others are taken to be alike.
    """
    query = Query(
        ("cpu_raw", "smt"),
        (SumProduct("wall_s", "cores", "core_s"),),
        window,
        where=(Range("wall_s", gt=0),),
        books=False,
    )
    core_s: dict[str, dict[bool | None, float]] = defaultdict(lambda: defaultdict(float))
    for row in store.aggregate(query).table.to_pylist():
        model = resolve(row["cpu_raw"]) if row["cpu_raw"] else None
        if model is not None:
            core_s[model.name][smt_of(row, model)] += row["core_s"] or 0.0
    states = {name: _state(of_model) for name, of_model in core_s.items()}
    return {name: state for name, state in states.items() if state is not None}


def smt_of(row: Mapping[str, Any], model: CpuModel) -> bool | None:
    """Return the SMT state of jobs: their field ``smt``, else that of their CPU string, ``model``."""
    stated: bool | None = row["smt"]
    return model.smt if stated is None else stated


def _state(core_s: Mapping[bool | None, float]) -> bool | None:
    on, off = core_s.get(True, 0.0), core_s.get(False, 0.0)
    stated = on + off
    if not stated or stated < LEAST_STATED * (stated + core_s.get(None, 0.0)):
        return None
    if max(on, off) < CLEAR_SHARE * stated:
        return None
    return on > off


def _chosen(score: ReferenceScore, state: bool | None) -> _Chosen:
    # scores of unknown SMT stand in for those of a known state
    own = score.by_smt.get(state) or score.by_smt.get(None) if state is not None else score.range
    if own is None:
        (other,) = score.by_smt.values()
        return _Chosen(None, note=f"published only with SMT {'off' if state else 'on'} ({_range(other)})")
    low, high = own
    if high > WIDEST * low:
        return _Chosen(None, note=f"published scores give no single value: {_scores_text(score, state)}")
    # geometric mean, relatively as far from either end; the error of a value that lies anywhere between two
    # is their distance over the root of twelve
    return _Chosen(math.sqrt(low * high), math.log(high / low) / math.sqrt(12))


def _scores_text(score: ReferenceScore, state: bool | None) -> str:
    parts = [(text, score.by_smt[each]) for each, text in _STATES if each in score.by_smt]
    parts = [part for part in parts if state is None or part[0] == dict(_STATES)[state]] or parts
    return (
        ", ".join(f"{text} {_range(scores)}" for text, scores in parts)
        + f" {score.benchmark.upper()} per core"
    )


def _range(scores: Scores) -> str:
    low, high = (f"{value:.1f}" for value in scores)
    return low if low == high else f"{low} to {high}"


def _declared(model: str, order: list[str], found: Mapping[str, Mapping[str, _Chosen]]) -> Declared:
    having = [benchmark for benchmark in order if model in found[benchmark]]
    # in the order of coverage: the first benchmark with a value wins
    for benchmark in having:
        chosen = found[benchmark][model]
        if chosen.value is not None:
            return Declared(
                model, chosen.value, benchmark, "reference", model, site_guessed=True, source="references",
                error=chosen.error,
            )  # fmt: skip
    note = found[having[0]][model].note
    return Declared(model, None, None, "none", model, site_guessed=True, note=note)
