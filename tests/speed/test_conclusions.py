"""The one conclusion of a fit: a golden text for each form, and counts that agree with the flags."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.words import JUDGED, VERDICTS
from esjobs.speed.judging.conclusions import conclude
from esjobs.speed.judging.verdicts import is_confirmed
from tests.messages import compare_text

Flag = dict[str, object]


def flag(name: str, deviation: float | None = None, verdict: str = "deviates", **more: object) -> Flag:
    """A confirmed deviation on nine tasks, unless told otherwise."""
    row: Flag = {"name": name, "deviation": deviation, "verdict": verdict, "n_tasks": 9, "k": 1.0}
    row |= {"significant": verdict == "deviates", "stable": verdict in JUDGED} | more
    return row | {"confirmed": is_confirmed(verdict, row["significant"], row["stable"])}  # type: ignore[arg-type]


def several(count: int, verdict: str, **more: object) -> list[Flag]:
    return [flag(f"{verdict} {n}", 0.01, verdict, **more) for n in range(count)]


CANDIDATES = [
    flag("IAAS", 0.547, stable=False),
    flag("CERN", -0.365, significant=False),
]
ON_ONE_TASK = [{**row, "n_tasks": 1} for row in [*CANDIDATES, *several(7, "ok"), *several(26, "undecided")]]
FORMS: dict[str, list[Flag]] = {
    "confirmed": [flag("A", -0.38), flag("B", 0.49), *several(43, "ok")],
    "one confirmed, beside candidates": [
        flag("A", 0.31),
        CANDIDATES[0],
        flag("C", 0.5, stable=False),
        *several(1, "undecided"),
    ],
    "one confirmed of two": [flag("A", 0.31), *several(1, "ok")],
    "candidates only": [*CANDIDATES, *several(7, "ok"), *several(26, "undecided")],
    "candidates on single tasks": ON_ONE_TASK,
    "many candidates": [flag(f"Q{n}", 0.9 - n / 10, significant=False) for n in range(7)] + several(1, "ok"),
    "one candidate": [flag("A", 0.4, significant=False), *several(1, "ok"), *several(1, "undecided")],
    "no deviation": several(25, "ok"),
    "two within": several(2, "ok"),
    "one within": several(1, "ok"),
    "all undecided": several(26, "undecided"),
    "nothing compared": [*several(10, "undeclared"), *several(2, "too few")],
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_the_conclusion(form: str) -> None:
    found = conclude(FORMS[form], "queue", limit=0.2)
    compare_text(str(found["sentence"]))
    compare_text(str(found["evidence"]))


def test_cpu_models_are_called_so_and_the_limit_is_the_runs() -> None:
    found = conclude(several(3, "undecided") + several(1, "ok"), "cpu_model", limit=0.125)
    compare_text(str(found["sentence"]))


def test_without_a_line_the_reason_stands_in_the_conclusion() -> None:
    reason = "no queue has a speed factor"
    sentence = str(conclude([], "queue", limit=0.2, no_line=reason)["sentence"])
    assert reason in sentence
    compare_text(sentence)


def test_a_restricted_run_says_so_first() -> None:
    found = conclude(several(2, "ok"), "queue", limit=0.2, restriction=["task_id=7", "queue=A"])
    compare_text(str(found["sentence"]))


def test_a_task_in_two_core_classes_is_one_task() -> None:
    rows = [{**row, "n_units": 2, "n_tasks": 1} for row in several(3, "undecided")]
    found = conclude(rows, "queue", limit=0.2)
    assert found["n_on_one_task"] == 3
    compare_text(str(found["sentence"]))


FLAGS = st.lists(
    st.builds(
        lambda verdict, significant, stable, tasks, k: flag(
            "Q", 0.3, verdict, significant=significant, stable=stable, n_tasks=tasks, k=k
        ),
        st.sampled_from(VERDICTS),
        st.sampled_from([True, False, None]),
        st.sampled_from([True, False, None]),
        st.integers(0, 3),
        st.sampled_from([None, 1.0]),
    ),
    max_size=12,
)


@given(FLAGS)
def test_counts_add_up_and_the_text_is_never_at_odds_with_them(flags: Sequence[Flag]) -> None:
    found = conclude(flags, "queue", limit=0.2)
    number = {name: value for name, value in found.items() if isinstance(value, int)}
    verdicts = Counter(row["verdict"] for row in flags)
    assert number["n_confirmed"] + number["n_candidates"] == number["n_deviates"] == verdicts["deviates"]
    assert number["n_comparable"] == number["n_deviates"] + number["n_ok"] + number["n_undecided"]
    parts = ("n_too_few", "n_mixed", "n_implausible", "n_not_comparable", "n_via_cpu_models")
    assert number["n_others"] == sum(number[part] for part in parts)
    assert number["n_names"] == number["n_comparable"] + number["n_undeclared"] + number["n_others"]
    assert number["n_on_one_task"] <= number["n_comparable"]
    assert (" a confirmed deviation of more" in str(found["sentence"])) == (number["n_confirmed"] > 0)
    assert ("survive" in str(found["evidence"])) == (number["n_confirmed"] > 0)
    assert (found["evidence"] is None) == (number["n_deviates"] == 0)


def test_a_conclusion_says_what_most_jobs_were_left_out_for() -> None:
    left_out = "40 of 60 tasks were excluded: 40 mixed"
    for flags in (several(3, "ok"), several(2, "undeclared")):
        said = conclude(flags, "queue", limit=0.2, left_out=left_out)["sentence"]
        assert str(said).endswith(f" {left_out}.")
        assert left_out not in str(conclude(flags, "queue", limit=0.2)["sentence"])
