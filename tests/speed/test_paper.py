"""Method `paper` through jobs: the article's chi-squared of the stored buckets, as Minuit alone finds it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from iminuit import Minuit  # type: ignore[import-untyped]

import esjobs
from tests.steps.grids import grid_jobs, load, site_names

N_QUEUES = 6


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> esjobs.Session:
    rng = np.random.default_rng(4)
    speed = np.exp(rng.normal(0, 0.2, N_QUEUES))
    jobs = grid_jobs(rng, speed, names=site_names(N_QUEUES), tasks=12, interaction=0.08, days=1)
    opened = esjobs.open("duckdb::memory:")
    load(opened, jobs, Path(tmp_path_factory.mktemp("paper")))
    opened.run("2018-08-10/2018-08-11")
    return opened


def rows(session: esjobs.Session, table: str, method: str) -> pd.DataFrame:
    found = session.tables[table].to_pandas()
    chosen = (found["level"] == "queue") & (found["processing_type"] == "all") & (found["method"] == method)
    return found[chosen]


def test_factors_and_hesse_errors_are_those_of_minuit_in_all_parameters(session: esjobs.Session) -> None:
    buckets = session.tables.buckets().to_pandas()
    value = (buckets["cpu_s"] / buckets["events"]).to_numpy()
    _, task = np.unique(buckets["task_id"], return_inverse=True)
    names, queue = np.unique(buckets["queue"], return_inverse=True)
    n = len(names)

    def chi2(place: np.ndarray) -> float:
        ratio = value * np.exp(place[queue] - place[n:][task])
        return float(np.sum((ratio - 1) ** 2) + 1e3 * np.log(np.exp(place[:n]).mean()) ** 2)

    start = np.concatenate(
        [np.zeros(n), [np.log(value[task == each].mean()) for each in range(task.max() + 1)]]
    )
    dof = value.size - start.size + 1
    first = Minuit(chi2, start)
    first.errordef = 1
    first.migrad(ncall=10**6)
    variance = first.fval / dof
    minuit = Minuit(lambda place: chi2(place) / variance, np.asarray(first.values))
    minuit.errordef = 1
    minuit.tol = 1e-4
    minuit.migrad(ncall=10**6)
    minuit.hesse()
    k = np.exp(np.asarray(minuit.values)[:n])
    k /= k.mean()
    error = np.asarray(minuit.errors)[:n]
    mine = rows(session, "factors", "paper").set_index("name").loc[names]
    assert np.abs(np.log(mine["k"].to_numpy() / k) / error).max() < 5e-3
    np.testing.assert_allclose(mine["k_err_model"] / mine["k"], error, rtol=0.01)
    fit = rows(session, "fits", "paper").iloc[0]
    assert fit["minuit_objective"] == pytest.approx(minuit.fval * variance, rel=1e-4)


def test_the_fit_says_what_minuit_did(session: esjobs.Session) -> None:
    fit = rows(session, "fits", "paper").iloc[0]
    assert fit["found_by"] == "minuit"
    assert fit["minuit_valid"]
    assert fit["minuit_accurate"]
    assert 0 < fit["minuit_agreement"] < 0.01
    assert 0 < fit["minuit_edm"] < 1e-5
    assert fit["minuit_calls"] > 10
    assert fit["objective"] == fit["minuit_objective"]
    gamma = rows(session, "fits", "gamma").iloc[0]
    told = [name for name in gamma.index if name.startswith("minuit") or name == "found_by"]
    assert len(told) == 7
    assert gamma[told].isna().all()
