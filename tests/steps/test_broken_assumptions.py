"""Grids that break what the fits assume, through everything that users run: honest queues are not accused.

Each grid is one seed of a case of ``benchmarks.honesty``, whose tables hold the sizes; here they only have
to be on the right side by far.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import esjobs
from benchmarks.grids import Grid, Truth, make_jobs, window
from benchmarks.honesty import Tally, add, run_grid
from esjobs import Settings
from esjobs.speed.settings import FitSettings

SMALL = Grid(sites=30, tasks=36, sites_per_task=12)


@cache
def judged(grid: Grid, seed: int = 5) -> tuple[Tally, Truth, dict[str, Any]]:
    """Counts, truth and tables of one run of a grid; read them only."""
    tally = Tally()
    truth, found = run_grid(grid, seed, {})
    add(tally, truth, found)
    return tally, truth, found


def headline(found: dict[str, Any], table: str) -> Any:
    chosen = found[table]
    return chosen[(chosen.level == "queue") & (chosen.processing_type == "all")]


def width(tally: Tally) -> float:
    return float(np.concatenate(tally.pulls).std())


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.matrix), 5])
def test_buckets_of_few_jobs_count(jobs: int) -> None:
    """With 20 jobs a bucket at least, none of these had a factor."""
    tally, _, found = judged(SMALL.but(jobs=jobs, tasks=150, noise=0.4))
    fit = headline(found, "fits").iloc[0]
    assert fit.jobs_share > 0.95
    assert tally.judged > 0.8 * tally.honest
    assert tally.accused == 0
    assert tally.found >= tally.planted - 1
    assert 0.5 < width(tally) < 1.4


def test_a_fixed_cost_that_cannot_be_told_from_none_accuses_nobody() -> None:
    """Lengths 11x apart, half of a job is start-up, no task alone tells: one in five was accused."""
    tally, _, found = judged(SMALL.but(rho=1.0, lengths=11.0, jobs=8, length_scatter=0.15))
    tasks = found["tasks"]
    alone = np.abs(tasks.slope) / tasks.slope_err
    assert np.median(alone.dropna()) < 3.0
    assert tasks.share.astype(float).mean() == pytest.approx(0.5, abs=0.12)
    assert tally.judged > 0.7 * tally.honest
    assert tally.accused == 0
    assert width(tally) < 1.4
    assert np.concatenate(tally.moves).std() < 0.12


@pytest.mark.parametrize("lengths", [pytest.param(1.0, marks=pytest.mark.matrix), 3.0])
def test_fixed_costs_that_differ_by_site_are_seen_and_accuse_nobody(lengths: float) -> None:
    """ln(start-up time) scatters by 0.6: 25 % of the honest were accused, pulls were 12 wide."""
    tally, _, found = judged(SMALL.but(rho=1.0, lengths=lengths, rho_scatter=0.6))
    fit = headline(found, "fits").iloc[0]
    assert fit.sigma_cost == pytest.approx(0.6, abs=0.25)
    assert fit.sigma_cost_kind == "corrected"
    assert tally.accused == 0
    assert width(tally) < 1.6
    assert np.concatenate(tally.moves).std() < 0.2


def test_fixed_costs_that_do_not_differ_by_site_are_left_alone() -> None:
    tally, _, found = judged(SMALL.but(rho=1.0, lengths=3.0))
    fit = headline(found, "fits").iloc[0]
    assert fit.sigma_cost < 0.15
    assert not headline(found, "factors").cost_stands_out.any()
    assert tally.found == tally.planted
    assert width(tally) > 0.35


def test_a_scatter_of_fixed_costs_that_cannot_be_told_from_none_is_in_the_errors() -> None:
    """30 sites cannot tell 15 % from none; where they found 0, pulls were 2 to 3 wide."""
    pulls = np.concatenate(
        [
            np.concatenate(judged(SMALL.but(rho=1.0, lengths=3.0, rho_scatter=0.15), seed)[0].pulls)
            for seed in range(4)
        ]
    )
    assert pulls.std() < 1.4
    assert np.mean(np.abs(pulls) < 1.96) > 0.85


@pytest.mark.parametrize("knob", ["type_effect", "core_effect"])
def test_what_a_site_does_to_all_tasks_of_a_kind_is_in_the_errors(knob: str) -> None:
    """20 % a type or core class: pulls were 3 to 4 wide."""
    tally, _, found = judged(SMALL.but(tasks=60, **{knob: 0.20}))
    fit = headline(found, "fits").iloc[0]
    assert fit["sigma_type" if knob == "type_effect" else "sigma_class"] == pytest.approx(0.2, abs=0.1)
    assert fit["sigma_class" if knob == "type_effect" else "sigma_type"] < 0.12
    assert fit.sigma_inner < 0.75 * fit.sigma_int
    assert tally.accused <= 1
    assert width(tally) < 1.6


def test_with_one_type_its_effect_is_assumed_and_said_so() -> None:
    _, _, found = judged(SMALL.but(types=1, multi=0.0))
    fit = headline(found, "fits").iloc[0]
    assert (fit.sigma_type, fit.sigma_type_kind) == (0.05, "assumed")
    factors = headline(found, "factors")
    assert np.allclose((factors.k_err_type / factors.k).astype(float), 0.05)


def test_one_site_of_wrong_records_does_not_spoil_the_others() -> None:
    """CPU times that mean nothing in half of the jobs at three sites: most of all tasks were excluded."""
    tally, truth, found = judged(SMALL.but(garbage=3))
    assert tally.judged + tally.planted_judged > 0.85 * (~truth.broken).sum()
    assert tally.accused == 0
    assert tally.found == tally.planted
    assert tally.broken_implausible == 3
    flags = headline(found, "flags").set_index("name")
    broken = [name for name, is_broken in zip(truth.name, truth.broken, strict=True) if is_broken]
    assert flags.loc[broken].finding.str.contains("check its records|in its records").all()
    tasks = found["tasks"]
    left_out = tasks[tasks.work_kind == "left out"]
    assert left_out.n_jobs.sum() < 0.1 * tasks.n_jobs.sum()
    assert left_out.reason.str.contains("kept without its jobs at").all()


def test_wrong_numbers_of_events_at_some_sites_do_not_move_the_fixed_cost_of_all() -> None:
    """30 % of the jobs at three sites: the rho of all tasks was off, pulls of the others 2.2 wide."""
    tally, _, found = judged(SMALL.but(wrong_events=3, rho=1.0, lengths=3.0))
    clean = judged(SMALL.but(rho=1.0, lengths=3.0))[2]["tasks"].share.astype(float).mean()
    assert found["tasks"].share.astype(float).mean() == pytest.approx(clean, abs=0.05)
    assert tally.accused == 0
    assert tally.broken_accused == 0
    assert tally.broken_implausible >= 2
    assert tally.found == tally.planted
    assert width(tally) < 1.5


def test_noisy_jobs_are_no_mixture() -> None:
    """Scatter of 0.7 in ln made every task mixed, and nothing was judged."""
    tally, _, found = judged(SMALL.but(noise=0.7))
    assert (found["tasks"].decision == "mixed task").mean() < 0.1
    assert tally.judged > 0.9 * tally.honest
    assert tally.accused == 0


def test_a_run_that_uses_less_than_half_of_its_jobs_says_why(tmp_path: Path) -> None:
    pq.write_table(make_jobs(SMALL.but(jobs=5), 1)[0], tmp_path / "jobs.parquet")
    settings = Settings(fit=FitSettings(methods=("gamma",), min_bucket_jobs=20))
    with esjobs.open("duckdb::memory:", settings=settings) as session:
        session.ingest("jobs", tmp_path / "jobs.parquet")
        reports = session.run(window())
        stored = session.tables.fit_summaries().to_pandas()
        session.speed.flag(window())
        again = session.tables.fit_summaries().to_pandas()
    notes = " ".join(note for report in reports for note in report.notes)
    assert "the fit of queues uses 0 of" in notes
    assert "in buckets with too few jobs" in notes
    sentence = headline({"fit_summaries": stored}, "fit_summaries").sentence.iloc[0]
    assert "The fit of queues uses 0 of" in sentence
    assert again.sentence.tolist() == stored.sentence.tolist()


def test_a_run_that_sets_most_tasks_aside_says_so_in_its_conclusion() -> None:
    """Lengths 11x apart and jobs that do not tell what starting costs."""
    _, _, found = judged(SMALL.but(rho=2.0, lengths=11.0, jobs=8, length_scatter=0.06))
    assert (found["tasks"].decision == "start-up time unknown").mean() > 0.5
    sentence = headline(found, "fit_summaries").sentence.iloc[0]
    assert "excluded:" in sentence or "tasks were excluded:" in sentence
    assert "with unknown start-up time" in sentence


def test_names_behind_a_link_of_few_jobs_are_not_compared(tmp_path: Path) -> None:
    """Ten sites in tasks of their own, and ten jobs of one of the others in one of these tasks."""
    many, _ = make_jobs(SMALL.but(misdeclared=0.0), 1)
    few, _ = make_jobs(SMALL.but(sites=10, tasks=12, misdeclared=0.0), 2)
    rng = np.random.default_rng(3)
    few = few.to_pandas()
    few["queue"] = few.queue.str.replace("GRID0", "THIN0")
    few["task_id"] = "9" + few.task_id
    few["job_id"] = "few" + few.job_id
    bridge = few[few.task_id == few.task_id.iloc[0]].head(10).copy()
    bridge["queue"], bridge["job_id"] = "GRID003", [f"bridge{number}" for number in range(10)]
    bridge["cpu_s"] *= np.exp(rng.normal(0.1, 0.05, 10))
    pd.concat([many.to_pandas(), few, bridge]).to_parquet(tmp_path / "jobs.parquet")
    settings = Settings(fit=FitSettings(methods=("gamma",)))
    with esjobs.open("duckdb::memory:", settings=settings) as session:
        session.ingest("jobs", tmp_path / "jobs.parquet")
        session.run(window())
        found = {
            "flags": session.tables.flags().to_pandas(),
            "lines": session.tables.lines().to_pandas(),
            "factors": session.tables.factors().to_pandas(),
        }
    flags = headline(found, "flags").set_index("name")
    thin = flags.index.str.startswith("THIN")
    assert thin.sum() == 10
    assert set(flags[thin].sole_link) == {"few jobs"}
    assert set(flags[thin].verdict) == {"not comparable"}
    assert flags[thin].finding.str.contains("fewer than 50 jobs link it").all()
    assert headline(found, "factors").set_index("name").k_err[flags[thin].index].notna().all()
    assert flags[~thin].sole_link.isna().all()
    assert (flags[~thin].verdict == "ok").mean() > 0.9
    assert headline(found, "lines").n_names.iloc[0] == (~thin).sum()


def test_sentences_of_one_type_say_so() -> None:
    _, _, found = judged(SMALL.but(types=1, multi=0.0))
    compared = headline(found, "flags")
    findings = compared[compared.verdict.isin(("ok", "deviates", "undecided"))].finding
    assert len(findings)
    assert findings.str.contains("Jobs (evgen only) ran as fast as", regex=False).all()


def test_a_fixed_cost_beyond_doubt_is_not_left_in_to_test_a_verdict(tmp_path: Path) -> None:
    """Half of a job is start-up, known to a tenth: left in it would move factors by the lengths of jobs."""
    jobs, truth = make_jobs(SMALL.but(rho=1.0, lengths=6.0, jobs=60), 4)
    pq.write_table(jobs, tmp_path / "jobs.parquet")
    with esjobs.open("duckdb::memory:", settings=Settings(fit=FitSettings(methods=("gamma",)))) as session:
        session.ingest("jobs", tmp_path / "jobs.parquet")
        session.run(window())
        table, flags = (
            session.tables.stability_checks().to_pandas(),
            headline({"flags": session.tables.flags().to_pandas()}, "flags"),
        )
        factors = headline({"factors": session.tables.factors().to_pandas()}, "factors").set_index("name")
    moved = headline({"variants": table}, "variants").query("change == 'start-up time'").set_index("name")
    raw = np.log((factors.k_raw / factors.k).astype(float))
    assert len(moved) == len(factors)
    assert np.log((moved.k_high / moved.k_low).astype(float)).max() < 0.25 * (raw.max() - raw.min())
    wrong = [name for name, size in zip(truth.name, truth.wrong, strict=True) if size != 1]
    deviating = flags[flags.name.isin(wrong) & (flags.verdict == "deviates")]
    assert len(deviating)
    assert deviating.confirmed.all()
