"""Trends of daily values: their numbers against NumPy and SciPy, their intervals against planted trends."""

from datetime import date, timedelta

import numpy as np
import pytest
from scipy import stats

from esjobs.provisioning.trend import LEAST_DAYS, trend

START = date(2025, 1, 1)


def days(number: int) -> list[date]:
    return [START + timedelta(days=each) for each in range(number)]


def noise(rng: np.random.Generator, n: int, memory: float) -> np.ndarray:
    """Values of variance 1 of which each remembers the one before."""
    values = np.empty(n)
    values[0] = rng.normal()
    for number in range(1, n):
        values[number] = memory * values[number - 1] + np.sqrt(1 - memory**2) * rng.normal()
    return values


def test_without_memory_it_is_the_line_of_scipy() -> None:
    signs = np.resize([1.0, -1.0], 40)  # neighbours differ: no memory to allow for
    values = 3 + 0.02 * np.arange(40) + signs
    found = trend(days(40), list(values))
    line = stats.linregress(np.arange(40), values)
    reach = stats.t.ppf(0.975, 38) * line.stderr
    assert found is not None
    assert found.n_effective == 40
    assert (found.per_week, found.low, found.high) == pytest.approx(
        (7 * line.slope, 7 * (line.slope - reach), 7 * (line.slope + reach))
    )


@pytest.mark.parametrize(("n", "memory"), [(21, 0.0), (30, 0.5), (60, 0.0), (60, 0.7)])
def test_intervals_hold_a_planted_trend(n: int, memory: float) -> None:
    rng = np.random.default_rng(7)
    planted, held = 0.02, 0
    for _ in range(400):
        found = trend(days(n), list(planted * np.arange(n) + noise(rng, n, memory)))
        assert found is not None
        held += found.low <= 7 * planted <= found.high
    assert 0.90 <= held / 400 <= 0.99


def test_an_error_without_memory_would_be_too_small() -> None:
    """What the correction is for: plain least squares sees trends in most series with memory."""
    rng = np.random.default_rng(8)
    plain = told = 0
    for _ in range(300):
        values = noise(rng, 60, 0.7)
        plain += stats.linregress(np.arange(60), values).pvalue < 0.05
        found = trend(days(60), list(values))
        assert found is not None
        told += found.verdict != "no change seen"
    assert plain > 90
    assert told < 30


def test_order_and_gaps_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    listed = [day for day in days(50) if day.day % 9]
    values = list(rng.normal(size=len(listed)))
    mixed = rng.permutation(len(listed))
    again = trend([listed[each] for each in mixed], [values[each] for each in mixed])
    assert trend(listed, values) == again


def test_few_days_and_constant_values() -> None:
    assert trend(days(LEAST_DAYS - 1), [1.0] * (LEAST_DAYS - 1)) is None
    flat = trend(days(30), [5.0] * 30)
    assert flat is not None
    assert (flat.per_week, flat.verdict) == (0.0, "no change seen")
