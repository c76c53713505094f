"""The grammar of conditions: what is written is read again, and the same question has one spelling."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.arguments import conditions
from esjobs.core.conditions import OPERATORS, canonical, matches, quoted, read_condition, written
from esjobs.core.errors import UsageError
from tests.contract.model import like

TEXTS = st.one_of(st.text(min_size=1), st.text(alphabet=' ",=<>!~*ab\n', min_size=1))


@given(st.sampled_from(OPERATORS), st.lists(TEXTS, min_size=1, max_size=4, unique=True))
def test_what_is_written_is_read_again(operator: str, values: list[str]) -> None:
    if operator in ("<", "<=", ">", ">="):
        values = values[:1]
    condition = read_condition(written("queue", operator, values))
    assert (condition.field, condition.operator, condition.values) == ("queue", operator, tuple(values))
    assert read_condition(str(condition)) == condition


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        condition = read_condition(text)
        assert read_condition(str(condition)) == condition


@given(
    st.lists(st.tuples(st.sampled_from(["queue", "user", "queue"]), st.lists(TEXTS, min_size=1)), max_size=4)
)
def test_the_same_question_has_one_spelling(asked: list[tuple[str, list[str]]]) -> None:
    texts = conditions(asked)
    once = canonical(texts)
    assert canonical(once) == once
    lists = [f"{name}={','.join(map(quoted, values))}" for name, values in asked]
    assert canonical(lists) == once


def test_equalities_keep_the_spelling_that_named_runs_so_far() -> None:
    for text in (
        "queue=CERN",
        "cpu_model=Intel Xeon E5-2650 v2",
        "processing_type=",
        "queue=a=b",
        "task_id=1",
    ):
        assert canonical([text]) == (text,)
    assert canonical(["queue=CERN", "queue=CERN", "user is missing"]) == ("queue=CERN", "user=")
    assert canonical(["queue~CERN*", "queue~cern*"]) == ("queue~cern*",)


@given(st.text(alphabet="aAbB*%. ", max_size=8), st.text(alphabet="aAbB*%. ", max_size=5))
def test_patterns_match_as_a_second_implementation_says(text: str, pattern: str) -> None:
    assert matches(text, pattern) == like(text, pattern)


def test_python_says_values_as_they_are() -> None:
    assert conditions({"queue": "a,b", "user": None}) == ('queue="a,b"', "user=")
    assert conditions([("efficiency", "<", 0.1), ("queue", "!=", ["A", "B"])]) == (
        "efficiency<0.1",
        "queue!=A,B",
    )
    for wrong in (
        [("cores>", 8)],
        [("queue", "=<", "A")],
        [("site; x", "A")],
        [("queue", "~", None)],
        [(1,)],
    ):
        with pytest.raises(UsageError):
            conditions(wrong)  # type: ignore[arg-type]
