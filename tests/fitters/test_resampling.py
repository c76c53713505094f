"""A second opinion on errors that believes no model: tasks are drawn with replacement and fitted again."""

from typing import Any

import numpy as np
import pytest

from fitters import Buckets, fit_speed_factors
from tests.fitters.toys import Floats, Objective, Robust, Toy, make, shape


def resampled(toy: Toy, replicas: int, **options: Any) -> Floats:
    """Relative spread of the factors over refits of drawn tasks, one per unit.

    Whole tasks are the unit of drawing (Davison & Hinkley, Bootstrap Methods and their Application, 1997,
    section 3.8); a task drawn twice enters as two tasks.
    """
    rng = np.random.default_rng(5)
    names, codes = np.unique(toy.task, return_inverse=True)
    rows_of_task = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    ln_k = []
    for _ in range(replicas):
        chosen = [rows_of_task[task] for task in rng.integers(0, names.size, names.size)]
        task = np.repeat(np.arange(names.size), [rows.size for rows in chosen])
        rows = np.concatenate(chosen)
        buckets = Buckets.from_columns(task, toy.unit[rows], toy.value[rows])
        ln_k.append(np.log(fit_speed_factors(buckets, **options).units.k))
    return np.asarray(np.std(ln_k, axis=0, ddof=1), np.float64)


@pytest.mark.parametrize(
    ("objective", "robust"), [("paper", "none"), ("gamma", "none"), ("paper", "reject"), ("gamma", "reject")]
)
def test_spread_of_resampled_tasks_is_the_error_where_the_model_holds(
    objective: Objective, robust: Robust
) -> None:
    toy = make(np.random.default_rng(61), 12, 250, 6.0)
    spread = resampled(toy, 300, objective=objective, robust=robust)
    units = fit_speed_factors(toy.buckets(), objective, robust=robust).units
    assert (spread * units.k / units.k_err_model).mean() == pytest.approx(1, abs=0.08)
    np.testing.assert_allclose(spread, units.k_err_sandwich / units.k, rtol=0.2)


def test_the_sandwich_sees_scatter_that_equal_weights_do_not_know() -> None:
    """Two kinds of tasks, one five times as noisy: equal weights, an S in between, yet right errors."""
    rng = np.random.default_rng(62)
    layout = shape(rng, 10, 300, 5.0)
    toy = make(rng, 10, 300, sigma=np.where(layout[1] < 2, 0.25, 0.05), layout=layout)
    spread = resampled(toy, 300, objective="gamma")
    units = fit_speed_factors(toy.buckets(), "gamma").units
    assert (spread[:2] > 1.4 * (units.k_err_model / units.k)[:2]).all()
    np.testing.assert_allclose(spread, units.k_err_sandwich / units.k, rtol=0.2)
