"""A method keeps its numbers: other ones need another version of the method."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esjobs
from esjobs.schema.speed import METHOD_VERSION
from tests.steps.grids import grid_jobs, load

GOLDEN = Path(__file__).parents[1] / "golden" / "methods" / f"{METHOD_VERSION}.json"
COLUMNS = ("k", "k_err", "deviation", "deviation_err", "p_off", "verdict", "confirmed")


def numbers(folder: Path) -> dict[str, dict[str, Any]]:
    """Numbers of each queue of a small grid: two declare wrong values, cells scatter by 5 %."""
    rng = np.random.default_rng(20)
    speed = np.linspace(8, 16, 24)
    declared = speed * np.where(np.arange(24) == 5, 1.5, np.where(np.arange(24) == 17, 0.6, 1.0))
    with esjobs.open("duckdb::memory:") as session:
        load(session, grid_jobs(rng, speed, declared, tasks=6, jobs=40, interaction=0.05), folder)
        session.run()
        flags = session.tables.flags(level="queue", type="all", method="gamma").rows.to_pylist()
    return {row["name"]: {column: row[column] for column in COLUMNS} for row in flags}


def test_the_numbers_are_those_of_this_version(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    now = numbers(tmp_path)
    assert sum(bool(row["confirmed"]) for row in now.values()) == 2
    if request.config.getoption("--update-golden") and not GOLDEN.exists():
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
    before = json.loads(GOLDEN.read_text())
    assert set(now) == set(before)
    for name, row in now.items():
        assert row == {
            column: pytest.approx(value, rel=1e-6, abs=1e-8) if isinstance(value, float) else value
            for column, value in before[name].items()
        }, name
