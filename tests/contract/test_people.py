"""The page of a user is the same on every engine, whatever the user is called."""

from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.issues.made_jobs import busy, cores, made_series, put_records, put_series, record

HOSTILE = "o'\"*,=<b>&\\"


def made(session: Session, folder: Path) -> list[dict[str, Any]]:
    half = [busy(), busy(), busy(0), busy(0)]
    given = {
        "idle": [*chain(*(cores(half, f"n{node}") for node in range(4)))],
        "leak": made_series()["leak"],
    }
    records = [
        record("idle", user=HOSTILE, nodes=4, cores=16),
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
