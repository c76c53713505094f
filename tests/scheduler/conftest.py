"""Nights that many tests begin after, lived once."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import built_once
from tests.scheduler.stage import FIRST, History, days, staged

LONGEST = 6


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return the store after so many nights, one to six, which ``staged`` begins with a copy of."""
    folder = built_once(tmp_path_factory, "nights", _live)
    return lambda nights: folder / f"{nights}.duckdb"


def _live(folder: Path) -> None:
    for number, night in enumerate(days(FIRST, LONGEST), 1):
        with staged(folder) as stage:
            assert [row["state"] for row in stage.live(night)] == ["done"]
        shutil.copy(folder / "jobs.duckdb", folder / f"{number}.duckdb")
