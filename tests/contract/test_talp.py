"""Reports of TALP are the same on every engine: rows, efficiencies, what has no job, scaling."""

from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.pop.reports import as_report, minimal, put_job, real_reports, written

TABLES = ("pop", "pop_orphans", "pop_scaling", "pop_changes", "pop_reports")


def filled(session: Session, files: list[Path]) -> dict[str, list[dict[str, Any]]]:
    put_job(session.store)
    session.ingest("talp", files)
    return rows_of(session)


def rows_of(session: Session) -> dict[str, list[dict[str, Any]]]:
    return {
        table: sorted(
            session.tables.read(table).rows.to_pylist(), key=lambda row: sorted(map(str, row.items()))
        )
        for table in TABLES
    }


def test_every_engine_keeps_the_same(store: JobStore, shared_data: Path, tmp_path: Path) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    files = [as_report(tmp_path, path, pid=number) for number, path in enumerate(real_reports(shared_data))]
    told = filled(session, files)
    with memory_session() as embedded:
        expected = filled(embedded, files)
    for table in TABLES:
        assert len(told[table]) == len(expected[table]), table
        for row, other in zip(told[table], expected[table], strict=True):
            for name, value in other.items():
                same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
                assert row[name] == same, (table, name)
    assert len(told["pop"]) > 300
    # again, in one load or in two: nothing changes
    session.ingest("talp", files[:5])
    session.ingest("talp", files[5:])
    again = rows_of(session)
    for table in ("pop_orphans", "pop_scaling", "pop_changes"):
        assert again[table] == told[table]
    assert [without_mark(row) for row in again["pop"]] == [without_mark(row) for row in told["pop"]]


def without_mark(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "fingerprint"}


ODD = ["../../etc", "a b/c", '"quoted"', "Ω" * 200, "*", "x\ny", "-", "%2e"]


def test_applications_may_be_called_anything(store: JobStore, tmp_path: Path) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    files = []
    for number, name in enumerate(ODD):
        put_job(store, f"{number + 100}", application=name)
        document = minimal()
        document["Application"]["\N{PILE OF POO}" * 1000] = document["Application"]["Global"]
        files.append(written(tmp_path, document, f"talp.{number + 100}.0.n.1.json"))
    report = session.ingest("talp", files)
    assert {row["application"] for row in session.tables.pop_scaling().rows.to_pylist()} == set(ODD)
    session.undo(report.run)
    assert all(not rows for rows in rows_of(session).values())


def test_an_orphan_is_joined_by_the_next_load_of_jobs(
    store: JobStore, shared_data: Path, tmp_path: Path
) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    session.ingest("talp", [as_report(tmp_path, shared_data / "talp/3.7.0/comm-np2.json")])
    assert session.tables.pop_orphans().rows.num_rows == 1
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,queue,end_time,application\n4711,batch,2026-11-20T23:00:00Z,solver\n")
    session.ingest("jobs", [jobs])
    assert session.tables.pop_orphans().rows.num_rows == 0
    assert [row["application"] for row in session.tables.pop_scaling().rows.to_pylist()] == ["solver"]
    assert session.job("4711").pop
