"""The main job on four real PanDA tasks, against counts and correlations found by other means."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from esjobs.api.session import Session
from tests.conftest import memory_session

FILL = ["processing_type=simul", "end_time=2018-08-15T12:00:00Z"]
WINDOW = "2018-08-01/2018-09-01"


@pytest.fixture(scope="module")
def real(panda_files: list[Path]) -> Iterator[Session]:
    with memory_session() as session:
        report = session.ingest("panda", panda_files, fill=FILL)
        assert (report.rows_in, report.counts["stored"], report.n_dropped) == (13_012, 13_012, 0)
        session.run(WINDOW)
        yield session


def test_books_balance_to_the_row(real: Session) -> None:
    days = real.tables.day_books().to_pandas()
    counts = days.groupby(["kind", "outcome"])["n_jobs"].sum()
    assert counts["binned"].sum() + counts["dropped"].sum() == 13_012
    assert counts["binned"].sum() == 12_694
    assert counts["dropped"].to_dict() == {"not finished": 318}
    assert counts["note"].to_dict() == {"state unknown": 668 + 994 + 464}
    assert real.tables.buckets().to_pandas()["n_jobs"].sum() == 12_694


def test_loading_again_stores_nothing_new(real: Session, panda_files: list[Path]) -> None:
    report = real.ingest("panda", panda_files, fill=FILL)
    assert report.counts == {"stored": 0, "updated": 13_012, "unchanged": 13_012}
    assert real.store.span().jobs == 13_012


def test_running_again_gives_the_same_rows(real: Session) -> None:
    before = {
        name: real.tables.read(name).to_pandas()
        for name in ("factors", "lines", "flags", "fits", "components")
    }
    reports = real.run(WINDOW)
    assert reports[0].counts["days recomputed"] == 0
    for name, frame in before.items():
        timeless = [column for column in frame.columns if column != "seconds"]
        pd.testing.assert_frame_equal(real.tables.read(name).to_pandas()[timeless], frame[timeless])


def test_a_task_that_shares_no_site_has_rows_with_the_reason(real: Session) -> None:
    factors = real.tables.factors(level="queue", type="all", method="paper").to_pandas().set_index("name")
    lonely = factors.loc[["FZK-LCG2_UCORE", "INFN-ROMA1_MCORE"]]
    assert lonely["k"].isna().all()
    assert set(lonely["status"]) == {"no common task"}
    assert lonely["reason"].str.len().gt(10).all()


def test_every_name_of_the_buckets_has_a_row(real: Session) -> None:
    names = set(real.tables.buckets().to_pandas()["queue"])
    for kind in ("all", "simul"):
        for method in ("paper", "gamma"):
            assert (
                set(real.tables.factors(level="queue", type=kind, method=method).to_pandas()["name"]) == names
            )
            assert (
                set(real.tables.flags(level="queue", type=kind, method=method).to_pandas()["name"]) == names
            )


def test_factors_sum_to_their_count_per_component(real: Session) -> None:
    factors = real.tables.factors(level="queue", type="all", method="paper").to_pandas()
    fitted = factors[factors["status"] == "ok"].groupby("component")["k"]
    assert (fitted.sum() - fitted.count()).abs().max() < 1e-9


def test_no_proposal_on_four_tasks(real: Session) -> None:
    assert real.tables.flags().to_pandas()["proposed_corepower"].isna().all()


@pytest.fixture(scope="module")
def one_task(panda_files: list[Path]) -> Iterator[Session]:
    with memory_session() as session:
        session.ingest("panda", panda_files, fill=FILL)
        session.run(WINDOW, tasks=["15350577"])
        yield session


def test_correlation_of_the_one_large_task(one_task: Session) -> None:
    line = one_task.tables.lines(level="queue", type="all", method="paper").to_pandas().iloc[0]
    assert line["pearson"] == pytest.approx(0.6764, abs=0.001)
    assert line["n_names"] == 36
    flags = one_task.tables.flags(level="queue", type="all", method="paper").to_pandas()
    assert len(flags) == 40
    assert Counter(flags["origin"])["default"] == 4
    with_defaults = flags[["corepower", "k"]].corr().iloc[0, 1]
    assert with_defaults == pytest.approx(0.694, abs=0.001)


def test_defaults_are_undeclared_and_changed_values_are_said(one_task: Session) -> None:
    flags = one_task.tables.flags(level="queue", type="all", method="paper").to_pandas().set_index("name")
    defaults = flags[flags["origin"] == "default"]
    assert set(defaults["verdict"]) == {"undeclared"}
    assert (defaults["corepower"] - 10).abs().max() < 0.02
    assert flags.loc["IN2P3-CC_CL7", "origin"] == "changed"  # 10.67 and 10.87 inside the window
    assert flags["proposed_corepower"].isna().all()


def test_raw_verdicts_are_those_of_a_second_implementation(one_task: Session) -> None:
    """One task, one core class: k is proportional to events per CPU second, nothing else."""
    factors = one_task.tables.factors(level="queue", type="all", method="paper").to_pandas().set_index("name")
    buckets = one_task.tables.buckets().to_pandas()
    mine = buckets[buckets["task_id"] == "15350577"].groupby("queue")[["events", "cpu_s"]].sum()
    expected = mine["events"] / mine["cpu_s"]
    expected *= len(expected) / expected.sum()
    # MIGRAD ends within its tolerance of the minimum: a millionth of the errors of 10 %
    assert (factors["k"] / expected - 1).abs().max() < 1e-7
    assert (factors["k_err_int"] / factors["k"]).between(0.09, 0.105).all()
    fit = one_task.tables.fits(level="queue", type="all", method="paper").to_pandas().iloc[0]
    assert (fit["dof"], fit["sigma_int"], fit["sigma_int_kind"]) == (0, 0.10, "assumed")
    assert math.isnan(fit["rel_spread"])


def test_declared_corepower_never_enters_a_fit(panda_files: list[Path], tmp_path: Path) -> None:
    """Scaling hs06sec by another factor at every site leaves every k as it is, to the bit."""
    results = []
    for scale in (0.0, 1.7):
        with memory_session() as session:
            session.ingest("panda", panda_files, fill=FILL)
            jobs = session.jobs().to_pandas()
        jobs["hs06_s"] *= 1 + scale * jobs["queue"].str.len()
        jobs.to_parquet(tmp_path / "jobs.parquet")
        with memory_session() as session:
            assert session.ingest("jobs", tmp_path / "jobs.parquet").counts["stored"] == 13_012
            session.run(WINDOW)
            results.append(session.tables.factors().to_pandas()[["level", "name", "method", "k", "k_err"]])
    pd.testing.assert_frame_equal(results[0], results[1])


def test_run_reports_are_stored(real: Session) -> None:
    runs = real.tables.runs().to_pandas()
    assert {"aggregate", "fit", "correlate", "flag"} <= set(runs["step"])
    dropped = json.loads(runs[runs["step"] == "aggregate"]["dropped"].iloc[0])
    assert dropped == {"not finished": 318}


def test_the_page_of_a_real_run_says_what_it_says(real: Session) -> None:
    page = (Path(__file__).parents[2] / "docs" / "real_run.md").read_text(encoding="utf-8")
    (line,) = [
        row
        for row in real.tables.lines(level="queue", type="all")
        if row["method"] == "gamma" and row["status"] == "ok"
    ]
    for name in ("slope", "slope_err", "tau", "pearson"):
        assert f" {line[name]:.4g} " in page, name
    flags = {row["name"]: row for row in real.tables.flags(level="queue", type="all", method="gamma")}
    for queue, jobs, deviation in re.findall(r"\| (IN2P3\S+) \| (\d+) .*\| ([+−]\d+) % \|\n", page):
        assert flags[queue]["n_jobs"] == int(jobs)
        assert f"{100 * flags[queue]['deviation']:+.0f}".replace("-", "−") == deviation
    confirmed = [row["name"] for row in real.tables.flags(type="all", method="gamma") if row["confirmed"]]
    assert confirmed == ["IAAS"]
