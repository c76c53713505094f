"""Delivered work against pledges, and energy, are the same on every engine."""

from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.delivered import test_energy
from tests.delivered.test_pledges import cric, fill, written

WINDOW = "2026-03-01/2026-06-01"


def answers(session: Session, folder: Path) -> list[list[dict[str, Any]]]:
    fill(session, folder)
    done = session.ingest("pledges", written(folder, {"a": cric()}))
    session.ingest("pledges", written(folder, {"a": cric()}))
    tables = [list(session.tables.read(name)) for name in ("pledges", "federation_sites")]
    session.undo(done.run)
    left = [list(session.tables.read(name)) for name in ("pledges", "federation_sites")]
    return [*tables, *left, list(session.delivered.work(["federation", "month"], window=WINDOW))]


def test_every_engine_answers_equally(store: JobStore, tmp_path: Path) -> None:
    found = answers(Session(store, Settings(), clock=lambda: NOW), tmp_path)
    with memory_session() as embedded:
        expected = answers(embedded, tmp_path)
    assert [len(rows) for rows in found] == [8, 6, 4, 3, 8]
    assert found[:4] == expected[:4]
    for row, other in zip(found[4], expected[4], strict=True):
        for name, value in row.items():
            same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert other[name] == same, name


def test_energy_is_the_same(store: JobStore, tmp_path: Path) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    test_energy.fill(session, tmp_path)
    found = list(session.delivered.energy(["site", "month"]))
    with memory_session() as embedded:
        test_energy.fill(embedded, tmp_path)
        expected = list(embedded.delivered.energy(["site", "month"]))
    assert len(found) == len(expected) == 5
    for row, other in zip(found, expected, strict=True):
        for name, value in row.items():
            assert other[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)
