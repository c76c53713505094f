"""Predicted scores are the same on every engine, and so are rankings with them."""

import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.store.base import JobStore
from tests.conftest import memory_session
from tests.issues.made_jobs import START
from tests.similar.made_families import jobs_of, put_families

WINDOW = f"{START:%Y-%m-%d}/2026-03-02"
JOBS = [job for family in (0, 3) for job in (*jobs_of(family, 12), *jobs_of(family, 2, measured=False))]


def told(session: Session) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Predictions, and a ranking with them."""
    put_families(session, JOBS)
    session.similar.predict(WINDOW)
    session.similar.predict(WINDOW)
    rows = session.tables.predicted_scores().rows.to_pylist()
    ranked = session.scores.rank("user", "score_mem", top=None, predicted=True).rows.to_pylist()
    jobs = session.scores.rank("job", "score_mem", top=None, predicted=True).rows.to_pylist()
    return rows, [*ranked, *jobs]


def test_every_engine_predicts_the_same(store: JobStore) -> None:
    ours = told(Session(store, Settings()))
    with memory_session() as embedded:
        expected = told(embedded)
    for table, other in zip(ours, expected, strict=True):
        assert len(table) == len(other) > 0
        for row, same in zip(table, other, strict=True):
            for name, value in same.items():
                # a spread is a difference of sums, which engines add up in orders of their own
                close = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                assert row[name] == close, name
    assert len(ours[0]) == 2 * 4
