"""Benchmarks in job slots beside production are the same on every engine."""

from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.cli.running import job_file
from tests.conftest import NOW, memory_session
from tests.delivered.test_pledges import written

PROBES = "queue,node,measured_at,benchmark,value_per_core\n" + "".join(
    f"SITE{site:02},n{node},{{day}}T0{node}:00:00Z,HS06,{9 + site / 5 + node / 10}\n"
    for site in range(1, 9)
    for node in range(1, 4)
)


def answers(session: Session, folder: Path) -> list[dict[str, Any]]:
    session.ingest("jobs", job_file(folder / "jobs.csv"))
    session.run()
    run = session.tables.flags().run
    assert run is not None
    text = PROBES.format(day=run.window.last_day)
    session.ingest("probes", written(folder, text, "probes.csv"))
    session.ingest("probes", written(folder, text, "again.csv"))
    rows: list[dict[str, Any]] = session.speed.probes().rows.to_pylist()
    return rows + list(session.queue("SITE01").probes)


def test_every_engine_compares_equally(store: JobStore, tmp_path: Path) -> None:
    found = answers(Session(store, Settings(), clock=lambda: NOW), tmp_path)
    with memory_session() as embedded:
        expected = answers(embedded, tmp_path)
    assert len(found) == len(expected) == 9
    assert {row["n_probes"] for row in found} == {3}
    for row, other in zip(found, expected, strict=True):
        for name, value in row.items():
            same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
            assert other[name] == same, name
