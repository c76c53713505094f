"""The nearest series, against a second implementation without bounds, bands of vectors or float32."""

import numpy as np
import numpy.typing as npt
import pytest

from fitters import InputError, WarpedSeries
from tests.messages import raised

Floats = npt.NDArray[np.float64]


def slow_distance(query: Floats, series: Floats, band: int) -> float:
    """The definition: the cheapest path through all pairs of samples within the band."""
    n = len(query)
    costs = np.full((n + 1, n + 1), np.inf)
    costs[0, 0] = 0.0
    for i in range(n):
        for j in range(max(0, i - band), min(n, i + band + 1)):
            before = min(costs[i, j], costs[i, j + 1], costs[i + 1, j])
            costs[i + 1, j + 1] = ((query[i] - series[j]) ** 2).sum() + before
    return float(np.sqrt(costs[n, n] / query.size))


def walks(seed: int, count: int, samples: int, metrics: int) -> Floats:
    """Random walks: some close to each other, some far; in float32's values."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(count, samples, metrics)).cumsum(axis=1)
    drawn[1::3] = drawn[::3][: len(drawn[1::3])] + 0.1 * rng.normal(size=drawn[1::3].shape)
    return drawn.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("count", "samples", "metrics", "band", "top"),
    [
        (45, 40, 3, 4, 10),
        (16, 61, 2, 61, 3),
        (17, 53, 1, 0, 17),
        (5, 7, 1, 2, 10),
        (3, 1, 2, 5, 2),
        (33, 2, 1, 1, 1),
    ],
)
def test_the_nearest_are_those_of_the_definition(
    seed: int, count: int, samples: int, metrics: int, band: int, top: int
) -> None:
    *series, query = walks(seed, count + 1, samples, metrics)
    expected = np.array([slow_distance(query, each, band) for each in series])
    order = np.argsort(expected, kind="stable")[:top]
    nearest = WarpedSeries(np.array(series), band).nearest(query, top)
    np.testing.assert_array_equal(nearest.places, order)
    np.testing.assert_allclose(nearest.distances, expected[order], rtol=1e-5)


def test_bounds_exclude_most_and_lose_none() -> None:
    """One family of twenty among 2,000 others: all of it comes back, and few paths are looked for."""
    rng = np.random.default_rng(5)
    others = rng.normal(size=(2000, 60, 2)).cumsum(axis=1) + 30 * rng.normal(size=(2000, 1, 2))
    family = np.sin(np.arange(60) / 5)[None, :, None] + 0.05 * rng.normal(size=(20, 60, 2))
    series = np.concatenate([others[:1000], family, others[1000:]])
    nearest = WarpedSeries(series, 6).nearest(family[0], 20)
    assert sorted(nearest.places.tolist()) == list(range(1000, 1020))
    assert nearest.places[0] == 1000
    assert nearest.distances[0] == 0.0
    assert nearest.n_warped < 200


def test_equal_series_come_in_their_order() -> None:
    query = np.ones((30, 2))
    nearest = WarpedSeries(np.ones((40, 30, 2)), 3).nearest(query, 20)
    assert nearest.places.tolist() == list(range(20))
    assert not nearest.distances.any()


def test_a_shift_within_the_band_costs_nothing_that_one_beyond_it_does() -> None:
    pulse = np.zeros((50, 1))
    pulse[20:25] = 1.0
    late = np.roll(pulse, 4, axis=0)
    assert WarpedSeries(late[None], 5).nearest(pulse, 1).distances[0] == 0.0
    assert WarpedSeries(late[None], 2).nearest(pulse, 1).distances[0] > 0.0


def test_shares_say_which_metric_differs() -> None:
    query = np.zeros((20, 3))
    other = np.zeros((20, 3))
    other[:, 1], other[:, 2] = 1.0, 3.0
    series = WarpedSeries(np.array([other, query]), 2)
    np.testing.assert_allclose(series.shares(query, 0), [0, 0.1, 0.9])
    assert not series.shares(query, 1).any()


@pytest.mark.parametrize("seed", range(3))
def test_shares_add_up_to_the_distance(seed: int) -> None:
    """With one metric made of nothing its part is 0; the distance without it says what the others make."""
    one, other = walks(seed, 2, 40, 2)
    parts = WarpedSeries(other[None], 4).shares(one, 0)
    assert parts.sum() == pytest.approx(1)
    flat = np.stack([one, other])
    flat[:, :, 1] = 0.0
    assert WarpedSeries(flat[1:], 4).shares(flat[0], 0).tolist() == [1.0, 0.0]


def test_what_cannot_be_warped_is_refused() -> None:
    good = np.ones((2, 5, 1))
    with raised(InputError):
        WarpedSeries(np.full((2, 5, 1), np.nan), 1)
    with raised(InputError):
        WarpedSeries(np.ones((2, 5)), 1)
    with raised(InputError):
        WarpedSeries(good, -1)
    with raised(InputError):
        WarpedSeries(good, 1).nearest(np.ones((4, 1)), 1)
    with raised(InputError):
        WarpedSeries(good, 1).nearest(good[0], 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e16])
def test_what_is_within_a_distance_is_what_the_definition_says(seed: int, scale: float) -> None:
    """Also where squares are beyond what float32 can add up, and at the distance of one itself."""
    drawn = (walks(seed, 161, 31, 3) * scale).astype(np.float32).astype(np.float64)
    series, query = drawn[:-1], drawn[-1]
    many = WarpedSeries(series, 4)
    expected = np.array([slow_distance(query, each, 4) for each in series])
    for share in (0.0, 0.1, 0.5, 1.0):
        distance = float(np.quantile(expected, share)) * (1 + 1e-4)
        inside = np.flatnonzero(expected <= distance)
        found = many.within(query, distance)
        assert sorted(found.places.tolist()) == inside.tolist()
        np.testing.assert_allclose(found.distances, np.sort(expected[inside]), rtol=1e-5)
        some = many.within(query, distance, among=[5, 3, 3, 150])
        assert sorted(some.places.tolist()) == [place for place in (3, 5, 150) if place in inside]
    nearest = many.nearest(query, 7)
    np.testing.assert_array_equal(nearest.places, np.argsort(expected, kind="stable")[:7])
    odd = np.arange(1, 160, 2)
    among = many.nearest(query, 7, among=odd[::-1])
    np.testing.assert_array_equal(among.places, odd[np.argsort(expected[odd], kind="stable")[:7]])
    exactly = many.within(query, float(nearest.distances[6]))
    np.testing.assert_array_equal(exactly.places, nearest.places)


def test_series_that_float32_cannot_tell_apart_come_in_the_order_of_float64() -> None:
    """Costs that differ by less than a sum in float32 can be trusted."""
    rng = np.random.default_rng(8)
    query = rng.normal(size=(200, 4))
    shift = 1.0 + 1e-6 * rng.permutation(300)
    many = WarpedSeries(query[None] + shift[:, None, None], 0)
    alone = np.square(many.series - np.float32(query), dtype=np.float64).sum(axis=(1, 2))
    nearest = many.nearest(query, 40)
    np.testing.assert_array_equal(nearest.places, np.argsort(alone, kind="stable")[:40])
    np.testing.assert_allclose(nearest.distances, np.sqrt(np.sort(alone)[:40] / query.size), rtol=1e-12)


def test_nothing_is_within_less_than_the_nearest() -> None:
    many = WarpedSeries(np.ones((40, 30, 2)), 3)
    assert len(many.within(np.zeros((30, 2)), 0.99).places) == 0
    assert many.within(np.zeros((30, 2)), 0.99).n_warped == 0
    with raised(InputError):
        many.nearest(np.zeros((30, 2)), 1, among=[-1])
    with raised(InputError):
        many.within(np.zeros((30, 2)), float("nan"))
