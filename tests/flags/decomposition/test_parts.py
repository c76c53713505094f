"""Deviations taken apart, without a store: parts add up, and each cause goes where it belongs."""

import math
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.flags.decomposition.parts import Facts, in_one_sentence, largest, shares, take_apart
from esjobs.flags.decomposition.smt import SmtEffect, inferred
from esjobs.records.references.values import ReferenceScore
from esjobs.schema.decomposition import PARTS

PLAIN = Facts(
    name="Q",
    deviation=-0.3,
    error=0.03,
    line_error=0.01,
    corepower=14.0,
    benchmark="HS06",
    origin="own",
    own=(0.0, 0.01),
    mix_error=0.01,
    models=(("SLOW", -0.1), ("FAST", 0.36)),
    share=0.8,
    why_unknown="nothing is known of its machines",
)
EFFECT = st.floats(-1.0, 1.0)
SMT = st.none() | st.builds(SmtEffect, EFFECT, st.floats(0, 0.2), st.floats(0, 1))


@given(
    st.floats(-0.9, 3.0),
    st.none() | st.tuples(EFFECT, st.floats(0, 0.3)),
    SMT,
    SMT,
    SMT,
    st.none() | st.tuples(EFFECT, st.floats(0, 0.3)),
    st.sampled_from(["own", "default", "inherited", "changed"]),
    st.lists(st.tuples(st.sampled_from(["A", "B"]), EFFECT), max_size=3),
)
def test_parts_add_up_exactly_whatever_is_known(
    deviation: float,
    own: tuple[float, float] | None,
    here: SmtEffect | None,
    other: SmtEffect | None,
    guessed: SmtEffect | None,
    then: tuple[float, float] | None,
    origin: str,
    models: list[tuple[str, float]],
) -> None:
    known = replace(
        PLAIN,
        deviation=deviation,
        own=own,
        here=here,
        declared_other=other,
        inferred=guessed,
        then=then,
        origin=origin,
        models=models,
    )
    parts = take_apart(known)
    assert tuple(part.part for part in parts) == PARTS
    assert sum(part.effect for part in parts) == pytest.approx(math.log1p(deviation), abs=1e-9)
    assert all(part.sentence for part in parts if part.effect)
    assert all(part.error is not None and part.error >= 0 for part in parts if part.effect)
    of_all = shares(parts)
    if abs(deviation) > 1e-6:
        assert sum(of_all[part] or 0.0 for part in PARTS) == pytest.approx(1.0)
    assert in_one_sentence(known, parts).endswith(".")


def test_a_value_of_some_of_its_models_is_a_question_of_the_mix() -> None:
    first = largest(take_apart(PLAIN))
    assert first.part == "cpu mix"
    assert first.effect == pytest.approx(math.log(0.7))
    assert "a value of FAST alone" in first.sentence
    assert "delivers 9.80 HS06 per core" in first.sentence


def test_a_value_between_its_models_is_like_none_of_them() -> None:
    first = largest(take_apart(replace(PLAIN, models=(("SLOW", -0.2), ("FAST", 0.9)))))
    assert first.part == "cpu mix"
    assert first.sentence.endswith("a value between its slowest and fastest models")


@pytest.mark.parametrize("models", [(("SLOW", -0.1), ("FAST", 0.15)), (("ONLY", 0.0),)])
def test_a_value_that_no_model_reaches_is_that_of_the_declaration(models: tuple[tuple[str, float]]) -> None:
    first = largest(take_apart(replace(PLAIN, models=models)))
    assert first.part == "declared value"
    assert models[-1][0] in first.sentence


def test_machines_slower_than_their_models_are_the_rest() -> None:
    parts = take_apart(replace(PLAIN, own=(math.log(0.7), 0.02)))
    assert largest(parts).part == "rest"
    assert "30 % slower than the same CPU models elsewhere" in largest(parts).sentence
    assert "overcommit" in largest(parts).sentence


def test_a_default_takes_what_the_mix_makes_of_it() -> None:
    parts = take_apart(replace(PLAIN, origin="default", corepower=10.0, own=(-0.1, 0.01)))
    assert largest(parts).part == "declared default"
    effects = {part.part: part.effect for part in parts}
    assert effects["rest"] == pytest.approx(-0.1)
    assert "is the default of the system" in largest(parts).sentence


def test_smt_of_the_queue_and_smt_of_its_declaration() -> None:
    on = SmtEffect(-0.3, 0.02, 1.0)
    own = take_apart(replace(PLAIN, own=(-0.33, 0.01), here=on))
    assert largest(own).part == "smt"
    assert "100 % of its CPU time is with SMT on" in largest(own).sentence
    declared = take_apart(replace(PLAIN, declared_other=on))
    assert largest(declared).part == "smt"
    assert "with SMT off, but its jobs run with SMT on" in largest(declared).sentence


def test_an_inferred_state_counts_where_it_leaves_least() -> None:
    """Alone in its state, the queue differs; with all others in it, its declared value does."""
    on = SmtEffect(-0.3, 0.02, 1.0, 0.93)
    for own in ((-0.33, 0.01), (0.0, 0.01)):
        parts = take_apart(replace(PLAIN, own=own, inferred=on))
        effects = {part.part: part.effect for part in parts}
        assert largest(parts).part == "smt"
        assert "93 % sure" in largest(parts).sentence
        assert effects["rest"] == pytest.approx(own[0] - (-0.3 if own[0] else 0.0))
        assert sum(effects.values()) == pytest.approx(math.log(0.7))


def test_declared_value_and_speed_infer_a_state_that_no_record_tells() -> None:
    scores = {"X": ReferenceScore("X", "hs06", {True: (10.0, 10.4), False: (16.0, 16.6)})}
    gain = math.log(16.3 / 10.2)
    on = inferred(16.3, -gain, 0.03, {"X": 0.8, "Y": 0.2}, scores)
    assert on is not None
    assert on.on == 1.0
    assert on.probability is not None
    assert on.probability > 0.85
    assert on.effect == pytest.approx(-gain)
    off = inferred(10.2, gain - 0.05, 0.03, {"X": 1.0}, scores)
    assert off is not None
    assert off.on == 0.0
    for corepower, deviation in ((16.3, -0.2), (10.2, -gain), (13.0, -gain), (16.3, gain), (16.3, 0.0)):
        assert inferred(corepower, deviation, 0.03, {"X": 1.0}, scores) is None
    assert inferred(16.3, -gain, 0.03, {"X": 0.4, "Y": 0.6}, scores) is None
    unknown = {"X": ReferenceScore("X", "hs06", {None: (10.0, 16.0)})}
    assert inferred(16.3, -gain, 0.03, {"X": 1.0}, unknown) is None


def test_hardware_that_changed_since_counts_only_where_it_helps_and_is_sure() -> None:
    since = date(2024, 1, 1)
    older = take_apart(replace(PLAIN, then=(-0.3, 0.02), declared_on=since))
    assert largest(older).part == "declared older than hardware"
    assert "(2024-01-01)" in largest(older).sentence
    for then in ((0.3, 0.02), (-0.3, 0.2), (-0.9, 0.02)):
        unchanged = {part.part: part.effect for part in take_apart(replace(PLAIN, then=then))}
        assert unchanged["declared older than hardware"] == 0.0


def test_without_cpu_models_a_default_or_nothing_is_blamed() -> None:
    nothing = replace(PLAIN, own=None, why_unknown="its job records name no CPU models")
    assert largest(take_apart(nothing)).part == "rest"
    assert largest(take_apart(nothing)).sentence == "its job records name no CPU models"
    assert largest(take_apart(replace(nothing, origin="default"))).part == "declared default"
