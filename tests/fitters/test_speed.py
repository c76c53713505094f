"""Time for a large grid, and what happens beside other work."""

import time

import numpy as np
import pytest

from fitters import Buckets, fit_speed_factors
from fitters.threads import modest_blas
from tests.fitters.toys import make


def test_300_sites_by_20000_tasks_fit_in_five_seconds() -> None:
    rng = np.random.default_rng(1)
    toy = make(rng, 300, 20_000, 16.5)
    task = [f"task-{number:08d}" for number in toy.task]
    unit = [f"SITE_{number:03d}" for number in toy.unit]
    rel_var = np.full(toy.task.size, 0.003)
    fit_speed_factors(make(rng, 5, 20, 3.0).buckets())  # compilation is not what is measured
    began = time.perf_counter()
    buckets = Buckets.from_columns(task, unit, toy.value, jobs=np.ones(toy.task.size), rel_var=rel_var)
    result = fit_speed_factors(buckets)
    assert time.perf_counter() - began < 5
    assert set(result.units.status) == {"ok"}
    assert result.components.verdict[0].hesse
    pull = (np.log(result.units.k) - toy.ln_k) * result.units.k / result.units.k_err
    assert pull.std() == pytest.approx(1, abs=0.03 + 4 / np.sqrt(600))
    assert sum(result.timings.values()) < 5


def test_threads_of_the_linear_algebra_are_given_back() -> None:
    from fitters.threads import _switches

    before = [getter() for getter, _ in _switches()]
    with modest_blas(10):
        assert all(getter() == 1 for getter, _ in _switches())
    assert [getter() for getter, _ in _switches()] == before
    with modest_blas(5000):
        assert [getter() for getter, _ in _switches()] == before
