"""Executables are the same on every engine, scanned once or again; jobs find them alike."""

from pathlib import Path

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.similar.test_programs import put_programs


def test_every_engine_answers_alike(store: JobStore, tmp_path: Path) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    put_programs(session, tmp_path)
    with memory_session() as embedded:
        put_programs(embedded, tmp_path)
        for job_id in ("old", "bare"):
            expected = embedded.similar.programs(job_id, top=None)
            told = session.similar.programs(job_id, top=None)
            assert told.rows.equals(expected.rows)
            assert told.details.left_out == expected.details.left_out
        stored = session.tables.executables().rows
        assert stored.equals(embedded.tables.executables().rows)
    assert stored.num_rows == 5
    report = session.similar.scan([tmp_path / "1", tmp_path / "2"])
    assert (report.counts["stored"], report.counts["updated"]) == (0, 5)
    assert session.tables.executables().rows.num_rows == 5
