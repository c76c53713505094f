"""Start-up times that differ by unit: found without bias, and nothing is known that the jobs do not tell."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fitters import BucketSlopes, bucket_slopes, estimate_fixed_cost, unit_costs
from fitters.variance.of_estimates import drawn_to_mean
from tests.fitters.job_toys import Sums, sums_of

Floats = NDArray[np.float64]
UNITS, TASKS, PER_TASK, JOBS = 40, 60, 10, 60
NOISE = 0.2


def grid(rng: np.random.Generator, ln_f: Floats) -> tuple[Sums, Floats]:
    """Sums of a grid whose jobs have a start-up time of one mean job, times f; and that cost by task."""
    task = np.repeat(np.arange(TASKS), PER_TASK)
    unit = np.concatenate([rng.permutation(UNITS)[:PER_TASK] for _ in range(TASKS)])
    mean = np.exp(rng.uniform(np.log(30), np.log(2000), TASKS))
    of = np.repeat(np.arange(task.size), JOBS)
    n = np.maximum(np.rint(mean[task[of]] * np.exp(rng.normal(0, 0.4, of.size))), 1.0)
    c = (n + mean[task[of]] * np.exp(ln_f[unit[of]])) * np.exp(rng.normal(0, NOISE, of.size))
    return sums_of(task[of], unit[of], n, c), mean


def slopes(sums: Sums, rho: Floats) -> BucketSlopes:
    columns = (sums.n_jobs, sums.events, sums.cpu_s, sums.events_sq, sums.events_cpu_s)
    return bucket_slopes(*columns, rho=rho, per_job=np.full(rho.size, NOISE**2))


def rho_of_tasks(sums: Sums) -> Floats:
    """As the sums of each task tell it."""
    columns = sums.columns()
    costs = estimate_fixed_cost(columns.pop("task"), columns.pop("unit"), **columns)
    return np.asarray(costs.tasks.rho[sums.task])


def test_what_a_unit_gives_its_tasks_is_not_taken_from_it() -> None:
    """rho of a task of ten units contains a tenth of each: without care ln f came out 10 % too small."""
    rng = np.random.default_rng(1)
    regression, careless = [], []
    for _ in range(8):
        ln_f = rng.normal(0, 0.4, UNITS)
        sums, _ = grid(rng, ln_f)
        rho = rho_of_tasks(sums)
        found = unit_costs(
            slopes(sums, rho), rho, sums.unit, UNITS, task=sums.task, own=np.ones(sums.task.size)
        )
        plain = unit_costs(slopes(sums, rho), rho, sums.unit, UNITS)
        regression.append(np.polyfit(ln_f, found.ln_f, 1)[0])
        careless.append(np.polyfit(ln_f, plain.ln_f, 1)[0])
    assert np.mean(regression) == pytest.approx(1.0, abs=0.06)
    assert np.mean(careless) < 0.91


def test_errors_of_units_are_honest() -> None:
    rng = np.random.default_rng(2)
    pulls = []
    for _ in range(8):
        ln_f = rng.normal(0, 0.3, UNITS)
        sums, _ = grid(rng, ln_f)
        rho = rho_of_tasks(sums)
        found = unit_costs(
            slopes(sums, rho), rho, sums.unit, UNITS, task=sums.task, own=np.ones(sums.task.size)
        )
        move = found.ln_f - ln_f
        pulls.append((move - move.mean()) / found.ln_f_err)
    assert np.concatenate(pulls).std() == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize("scatter", [0.1, 0.15, 0.3])
def test_a_scatter_that_cannot_be_told_from_none_is_in_the_errors(scatter: float) -> None:
    """With the best scatter alone, two errors held 77 % at errors of 0.2 and a scatter of 0.1."""
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(200):
        ln_f, error = rng.normal(0, scatter, 40), 0.2 * np.exp(rng.normal(0, 0.15, 40))
        value = ln_f + rng.normal(0, error)
        drawn, unknown = drawn_to_mean(value - value.mean(), error**2, np.ones(40, bool))
        move = drawn - (ln_f - ln_f.mean())
        inside.append(np.mean(np.abs(move) < 1.96 * np.sqrt(unknown)))
    assert np.mean(inside) > 0.92


def test_a_unit_without_an_estimate_has_the_scatter_for_its_error() -> None:
    value = np.append(np.random.default_rng(4).normal(0, 0.5, 40), np.nan)
    drawn, unknown = drawn_to_mean(value, np.full(41, 0.01), np.isfinite(value))
    assert drawn[-1] == 0.0
    assert np.sqrt(unknown[-1]) == pytest.approx(np.nanstd(value), rel=0.2)
    assert np.sqrt(unknown[0]) < 0.12


def test_a_unit_whose_time_does_not_follow_events_is_seen() -> None:
    """Its f may be anything large, so that it has no estimate: it passed for one that jobs do not tell."""
    rng = np.random.default_rng(5)
    ln_f = np.zeros(UNITS)
    ln_f[0] = 6.0
    sums, mean = grid(rng, ln_f)
    rho = mean[sums.task]
    found = unit_costs(slopes(sums, rho), rho, sums.unit, UNITS)
    assert np.isnan(found.ln_f[0])
    assert found.first[0] > 4.0 * found.first_err[0]
    assert np.abs(found.first[1:] / found.first_err[1:]).max() < 4.0


def test_earlier_windows_count_by_their_errors() -> None:
    """Estimates of other jobs halve the error where they agree; a unit that changed has these jobs alone."""
    rng = np.random.default_rng(6)
    ln_f = rng.normal(0, 0.3, UNITS)
    sums, mean = grid(rng, ln_f)
    rho = mean[sums.task]
    alone = unit_costs(slopes(sums, rho), rho, sums.unit, UNITS)
    error = np.full(UNITS, 0.05)
    # Their zero is another one, for other units set it.
    before = ln_f + rng.normal(0, error) + 0.2
    before[0] -= 3.0
    before[1] = np.nan
    both = unit_costs(slopes(sums, rho), rho, sums.unit, UNITS, earlier=(before, error**2))
    move = both.ln_f - alone.ln_f
    np.testing.assert_allclose(move, move[0], atol=1e-12)
    np.testing.assert_allclose(both.ln_f_err, alone.ln_f_err)
    distance = both.drawn - ln_f - np.median(both.drawn - ln_f)
    assert distance[2:].std() < 0.055 < (alone.drawn - ln_f)[2:].std()
    assert (both.drawn_err[2:] < 0.8 * alone.drawn_err[2:]).all()
    np.testing.assert_allclose(both.drawn_err[:2], alone.drawn_err[:2], rtol=0.05)
    assert both.sigma == pytest.approx(0.3, abs=0.08)


def test_a_unit_that_neither_window_tells_has_no_estimate() -> None:
    rng = np.random.default_rng(7)
    sums, mean = grid(rng, rng.normal(0, 0.3, UNITS))
    rho = np.where(sums.unit == 0, 0.0, mean[sums.task])
    before, variance = np.zeros(UNITS), np.full(UNITS, 0.01)
    before[0] = variance[0] = np.nan
    found = unit_costs(slopes(sums, rho), rho, sums.unit, UNITS, earlier=(before, variance))
    assert np.isnan(found.ln_f[0])
    assert found.drawn[0] == 0.0
    assert found.drawn_err[0] > found.drawn_err[1:].max()
