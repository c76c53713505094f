"""Start-up times that earlier windows found: pooled over windows that share no job, and said where from."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import esjobs
from benchmarks.grids import Grid, make_jobs, window
from esjobs import Session, Settings
from esjobs.core.window import Window
from esjobs.speed.settings import FitSettings

GRID = Grid(days=28, jobs=60, rho=1.0, lengths=3.0, rho_scatter=0.2, misdeclared=0.0, sites=20, tasks=30)
FIRST = Window.parse(window(28)).start


def days(first: int, last: int) -> str:
    start, end = (FIRST + timedelta(days=number) for number in (first, last))
    return f"{start:%Y-%m-%d}/{end:%Y-%m-%d}"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table, _ = make_jobs(GRID, 3)
    path = tmp_path_factory.mktemp("jobs") / "jobs.parquet"
    pq.write_table(table, path)
    return path


def opened(path: Path, *, cost_prior: bool = True) -> Session:
    settings = Settings(fit=FitSettings(methods=("gamma",), by_type=False, cost_prior=cost_prior))
    session = esjobs.open("duckdb::memory:", settings=settings)
    session.ingest("jobs", path)
    return session


@pytest.fixture
def session(jobs: Path) -> Iterator[Session]:
    with opened(jobs) as made:
        yield made


def fitted(session: Session, window: str) -> tuple[str, pd.DataFrame, pd.Series]:
    """Run, factors of queues by name and their fit."""
    run = session.run(window)[0].run
    factors, fits = (session.tables.read(name, run=run).to_pandas() for name in ("factors", "fits"))
    factors = factors[factors.level == "queue"].set_index("name")
    return run, factors, fits[fits.level == "queue"].iloc[0]


def test_earlier_weeks_sharpen_factors_and_are_named(session: Session) -> None:
    """A second implementation of the pooling, and errors that become smaller."""
    weeks = [fitted(session, days(7 * week, 7 * week + 7)) for week in range(4)]
    runs, factors, fits = zip(*weeks, strict=True)
    assert factors[0].cost_prior.isna().all()
    assert fits[0].cost_prior_runs is pd.NA
    assert fits[3].cost_prior_runs == ", ".join(runs[:3])
    for name in factors[3].index:
        variance, mean = np.inf, np.nan
        for week in factors[:3]:
            if name not in week.index or not week.cost_factor[name] > 0:
                continue
            value, error = np.log(week.cost_factor[name]), week.cost_factor_err[name]
            variance += 0.03**2 * 7 / 30
            if np.isinf(variance) or abs(value - mean) > 4 * np.hypot(error, np.sqrt(variance)):
                mean, variance = value, error**2
            else:
                weights = 1 / variance, 1 / error**2
                mean, variance = np.average([mean, value], weights=weights), 1 / sum(weights)
        variance += 0.03**2 * 7 / 30
        assert factors[3].cost_prior[name] == pytest.approx(np.exp(mean), rel=1e-9)
        assert factors[3].cost_prior_err[name] == pytest.approx(np.sqrt(variance), rel=1e-9)
    assert factors[3].k_err_cost.median() < 0.75 * factors[0].k_err_cost.median()


def test_windows_that_share_jobs_do_not_count(session: Session) -> None:
    """Nights overlap: of those before the window, the newest that leaves room for the next older one."""
    oldest, _, _ = fitted(session, days(0, 7))
    overlapping, _, fit = fitted(session, days(3, 10))
    assert fit.cost_prior_runs is pd.NA
    before, _, fit = fitted(session, days(7, 14))
    assert fit.cost_prior_runs == oldest
    _, _, fit = fitted(session, days(17, 24))
    assert fit.cost_prior_runs == f"{oldest}, {before}"
    assert overlapping not in fit.cost_prior_runs


def test_other_lengths_and_restrictions_do_not_count(session: Session) -> None:
    fitted(session, days(0, 14))
    session.run(days(7, 14), where=["processing_type=simul"])
    _, _, fit = fitted(session, days(14, 21))
    assert fit.cost_prior_runs is pd.NA


def test_switched_off_each_window_is_alone(jobs: Path) -> None:
    with opened(jobs, cost_prior=False) as session:
        fitted(session, days(0, 7))
        alone, factors, fit = fitted(session, days(7, 14))
    assert fit.cost_prior_runs is pd.NA
    assert factors.cost_prior.isna().all()
    with opened(jobs) as session:
        first, expected, _ = fitted(session, days(7, 14))
    assert first != alone
    np.testing.assert_allclose(factors.k, expected.k, rtol=1e-12)
    np.testing.assert_allclose(factors.k_err, expected.k_err, rtol=1e-12)


def test_a_window_again_gives_the_same(session: Session) -> None:
    fitted(session, days(0, 7))
    run, factors, _ = fitted(session, days(7, 14))
    again, repeated, _ = fitted(session, days(7, 14))
    assert again == run
    pd.testing.assert_frame_equal(factors, repeated)
