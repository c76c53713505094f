"""Lost work and failing nodes are the same on every engine."""

from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pytest

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.records.answer import Answer
from esjobs.store.base import JobStore
from tests.conftest import NOW, memory_session
from tests.contract.jobs import START, Row, job, put

ERRORS = ["pilot:1099", "trans:65", "pilot:1235", "none:0", None, "taskbuffer:105"]


def jobs() -> list[Row]:
    """Two queues with 30 nodes each and 12 tasks; node 4 of the first one fails."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(2400):
        node = int(rng.integers(30))
        fails = rng.random() < (0.7 if node == 4 and number % 2 else 0.05)
        rows.append(
            job(
                number,
                queue=("CERN", "RAL")[number % 2],
                task_id=str(1000 + number % 12),
                node=f"wn{node}.x",
                state=("failed", "timeout", "cancelled")[number % 3] if fails else "finished",
                error=ERRORS[int(rng.integers(len(ERRORS)))] if fails else None,
                end_time=START + timedelta(days=int(rng.integers(40)), hours=3),
                wall_s=float(rng.integers(60, 7200)),
                release=str(1 + number % 2),
                max_rss_b=1e9 * (1 + number % 9),
            )
        )
    return rows


def test_every_engine_gives_the_same_answers(store: JobStore) -> None:
    session = Session(store, Settings(), clock=lambda: NOW)
    with memory_session() as embedded:
        for each in (session, embedded):
            put(each.store, "load", *jobs())
        window = "2018-08-29/2018-09-05"
        questions: tuple[Callable[[Session], Answer], ...] = (
            lambda of: of.errors.lost("error"),
            lambda of: of.errors.lost(window=window, site="RAL"),
            lambda of: of.errors.lost("error", window=window, new=True),
            lambda of: of.errors.nodes(),
            lambda of: of.errors.nodes(window=window, every=True),
            lambda of: of.query("error_category,node", ["jobs", "lost_core_h"]),
            lambda of: of.query("queue", ["jobs"], where="error_category=memory,input"),
            lambda of: of.errors.nodes(slow=True, every=True),
            lambda of: of.query("queue,node", "core_h", share_of="queue", window=window, compare="previous"),
            lambda of: of.query(
                "queue", "efficiency", where="release=2", versus="release=1", strata="task_id"
            ),
            lambda of: of.query(
                "user", ["spare_core_h", "blocked_core_h"], where="busy_cores<=0.9", errors=True
            ),
        )
        for ask in questions:
            found, expected = list(ask(session)), list(ask(embedded))
            assert len(found) == len(expected)
            for row, other in zip(found, expected, strict=True):
                for column, value in other.items():
                    same = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                    assert row[column] == same, column
        (node,) = embedded.errors.nodes()
        assert (node["site"], node["name"]) == ("RAL", "wn4")
