"""Model of forecasts: planted cells, and least squares with a design matrix as a second implementation."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from esjobs.core.window import Window
from esjobs.publish.stored import StoredRun
from esjobs.records.tasks.keys import TaskKeys
from esjobs.schema.speed import SPEED
from esjobs.what_if.cells import Cells, efficiencies, efficiency_note
from esjobs.what_if.model import UNKNOWN_COST, _by_unit, _inverse, fit_model

RUN = StoredRun(SPEED, "r", Window.parse("2025-06-01/2025-06-02"), {}, {}, datetime(2025, 6, 2, tzinfo=UTC))


def planted(seed: int, tau: float, *, queues: int = 12, tasks: int = 40, share: float = 0.6) -> Cells:
    """Cells of jobs with a scatter of 30 %, and factors fitted to them by least squares."""
    rng = np.random.default_rng(seed)
    k = np.exp(rng.normal(0, 0.2, queues))
    runs = rng.random((tasks, queues)) < share
    runs[:, 0] = True
    unit, queue = np.nonzero(runs)
    n = rng.integers(5, 60, unit.size).astype(float)
    level = rng.normal(4, 1, tasks)
    error = tau * rng.normal(size=unit.size) + 0.3 * rng.normal(size=unit.size) / np.sqrt(n)
    mean_events = rng.uniform(50, 200, unit.size)
    events = n * mean_events
    cpu_s = events * np.exp(level[unit] - np.log(k)[queue] + error)
    # within a cell jobs have equal events; squares follow from the planted scatter
    squares = cpu_s**2 / n + 0.09 * (n - 1) * (cpu_s / n) ** 2
    sums = {
        "n_jobs": n,
        "events": events,
        "events_sq": events**2 / n,
        "cpu_s": cpu_s,
        "cpu_s_sq": squares,
        "events_cpu_s": events * cpu_s / n,
        "core_s": cpu_s / 0.8,
    }
    keys, _ = TaskKeys.of([(str(number), "single", "simul", None) for number in range(100, 100 + tasks)])
    names = tuple(f"Q{number:02d}" for number in range(queues))
    job_var = np.full(unit.size, 0.09)
    cells = Cells(
        *(RUN, keys, names, unit, queue, sums, job_var, np.zeros(tasks)),
        *(np.full(tasks, "", object), np.zeros(queues), 0.0),
    )
    ln_k, _, _ = least_squares(cells, 1 / (tau**2 + job_var / n))
    return replace(cells, ln_k=ln_k)


def least_squares(cells: Cells, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ln k with mean 0, the covariance of (levels, ln k), and the design."""
    design = np.zeros((len(cells.unit), len(cells.keys) + len(cells.queues)))
    rows = np.arange(len(cells.unit))
    design[rows, cells.unit] = 1.0
    design[rows, len(cells.keys) + cells.queue] = -1.0
    covariance = np.linalg.pinv(design.T @ (weight[:, None] * design))
    found = covariance @ design.T @ (weight * cells.ln_cost)
    ln_k = found[len(cells.keys) :]
    return ln_k - ln_k.mean(), covariance, design


def test_covariance_residuals_and_leverages_are_those_of_least_squares() -> None:
    model = fit_model(planted(1, 0.05))
    cells = model.cells
    assert (model.weight > 0).all()
    ln_k, covariance, design = least_squares(cells, model.weight)
    n_units = len(cells.keys)
    contrast = np.eye(len(cells.queues))[3] - np.eye(len(cells.queues))[7]
    direct = contrast @ covariance[n_units:, n_units:] @ contrast
    assert contrast @ model.covariance @ contrast == pytest.approx(direct)
    again = fit_model(replace(cells, ln_k=ln_k))
    hat = np.einsum("ij,jk,ik->i", design, covariance, design) * model.weight
    residual = again.residual
    # leave-one-out by a refit without the cell
    for cell in (0, 17, 80):
        weight = np.where(np.arange(len(cells.unit)) == cell, 0.0, model.weight)
        _, cov, _ = least_squares(cells, weight)
        left_out = cells.ln_cost[cell] - design[cell] @ cov @ design.T @ (weight * cells.ln_cost)
        assert residual[cell] / (1 - hat[cell]) == pytest.approx(left_out, rel=0.02)


def test_a_task_is_taken_out_of_the_factors() -> None:
    """One linear step from the minimum of least squares is the fit without the task."""
    cells = planted(2, 0.06)
    tau = fit_model(cells).tau
    weight = 1 / (tau**2 + cells.job_var / cells.n_jobs)
    ln_k, _, _ = least_squares(cells, weight)
    model = fit_model(replace(cells, ln_k=ln_k))
    unit, queue = 5, int(cells.queue[cells.unit == 5][1])
    shift, covariance, _ = model._without(unit)
    rest, full, _ = least_squares(cells, np.where(cells.unit == unit, 0.0, model.weight))
    exact = least_squares(cells, model.weight)[0]
    assert exact + shift - shift.mean() == pytest.approx(rest, abs=1e-3)
    n_units = len(cells.keys)
    centre = np.eye(len(cells.queues)) - 1 / len(cells.queues)
    assert covariance == pytest.approx(centre @ full[n_units:, n_units:] @ centre, abs=1e-12)
    forecast = model.forecast(unit, queue, 100.0)
    others = (cells.unit == unit) & (cells.queue != queue)
    share = model.weight[others] / model.weight[others].sum()
    by_hand = share @ (cells.ln_cost[others] + rest[cells.queue[others]]) - rest[queue] + np.log(100.0)
    assert forecast.ln_cpu_s == pytest.approx(by_hand, abs=2e-3)
    u = np.bincount(cells.queue[others], share, len(cells.queues)) - np.eye(len(cells.queues))[queue]
    scatter = share**2 @ (cells.job_var / cells.n_jobs)[others]
    variance = u @ covariance @ u + tau**2 * (1 + share @ share) + scatter
    assert forecast.error == pytest.approx(np.sqrt(variance) * model.calibration.widened, rel=1e-3)


@pytest.mark.parametrize("tau", [0.02, 0.05, 0.15])
def test_planted_scatter_is_found_and_intervals_hold(tau: float) -> None:
    models = [fit_model(planted(seed, tau)) for seed in range(10, 20)]
    assert np.mean([model.tau for model in models]) == pytest.approx(tau, rel=0.15)
    held = [model.calibration.coverage_90 for model in models]
    assert 0.86 < np.mean([share for share in held if share is not None]) < 0.94


@pytest.mark.parametrize(("between", "within"), [(0.0, 0.05), (0.2, 0.05), (0.2, 0.2)])
def test_the_efficiency_of_a_task_at_a_further_queue_is_within_its_interval(
    between: float, within: float
) -> None:
    rng = np.random.default_rng(11)
    pulls = []
    for seed in range(12):
        cells = planted(seed, 0.0)
        of_task, of_queue = rng.normal(0, between, 40), rng.normal(-0.2, 0.1, 12)
        ln = of_queue[cells.queue] + of_task[cells.unit] + within * rng.normal(size=cells.unit.size)
        cells.sums["core_s"][:] = cells.sums["cpu_s"] / np.exp(ln)
        made = efficiencies(cells)
        for unit in range(40):
            own = made.of_task(unit)
            for queue in set(range(12)) - set(cells.queue[cells.unit == unit].tolist()):
                mean, variance = made.at(queue, 0, own) or (0.0, 1.0)
                truth = of_queue[queue] + of_task[unit] + within * rng.normal()
                pulls.append((mean - truth) / np.sqrt(variance))
    held = float(np.mean(np.abs(pulls) < 1.645))
    # tasks that several queues ran shift their means together, which errs on the safe side
    assert 0.87 < held < 0.97
    assert abs(np.mean(pulls)) < 0.1


def test_an_inefficient_task_is_taken_out_of_the_mean_of_its_kind_and_noted() -> None:
    cells = planted(3, 0.0)
    cells.sums["core_s"][:] = cells.sums["cpu_s"] / 0.8
    cells.sums["core_s"][cells.unit == 5] *= 2
    made = efficiencies(cells)
    own, usual = made.of_task(5), made.of_task(6)
    for queue in range(12):
        at = made.at(queue, 0, own)
        assert at is not None
        assert at[0] == pytest.approx(np.log(0.4), abs=0.02)
    note = efficiency_note(own, made.within)
    assert note is not None
    assert "50 % below that of its kind of work at" in note
    assert efficiency_note(usual, made.within) is None
    half = made.of_task(5, dict.fromkeys(range(12), float(np.log(0.5))))
    assert half.value == pytest.approx(np.log(0.25), abs=0.02)
    assert half.of_days
    assert made.of_task(6, {0: 0.0}).value == pytest.approx(0.0, abs=0.05)


def test_a_stray_cell_moves_no_other_forecast_and_counts_in_the_check() -> None:
    cells = planted(3, 0.05)
    wrong = int(np.flatnonzero(cells.unit == 7)[2])
    sums = {**cells.sums, "cpu_s": cells.sums["cpu_s"].copy()}
    sums["cpu_s"][wrong] *= 5.0
    model = fit_model(replace(cells, sums=sums))
    assert model.weight[wrong] == 0.0
    assert model.calibration.n_cells == fit_model(cells).calibration.n_cells
    queue = int(cells.queue[np.flatnonzero(cells.unit == 7)[0]])
    before = fit_model(cells).forecast(7, queue, 100.0)
    assert model.forecast(7, queue, 100.0).ln_cpu_s == pytest.approx(before.ln_cpu_s, abs=0.05)


def test_reasons_for_no_forecast() -> None:
    cells = planted(4, 0.05)
    aside = cells.aside.copy()
    aside[[1, 2]] = "split", UNKNOWN_COST
    ln_k = cells.ln_k.copy()
    ln_k[11] = np.nan
    model = fit_model(replace(cells, aside=aside, ln_k=ln_k))
    assert model.forecast(1, 0, 100.0).reason == "split: its jobs are of several kinds"
    assert "no speed factor" in str(model.forecast(3, 11, 100.0).reason)
    assert UNKNOWN_COST in str(model.forecast(2, 0, 1000.0).reason)
    assert np.isnan(model.forecast(2, 0, 1000.0).ln_cpu_s)


def test_an_unknown_start_up_time_allows_jobs_of_equal_length() -> None:
    cells = planted(5, 0.05)
    mine = cells.unit == 2
    sums = {**cells.sums, "events": np.where(mine, 100 * cells.n_jobs, cells.sums["events"])}
    aside = cells.aside.copy()
    aside[2] = UNKNOWN_COST
    cells = replace(cells, sums=sums, aside=aside)
    model = fit_model(cells)
    assert (model.weight[mine] == 0).all()
    assert model.forecast(2, 0, 110.0).reason is None
    assert model.forecast(2, 0, 130.0).reason is not None


def test_a_queue_that_one_task_links_has_no_forecast_of_it() -> None:
    cells = planted(6, 0.05)
    lonely = 11
    kept = (cells.queue != lonely) | (cells.unit == 0)
    cells = only(cells, kept)
    assert (cells.queue == lonely).any()
    model = fit_model(cells)
    assert "nothing links" in str(model.forecast(0, lonely, 100.0).reason)
    # not taken out, it allows one
    assert model.forecast(0, lonely, 100.0, without_task=False).reason is None


def only(cells: Cells, kept: np.ndarray) -> Cells:
    sums = {name: values[kept] for name, values in cells.sums.items()}
    columns = {name: getattr(cells, name)[kept] for name in ("unit", "queue", "job_var")}
    return replace(cells, sums=sums, **columns)


def test_intervals_are_widened_where_too_few_hold() -> None:
    """Half of the cells scatter five times as much: the robust tau is that of the other half."""
    cells = planted(7, 0.03)
    rng = np.random.default_rng(0)
    noise = np.where(rng.random(len(cells.unit)) < 0.3, rng.normal(0, 0.3, len(cells.unit)), 0.0)
    sums = {**cells.sums, "cpu_s": cells.sums["cpu_s"] * np.exp(noise)}
    calibration = fit_model(replace(cells, sums=sums)).calibration
    assert calibration.coverage_90 is not None
    assert calibration.coverage_90 < 0.85
    assert calibration.widened > 1.2


def test_few_cells_assume_a_scatter() -> None:
    cells = planted(8, 0.05)
    model = fit_model(only(cells, np.arange(len(cells.unit)) < 12))
    assert model.tau == 0.10
    assert model.calibration.coverage_90 is None
    assert model.calibration.widened == 1.0


def test_inverse_has_a_free_direction_per_component() -> None:
    cells = planted(9, 0.05)
    covariance, null = _inverse(_by_unit(np.ones(len(cells.unit)), cells))
    assert null.shape[1] == 1
    assert covariance.sum(axis=0) == pytest.approx(np.zeros(len(cells.queues)), abs=1e-9)
