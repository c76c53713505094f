"""How often periodic phases are found in made-up series: the measured table, with fewer jobs.

Shares are compared within what 200 jobs, of which the table tells, and those that are made here scatter.
"""

import math
from typing import Any

import numpy as np
import pytest

from esjobs.issues.detectors import PUBLISHED, flagged, io_blocking
from tests.issues.detectors.made_series import STEP_S, bursts, periodic, step, telegraph, white

TABLE = [
    ({}, 120, 0.93),
    ({}, 480, 1.00),
    ({"period": 7.3}, 120, 0.00),
    ({"period": 7.3}, 480, 1.00),
    ({"noise": 0.15}, 120, 0.89),
    ({"noise": 0.15}, 480, 1.00),
    ({"jitter": 0.02}, 120, 0.33),
    ({"jitter": 0.02}, 480, 1.00),
    ({"jitter": 0.05}, 120, 0.03),
    ({"jitter": 0.05}, 480, 0.79),
    ({"jitter": 0.1}, 120, 0.00),
    ({"jitter": 0.1}, 480, 0.04),
    ({"inverse": False}, 480, 0.00),
    ({"lag": 2}, 480, 0.00),
    ({"period": 80.0}, 480, 0.00),
]
ADAPTIVE = [
    ({"period": 7.3}, 120, 0.78),
    ({"jitter": 0.02}, 120, 1.00),
    ({"jitter": 0.05}, 120, 0.92),
    ({"period": 7.3}, 240, 1.00),
    ({"jitter": 0.02}, 240, 1.00),
    ({"jitter": 0.05}, 240, 0.89),
]
JOBS = 200


def rate(variant: str, n: int, options: dict[str, Any]) -> float:
    load, rates = periodic(np.random.default_rng(n), JOBS, n, **options)
    found = io_blocking(load, {"write_b_s": rates}, STEP_S).strongest
    return float(flagged(found, PUBLISHED[variant]).mean())


def scatter(share: float) -> float:
    """Three standard errors of the difference of two shares of 200 jobs, of at least one job each."""
    p = min(max(share, 1 / JOBS), 1 - 1 / JOBS)
    return 3 * math.sqrt(2 * p * (1 - p) / JOBS)


@pytest.mark.parametrize(("options", "n", "share"), TABLE)
def test_strict(options: dict[str, Any], n: int, share: float) -> None:
    assert rate("io_blocking", n, options) == pytest.approx(share, abs=scatter(share))


@pytest.mark.parametrize(("options", "n", "share"), ADAPTIVE)
def test_adaptive(options: dict[str, Any], n: int, share: float) -> None:
    assert rate("io_blocking adaptive", n, options) == pytest.approx(share, abs=scatter(share))


@pytest.mark.parametrize("jitter", [0.02, 0.05, 0.1])
def test_a_day_of_samples_finds_what_hours_do_not(jitter: float) -> None:
    load, rates = periodic(np.random.default_rng(1), 40, 2880, jitter=jitter, cores=4)
    found = io_blocking(load, {"write_b_s": rates}, STEP_S).strongest
    share = flagged(found, PUBLISHED["io_blocking"]).mean()
    assert share >= (0.4 if jitter == 0.1 else 0.95)


@pytest.mark.parametrize("make", [white, bursts, telegraph, step])
@pytest.mark.parametrize("n", [120, 480])
def test_noise_is_not_periodic(make: Any, n: int) -> None:
    load, rates = make(np.random.default_rng(n), 1000, n)
    found = io_blocking(load, {"write_b_s": rates}, STEP_S).strongest
    for variant in ("io_blocking", "io_blocking adaptive"):
        assert flagged(found, PUBLISHED[variant]).mean() <= 0.002, variant
