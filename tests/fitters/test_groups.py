"""Declarations of two kinds are told from a few wrong ones and from a wide scatter."""

import numpy as np
import pytest

from fitters import fit_line
from tests.fitters.toys import Floats

ERROR = 0.04


def found(rng: np.random.Generator, ln_ratio: Floats) -> bool:
    c = np.exp(rng.normal(2.4, 0.2, ln_ratio.size))
    k = 0.1 * c * np.exp(ln_ratio + rng.normal(0, ERROR, c.size))
    return fit_line(k, ERROR * k, c).groups is not None


@pytest.mark.parametrize(
    ("share", "both_ways", "scatter", "least", "most"),
    [
        (0.0, False, 0.05, 0, 0),
        (0.0, False, 0.20, 0, 1),
        (0.10, False, 0.05, 0, 2),
        (0.25, True, 0.05, 0, 3),
        (0.30, False, 0.05, 25, 30),
        (0.45, False, 0.05, 28, 30),
    ],
)
def test_two_groups_are_found_where_a_third_are_wrong_alike(
    share: float, both_ways: bool, scatter: float, least: int, most: int
) -> None:
    """Of 30 grids of 40 sites each; those who are wrong overstate by 1.5, or by 1.3 to 2 times either way."""
    rng = np.random.default_rng(40)
    count = 0
    for _ in range(30):
        wrong = np.arange(40) < round(40 * share)
        size = -np.log(1.5) * np.ones(40)
        if both_ways:
            size = np.log(rng.uniform(1.3, 2.0, 40)) * rng.choice([-1, 1], 40)
        count += found(rng, rng.normal(0, scatter, 40) + np.where(wrong, size, 0.0))
    assert least <= count <= most


def test_the_groups_are_those_that_were_made() -> None:
    rng = np.random.default_rng(41)
    upper = np.arange(40) < 25
    y = rng.normal(0, 0.05, 40) + np.where(upper, 0.4, 0.0)
    c = np.linspace(8, 14, 40)
    line = fit_line(np.exp(y) * c, 1e-3 * c, c)
    assert line.groups is not None
    assert line.groups.ratio == pytest.approx(np.exp(0.4), rel=0.05)
    assert ((y > line.groups.cut) == upper).mean() > 0.95
    assert line.groups.upper.sum() == pytest.approx(25, abs=2)


def test_few_points_have_no_groups() -> None:
    c = np.linspace(8, 14, 9)
    assert fit_line(np.where(c > 11, 1.5, 1.0) * c, 1e-3 * c, c).groups is None
    assert fit_line(np.ones(12), np.full(12, 0.1), np.full(12, 10.0)).groups is None
