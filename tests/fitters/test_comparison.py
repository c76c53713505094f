"""Comparing fits."""

import numpy as np

from fitters import Buckets, compare, fit_speed_factors
from fitters.fit.interaction import complete_rel_var
from tests.fitters.toys import make, shape


def test_comparing_a_fit_with_itself_and_with_another_scale() -> None:
    toy = make(np.random.default_rng(3), 10, 40, 4.0)
    result = fit_speed_factors(toy.buckets())
    same = compare(result, result)
    np.testing.assert_allclose(same.ln_ratio, 0, atol=1e-14)
    assert set(same.status) == {"ok"}
    fewer = toy.unit != 3
    part = fit_speed_factors(Buckets.from_columns(toy.task[fewer], toy.unit[fewer], toy.value[fewer]))
    other = compare(result, part)
    assert other.status[other.name.tolist().index(3)] == "only in a"
    reverse = compare(part, result)
    assert reverse.status[-1] == "only in b"
    common = other.status == "ok"
    # a scale of its own: the common units have the same sum in both
    k_a = result.units.k[np.isin(result.units.name, part.units.name)]
    np.testing.assert_allclose(np.sum(k_a * np.exp(-other.ln_ratio[common])), k_a.sum(), rtol=1e-12)
    error = (result.units.k_err / result.units.k)[np.isin(result.units.name, part.units.name)]
    np.testing.assert_allclose(other.sigma[common], other.ln_ratio[common] / error, rtol=1e-12)


def test_paper_minus_gamma_is_the_systematic_of_the_method() -> None:
    rng = np.random.default_rng(4)
    layout = shape(rng, 30, 1000, 8.0)
    sizes = np.array([0.05, 0.1, 0.2])[layout[1] % 3]
    toy = make(rng, 30, 1000, sigma=sizes, layout=layout)
    difference = compare(fit_speed_factors(toy.buckets()), fit_speed_factors(toy.buckets(), "gamma"))
    group = difference.ln_ratio.reshape(10, 3).mean(axis=0)
    assert group[0] - group[2] > 0.01
    assert np.abs(difference.sigma).max() > 1


def test_unknown_variances_are_filled_and_never_zero() -> None:
    nan = float("nan")
    jobs, rel_var = [10, 20, 40, 80], [0.02, 0.01, nan, nan]
    buckets = Buckets.from_columns(["t"] * 4, list("ABCD"), [1.0] * 4, jobs=jobs, rel_var=rel_var)
    filled, missing = complete_rel_var(buckets)
    assert missing == 2
    np.testing.assert_allclose(filled, [0.02, 0.01, 0.005, 0.0025])
    result = fit_speed_factors(buckets)
    assert result.n_imputed == 2
    assert (result.units.k_err_stat > 0).all()
    unknown = Buckets.from_columns(["t"] * 4, list("ABCD"), [1.0] * 4, jobs=jobs, rel_var=[nan] * 4)
    assert complete_rel_var(unknown)[0].size == 0
    assert set(fit_speed_factors(unknown).units.status) == {"no dof"}
