"""The judged days and incidents on the page of a site are the same on every engine."""

from typing import Any

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, DAYS, day, jobs_of, put


def answers(session: Session) -> list[dict[str, Any]]:
    put(session.store, jobs_of(range(DAYS)))
    session.flags.today.update()
    page = session.site(BAD_SITE)
    assert [row["since"] for row in page.incidents] == [day(BAD_FROM)]
    return [dict(row) for row in page.days]


def test_every_engine_has_equal_days(store: JobStore) -> None:
    found = answers(Session(store, Settings(), clock=lambda: NOW))
    with memory_session() as embedded:
        expected = answers(embedded)
    assert len(found) == len(expected) > DAYS
    for row, other in zip(found, expected, strict=True):
        for name, value in row.items():
            same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
            assert other[name] == same, name
