"""A large grid, and what happens beside other work and between processes."""

import gc
import weakref

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fitters import Buckets, fit_speed_factors
from fitters.threads import one_blas_thread
from tests.fitters.toys import make


def test_300_sites_by_20000_tasks() -> None:
    rng = np.random.default_rng(1)
    toy = make(rng, 300, 20_000, 16.5)
    task = [f"task-{number:08d}" for number in toy.task]
    unit = [f"SITE_{number:03d}" for number in toy.unit]
    rel_var = np.full(toy.task.size, 0.003)
    buckets = Buckets.from_columns(task, unit, toy.value, jobs=np.ones(toy.task.size), rel_var=rel_var)
    result = fit_speed_factors(buckets)
    assert set(result.units.status) == {"ok"}
    pull = (np.log(result.units.k) - toy.ln_k) * result.units.k / result.units.k_err
    assert pull.std() == pytest.approx(1, abs=0.03 + 4 / np.sqrt(600))
    assert min(result.timings.values()) >= 0


def test_a_result_is_freed_when_it_is_let_go() -> None:
    """Not at the next garbage collection: a service that fits every night would hold several at once."""
    toy = make(np.random.default_rng(1), 10, 50)
    buckets = toy.buckets()
    gone = weakref.ref(buckets.value)
    gc.disable()
    try:
        result = fit_speed_factors(buckets, search="minuit")
        assert set(result.tasks.status) == {"ok"}
        del result, buckets
        assert gone() is None
    finally:
        gc.enable()


def test_threads_of_the_linear_algebra_are_given_back() -> None:
    def now() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):  # whatever the machine has
        assert now()
        before = now()
        with one_blas_thread():
            assert set(now()) == {1}
        assert now() == before
        with pytest.raises(ValueError, match="inside"), one_blas_thread():
            raise ValueError("inside")
        assert now() == before
