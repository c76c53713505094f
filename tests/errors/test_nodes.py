"""Failing nodes: the generators of the benchmark as gates, planted nodes in stored jobs, the demo."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.black_holes import SCENARIOS, coverage, measure
from esjobs.api.session import Session
from esjobs.core.errors import NoJobsError, UsageError
from esjobs.entry import open as open_session
from esjobs.errors.black_holes import Cells, judge
from esjobs.records.demo import errors as planted
from esjobs.records.demo.grid import Grid

HEADER = "job_id,queue,task_id,node,state,error,end_time,wall_s,cores"
POWER = {"2 black holes, 5 x jobs, 90 % fail": 0.99, "10 of 100 nodes, 50 % fail": 0.85}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_false_nodes_are_rare_and_ill_ones_are_found(scenario) -> None:  # type: ignore[no-untyped-def]
    false, power = measure(scenario, queues=20, seed=7)["steps 1-4"]
    assert false <= (0.3 if scenario.bursts else 0.1)
    assert power is None or power >= POWER.get(scenario.name, 0.0)


def test_the_interval_holds_the_truth() -> None:
    assert coverage(queues=10, seed=5) > 0.9


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 4))
def test_the_order_of_cells_does_not_matter_and_expectations_are_those_of_a_loop(
    seed: int, nodes: int, tasks: int
) -> None:
    rng = np.random.default_rng(seed)
    node, task = np.divmod(np.arange(nodes * tasks), tasks)
    jobs = rng.integers(1, 30, nodes * tasks).astype(float)
    failed = np.floor(jobs * rng.random(nodes * tasks) * 0.4)
    cells = Cells(node, task, jobs, failed)
    judged = judge(cells)
    order = rng.permutation(nodes * tasks)
    again = judge(Cells(node[order], task[order], jobs[order], failed[order]))
    assert again.expected == pytest.approx(judged.expected)
    assert (again.found == judged.found).all()
    assert (judged.low <= judged.high).all()
    z = (judged.observed - judged.expected) / np.sqrt(judged.scale)
    # few cells: a node may leave the expectation of the others
    if nodes >= 4 and tasks >= 2 and (z < 4).all() and judged.scale < 1.0001:
        rate = failed.sum() / jobs.sum()
        for at in range(nodes):
            expected = 0.0
            for t in range(tasks):
                others = (task == t) & (node != at)
                own = jobs[(task == t) & (node == at)].sum()
                expected += own * (failed[others].sum() + 0.5 * rate) / (jobs[others].sum() + 0.5)
            if not (judged.observed > judged.expected + 3).any():
                assert judged.expected[at] == pytest.approx(expected)


def test_nothing_is_judged_without_jobs_and_nobody_accused_alone() -> None:
    none = np.zeros(0, np.int64)
    assert len(judge(Cells(none, none, none.astype(float), none.astype(float))).found) == 0
    one = judge(Cells(np.array([0]), np.array([0]), np.array([50.0]), np.array([50.0])))
    assert not one.found.any()


def fill(session: Session, folder: Path, *, failing_wall_s: int, per_node: int = 40) -> None:
    """Site A: 20 nodes, 3 tasks, wn3 fails 8 in 10; it takes more jobs if it fails fast."""
    rng = np.random.default_rng(3)
    file = folder / "jobs.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER.split(","))
        number = 0
        for node in range(20):
            bad = node == 3
            for _ in range(per_node * (4 if bad and failing_wall_s < 900 else 1)):
                number += 1
                fails = rng.random() < (0.8 if bad else 0.02)
                state, error = ("failed", "pilot:1377") if fails else ("finished", "")
                wall = failing_wall_s if fails and bad else 7200
                row = ["A", number % 3, f"wn{node}.a.example", state, error, "2025-06-10", wall, 2]
                writer.writerow([number, *row])
    session.ingest("jobs", file)


@pytest.mark.parametrize(("wall", "kind"), [(120, "black hole"), (7200, "failing node")])
def test_a_node_that_fails_fast_and_takes_many_jobs_is_a_black_hole(
    session: Session, tmp_path: Path, wall: int, kind: str
) -> None:
    fill(session, tmp_path, failing_wall_s=wall)
    (row,) = session.errors.nodes().rows.to_pylist()
    assert (row["site"], row["name"], row["node"], row["kind"]) == ("A", "wn3", "wn3.a.example", kind)
    assert row["ratio_low"] > 2
    lost = row["failed"] * wall * 2 / 3600
    assert row["cost_core_h"] == pytest.approx(lost * (1 - row["expected"] / row["failed"]))
    every = session.errors.nodes(queue="A", every=True).rows
    assert every.num_rows == 20
    again = session.errors.nodes(site=["A", "B"]).rows
    # threads of the engine add up in any order
    (same,) = again.to_pylist()
    numbers = {name for name, value in row.items() if isinstance(value, int | float)}
    assert {name: same[name] for name in same.keys() - numbers} == {
        name: row[name] for name in row.keys() - numbers
    }
    assert [same[name] for name in numbers] == pytest.approx([row[name] for name in numbers], rel=1e-12)
    assert sum(every.column("failed").to_pylist()) == session.query((), ["failed"]).rows["failed"][0].as_py()


def test_killed_and_retried_jobs_accuse_no_node(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path, failing_wall_s=7200)
    text = (tmp_path / "jobs.csv").read_text(encoding="utf-8")
    (tmp_path / "killed.csv").write_text(text.replace("pilot:1377", "taskbuffer:100"), encoding="utf-8")
    session.ingest("jobs", tmp_path / "killed.csv")
    answer = session.errors.nodes()
    assert (len(answer), len(answer.notes)) == (0, 1)


def test_names_that_change_with_every_job_are_not_compared(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path, failing_wall_s=7200, per_node=2)
    answer = session.errors.nodes()
    assert (len(answer), len(answer.notes)) == (0, 1)
    with pytest.raises(UsageError):
        session.errors.nodes(where="node=wn1")
    with pytest.raises(NoJobsError):
        session.errors.nodes(site="nowhere")


def test_the_demo_plants_errors_and_a_failing_node(demo_folder: Path) -> None:
    with open_session(f"duckdb:{demo_folder / 'demo.duckdb'}", read_only=True) as session:
        rows = session.query("error,state").rows.to_pylist()
        by_state = {(row["state"], row["error"]): row["jobs"] for row in rows}
        assert all((state in ("finished", None)) == (error is None) for state, error in by_state)
        assert {row["error"] for row in rows} - {None} <= {
            *planted.CODES,
            *planted.OF_STATES.values(),
            planted.OF_INCIDENT,
            planted.OF_FAILING_NODE,
        }
        new = session.errors.lost("error", window="2025-W25", new=True).rows.to_pylist()
        assert [row["error"] for row in new] == [planted.OF_INCIDENT]
        (node,) = session.errors.nodes().rows.to_pylist()
        assert node["name"] == planted.FAILING
        queues = Grid.of_size(60_000, seed=3).truth().queues
        found = session.query("site", ["jobs"], where=f"error={planted.OF_INCIDENT}").rows.to_pylist()
        incident = found[0]["site"]
        assert len(found) == 1
        sizes = {site: sum(q.share for q in queues if q.site == site) for site in {q.site for q in queues}}
        assert node["site"] == max(sizes.keys() - {incident}, key=sizes.__getitem__)
        ill = session.errors.nodes(site=incident, window="2025-06-17/2025-06-20")
        assert len(ill) == 0
        assert any("queue, not node" in note for note in ill.notes)


@pytest.mark.parametrize("known", ["", "user", "job_name", "user,job_name"])
@pytest.mark.parametrize("broken", [False, True])
def test_nodes_of_jobs_without_tasks(session: Session, tmp_path: Path, known: str, broken: bool) -> None:
    """A node that fails jobs of everybody is found; one on which all jobs of one user fail is not."""
    rng = np.random.default_rng(8)
    file = tmp_path / "jobs.csv"
    columns = known.split(",") if known else []
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["job_id", "queue", "node", "state", "end_time", "wall_s", "cores", *columns])
        for number in range(1200):
            node, whose = number % 30, int(rng.integers(12))
            user = "culprit" if node == 7 and broken and number % 60 < 30 else f"u{whose}"
            fails = rng.random() < 0.02 or (user == "culprit" if broken else node == 7 and rng.random() < 0.7)
            names = {"user": user, "job_name": "mine" if user == "culprit" else f"run{whose}"}
            row = [number, "cpu", f"cn{node:03}", "failed" if fails else "finished", "2025-06-10", 7200, 32]
            writer.writerow([*row, *(names[name] for name in columns)])
    session.ingest("jobs", file)
    found = [row["name"] for row in session.errors.nodes()]
    # where nothing is known of jobs, nothing is known of a culprit
    assert found == ([] if broken and known else ["cn007"])


@pytest.mark.parametrize("n_bad", [1, 3, 6])
def test_several_ill_nodes_do_not_hide_each_other(n_bad: int) -> None:
    rng = np.random.default_rng(n_bad)
    node, task = np.divmod(np.arange(20 * 5), 5)
    jobs = np.full(100, 30.0)
    failed = rng.binomial(30, np.where(node < n_bad, 0.8, 0.04)).astype(float)
    assert np.flatnonzero(judge(Cells(node, task, jobs, failed)).found).tolist() == list(range(n_bad))


def test_where_hardly_any_job_fails_nobody_is_accused() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        node, task = np.divmod(np.arange(60 * 3), 3)
        jobs = np.full(180, 8.0)
        failed = rng.binomial(8, np.full(180, 0.015)).astype(float)
        assert not judge(Cells(node, task, jobs, failed)).found.any()
