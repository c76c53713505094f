"""Start-up time per job: real queues as judges, toys with planted costs, decisions, bad input."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

from fitters import (
    Buckets,
    FitError,
    FixedCosts,
    InputError,
    UnknownNameError,
    correct_fixed_cost,
    draw_fixed_costs,
    estimate_fixed_cost,
    fit_speed_factors,
    fixed_cost_residuals,
)
from fitters.errors import SettingError
from tests.fitters.job_toys import Sums, ToyJobs, make_jobs
from tests.fitters.panda_jobs import read_jobs, sum_jobs
from tests.messages import raised

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def evgen(panda_files: list[Path]) -> pd.DataFrame:
    """The task of 10 568 one-core jobs on 40 queues."""
    return read_jobs(next(path for path in panda_files if "15350577" in path.name))


@pytest.fixture(scope="module")
def from_jobs(evgen: pd.DataFrame) -> FixedCosts:
    return estimate_fixed_cost(evgen["task"], evgen["unit"], evgen["events"], evgen["cpu_s"])


@pytest.fixture(scope="module")
def from_buckets(evgen: pd.DataFrame) -> FixedCosts:
    return estimate_fixed_cost(**sum_jobs(evgen))


def spread(k: pd.Series, queues: list[str]) -> float:
    return float(k[queues].max() / k[queues].min())


LYON = ["IN2P3-CC_CL7", "IN2P3-CC_CL7_HIMEM", "IN2P3-CC_CL7_VVL"]
CINECA = ["INFN-T1-CINECA-SL7_HIMEM", "INFN-T1-CINECA-SL7_UCORE"]


def test_both_estimates_of_the_real_task(from_jobs: FixedCosts, from_buckets: FixedCosts) -> None:
    jobs, buckets = from_jobs.tasks.row("15350577 single"), from_buckets.tasks.row("15350577 single")
    assert jobs["rho"] == pytest.approx(36.6, abs=0.1)
    assert 0.5 < jobs["rho_err"] < buckets["rho_err"]
    assert buckets["rho"] == pytest.approx(37.377, abs=0.001)
    assert buckets["rho_err"] == pytest.approx(1.19, abs=0.02)
    assert abs(jobs["rho"] - buckets["rho"]) < np.hypot(jobs["rho_err"], buckets["rho_err"])
    assert jobs["slope"] == pytest.approx(-0.666, abs=0.005)
    assert buckets["slope"] == pytest.approx(-0.671, abs=0.005)
    assert jobs["n_used"] + jobs["n_trimmed"] == jobs["n_jobs"] == 10568
    assert 80 < jobs["n_trimmed"] < 150
    for row in (jobs, buckets):
        assert row["decision"] == "apply"
        assert row["n_units"] == 40
        assert row["events_ratio"] == pytest.approx(3.04, abs=0.01)


def test_sibling_queues_of_one_declaration_agree_once_corrected(
    evgen: pd.DataFrame, from_jobs: FixedCosts, from_buckets: FixedCosts
) -> None:
    sums = sum_jobs(evgen)
    raw = pd.Series((sums["events"] / sums["cpu_s"]).to_numpy(), sums["unit"])
    assert spread(raw, LYON) == pytest.approx(2.15, abs=0.01)
    assert spread(raw, CINECA) == pytest.approx(1.515, abs=0.01)
    for costs in (from_jobs, from_buckets):
        corrected = correct_fixed_cost(costs, **sums)
        assert corrected.corrected.all()
        buckets = Buckets.from_columns(
            sums["task"],
            sums["unit"],
            cpu_s=sums["cpu_s"],
            events=corrected.events_eff,
            jobs=sums["n_jobs"],
            rel_var=corrected.rel_var,
        )
        units = fit_speed_factors(buckets, "gamma").units
        k = pd.Series(units.k, units.name)
        assert spread(k, LYON) < 1.06
        assert spread(k, CINECA) < 1.15
        # the error of rho adds next to nothing to queues of usual length, visibly to short ones
        shorts = (sums["unit"] == "IN2P3-CC_CL7_VVL").to_numpy()
        assert 0 < corrected.rel_var_rho[shorts][0] < corrected.rel_var[shorts][0]


def test_strata_of_events_per_job_give_the_same_factors(
    evgen: pd.DataFrame, from_buckets: FixedCosts
) -> None:
    """Twenty strata, each a task of its own, know nothing of a model: inside one all jobs are alike."""
    edges = np.unique(np.quantile(evgen["events"], np.arange(1, 20) / 20))
    strata = evgen.assign(task=np.searchsorted(edges, evgen["events"]))
    sums, cut = sum_jobs(evgen), sum_jobs(strata)
    free = fit_speed_factors(
        Buckets.from_columns(
            cut["task"], cut["unit"], cpu_s=cut["cpu_s"], events=cut["events"], jobs=cut["n_jobs"]
        ),
        "gamma",
        "jobs",
    ).units
    corrected = correct_fixed_cost(from_buckets, **sums)
    model = pd.Series((corrected.events_eff / sums["cpu_s"]).to_numpy(), sums["unit"])
    raw = pd.Series((sums["events"] / sums["cpu_s"]).to_numpy(), sums["unit"])
    many = sums.loc[sums["n_jobs"] >= 50, "unit"]
    assert len(many) == 39
    reference = pd.Series(free.k, free.name)[many]

    def worst(k: pd.Series) -> float:
        ratio = np.log(k[many] / reference)
        return float((ratio - ratio.median()).abs().max())

    assert worst(model) < 0.05
    assert worst(raw) > 0.4


def test_the_other_real_tasks_are_left_alone(panda_files: list[Path]) -> None:
    jobs = pd.concat([read_jobs(path) for path in panda_files if "15350577" not in path.name])
    tables = (
        estimate_fixed_cost(jobs["task"], jobs["unit"], jobs["events"], jobs["cpu_s"]).tasks,
        estimate_fixed_cost(**sum_jobs(jobs)).tasks,
    )
    for table in tables:
        decisions = dict(zip(table.name, table.decision, strict=True))
        assert decisions["13332803 multi"] == decisions["13332803 single"] == "equal lengths"
        assert decisions["14773217 multi"] == "equal lengths"
        assert np.isnan(table.row("14773217 multi")["rho"])  # 1000 events each
        assert decisions["13743294 single"] != "apply"  # mixed
    assert "off any common line" in tables[0].row("13743294 single")["reason"]


# toys


def fitted(jobs: ToyJobs, costs: FixedCosts, sums: Sums) -> tuple[Floats, Floats, Floats]:
    """Corrected ln k minus truth, its statistical error, and raw ln k minus truth."""
    corrected = correct_fixed_cost(costs, **sums.columns())
    use = corrected.use
    right = fit_speed_factors(
        Buckets.from_columns(
            sums.task[use],
            sums.unit[use],
            cpu_s=sums.cpu_s[use],
            events=corrected.events_eff[use],
            rel_var=corrected.rel_var[use],
        ),
        "gamma",
        sigma_int=0.0,
    ).units
    raw = fit_speed_factors(
        Buckets.from_columns(sums.task, sums.unit, cpu_s=sums.cpu_s, events=sums.events),
        "gamma",
    ).units
    return np.log(right.k) - jobs.ln_k, right.k_err_stat / right.k, np.log(raw.k) - jobs.ln_k


@pytest.mark.parametrize(("rho", "raw_bias"), [(0.0, 0.0), (5.0, 0.17), (30.0, 0.48), (100.0, 0.65)])
def test_planted_costs_leave_no_bias(rho: float, raw_bias: float) -> None:
    """Mean events per job from 10 to 40: below 1 % corrected, and pulls as wide as their errors say."""
    rng = np.random.default_rng(int(rho) + 1)
    off, pulls, raw_off = [], [], []
    for _ in range(30):
        jobs = make_jobs(rng, 12, 8, 100, rho)
        sums = jobs.sums()
        costs = estimate_fixed_cost(**sums.columns())
        assert set(costs.tasks.decision) <= ({"apply"} if rho else {"apply", "proportional", "rising"})
        here, error, raw = fitted(jobs, costs, sums)
        off.append(here)
        pulls.append(here / error)
        raw_off.append(raw)
    assert np.abs(np.mean(off, axis=0)).max() < 0.01
    assert np.abs(np.mean(raw_off, axis=0)).max() == pytest.approx(raw_bias, abs=0.02)
    assert np.std(pulls) == pytest.approx(1.0, abs=0.03 + 4 / np.sqrt(2 * 360))


@pytest.mark.parametrize("rho", [1.0, 2.0])
def test_small_costs_are_found_where_the_jobs_can_tell(rho: float) -> None:
    """A slope of -0.05 moves factors by 4 %: with enough jobs that is seen and taken out."""
    rng = np.random.default_rng(int(rho))
    off, found = [], []
    for _ in range(10):
        jobs = make_jobs(rng, 12, 8, 500, rho)
        costs = estimate_fixed_cost(**jobs.sums().columns())
        found += costs.tasks.decision.tolist()
        off.append(fitted(jobs, costs, jobs.sums())[0])
    assert found.count("apply") > 0.85 * len(found)
    assert np.abs(np.mean(off, axis=0)).max() < 0.01


def test_no_cost_is_not_corrected_into_noise() -> None:
    """Tasks of a kind without a cost have none together, and pulls of k are as wide as their errors say."""
    rng = np.random.default_rng(5)
    pulls, shares = [], []
    for _ in range(150):
        jobs = make_jobs(rng, 20, 5, 80, 0.0)
        sums = jobs.sums()
        costs = draw_fixed_costs(estimate_fixed_cost(**sums.columns()), np.zeros(5, np.int64))
        off, error, _ = fitted(jobs, costs, sums)
        shares += costs.tasks.share.tolist()
        pulls.append(off / error)
    assert abs(np.mean(shares)) < 0.002
    assert np.std(shares) < 0.03
    assert np.std(pulls) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("rho", [10.0, 60.0])
@pytest.mark.parametrize("law", ["log-normal", "uniform"])
def test_errors_of_rho_are_honest(rho: float, law: str) -> None:
    rng = np.random.default_rng(11)
    jobs = make_jobs(rng, 5, 300, 60, rho, law=law)
    buckets = estimate_fixed_cost(**jobs.sums().columns()).tasks
    some = jobs.task < 24
    single = estimate_fixed_cost(jobs.task[some], jobs.unit[some], jobs.events[some], jobs.cpu_s[some]).tasks
    for table, low, high in ((buckets, 0.75, 1.2), (single, 0.7, 1.4)):
        pull = (table.rho - rho) / table.rho_err
        assert abs(np.median(pull)) < 5 / np.sqrt(pull.size)
        assert low < np.std(pull) < high


def test_jobs_and_buckets_agree_and_only_jobs_shrug_off_outliers() -> None:
    rng = np.random.default_rng(13)
    jobs = make_jobs(rng, 10, 1, 200, 25.0)
    clean = estimate_fixed_cost(jobs.task, jobs.unit, jobs.events, jobs.cpu_s).tasks.row(0)
    sums = estimate_fixed_cost(**jobs.sums().columns()).tasks.row(0)
    assert abs(clean["rho"] - sums["rho"]) < 2 * np.hypot(clean["rho_err"], sums["rho_err"])
    stuck = jobs.cpu_s * np.where(rng.random(jobs.cpu_s.size) < 0.05, 20.0, 1.0)
    found = estimate_fixed_cost(jobs.task, jobs.unit, jobs.events, stuck).tasks.row(0)
    assert found["n_trimmed"] > 0.04 * jobs.task.size
    assert abs(found["rho"] - 25) < 3 * found["rho_err"]
    assert found["rho_err"] < 1.3 * clean["rho_err"]


def test_the_minimum_is_that_of_a_general_minimiser() -> None:
    """The published expression, written down again and handed to SciPy."""
    rng = np.random.default_rng(17)
    jobs = make_jobs(rng, 6, 1, 150, 12.0, sigma=0.1)
    sums = jobs.sums()
    cbar, nbar = sums.cpu_s / sums.n_jobs, sums.events / sums.n_jobs
    nn, cc = sums.events_sq - sums.n_jobs * nbar**2, sums.cpu_s_sq - sums.n_jobs * cbar**2
    nc = sums.events_cpu_s - sums.n_jobs * nbar * cbar

    def squares(rho: float) -> float:
        level = cbar / (rho + nbar)
        return float(np.sum((cc - 2 * level * nc + level**2 * nn) / cbar**2))

    best = optimize.minimize_scalar(squares, bounds=(0, 200), method="bounded", options={"xatol": 1e-9}).x
    assert estimate_fixed_cost(**sums.columns()).tasks.rho[0] == pytest.approx(best, abs=1e-4)
    found = estimate_fixed_cost(jobs.task, jobs.unit, jobs.events, jobs.cpu_s).tasks
    assert found.n_trimmed[0] == 0
    assert found.rho[0] == pytest.approx(best, abs=1e-4)


# decisions


def decision(**change: object) -> tuple[str, str]:
    """Decide on 200 jobs of two units; rho = 20 and lengths that differ fourfold unless changed."""
    options = {"rho": 20.0, "lengths": 2.0, "per_bucket": 100, "units": 2} | change
    rng = np.random.default_rng(19)
    without = options.pop("without", False)
    jobs = make_jobs(rng, tasks=1, **options)  # type: ignore[arg-type]
    columns = jobs.sums().columns()
    if without:
        columns = {name: columns[name] for name in ("task", "unit", "n_jobs", "events", "cpu_s")}
    table = estimate_fixed_cost(**columns).tasks
    return str(table.decision[0]), str(table.reason[0])


@pytest.mark.parametrize(
    ("change", "expected", "word"),
    [
        ({}, "apply", "slope -0."),
        ({"rho": 0.0, "per_bucket": 10_000, "lengths": 1.3}, "proportional", "slope"),
        ({"rho": 0.0}, "apply", "slope -0.04 +- 0.04"),
        ({"rho": -3.0, "law": "uniform", "lengths": 1.25, "per_bucket": 400}, "rising", "rises"),
        ({"lengths": 1.0}, "equal lengths", "differ by 1.0"),
        ({"units": 1}, "equal lengths", "one unit"),
        ({"without": True}, "excluded", "unknown: no second moments"),
        ({"without": True, "lengths": 1.0}, "equal lengths", "differ by 1.0"),
        ({"per_bucket": 15}, "excluded", "jobs"),
        ({"spread_events": 1e-9}, "excluded", "do not vary"),
        ({"spread_events": 0.03, "per_bucket": 40, "sigma": 0.3}, "excluded", "+-"),
    ],
)
def test_decisions_and_their_reasons(change: dict[str, object], expected: str, word: str) -> None:
    found, reason = decision(**change)
    assert (found, word in reason) == (expected, True), reason


def test_unknown_costs_are_no_numbers_and_excluded_rows_are_not_used() -> None:
    jobs = make_jobs(np.random.default_rng(23), 3, 2, 60, 20.0)
    columns = jobs.sums().columns()
    columns["events_sq"] = np.where(columns["task"] == 1, np.nan, columns["events_sq"])
    costs = estimate_fixed_cost(**columns)
    assert costs.tasks.decision.tolist() == ["apply", "excluded"]
    assert np.isnan([costs.tasks.rho[1], costs.tasks.rho_err[1], costs.tasks.slope[1]]).all()
    found = correct_fixed_cost(costs, **columns)
    gone = columns["task"] == 1
    assert found.use.tolist() == (~gone).tolist()
    assert np.isnan(found.events_eff[gone]).all()
    assert all("start-up time unknown" in reason for reason in found.reason[gone])


def test_rows_of_days_are_added_up() -> None:
    jobs = make_jobs(np.random.default_rng(29), 4, 3, 80, 15.0)
    whole = estimate_fixed_cost(**jobs.sums().columns()).tasks
    day = np.arange(jobs.task.size) % 3
    parts = [
        ToyJobs(jobs.task[day == d], jobs.unit[day == d], jobs.events[day == d], jobs.cpu_s[day == d], jobs.k)
        for d in range(3)
    ]
    tables = [part.sums().columns() for part in parts]
    joined: dict[str, Any] = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    again = estimate_fixed_cost(**joined)
    np.testing.assert_allclose(again.tasks.rho, whole.rho, rtol=1e-7)
    with raised(InputError):
        correct_fixed_cost(again, **joined)


@settings(max_examples=15, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e6), st.permutations(range(12)))
def test_units_of_time_events_and_order_do_not_matter(time: float, events: float, order: list[int]) -> None:
    jobs = make_jobs(np.random.default_rng(31), 4, 3, 40, 15.0)
    columns = jobs.sums().columns()
    before = estimate_fixed_cost(**columns).tasks
    power = {
        "events": (1, 0),
        "cpu_s": (0, 1),
        "events_sq": (2, 0),
        "cpu_s_sq": (0, 2),
        "events_cpu_s": (1, 1),
    }
    scaled = {
        name: (column * events ** power[name][0] * time ** power[name][1] if name in power else column)[order]
        for name, column in columns.items()
    }
    after = estimate_fixed_cost(**scaled).tasks
    np.testing.assert_allclose(after.rho, before.rho * events, rtol=1e-6)
    np.testing.assert_allclose(after.slope_err, before.slope_err, rtol=1e-6)
    assert after.decision.tolist() == before.decision.tolist()


# bad input


def test_bad_rows_are_counted_by_reason() -> None:
    good = make_jobs(np.random.default_rng(37), 2, 1, 60, 20.0)
    n = good.task.size
    events, cpu_s = good.events.tolist(), good.cpu_s.tolist()
    task, unit = ["t"] * n, good.unit.astype(object).tolist()
    bad: list[tuple[object, object, float, float]] = [
        (None, 0, 5.0, 5.0),
        ("t", None, 5.0, 5.0),
        ("t", 0, 0.0, 5.0),
        ("t", 0, float("nan"), 5.0),
        ("t", 0, 5.0, -1.0),
        ("t", 0, 5.0, 0.0),
        ("t", 0, 1e300, 5.0),
        ("t", 0, 5.0, float("inf")),
        ("u", 0, 5.0, 1e-300),
    ]
    for row_task, row_unit, row_events, row_cpu in bad:
        task.append(row_task)  # type: ignore[arg-type]
        unit.append(row_unit)
        events.append(row_events)
        cpu_s.append(row_cpu)
    costs = estimate_fixed_cost(task, unit, events, cpu_s)
    assert dict(costs.dropped) == {
        "task missing": 1,
        "unit missing": 1,
        "events not positive": 2,
        "cpu_s not positive": 2,
        "outside 1e-100..1e100": 3,
    }
    assert costs.n_rows == n + len(bad)
    assert costs.tasks.name.tolist() == ["t"]
    assert costs.tasks.n_jobs.tolist() == [n]
    residuals = fixed_cost_residuals(costs, task, events, cpu_s)
    assert np.isfinite(residuals[:n]).all()
    assert np.isnan(residuals[[n, n + 2, n + 3, n + 4, n + 5, n + 7, n + 8]]).all()


def test_all_rows_dropped_leave_an_empty_table() -> None:
    costs = estimate_fixed_cost(["t"], ["A"], [0], [1.0])
    assert len(costs.tasks) == 0
    assert costs.dropped["events not positive"] == 1
    costs = estimate_fixed_cost(["t"], ["A"], [0], [1.0], n_jobs=[4])
    assert len(costs.tasks) == 0


def test_contradicting_moments_are_no_moments() -> None:
    columns = make_jobs(np.random.default_rng(41), 2, 1, 60, 20.0).sums().columns()
    columns["events_cpu_s"] = columns["events_cpu_s"] * 3
    table = estimate_fixed_cost(**columns).tasks
    assert table.decision.tolist() == ["excluded"]
    assert "no second moments" in table.reason[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: estimate_fixed_cost([], [], [], []),
        lambda: estimate_fixed_cost(["t"], ["A", "B"], [1], [1.0]),
        lambda: estimate_fixed_cost(["t"], ["A"], ["one"], [1.0]),
        lambda: estimate_fixed_cost(["t"], ["A"], [1], [1.0], n_jobs=[1], events_sq=[1.0]),
    ],
)
def test_columns_that_cannot_be_read_are_refused(call: object) -> None:
    with pytest.raises(FitError) as caught:
        call()  # type: ignore[operator]
    assert isinstance(caught.value, InputError | SettingError)


def test_a_task_without_an_estimate_is_refused() -> None:
    costs = estimate_fixed_cost(["t"], ["A"], [1], [1.0])
    with raised(UnknownNameError):
        correct_fixed_cost(costs, ["u"], ["A"], [1], [1], [1.0])


def test_results_are_read_only() -> None:
    costs = estimate_fixed_cost(["t"] * 3, ["A"] * 3, [1, 2, 3], [1.0, 2.0, 3.0])
    for column in fields(costs.tasks):
        assert not getattr(costs.tasks, column.name).flags.writeable
