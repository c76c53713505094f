"""The cost of an incident, and incidents in declared outages, are the same on every engine."""

from pathlib import Path
from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.publish.publication import read_table
from esjobs.schema.today import INCIDENT_NIGHTS
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.delivered.test_downtimes import NESTED
from tests.delivered.test_pledges import written
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, DAYS, day, jobs_of, put


def answers(session: Session, folder: Path) -> list[list[dict[str, Any]]]:
    put(session.store, jobs_of(range(DAYS)))
    window = f"{day(BAD_FROM)}/{day(BAD_TO)}T09:00:00"
    text = f"site,begin,until\n{BAD_SITE},{day(3)},{day(4)}\n{BAD_SITE},{day(BAD_FROM)},{day(BAD_TO)}\n"
    before = list(session.flags.today.incident(BAD_SITE, window=window))
    session.ingest("downtimes", written(folder, text, "d.csv"))
    session.ingest("downtimes", written(folder, NESTED, "d.xml"))
    session.flags.today.update()
    after = list(session.flags.today.incident(BAD_SITE, window=window))
    nights = read_table(session.store, INCIDENT_NIGHTS).to_pylist()
    return [before, after, sorted(nights, key=lambda row: (row["night"], row["site"]))]


def test_every_engine_answers_equally(store: JobStore, tmp_path: Path) -> None:
    found = answers(Session(store, Settings(), clock=lambda: NOW), tmp_path)
    with memory_session() as embedded:
        expected = answers(embedded, tmp_path)
    assert found[1][0]["baseline_days"] == found[0][0]["baseline_days"] - 1
    of_site = [row["state"] for row in found[2] if row["site"] == BAD_SITE]
    assert of_site[:3] == ["maintenance", "maintenance", "open"]
    for rows, others in zip(found, expected, strict=True):
        for row, other in zip(rows, others, strict=True):
            for name, value in row.items():
                # percentiles of a cluster are estimates
                exact = 0.05 if name.startswith(("waiting", "usual_waiting")) else 1e-9
                same = pytest.approx(value, rel=exact) if isinstance(value, float) else value
                assert other[name] == same or name == "sentence", name
