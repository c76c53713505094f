"""Approaches, aggregations, limits and errors, on arrays of which the answer is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.core.errors import UsageError
from esjobs.similar.calibration import calibrated
from esjobs.similar.limits import NONE_SIMILAR, farthest_similar, least_static
from esjobs.similar.neighbours import NO_SIMILAR_PROGRAM, TOO_FAR, Limits, neighbours, predicted
from tests.messages import raised

LIMITS = Limits(0.8, 0.5, 0.1)


@pytest.mark.parametrize(
    ("distances", "similarities", "approach", "chosen", "step"),
    [
        ([0.4, 0.05], [0.9, 0.2], "combined-1", [0], "A"),
        ([0.4, 0.05], [0.9, 0.2], "combined-2", [0], "A"),
        ([0.4, 0.05], [0.9, 0.2], "dynamic", [1], "B"),
        ([0.4, 0.05], [0.3, np.nan], "combined-1", [1], "B"),
        ([0.4, 0.05], [0.3, np.nan], "combined-2", [], NO_SIMILAR_PROGRAM),
        # a program that is alike ends the search, though none of its jobs is near
        ([0.6, 0.05], [0.9, 0.2], "combined-1", [], TOO_FAR),
        ([0.4, 0.2], [np.nan, np.nan], "combined-1", [], TOO_FAR),
        # limits themselves are within
        ([0.5, 0.1], [0.8, 0.8], "combined-2", [0, 1], "A"),
        ([0.1, 0.2], [0.0, 0.0], "dynamic", [0], "B"),
    ],
)
def test_the_approaches(
    distances: list[float], similarities: list[float], approach: str, chosen: list[int], step: str
) -> None:
    mask, told = neighbours(np.array(distances), np.array(similarities), LIMITS, approach)
    assert np.flatnonzero(mask).tolist() == chosen
    assert told == step


@pytest.mark.parametrize("approach", ["combined-1", "combined-2"])
def test_what_needs_programs_is_refused_without(approach: str) -> None:
    with raised(UsageError):
        neighbours(np.zeros(1), None, Limits(None, None, 0.1), approach)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 600)), min_size=1, max_size=20),
    st.sampled_from(["softmax", "median", "mean"]),
)
def test_aggregations_follow_their_definitions(pairs: list[tuple[float, float]], how: str) -> None:
    scores, distances = (np.array(each) for each in zip(*pairs, strict=True))
    found = predicted(scores, distances, how)
    weights = [math.exp(-each) for each in distances] if how == "softmax" else [1.0] * len(scores)
    mean = math.fsum(w * y for w, y in zip(weights, scores, strict=True)) / math.fsum(weights)
    middle = sorted(scores)[(len(scores) - 1) // 2] + sorted(scores)[len(scores) // 2]
    assert found.value == pytest.approx(middle / 2 if how == "median" else mean, abs=1e-9)
    assert scores.min() - 1e-9 <= found.value <= scores.max() + 1e-9
    assert math.isnan(found.spread) == (len(scores) == 1)
    assert found.nearest == distances.min()


def test_distances_that_no_exponential_can_hold_still_weigh() -> None:
    assert predicted(np.array([10.0, 90.0]), np.array([2000.0, 3000.0]), "softmax").value == 10.0


def test_the_limit_is_where_scores_begin_to_differ() -> None:
    rng = np.random.default_rng(0)
    near, far = rng.uniform(0, 0.2, 500), rng.uniform(0.3, 1, 500)
    differences = np.r_[rng.uniform(0, 5, 500), rng.uniform(11, 50, 500)]
    limit = farthest_similar(np.r_[near, far], differences, 0.04)
    assert limit is not None
    assert limit == near.max()
    assert farthest_similar(near, np.full(500, 30.0), 0.04) == NONE_SIMILAR
    assert farthest_similar(near[:49], differences[:49], 0.04) is None


def test_programs_are_alike_from_where_they_are_the_same() -> None:
    similarities = np.linspace(0, 1, 200)
    assert least_static(similarities, similarities > 0.68) == 0.7
    assert least_static(similarities, similarities > 2) == 0.95
    assert least_static(similarities[:10], similarities[:10] > 0) == 0.8


@pytest.mark.parametrize("seed", range(3))
def test_errors_cover_what_they_say(seed: int) -> None:
    """Residuals that grow with the spread, with heavy tails; new ones are drawn like those that calibrate."""
    rng = np.random.default_rng(seed)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        spreads = rng.exponential(3, n)
        spreads[rng.uniform(size=n) < 0.3] = np.nan
        scale = 1 + np.nan_to_num(spreads, nan=3.0)
        return scale * rng.standard_t(3, n), spreads

    errors = calibrated(*drawn(3000))
    residuals, spreads = drawn(3000)
    for number, level in enumerate((0.68, 0.95)):
        widths = np.array([errors.errors(each)[number] for each in spreads.tolist()], float)
        assert abs((np.abs(residuals) <= widths).mean() - level) < 0.03
    small, large = errors.errors(0.1)[0], errors.errors(10.0)[0]
    assert small is not None
    assert large is not None
    assert small < large


@pytest.mark.parametrize(
    ("n", "known"),
    [
        (0, (False, False)),
        (74, (False, False)),
        (75, (False, True)),
        (349, (False, True)),
        (350, (True, True)),
    ],
)
def test_too_few_residuals_tell_no_error(n: int, known: tuple[bool, bool]) -> None:
    found = calibrated(np.ones(n), np.full(n, np.nan)).errors(1.0)
    assert tuple(each is not None for each in found) == known
