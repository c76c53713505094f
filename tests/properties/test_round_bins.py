"""Bins of which only the number was given: whatever the numbers, all are covered by few bins of one width."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from esjobs.records.jobs.questions.round_bins import round_bins

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(number=st.integers(1, 200), low=FINITE, high=FINITE, unit=st.sampled_from(["", "B", "s"]))
def test_bins_ascend_cover_all_and_are_not_too_many(number: int, low: float, high: float, unit: str) -> None:
    low, high = sorted((low, high))
    edges = round_bins(number, low, high, unit)
    assert 1 <= len(edges) <= number
    assert all(map(math.isfinite, edges))
    assert list(edges) == sorted(set(edges))
    assert edges[0] <= low or math.isclose(edges[0], low)


@given(
    number=st.integers(2, 50),
    low=st.floats(-1e9, 1e9),
    spread=st.floats(1e-3, 1e9),
    unit=st.sampled_from(["", "s"]),
)
@example(number=21, low=536_870_912.0, spread=1e-3, unit="")
def test_widths_are_equal_and_the_last_bin_has_the_largest_value(
    number: int, low: float, spread: float, unit: str
) -> None:
    edges = round_bins(number, low, low + spread, unit)
    assume(len(edges) > 1)
    widths = [above - below for below, above in pairwise(edges)]
    assert max(widths) - min(widths) <= 1e-9 * max(abs(edges[0]), abs(edges[-1]), widths[0])
    # neighbouring numbers of this size may be a hundredth of a narrow width apart
    tolerance = 1e-6 * widths[0] + 4 * math.ulp(abs(low) + spread)
    assert edges[-1] <= low + spread <= edges[-1] + widths[0] + tolerance


@pytest.mark.parametrize(
    ("number", "low", "high", "unit", "edges"),
    [
        (10, 0.0, 36_000.0, "s", [3600.0 * hour for hour in range(10)]),
        (10, 5.0, 48_456.6, "s", [7200.0 * step for step in range(7)]),
        (10, 3.0, 2_592_000.0, "s", [432_000.0 * step for step in range(6)]),
        (5, 0.113, 0.97, "", [0.0, 0.2, 0.4, 0.6, 0.8]),
        (10, 0.0, 8e9, "B", [1e9 * step for step in range(8)]),
        (3, 8.0, 8.0, "", [8.0]),
        (2, -1.0000000000000002e308, 0.0, "", [-1.0000000000000002e308]),
    ],
)
def test_people_count_in_round_numbers(
    number: int, low: float, high: float, unit: str, edges: list[float]
) -> None:
    assert list(round_bins(number, low, high, unit)) == edges
