"""Slow nodes: the benchmark's generator as a gate, a planted node, a second implementation."""

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks.black_holes import measure_slow, slow_queue
from esjobs.api.session import Session
from esjobs.core.errors import UsageError
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
