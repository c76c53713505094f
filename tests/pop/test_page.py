"""The page of a job: the tree, its colours, and a sentence about what costs most."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from esjobs.api.session import Session
from esjobs.cli.main import main
from esjobs.issues.one_job import job_stories
from esjobs.pop.text import grade, launches, sentence
from esjobs.pop.worst import TREE, worst_branch
from esjobs.render.job_page import job_html
from esjobs.render.text.job import page_lines
from tests.pop.reports import as_report, minimal, put_job, written


def story_lines(session: Session, **options: Any) -> str:
    return "\n".join(page_lines(session.job("4711").content, 100, **options))


def test_the_tree_stands_beside_the_record(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    real = shared_data / "talp/3.7.0/hybrid-np4x2-2nodes-pop+process.json"
    session.ingest("talp", [as_report(tmp_path, real)])
    printed = json.loads(real.read_text())["Application"]["Global"]
    lines = story_lines(session)
    assert "Launch 0: Global, 4 ranks, 8 CPUs, 2 nodes, 2.20 s" in lines
    assert f"{printed['parallelEfficiency']:.2f} poor  Parallel efficiency" in lines
    assert f"{printed['ompParallelEfficiency']:.2f} poor    OpenMP" in lines
    tree = lines.partition("parallel efficiency")[2]
    assert "GPU" not in tree.replace("GPUs share", "")
    assert "Largest loss: MPI load balance between nodes (0.74)" in lines


def test_colours_are_for_terminals_alone(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/balanced-np2.json")])
    assert "\x1b[32m" in story_lines(session, colour=True)
    assert "\x1b" not in story_lines(session)


def test_a_job_that_was_not_measured_says_nothing_of_efficiency(session: Session) -> None:
    put_job(session.store)
    assert "efficiency" not in story_lines(session)
    assert "Parallel efficiency" not in job_html(session.job("4711").content)


def test_pages_of_many_jobs_have_the_same_tree(session: Session, shared_data: Path, tmp_path: Path) -> None:
    put_job(session.store)
    put_job(session.store, "4712")
    session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/comm-np2.json")])
    told = list(job_stories(session.store, [("slurm", "4711"), ("slurm", "4712")]))
    assert told[0].pop == session.job("4711").pop != ()
    assert told[1].pop == ()


def test_hostile_names_of_regions_are_shown_and_not_obeyed(session: Session, tmp_path: Path) -> None:
    document = minimal()
    inner = document["Application"]["Global"]
    document["Application"] |= dict.fromkeys(["<script>alert(1)</script>", "\x1b[2J\nforged line"], inner)
    put_job(session.store)
    session.ingest("talp", [written(tmp_path, document)])
    page, lines = job_html(session.job("4711").content), story_lines(session)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in lines
    assert "\nforged line" not in lines


def test_ten_thousand_regions_and_many_launches_leave_a_page_readable(
    session: Session, tmp_path: Path
) -> None:
    document = minimal()
    inner = document["Application"]["Global"]
    document["Application"] |= {f"region {number}": inner for number in range(500)}
    put_job(session.store)
    files = [written(tmp_path, document, f"talp.4711.{step}.n.1.json") for step in range(8)]
    session.ingest("talp", files)
    lines = story_lines(session)
    assert "and 488 more regions: esjobs show pop" in lines
    assert "and 3 more launches: esjobs show pop" in lines
    assert len(lines.splitlines()) < 200


@pytest.mark.parametrize("name", [name for name, each in TREE.items() if each.name])
def test_every_branch_has_a_sentence(name: str) -> None:
    row = {**dict.fromkeys(TREE), name: 0.5, "worst": name, "status": "computed"}
    assert worst_branch(row) == name
    assert "(0.50)" in sentence(row)
    assert "Usual remedy" in sentence(row)


def test_the_worst_branch_is_the_lowest_leaf_below_the_limit() -> None:
    parts = {"mpi_load_balance": 0.6, "mpi_load_balance_in": 0.8, "mpi_load_balance_out": 0.75}
    assert worst_branch({**parts, "omp_load_balance": 0.78}) == "mpi_load_balance_out"
    assert worst_branch({"mpi_load_balance": 0.6}) == "mpi_load_balance"
    assert worst_branch({"mpi_load_balance": 0.9, "omp_load_balance": None}) is None


@pytest.mark.parametrize(
    ("value", "word"), [(0.9, "good"), (0.8949, "fair"), (0.8, "fair"), (0.7949, "poor")]
)
def test_grades_are_those_of_the_number_that_is_shown(value: float, word: str) -> None:
    assert grade(value) == word


def test_a_launch_without_data_is_not_called_efficient(
    session: Session, shared_data: Path, tmp_path: Path
) -> None:
    put_job(session.store)
    session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/region-exclude-all.json")])
    (launch,), _ = launches(session.job("4711").pop)
    assert not launch.branches
    assert "never entered" in launch.sentence


def test_the_command_writes_both_pages(shared_data: Path, tmp_path: Path) -> None:
    store = ["--store", f"duckdb:{tmp_path}/s.duckdb"]
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,queue,end_time\n4711,batch,2026-11-20T23:00:00Z\n")
    report = as_report(tmp_path, shared_data / "talp/3.7.0/pipeline-np2.json")
    run = CliRunner().invoke
    assert run(main, [*store, "ingest", "jobs", str(jobs)]).exit_code == 0
    assert run(main, [*store, "ingest", "talp", str(report)]).exit_code == 0
    assert "poor  Parallel efficiency" in run(main, [*store, "job", "4711"]).output
    assert run(main, [*store, "job", "4711", "--out", str(tmp_path / "j.html")]).exit_code == 0
    assert 'class="grade grade-poor"' in (tmp_path / "j.html").read_text()
    assert "talp join: 0 rows" in run(main, [*store, "talp", "join"]).output
