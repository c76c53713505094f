"""Fields that only some records carry enter the mark of a job."""

import pytest

from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.store import DuckStore
from tests.contract.jobs import Row, job, put


@pytest.mark.parametrize(
    "value", [{"nodes": 1}, {"gpus": 1}, {"smt": True}, {"smt": False}, {"counters": [("a", 1.0)]}]
)
def test_a_rare_field_moves_the_mark(value: Row) -> None:
    store = DuckStore(None, tables=TABLES)
    marks = []
    for row in (job(1), job(1, **value)):
        put(store, "a", row)
        marks.append(store.day_fingerprints(None).to_pylist())
    assert marks[0] != marks[1]
    store.close()
