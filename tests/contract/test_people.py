"""The page of a user is the same on every engine, whatever the user is called."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.issues.made_jobs import made_series, put_records, put_series, record

HOSTILE = "o'\"*,=<b>&\\"


def made(session: Session, folder: Path) -> list[dict[str, Any]]:
    given = {name: one for name, one in made_series().items() if name in ("idle", "leak")}
    records = [
        record("idle", user=HOSTILE, nodes=40, cores=160),
        record("leak", user="bob"),
        record("lazy", user=HOSTILE, cpu_s=14400.0),
    ]
    put_records(session, folder, records)
    put_series(session, given)
    session.issues.detect()
    session.scores.compute()
    return [asdict(session.user(HOSTILE).content), asdict(session.project("phys", window="2026-03").content)]


def test_every_engine_gives_the_same_page(store: JobStore, tmp_path: Path) -> None:
    found = made(Session(store, Settings(), clock=lambda: NOW), tmp_path)
    user, project = found
    assert (user["total"]["jobs"], project["total"]["jobs"]) == (2, 3)
    assert user["saved"]["n_jobs"] == 2
    assert user["findings"]
    with memory_session() as other:
        assert made(other, tmp_path) == found
