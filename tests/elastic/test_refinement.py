"""Quantiles from counts and few values: those of the embedded engine to the bit, however the bins are cut."""

from collections.abc import Sequence

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esjobs.store.elastic.asking import quantiles as asking
from esjobs.store.elastic.asking.counted_numbers import ReadNumbers
from esjobs.store.elastic.asking.refinement import (
    Floats,
    InconsistentError,
    Mask,
    edges_at,
    holding,
    quantiles,
    ranks,
    split,
)

NUMBERS = st.one_of(
    st.integers(-5, 5).map(float),
    st.floats(-1e18, 1e18, allow_nan=False, allow_subnormal=False),
    st.sampled_from([0.1, 0.1, 60.0, 1e15, 1e-9, 2.0**53 + 2]),
)
GROUPS = st.lists(st.lists(NUMBERS, max_size=40), min_size=1, max_size=6)
FRACTIONS = st.lists(
    st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.9, 0.95, 0.999, 1.0]), min_size=1, max_size=3, unique=True
)


class Guessing(ReadNumbers):
    """Numbers in memory whose guesses are given, one after the other: right, wrong or useless."""

    def __init__(self, groups: Sequence[Sequence[float]], guesses: list[list[float]]) -> None:
        places = [number for number, values in enumerate(groups) for _ in values]
        flat = [value for values in groups for value in values]
        super().__init__(np.array(places, np.int64), np.array(flat, np.float64))
        object.__setattr__(self, "guesses", guesses)

    guesses: list[list[float]]

    def sample(self, ranks: Sequence[float], holds: Mask | None, edges: Floats) -> list[float]:
        del ranks, holds, edges
        return self.guesses.pop() if self.guesses else []


def by_duckdb(groups: Sequence[Sequence[float]], fractions: Sequence[float]) -> list[list[float | None]]:
    """The quantiles of each group."""
    sql = f"SELECT quantile_cont(x, {list(fractions)!r}) FROM (SELECT unnest($1::DOUBLE[]) AS x)"  # noqa: S608
    with duckdb.connect() as engine:
        rows = [engine.execute(sql, [list(values)]).fetchone() for values in groups]
    return [[None] * len(fractions) if row is None or row[0] is None else row[0] for row in rows]


def as_rows(answers: list[Floats]) -> list[list[float | None]]:
    return [[None if np.isnan(one) else float(one) for one in row] for row in np.array(answers).T]


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(GROUPS, min_size=1, max_size=3),
    fractions=FRACTIONS,
    guesses=st.lists(st.lists(NUMBERS, max_size=8), max_size=4),
    few=st.sampled_from([0, 5, 1000]),
)
def test_any_guess_gives_the_quantiles_of_the_embedded_engine(
    parts: list[list[list[float]]], fractions: list[float], guesses: list[list[float]], few: int
) -> None:
    """Jobs of several places, of which each has some of every group."""
    n_groups = max(map(len, parts))
    together: list[list[float]] = [
        [value for part in parts if number < len(part) for value in part[number]]
        for number in range(n_groups)
    ]
    numbers = [Guessing(part, list(guesses)) for part in parts]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asking, "FEW_JOBS", few)
        patched.setattr(asking, "_FEW", few)
        found = asking.quantiles_of(numbers, n_groups, sum(map(len, together)), fractions)
    assert as_rows(found) == by_duckdb(together, fractions)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(NUMBERS, min_size=1, max_size=60), guess=st.lists(NUMBERS, max_size=9))
def test_bins_that_hold_are_those_of_the_sorted_values(values: list[float], guess: list[float]) -> None:
    edges = edges_at(guess, 100)
    bins = np.searchsorted(edges, values, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)[None, :]
    place = 0.95 * (len(values) - 1)
    between = [sorted(values)[int(np.floor(place))], sorted(values)[int(np.ceil(place))]]
    held = np.flatnonzero(holding(counts, [0.95])[0]).tolist()
    assert held == sorted(set(np.searchsorted(edges, between, side="right").tolist()))


def test_bins_are_cut_again_where_they_hold() -> None:
    edges, counts = np.array([10.0]), np.array([[3, 1], [0, 4], [2, 0]])
    holds = holding(counts, [0.5])
    assert holds.tolist() == [[True, False], [False, True], [True, False]]
    finer = np.array([5.0, 10.0, 20.0])
    measured = np.array([[1, 2, 9, 9], [7, 7, 3, 1], [2, 0, 5, 5]])
    # what was measured where nothing is looked for does not count
    assert split(edges, counts, holds, finer, measured).tolist() == [[1, 2, 1, 0], [0, 0, 3, 1], [2, 0, 0, 0]]
    measured[0, 0] = 2
    with pytest.raises(InconsistentError):
        split(edges, counts, holds, finer, measured)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 2.0, 3.0, 3.5], [1.0, 2.0, 30.0]])
def test_other_values_than_were_counted_are_noticed(values: list[float]) -> None:
    edges, counts = np.array([10.0]), np.array([[3, 0]])
    listed = (np.zeros(len(values), np.int64), np.array(values), np.ones(len(values), np.int64))
    with pytest.raises(InconsistentError):
        quantiles(edges, counts, holding(counts, [0.5]), listed, [0.5])


def test_edges_are_finite_ascending_and_few() -> None:
    given = [3.0, None, float("nan"), 1.0, float("inf"), 3.0, -0.0, 2.0]
    assert edges_at(given, 10).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert edges_at(given, 2).tolist() == [0.0, 2.0]
    assert len(edges_at([], 5)) == 0
    for bins in (5, 36, 256):
        wanted = ranks([0.5, 0.95], bins)
        assert wanted == sorted(set(wanted))
        assert 0 < wanted[0] < wanted[-1] < 1
        assert len(wanted) <= max(bins, 16)
