"""What is said to decide a verdict does decide it, in the model of its errors."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.words import HALF_WIDTH_90
from esjobs.render.profile.power import needed

LIMIT = 0.2


def compare(deviation: float, half_width: float) -> str:
    """The verdict of an interval: what p_off comes to where the others tell nothing."""
    if abs(deviation) - half_width > LIMIT:
        return "deviates"
    return "ok" if abs(deviation) + half_width < LIMIT else "undecided"


def flag(deviation: float, stat: float, inner: float, line: float, **more: Any) -> dict[str, Any]:
    error = math.sqrt(stat**2 + inner**2 + line**2)
    return {
        "verdict": compare(deviation, HALF_WIDTH_90 * error),
        "confirmed": True,
        "deviation": deviation,
        "deviation_err": error,
        "deviation_err_stat": stat,
        "deviation_err_int": inner,
        "n_jobs": 400,
        "n_tasks": 7,
        "estimate_low": None,
        "estimate_high": None,
        **more,
    }


def decided(deviation: float, *errors: float) -> bool:
    half_width = HALF_WIDTH_90 * math.sqrt(sum(error**2 for error in errors))
    return compare(deviation, half_width) != "undecided"


def asked_for(text: str) -> int:
    match = re.search(r"about ([\d,]+) ", text)
    assert match, text
    return int(match[1].replace(",", ""))


@given(
    deviation=st.floats(-0.6, 0.9).filter(lambda value: abs(abs(value) - LIMIT) > 0.005),
    stat=st.floats(0.001, 0.3),
    inner=st.floats(0.0, 0.3),
    line=st.floats(0.0, 0.1),
)
def test_the_jobs_or_tasks_that_are_named_decide_and_fewer_do_not(
    deviation: float, stat: float, inner: float, line: float
) -> None:
    row = flag(deviation, stat, inner, line)
    if row["verdict"] != "undecided":
        assert "would decide" not in needed(row, None, LIMIT)
        return
    text = needed(row, None, LIMIT)
    if "will not" in text:
        assert not decided(deviation, line)
    elif "more than 50 times" in text:
        more_tasks = 1 if "jobs of the same tasks" in text else math.sqrt(50)
        assert not decided(deviation, stat / math.sqrt(50), inner / more_tasks, line)
    elif "jobs of the same tasks" in text:
        assert inner == 0 or decided(deviation, inner, line)
        for jobs, enough in ((asked_for(text) + 1, True), (asked_for(text) - 1, False)):
            assert decided(deviation, stat * math.sqrt(400 / jobs), inner, line) is enough
    else:
        for tasks, enough in ((asked_for(text) + 1, True), (asked_for(text) - 1, False)):
            shrunk = math.sqrt(7 / tasks)
            assert decided(deviation, stat * shrunk, inner * shrunk, line) is enough


def test_what_a_queue_does_to_a_type_is_no_matter_of_more_tasks() -> None:
    row = flag(0.15, 0.001, 0.08, 0.01)
    factor = {"k": 1.15, "k_err_type": 0.075, "k_err_class": None}
    assert "tasks of other processing types" in needed(row, factor, LIMIT)
    assert "tasks shared with other queues" in needed(row, {**factor, "k_err_type": 0.0}, LIMIT)


def test_an_interval_clear_of_the_limit_may_not_be_sure_enough() -> None:
    row = flag(0.30, 0.03, 0.03, 0.01, p_off=0.931, verdict="undecided")
    assert needed(row, None, LIMIT) == ("it is 93 % sure, 95 % decide: more tasks shared with other queues")


def test_the_line_is_named_where_it_is_the_limit() -> None:
    assert "more jobs of its own will not" in needed(flag(0.19, 0.001, 0.001, 0.05), None, LIMIT)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"verdict": "ok", "confirmed": False}, ""),
        ({"verdict": "deviates", "confirmed": True}, ""),
        ({"verdict": "undeclared"}, "a value of its own"),
        ({"verdict": "not comparable"}, "jobs of tasks that run at many other queues"),
        (
            {"verdict": "deviates", "confirmed": None, "significant": True, "stable": False}
            | {"unstable_under": "without task 7: −12 %"},
            "stability check (without task 7: −12 %)",
        ),
    ],
)
def test_other_verdicts(row: dict[str, Any], words: str) -> None:
    text = needed(row, None, LIMIT)
    assert words in text
    assert bool(words) == bool(text)
