"""Stores from before the later fields: opened as they are, and no day of theirs goes stale."""

import gzip
from datetime import date
from pathlib import Path

import pytest

from esjobs.core import fields
from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.store import DuckStore
from esjobs.store.elastic.jobs.stamps import stamped
from tests.contract.jobs import Row, batch, hours, job, put, selected

FILE = Path(__file__).parents[1] / "golden" / "store" / "before_later_fields.duckdb.gz"
"""Written by the version before, with the loads of ``FIRST`` and ``SECOND``."""

FIRST = [job(1), job(2, user="ann", cpu_s=None, start_time=hours(0)), job(3, end_time=hours(30), read_b=1.5)]
SECOND = [job(1, user="bob"), {**job(2), "events": None}]
MARKS = [
    {"day": date(2018, 8, 1), "n_jobs": 2, "mark": "31541624495529324717"},
    {"day": date(2018, 8, 2), "n_jobs": 1, "mark": "10319424479334090565"},
]
"""What that version said of the file."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of the file."""
    copy = tmp_path / "jobs.duckdb"
    copy.write_bytes(gzip.decompress(FILE.read_bytes()))
    return copy


def test_a_file_of_before_gains_the_fields_and_keeps_its_marks(path: Path) -> None:
    store = DuckStore(path, tables=TABLES)
    assert store.day_fingerprints(None).to_pylist() == MARKS
    names = [known.name for known in fields.LATER_FIELDS]
    assert selected(store, *names) == [(None,) * len(names)] * 3
    counts = store.put_jobs([batch(FIRST)], "a")
    assert (counts.stored, counts.updated, counts.jobs_changed) == (0, 3, 0)
    assert store.day_fingerprints(None).to_pylist() == MARKS
    put(store, "c", job(1, counters=[("cycles", 5.0)], smt=True))
    assert sorted(selected(store, "job_id", "user", "smt", "counters"), key=repr) == [
        ("1", "bob", True, [("cycles", 5.0)]),
        ("2", "ann", None, None),
        ("3", None, None, None),
    ]
    assert store.day_fingerprints(None).to_pylist()[0]["mark"] != MARKS[0]["mark"]
    store.undo_load("c")
    assert store.day_fingerprints(None).to_pylist() == MARKS
    store.undo_load("b")
    assert sorted(selected(store, "user"), key=repr) == ["ann", None, None]
    store.close()


def test_the_same_jobs_have_the_same_marks_in_a_new_file() -> None:
    store = DuckStore(None, tables=TABLES)
    put(store, "a", *FIRST)
    put(store, "b", *SECOND)
    assert store.day_fingerprints(None).to_pylist() == MARKS
    store.close()


def test_documents_have_the_marks_that_they_had() -> None:
    rows = stamped(batch(FIRST), 0)
    assert rows.column("mark_low").to_pylist() == [1258714917, 505388736, 771671487]


@pytest.mark.parametrize(
    "value", [{"nodes": 1}, {"gpus": 1}, {"smt": True}, {"smt": False}, {"counters": [("a", 1.0)]}]
)
def test_a_later_field_moves_the_mark(value: Row) -> None:
    store = DuckStore(None, tables=TABLES)
    marks = []
    for row in (job(1), job(1, **value)):
        put(store, "a", row)
        marks.append(store.day_fingerprints(None).to_pylist())
    assert marks[0] != marks[1]
    store.close()
