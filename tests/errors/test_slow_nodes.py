"""Slow nodes: the benchmark's generator as a gate, a planted node, a second implementation."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.black_holes import made_runs, measure_runs, measure_slow, slow_queue
from esjobs.api.session import Session
from esjobs.core.errors import UsageError
from esjobs.errors.runs import LEAST_NODES, LEAST_RUNS, cells_of_runs, counted_runs
from esjobs.errors.slowness import LEAST_SLOWER, TimedCells, judge_slow

HEADER = (
    "job_id",
    "queue",
    "task_id",
    "node",
    "state",
    "end_time",
    "wall_s",
    "cores",
    "cpu_s",
    "events",
    "cpu_raw",
)


@pytest.mark.parametrize("scatter", [0.05, 0.1])
def test_false_nodes_are_rare_and_slow_ones_are_found(scatter: float) -> None:
    false, _ = measure_slow(scatter, 0, 3000, queues=20, seed=7)
    with_slow, power = measure_slow(scatter, 3, 6000, queues=20, seed=8)
    assert max(false, with_slow) <= 0.1
    assert power is not None
    assert power > (0.7 if scatter < 0.1 else 0.4)


def test_estimates_have_pulls_of_width_one() -> None:
    pulls = []
    for number in range(40):
        cells, _ = slow_queue(0.05, 0, 6000, np.random.default_rng([3, number]))
        judged = judge_slow(cells)
        half = (np.log1p(judged.high) - np.log1p(judged.low)) / 2 / 1.645
        pulls.append(np.log1p(judged.slower) / half)
    assert np.concatenate(pulls).std() == pytest.approx(1.0, abs=0.12)


def test_equal_weights_give_the_least_squares_of_a_design_matrix() -> None:
    rng = np.random.default_rng(1)
    node, task = (each.ravel() for each in np.meshgrid(np.arange(5), np.arange(6), indexing="ij"))
    level = rng.normal(size=5)
    rest = np.array([0.3, -0.1, 0.2, -0.5, 0.1])
    # all tasks scatter by as much, and their signs cancel
    y = level[node] + rng.normal(size=6)[task] + rest[node] * (-1.0) ** task
    judged = judge_slow(TimedCells(node, task, y, np.full(30, 1e-12)))
    assert np.log1p(judged.slower) == pytest.approx(level - np.median(level))
    order = rng.permutation(30)
    again = judge_slow(TimedCells(node[order], task[order], y[order], np.full(30, 1e-12)))
    assert again.slower == pytest.approx(judged.slower)
    assert judged.tau == pytest.approx(np.sqrt(6 * (rest**2).sum() / 20), rel=0.01)


def test_nodes_without_a_common_task_are_not_compared() -> None:
    alone = TimedCells(np.array([0, 1]), np.array([0, 1]), np.zeros(2), np.ones(2))
    judged = judge_slow(alone)
    assert np.isnan(judged.slower).all()
    assert not judged.found.any()
    none = np.zeros(0, np.int64)
    assert len(judge_slow(TimedCells(none, none, none.astype(float), none.astype(float))).found) == 0


def fill(session: Session, folder: Path, *, slow: str, slower: float) -> None:
    """Site A: 12 nodes of two CPU models, 6 tasks; one node is slow, and one CPU model half as fast."""
    rng = np.random.default_rng(5)
    file = folder / "jobs.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEADER)
        for number in range(3000):
            node, task = int(rng.integers(12)), int(rng.integers(6))
            per_event = (1 + task) * (2.0 if node % 2 else 1.0) * (1 + slower if f"wn{node}" == slow else 1.0)
            cpu = 100 * per_event * float(np.exp(rng.normal(0, 0.1)))
            model = ("AMD EPYC 7302", "Intel Xeon Gold 6326")[node % 2]
            names = [number, "A", task, f"slot1@wn{node}.a.example", "finished", "2025-06-10"]
            writer.writerow([*names, cpu, 1, cpu, 100, model])
    session.ingest("jobs", file)


def test_a_slow_node_is_found_and_a_slow_cpu_model_is_not_blamed_on_nodes(
    session: Session, tmp_path: Path
) -> None:
    fill(session, tmp_path, slow="wn3", slower=0.2)
    (row,) = session.errors.nodes(slow=True).rows.to_pylist()
    assert (row["site"], row["name"], row["node"], row["n_tasks"]) == ("A", "wn3", "wn3.a.example", 6)
    assert row["slower"] == pytest.approx(0.2, abs=0.03)
    assert row["slower_low"] > LEAST_SLOWER
    core_h = session.query((), ["core_h"], where="node=slot1@wn3.a.example").rows["core_h"][0].as_py()
    assert row["cost_core_h"] == pytest.approx(core_h * (1 - 1 / (1 + row["slower"])))
    every = session.errors.nodes(slow=True, every=True, site="A").rows
    assert (every.num_rows, sum(every.column("slow").to_pylist())) == (12, 1)
    with pytest.raises(UsageError):
        session.errors.nodes(slow=True, where="node=wn1")


# -- runs of one name, without events --------------------------------------------------------------------


@pytest.mark.parametrize("burst", [1, 20, 200])
def test_bursts_of_one_input_make_no_slow_nodes(burst: int) -> None:
    false, _ = measure_runs(burst, 0, 6000, clusters=12, seed=3)
    with_slow, power = measure_runs(burst, 2, 6000, clusters=12, seed=4, slower=0.5)
    assert max(false, with_slow) <= 0.1
    assert power is not None
    assert power >= {1: 0.95, 20: 0.5, 200: 0.0}[burst]


def test_cells_of_runs_are_means_of_logarithms_near_their_median() -> None:
    rng = np.random.default_rng(1)
    node, name = rng.integers(0, 6, 900), rng.integers(0, 3, 900)
    seconds = np.exp(rng.normal(name, 0.1))
    seconds[0] = 1e9
    cells = cells_of_runs(node, name, seconds)
    for number in range(3):
        logs = np.log(seconds[name == number])
        spread = 1.4826 * np.median(np.abs(logs - np.median(logs)))
        for at in range(6):
            mine = logs[node[name == number] == at]
            drawn_in = np.median(mine) + np.clip(mine - np.median(mine), -3 * spread, 3 * spread)
            (cell,) = np.flatnonzero((cells.task == number) & (cells.node == at))
            assert cells.ln_cost[cell] == pytest.approx(drawn_in.mean())
    assert np.sqrt(cells.error_sq * np.bincount(name * 6 + node)).mean() == pytest.approx(0.1, rel=0.2)


def test_names_with_few_runs_or_few_nodes_do_not_count() -> None:
    few = np.zeros(LEAST_RUNS - 1, np.int64)
    near = np.arange(100) % (LEAST_NODES - 1)
    enough = np.arange(LEAST_RUNS) % LEAST_NODES
    node = np.concatenate([np.arange(len(few)), near, enough])
    name = np.concatenate([few, np.full(len(near), 1), np.full(len(enough), 2)])
    assert counted_runs(node, name).tolist() == list(range(len(node) - len(enough), len(node)))
    assert len(counted_runs(node[:0], name[:0])) == 0


def put_runs(session: Session, folder: Path, *, older: int = 0, names: int = 60, ill: int = 1) -> None:
    """A centre's jobs in Slurm's words: no events, no CPU models; one of 30 nodes is 40 % slower."""
    node, name, seconds, _ = made_runs(
        1, ill, 4000, np.random.default_rng(2), nodes=30, names=names, slower=0.4
    )
    seconds = np.ceil(np.where(node >= 30 - older, 1.4 * seconds, seconds)).astype(np.int64)
    lines = ["JobID|Partition|User|Account|Start|End|State|ElapsedRaw|NCPUS|NodeList|JobName"]
    for number, (at, of, took) in enumerate(zip(node, name, seconds, strict=True)):
        end = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=int(took))
        lines.append(
            f"{number}|batch|u{of % 7}|phys|2026-03-01T00:00:00|{end:%Y-%m-%dT%H:%M:%S}|COMPLETED|{took}|"
            f"{1 + of % 3}|n{at:02}|run{of}"
        )
    path = folder / "sacct.txt"
    path.write_text("\n".join(lines) + "\n")
    session.ingest("slurm", path)


def test_a_slow_node_of_a_centre_is_found_by_runs_of_equal_names(session: Session, tmp_path: Path) -> None:
    put_runs(session, tmp_path)
    answer = session.errors.nodes(slow=True)
    (row,) = answer.rows.to_pylist()
    assert (row["site"], row["node"], row["slow"]) == ("batch", "n00", True)
    assert row["slower_low"] < 0.4 < row["slower_high"]
    assert row["sentence"].endswith(f"longer runs than on other nodes; {row['n_tasks']} names of jobs")
    assert any(note.startswith("30 nodes compared by run times") for note in answer.notes)


def test_many_slow_nodes_are_another_kind_of_node(session: Session, tmp_path: Path) -> None:
    put_runs(session, tmp_path, older=8)
    answer = session.errors.nodes(slow=True)
    assert answer.rows.num_rows == 0
    assert any("9 of 30 nodes: rather another kind of node" in note for note in answer.notes)


def test_nothing_is_said_where_no_name_runs_often(session: Session, tmp_path: Path) -> None:
    put_runs(session, tmp_path, names=4000)
    answer = session.errors.nodes(slow=True)
    assert answer.rows.num_rows == 0
    assert any("nothing can be said of their nodes" in note for note in answer.notes)
