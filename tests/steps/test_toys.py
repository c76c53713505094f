"""Made-up grids with a planted truth through the application's own path: buckets, fit, line, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from esjobs.api.session import Session
from esjobs.core.arrow import table_schema
from esjobs.core.errors import NoResultError
from esjobs.core.window import Window
from esjobs.publish.publication import Outcome
from esjobs.records.declared.origin import Declared
from esjobs.records.names.sites import Sites
from esjobs.records.tasks.sums import Adder
from esjobs.schema.jobs import BUCKETS
from esjobs.schema.speed import FACTORS, FITS
from esjobs.speed.factors import Factors
from esjobs.speed.fit import fit
from esjobs.speed.fit_input import FitInputs
from esjobs.speed.judging.flag import judge
from esjobs.speed.line import compare_with_declared
from esjobs.speed.mixed_tasks import CheckedBuckets
from esjobs.speed.settings import FitSettings
from tests.messages import raised
from tests.steps.grids import grid_jobs, load, site_names

Floats = NDArray[np.float64]
WINDOW = Window.parse("2018-08-10/2018-08-11")
SETTINGS = FitSettings()
N_TOYS = 60


@dataclass(frozen=True)
class Toy:
    """Buckets of one day, and the speeds they were made with (sum = count), by site."""

    buckets: pa.Table
    speed: Floats


def toy(
    rng: np.random.Generator,
    sites: int = 15,
    tasks: int = 20,
    *,
    interaction: float = 0.06,
    spread: float = 0.3,
    per_task: int = 8,
    speed: Floats | None = None,
) -> Toy:
    """Each task runs at some sites, 20 to 80 jobs each; ``spread``: scatter of jobs, relative."""
    truth = np.exp(rng.normal(0, 0.3, sites)) if speed is None else speed
    site = np.concatenate([rng.choice(sites, per_task, replace=False) for _ in range(tasks)])
    task = np.repeat(np.arange(tasks), per_task)
    n_jobs = rng.integers(20, 80, len(site))
    bucket = np.repeat(np.arange(len(site)), n_jobs)
    level = np.exp(rng.normal(3, 1, tasks))[task] * np.exp(rng.normal(0, 1, len(site)) * interaction)
    events = rng.integers(50, 150, len(bucket)).astype(float)
    cpu = events * (level / truth[site])[bucket] * rng.gamma(1 / spread**2, spread**2, len(bucket))

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(bucket, values, len(site)), np.float64)

    names = np.array(site_names(sites), object)
    cpe = cpu / events
    columns = {
        "day": [date(2018, 8, 10)] * len(site),
        "task_id": [f"task{number}" for number in task],
        "core_class": ["single"] * len(site),
        "queue": names[site],
        "cpu_model": [None] * len(site),
        "processing_type": [("evgen", "reco", "simul")[number % 3] for number in task],
        "n_jobs": n_jobs,
        "events": total(events),
        "events_sq": total(events**2),
        "cpu_s": total(cpu),
        "cpu_s_sq": total(cpu**2),
        "events_cpu_s": total(events * cpu),
        "wall_s": total(cpu * 1.2),
        "core_s": total(cpu * 1.2),
        "cpe_sum": total(cpe),
        "cpe_sq": total(cpe**2),
    }
    return Toy(pa.table(columns, table_schema(BUCKETS)), truth * sites / truth.sum())


def factors_of(made: Toy, *methods: str) -> dict[str, Factors]:
    """Fits of all types by site, by method."""
    settings = FitSettings(methods=methods)  # type: ignore[arg-type]
    fits, outcome = fitted(made, settings)
    of_all = pc.equal(outcome.rows[FACTORS].column("processing_type"), "all")
    assert pc.sum(of_all).as_py() == len(methods) * len(made.speed)
    return {item.method: item for item in fits if (item.level, item.processing_type) == ("queue", "all")}


def fitted(made: Toy, settings: FitSettings) -> tuple[list[Factors], Outcome]:
    adder = Adder()
    adder.add(made.buckets.to_batches())
    sums = adder.sums()
    inputs = FitInputs(sums, settings.min_bucket_jobs)
    return fit(CheckedBuckets(sums, {}, 0), inputs, WINDOW, "run", settings, Sites())


@pytest.fixture(scope="module")
def pulls() -> Mapping[str, Floats]:
    """(ln k - ln truth) over the relative error, of every site of every toy, by method: toys x sites."""
    rng = np.random.default_rng(2018)
    found: dict[str, list[Floats]] = {"paper": [], "gamma": []}
    for _ in range(N_TOYS):
        made = toy(rng)
        for method, factors in factors_of(made, "paper", "gamma").items():
            assert factors.main.all()
            found[method].append(np.log(factors.k / made.speed) * factors.k / factors.k_err)
    return {method: np.array(values) for method, values in found.items()}


@pytest.mark.parametrize("method", ["paper", "gamma"])
def test_planted_speeds_come_back_with_honest_errors(pulls: Mapping[str, Floats], method: str) -> None:
    """Mean 0, width 1, 68 % and 95 % covered; standard errors of these over 900 pulls are 0.033, 0.024,
    0.016 and 0.007.

    Pulls of one toy share its estimated interaction, so the limits are wider than 3 of those.
    """
    found = pulls[method]
    assert found.size >= 50 * 15
    assert abs(found.mean()) < 0.08
    assert 0.92 < found.std() < 1.1
    assert (np.abs(found) < 1).mean() == pytest.approx(0.683, abs=0.035)
    assert (np.abs(found) < 1.96).mean() == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("interaction", [0.0, 0.05, 0.15])
def test_the_planted_interaction_is_found(interaction: float) -> None:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(12):
        made = toy(rng, interaction=interaction)
        _, outcome = fitted(made, SETTINGS)
        row = outcome.rows[FITS].to_pylist()[0]
        assert (row["level"], row["method"], row["sigma_int_kind"]) == ("queue", "gamma", "estimated")
        found.append(row["sigma_int"])
    assert np.mean(found) == pytest.approx(interaction, abs=0.015)


def declared_as(names: Sequence[str], values: Floats) -> dict[str, Declared]:
    return {
        name: Declared(name, float(value), "HS06", "own", name, site_guessed=True)
        for name, value in zip(names, values, strict=True)
    }


def test_planted_misdeclared_sites_are_found_and_honest_ones_are_not_flagged() -> None:
    """30 sites, 5 % honest scatter; two declare 1.6 times, two 0.7 times what they deliver."""
    rng = np.random.default_rng(11)
    factor = np.ones(30)
    factor[[3, 14]] = 1.6
    factor[[7, 21]] = 0.7
    flagged, found, ok = 0, 0, 0
    n_toys = 12
    for _ in range(n_toys):
        made = toy(rng, sites=30, tasks=40, per_task=10)
        declared = 12 * made.speed * np.exp(rng.normal(0, 0.05, 30)) * factor
        of_name = declared_as(site_names(30), declared)
        factors = factors_of(made, "paper")["paper"]
        lines = compare_with_declared(factors, of_name, SETTINGS.deviation_limit)
        verdicts = np.array([item.verdict for item in judge(factors, lines, of_name, SETTINGS)])
        found += (verdicts[factor != 1] == "deviates").sum()
        flagged += (verdicts[factor == 1] == "deviates").sum()
        ok += (verdicts[factor == 1] == "ok").sum()
    assert found >= 0.97 * 4 * n_toys
    assert flagged <= 0.01 * 26 * n_toys
    assert ok >= 0.8 * 26 * n_toys


# -- the same through a store, on jobs -------------------------------------------------------------------

DECLARED = np.arange(9.3, 21.0)


def island_jobs(rng: np.random.Generator) -> pd.DataFrame:
    """Twelve honest sites, and three that share their tasks with nobody else, ten times as slow."""
    mainland = grid_jobs(rng, DECLARED, DECLARED)
    names = ["ISLE1", "ISLE2", "ISLE3"]
    isle = grid_jobs(rng, np.array([1.0, 1.0, 1.6]), np.full(3, 13.0), names=names, prefix="i", jobs=60)
    return pd.concat([mainland, isle])


def test_an_island_is_never_compared(session: Session, tmp_path: Path) -> None:
    load(session, island_jobs(np.random.default_rng(1)), tmp_path)
    session.run()
    for method in ("paper", "gamma"):
        flags = session.tables.flags(level="queue", type="all", method=method).to_pandas().set_index("name")
        isle = flags[flags.index.str.startswith("ISLE")]
        assert set(isle["verdict"]) == {"not comparable"}
        assert isle["deviation"].isna().all()
        assert isle["proposed_corepower"].isna().all()
        assert isle["significant"].isna().all()
        assert isle["k"].sum() == pytest.approx(3, abs=1e-9)
        assert set(isle["component"]) == {1}
        rest = flags.drop(isle.index)
        assert set(rest["verdict"]) == {"ok"}
        assert rest["k"].sum() == pytest.approx(12, abs=1e-9)
        line = session.tables.lines(level="queue", type="all", method=method).to_pandas().iloc[0]
        assert line["n_names"] == 12
    components = session.tables.components(level="queue", type="all", method="gamma").to_pandas()
    assert components["n_names"].tolist() == [12, 3]
    assert "ISLE" in str(components["link"].iloc[1])


def test_more_jobs_do_not_make_an_island_the_mainland(session: Session, tmp_path: Path) -> None:
    """What is comparable is decided by names in common tasks; the island here has most jobs of all."""
    load(session, island_jobs(np.random.default_rng(2)), tmp_path)
    more = grid_jobs(
        np.random.default_rng(3),
        np.ones(3),
        names=["ISLE1", "ISLE2", "ISLE3"],
        prefix="j",
        jobs=2000,
        tasks=1,
    )
    load(session, more.assign(task_id="itask0"), tmp_path, "more")
    session.run()
    flags = session.tables.flags(level="queue", type="all", method="gamma").to_pandas().set_index("name")
    assert set(flags.loc[["ISLE1", "ISLE2", "ISLE3"], "verdict"]) == {"not comparable"}


def test_restricted_runs_fit_what_they_are_told(session: Session, tmp_path: Path) -> None:
    """Speeds depend on the task here, so a fit of one task is another one than that of both."""
    rng = np.random.default_rng(4)
    up, down = (
        grid_jobs(rng, speed, DECLARED, tasks=1, jobs=60, prefix=prefix, processing_type=kind)
        for speed, prefix, kind in ((DECLARED, "a", "simul"), (DECLARED[::-1], "b", "pile"))
    )
    load(session, pd.concat([up, down]), tmp_path)

    def speeds(**restriction: str | list[str]) -> Floats:
        run = session.run(**restriction)[-1].run  # type: ignore[arg-type]
        factors = session.tables.factors(level="queue", type="all", method="gamma", run=run).to_pandas()
        return factors["k"].to_numpy(float)

    both = speeds()
    first = speeds(tasks="atask0")
    np.testing.assert_allclose(first, DECLARED / DECLARED.mean(), rtol=0.05)
    np.testing.assert_array_equal(speeds(where="processing_type=simul"), first)
    np.testing.assert_array_equal(speeds(where=["task_id=atask0", "core_class=single"]), first)
    np.testing.assert_allclose(speeds(tasks="btask0"), first[::-1], rtol=0.05)
    np.testing.assert_array_equal(speeds(tasks=["atask0", "btask0"]), both)
    np.testing.assert_array_equal(speeds(where=["task_id=atask0", "task_id=btask0"]), both)
    assert np.abs(np.log(both)).max() < 0.5 * np.abs(np.log(first)).max()
    assert len(speeds(where=["queue=SITE00", "queue=SITE05"])) == 2
    runs = session.tables.runs().to_pandas()
    assert len(set(runs.loc[runs["step"] == "fit", "run"])) == 8
    speeds(tasks=["btask0", "atask0"])
    assert len(session.tables.runs().to_pandas()) == len(runs)  # the same question again
    for nothing in ({"tasks": "none"}, {"where": "processing_type=all"}, {"where": "queue="}):
        with raised(NoResultError):
            session.run(**nothing)  # type: ignore[arg-type]


def test_jobs_without_a_cpu_model_count_and_have_no_name(session: Session, tmp_path: Path) -> None:
    models = ("Intel Xeon E5-2650 v2", "AMD EPYC 7302", "s+UNKNOWN", None)
    jobs = grid_jobs(np.random.default_rng(5), np.ones(4), models=models, jobs=120)
    load(session, jobs, tmp_path)
    session.run()
    factors = session.tables.factors(level="cpu_model", type="all", method="gamma").to_pandas()
    assert factors["name"].tolist() == ["AMD EPYC 7302", "Intel Xeon E5-2650 v2"]
    np.testing.assert_allclose(factors["k"], 1, rtol=0.02)
    fits = session.tables.fits(type="all", method="gamma").to_pandas().set_index("level")
    assert fits["n_jobs"].to_dict() == {"queue": len(jobs), "site": len(jobs), "cpu_model": len(jobs) // 2}
    assert fits["n_jobs_dropped"].to_dict() == {"queue": 0, "site": 0, "cpu_model": len(jobs) // 2}


def test_no_cpu_model_at_all_is_a_fit_without_factors(session: Session, tmp_path: Path) -> None:
    load(session, grid_jobs(np.random.default_rng(6), np.ones(3)), tmp_path)
    reports = session.run()
    assert any("no job record names a CPU model" in note for note in reports[1].notes)
    fit_row = session.tables.fits(level="cpu_model", type="all", method="gamma").to_pandas().iloc[0]
    assert (fit_row["status"], fit_row["reason"]) == ("no factors", "no job record names a CPU model")
    assert session.tables.flags(level="cpu_model").to_pandas().empty


@pytest.mark.parametrize("kind", ["simul", None])
def test_one_type_and_all_types_together_agree(session: Session, tmp_path: Path, kind: str | None) -> None:
    jobs = grid_jobs(np.random.default_rng(7), DECLARED, DECLARED, processing_type=kind)
    load(session, jobs, tmp_path)
    session.run()
    columns = ["level", "name", "method", "k", "k_err", "verdict", "stable", "q_value", "sentence"]
    together = session.tables.flags(type="all").to_pandas()[columns]
    assert together["level"].value_counts().to_dict() == {"queue": 24, "site": 24}
    if kind is None:
        assert set(session.tables.flags().to_pandas()["processing_type"]) == {"all"}
    else:
        alone = session.tables.flags(type="simul").to_pandas()[columns]
        pd.testing.assert_frame_equal(alone, together)


def test_scaling_time_or_events_of_a_task_changes_no_factor(session: Session, tmp_path: Path) -> None:
    """Only what sites do differently inside a task counts, not how long its events take."""
    jobs = grid_jobs(np.random.default_rng(8), DECLARED)
    load(session, jobs, tmp_path)
    session.run()
    before = session.tables.factors(level="queue", type="all").to_pandas()
    longer = jobs["task_id"].eq("task1")
    for name in ("cpu_s", "wall_s"):
        jobs.loc[longer, name] *= 3.7
    load(session, jobs, tmp_path, "longer")
    session.run()
    after = session.tables.factors(level="queue", type="all").to_pandas()
    np.testing.assert_allclose(after["k"], before["k"], rtol=1e-7)
    np.testing.assert_allclose(after["k_err"], before["k_err"], rtol=1e-6)
