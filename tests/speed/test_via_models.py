"""Queues without a task in common are placed by their CPU models, as well as said, and never confirmed."""

import math
from typing import Any

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.records.demo.grid import Grid
from esjobs.records.tasks.machines import MachineSums
from tests.conftest import memory_session
from tests.flags.drift.grids import at_sites, fill, on_unknown_models

SCATTER = 0.06
DAYS = 8


def ran(seed: int, *happenings: Any) -> tuple[Session, Grid, dict[str, float]]:
    """Run a grid whose queues differ beside their CPU models, and its true speeds, in ln."""
    grid = Grid(seed=seed, jobs_per_day=2_000, n_queues=24, n_models=10)
    truth = grid.truth()
    own = np.random.default_rng(seed).normal(0, SCATTER, len(truth.queues)).tolist()
    beside = dict(zip([queue.name for queue in truth.queues], own, strict=True))
    session = memory_session()
    done = [at_sites({name: math.exp(value) for name, value in beside.items()}), *happenings]
    fill(session, dict(enumerate(done)), grid=grid, days=DAYS)
    session.run()
    return session, grid, {queue.name: math.log(queue.speed) + beside[queue.name] for queue in truth.queues}


def rows(session: Session, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.tables.read(
        table, level="queue", type="all", method="gamma"
    ).rows.to_pylist()
    return found


def test_kinds_are_numbered_by_unit_whatever_rows_are_left() -> None:
    units = [("t1", "single", "simul"), ("t2", "multi", "simul"), ("t3", "single", "simul")]
    codes = np.array([2], np.int32)
    sums = MachineSums(units, ["Q"], ["M"], codes, 0 * codes, 0 * codes, {"n_jobs": np.ones(1)})
    assert sums.kind_of_unit.tolist() == [0, 1, 0]
    assert sums.task.tolist() == [2]


@pytest.fixture(scope="module")
def runs() -> list[tuple[Session, Grid, dict[str, float]]]:
    return [ran(seed) for seed in (11, 12, 13, 14)]


def test_factors_through_cpu_models_are_right_within_their_errors(
    runs: list[tuple[Session, Grid, dict[str, float]]],
) -> None:
    pulls = []
    for session, grid, truth in runs:
        factors = rows(session, "factors")
        scale = np.mean([math.log(row["k"]) - truth[row["name"]] for row in factors if row["component"] == 0])
        placed = [row for row in factors if row["k_via"] is not None]
        assert {row["name"] for row in placed} <= set(grid.truth().island)
        for row in placed:
            error = row["k_via_err"] / row["k_via"]
            assert 0.5 * SCATTER < error < 2.0 * SCATTER
            pulls.append((math.log(row["k_via"]) - truth[row["name"]] - scale) / error)
    assert len(pulls) >= 8
    assert np.sqrt(np.mean(np.square(pulls))) < 1.6
    assert max(map(abs, pulls)) < 3.5


def test_verdicts_say_so_and_nothing_is_confirmed(
    runs: list[tuple[Session, Grid, dict[str, float]]],
) -> None:
    for session, _, _ in runs:
        placed = {row["name"]: row for row in rows(session, "factors") if row["k_via"] is not None}
        flags = [row for row in rows(session, "flags") if row["name"] in placed]
        assert len(flags) == len(placed)
        for row in flags:
            assert row["verdict"] == row["status_shown"] == "via CPU models"
            assert row["confirmed"] is None
            assert row["proposed_corepower"] is None
            assert row["component"] > 0
            assert row["k"] == placed[row["name"]]["k_via"]
            assert row["grade"] is None
            if row["deviation"] is not None:
                assert row["deviation"] == pytest.approx(row["k"] / row["expected_k"] - 1)
                assert row["deviation_err"] > SCATTER / 2
        (summary,) = rows(session, "fit_summaries")
        assert summary["n_via_cpu_models"] == len(flags)
        assert all(row["k_via"] is None for row in rows(session, "factors") if row["component"] == 0)


def test_queues_on_cpu_models_of_their_own_stay_not_comparable() -> None:
    island = Grid(seed=11, jobs_per_day=2_000, n_queues=24, n_models=10).truth().island
    session, _, _ = ran(11, on_unknown_models(island))
    # on the first day they still ran on models that others have, which is less than half of their jobs
    verdicts = {row["verdict"] for row in rows(session, "flags") if row["name"] in island}
    assert verdicts <= {"not comparable", "too few"}
    assert all(row["k_via"] is None for row in rows(session, "factors"))
