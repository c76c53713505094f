"""Drift, reasons and reference tables are the same on every engine, also made twice."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.window import Window
from esjobs.records.demo.grid import LAST_DAY, Grid
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session

GRID = Grid(seed=3, jobs_per_day=400, n_queues=20, n_models=6)
DAYS = 9
WINDOW = Window.of_days(LAST_DAY - timedelta(days=DAYS - 1), LAST_DAY)
TABLES = ("references", "drifts", "daily_factors", "decomposition")
LINES = "AMD EPYC 7302 16-Core Processor,979.2,64,on\nAMD EPYC 7302 16-Core Processor,640,32,off\n"


def made(session: Session, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Everything that the steps leave of a small grid."""
    for number in range(DAYS):
        day = LAST_DAY - timedelta(days=number)
        session.store.put_jobs(GRID.jobs(day), f"load {number}")
    scores = folder / "scores.txt"
    scores.write_text(LINES)
    session.declared.import_references(scores, form="atlas-hs06")
    session.run(WINDOW)
    for _ in range(2):
        session.flags.drift()
        session.flags.decompose()
    return {name: session.tables.read(name).rows.to_pylist() for name in TABLES}


def test_every_engine_leaves_the_same_rows(store: JobStore, tmp_path: Path) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    found = made(session, tmp_path)
    with memory_session() as embedded:
        expected = made(embedded, tmp_path)
    assert len(found["references"]) == 2
    assert len(found["daily_factors"]) > 100
    assert len(found["decomposition"]) > 50
    for name in TABLES:
        assert len(found[name]) == len(expected[name])
        for row, other in zip(found[name], expected[name], strict=True):
            assert row.keys() == other.keys()
            for column, value in other.items():
                if column == "fingerprint":  # an engine's own fingerprint of a day
                    continue
                if isinstance(value, float):
                    assert row[column] == pytest.approx(value, rel=1e-6, abs=1e-9), (name, column)
                else:
                    assert row[column] == value, (name, column)
