"""Weights from variance components, and buckets that count for less or nothing."""

import numpy as np
import pytest

from fitters import Buckets, FitResult, SettingError, bucket_table, fit_speed_factors
from fitters.fit.weighting import components_of
from fitters.layout.arrays import grouped_median
from tests.fitters.toys import Floats, Objective, Robust, Toy, Weights, make, shape
from tests.messages import raised

TOYS = 60


def uneven(
    rng: np.random.Generator,
    tasks: int,
    *,
    known: bool = False,
    stray: float = 0.0,
    floor: float = 0.05,
    units: int = 30,
) -> Toy:
    """Buckets of 3 to 2000 jobs of relative scatter 0.5, and a floor that does not average."""
    layout = shape(rng, units, tasks, 8.0)
    jobs = np.exp(rng.normal(np.log(60), 1.2, layout[0].size)).round() + 2
    toy = make(rng, units, tasks, sigma=np.sqrt(0.25 / jobs + floor**2), layout=layout)
    wrong = np.exp(rng.choice([-1, 1], jobs.size) * rng.uniform(np.log(3), np.log(30), jobs.size))
    value = np.where(rng.random(jobs.size) < stray, toy.value * wrong, toy.value)
    rel_var = 0.25 / jobs * rng.chisquare(jobs - 1) / (jobs - 1) if known else None
    return Toy(toy.task, toy.unit, value, toy.k, toy.A, jobs, rel_var)


def assert_standard(pulls: Floats, widest: float = 1.0) -> None:
    n = pulls.size
    assert abs(pulls.mean()) < 0.03 + 4 / np.sqrt(n)
    assert 1 - 0.03 - 4 / np.sqrt(2 * n) < pulls.std() < widest + 0.03 + 4 / np.sqrt(2 * n)


def pulls(results: list[tuple[FitResult, Toy]]) -> Floats:
    found = [(np.log(r.units.k) - toy.ln_k) * r.units.k / r.units.k_err for r, toy in results]
    return np.concatenate(found)


@pytest.mark.parametrize("known", [False, True])
def test_floor_weights_find_the_components_and_the_errors_hold(known: bool) -> None:
    rng = np.random.default_rng(41)
    fits = []
    for _ in range(TOYS):
        toy = uneven(rng, 200, known=known)
        fits.append((fit_speed_factors(toy.buckets(), "gamma", "floor"), toy))
    assert_standard(pulls(fits))
    floors = np.array([result.weighting.floor for result, _ in fits])
    assert floors.mean() == pytest.approx(0.05, abs=0.006)
    assert {result.weighting.source for result, _ in fits} == {"estimated"}
    if not known:
        scatters = np.array([result.weighting.job_scatter for result, _ in fits])
        assert scatters.mean() == pytest.approx(0.5, abs=0.03)
        assert np.mean([result.S for result, _ in fits]) == pytest.approx(1, abs=0.02)
    spread = np.concatenate([np.log(result.units.k) - toy.ln_k for result, toy in fits]).std()
    rng = np.random.default_rng(41)
    plain = []
    for _ in range(TOYS):
        toy = uneven(rng, 200, known=known)
        plain.append(np.log(fit_speed_factors(toy.buckets(), "gamma").units.k) - toy.ln_k)
    assert spread < 0.9 * np.concatenate(plain).std()


def test_components_are_found_where_only_one_is_there() -> None:
    rng = np.random.default_rng(42)
    jobs = rng.integers(2, 200, 20_000).astype(float)
    layout = np.repeat(np.arange(1000), 20), np.tile(np.arange(20), 1000)
    for job, floor in ((0.4, 0.0), (0.0, 0.1), (0.4, 0.1)):
        variance = job**2 / jobs + floor**2
        residual = rng.normal(0, np.sqrt(variance))
        buckets = Buckets.from_columns(*layout, np.ones(20_000), jobs=jobs)
        found = components_of(buckets, residual, variance + 1e-6, np.ones(20_000, bool))
        assert np.sqrt(found) == pytest.approx([job, floor], abs=0.03)
    assert components_of(buckets, residual, variance, np.ones(20_000, bool), 0.1)[1] == pytest.approx(0.01)


def test_below_ten_degrees_of_freedom_components_are_assumed_and_nothing_is_rejected() -> None:
    columns = [1, 1, 1, 2, 2, 2], list("ABC") * 2, [1.0, 2.0, 3.0, 1.0, 2.0, 90.0]
    result = fit_speed_factors(
        Buckets.from_columns(*columns, jobs=[5] * 6), "gamma", "floor", robust="reject"
    )
    assert (result.weighting.floor, result.weighting.job_scatter) == (0.1, 0.5)
    assert result.weighting.source == "assumed"
    assert result.weighting.n_rejected == 0
    assert set(result.units.status) == {"ok"}


def test_a_given_interaction_is_the_floor() -> None:
    toy = uneven(np.random.default_rng(43), 50, known=True)
    result = fit_speed_factors(toy.buckets(), "gamma", "floor", sigma_int=0.2)
    assert (result.weighting.floor, result.weighting.source) == (0.2, "given")
    bare = Buckets.from_columns(toy.task, toy.unit, toy.value, rel_var=toy.rel_var)
    assert fit_speed_factors(bare, "gamma", "floor", sigma_int=0.2).weighting.floor == 0.2


def test_floor_weights_need_something_to_rest_on() -> None:
    toy = make(np.random.default_rng(44), 5, 20, 3.0)
    with raised(SettingError):
        fit_speed_factors(toy.buckets(), weights="floor")
    with raised(SettingError):
        fit_speed_factors(toy.buckets(), robust="huber")  # type: ignore[arg-type]


@pytest.mark.parametrize(("objective", "robust"), [("paper", "reject"), ("gamma", "reject")])
@pytest.mark.parametrize("known", [False, True])
def test_stray_buckets_cost_little_and_errors_hold(objective: Objective, robust: Robust, known: bool) -> None:
    rng = np.random.default_rng(45)
    fits, spread = [], {}
    for stray in (0.0, 0.05):
        moved, rejected = [], []
        for _ in range(TOYS):
            toy = make(rng, 30, 60, 8.0)
            wrong = np.exp(
                rng.choice([-1, 1], toy.value.size) * rng.uniform(np.log(3), np.log(30), toy.value.size)
            )
            bad = rng.random(toy.value.size) < stray
            rel_var = np.full(bad.size, 0.01) if known else None
            toy = Toy(
                toy.task, toy.unit, np.where(bad, toy.value * wrong, toy.value), toy.k, toy.A, None, rel_var
            )
            result = fit_speed_factors(toy.buckets(), objective, robust=robust)
            fits.append((result, toy))
            moved.append(np.log(result.units.k) - toy.ln_k)
            rejected.append(result.weighting.n_rejected - bad.sum())
            if not known:
                assert pytest.approx(0.1, rel=0.15) == result.S
        spread[stray] = np.concatenate(moved).std()
        assert abs(np.mean(rejected)) < 2.5
    assert spread[0.05] < 1.15 * spread[0.0]
    assert_standard(pulls(fits))


def test_the_headline_holds_with_uneven_jobs_and_stray_buckets() -> None:
    rng = np.random.default_rng(46)
    fits = []
    for _ in range(TOYS):
        toy = uneven(rng, 60, known=True, stray=0.03)
        fits.append((fit_speed_factors(toy.buckets(), "gamma", "floor", robust="reject"), toy))
    assert_standard(pulls(fits), 1.02)
    sandwich = [
        ((np.log(r.units.k) - toy.ln_k) * r.units.k / r.units.k_err_sandwich)[r.units.n_tasks >= 20]
        for r, toy in fits
    ]
    assert np.nanstd(np.concatenate(sandwich)) == pytest.approx(1, abs=0.1)


def test_books_hold_with_rejected_buckets_and_lost_units() -> None:
    toy = make(np.random.default_rng(47), 12, 40, 6.0, sigma=0.03)
    task, unit, value = (
        [*toy.task.tolist(), 0, 1, 1],
        [*toy.unit.tolist(), 99, 99, int(toy.unit[toy.task == 1][0])],
        [*toy.value.tolist(), 1e-3, 1e6, float(toy.value[toy.task == 1][0])],
    )
    buckets = Buckets.from_columns(task, unit, value)
    result = fit_speed_factors(buckets, "gamma", robust="reject")
    n_bad = result.weighting.n_rejected
    assert n_bad >= 2
    assert result.n_rows == result.n_used + sum(result.dropped.values())
    assert result.dropped["rejected as outlier"] >= 2
    row = result.units.row(99)
    assert (row["status"], row["reason"]) == ("no data", "all rows dropped: rejected as outlier")
    table = bucket_table(result)
    assert len(table) == buckets.n_buckets
    assert (table.status == "rejected").sum() == n_bad
    assert (table.weight[table.status == "rejected"] == 0).all()


def test_pulls_of_buckets_are_standard_and_show_what_was_rejected() -> None:
    toy = uneven(np.random.default_rng(48), 300, known=True, stray=0.02)
    table = bucket_table(fit_speed_factors(toy.buckets(), "gamma", "floor", robust="reject"))
    used = table.status == "used"
    assert table.pull[used].std() == pytest.approx(1, abs=0.06)
    assert np.nanmin(np.abs(table.pull[table.status == "rejected"])) > 3
    plain = bucket_table(fit_speed_factors(Buckets.from_columns(toy.task, toy.unit, toy.value)))
    assert np.isfinite(plain.pull).all()
    weightings: tuple[Weights, ...] = ("jobs", "floor")
    for weights in weightings:
        columns = toy.task, toy.unit, toy.value
        result = fit_speed_factors(Buckets.from_columns(*columns, jobs=toy.jobs), "gamma", weights)
        assert np.isfinite(bucket_table(result).pull).all()


def test_without_weights_all_buckets_count_the_same() -> None:
    toy = make(np.random.default_rng(49), 8, 30, 4.0)
    assert not fit_speed_factors(toy.buckets()).weighting.weight.size


def test_medians_of_groups() -> None:
    rng = np.random.default_rng(50)
    group, values = rng.integers(0, 40, 300), rng.normal(size=300)
    found = grouped_median(group, values, 41)
    for number in range(40):
        assert found[number] == np.median(values[group == number])
    assert found[40] == 0
