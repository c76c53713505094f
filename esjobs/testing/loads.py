"""Loads: identity, duplicates, idempotence, all or nothing, undoing."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from esjobs.core.arrow import JOB_SCHEMA
from esjobs.core.errors import EsjobsError, UsageError
from esjobs.core.query import Select
from esjobs.store.base import JobStore, Span
from esjobs.testing.engine import Engine
from esjobs.testing.rows import batch, hours, job, put, selected


def test_an_empty_store_says_so(store: JobStore) -> None:
    assert store.span() == Span(0, None, None)
    assert list(store.select(Select())) == []
    assert store.undo_load("never put").jobs == 0
    assert store.day_fingerprints(None).num_rows == 0


def test_a_load_without_rows_is_a_load(store: JobStore) -> None:
    assert put(store, "empty") == (0, 0, 0)
    assert store.undo_load("empty").jobs == 0


def test_every_field_comes_back_as_it_was_put(store: JobStore) -> None:
    by_type = {
        # quotes, control characters, other scripts: nothing may be pasted into a statement
        pa.string(): "x'; DROP TABLE jobs; --\nü\t日本",
        pa.int64(): 2**62,
        pa.float64(): 0.1,
        pa.timestamp("us", tz="UTC"): hours(30.000001),
        pa.bool_(): False,
        pa.map_(pa.string(), pa.float64()): [("cycles", 1.5), ("x'; DROP TABLE jobs", 2.0**60)],
    }
    # the extremes of a type, and nothing at all
    full = {item.name: by_type[item.type] for item in JOB_SCHEMA}
    empty = {**dict.fromkeys(JOB_SCHEMA.names), "job_id": "2", "queue": "", "end_time": hours(0)}
    put(store, "a", full, empty)
    (found,) = [pa.Table.from_batches(store.select(Select()))]
    assert found.schema.equals(JOB_SCHEMA)
    assert sorted(found.to_pylist(), key=lambda row: str(row["job_id"])) == [empty, full]


def test_fields_come_in_the_order_asked_for(store: JobStore) -> None:
    put(store, "a", job(1))
    (found,) = store.select(Select(("wall_s", "day", "job_id", "core_class")))
    assert found.schema.names == ["wall_s", "day", "job_id", "core_class"]


def test_the_span_covers_what_is_stored(store: JobStore) -> None:
    put(store, "a", job(1, end_time=hours(5)), job(2, end_time=hours(1)), job(3, end_time=hours(50)))
    assert store.span() == Span(3, hours(1), hours(50))


def test_the_same_load_again_changes_nothing(store: JobStore) -> None:
    rows = [job(n, end_time=hours(n)) for n in range(5)]
    assert put(store, "a", *rows) == (5, 0, 0)
    before = selected(store), store.day_fingerprints(None)
    assert put(store, "a", *rows) == (0, 5, 0)
    assert (selected(store), store.day_fingerprints(None)) == before


def test_identity_is_source_and_job_id(store: JobStore) -> None:
    # equal ids of two sources are two jobs; ids are texts, not numbers
    rows = [job(1), job(1, source="htcondor"), job(1, source=None), job("1 "), job("01")]
    assert put(store, "a", *rows) == (5, 0, 0)
    assert put(store, "b", *rows) == (0, 5, 0)
    # The pair is the identity, not the text that it makes.
    assert put(store, "c", job("b", source="a"), job("", source="ab"), job("ab", source="")) == (3, 0, 0)


def test_a_newer_end_time_updates(store: JobStore) -> None:
    put(store, "a", job(1, end_time=hours(1), events=1))
    assert put(store, "b", job(1, end_time=hours(2), events=2)) == (0, 1, 0)
    assert selected(store, "events") == [2]


def test_an_equal_end_time_updates(store: JobStore) -> None:
    put(store, "a", job(1, events=1))
    assert put(store, "b", job(1, events=2)) == (0, 1, 0)
    assert selected(store, "events") == [2]


def test_an_older_end_time_is_superseded_and_named(store: JobStore) -> None:
    put(store, "a", job(1, end_time=hours(2), events=1))
    # named by file and line, so that its owner finds it
    late = job(1, end_time=hours(1), events=2, origin_file="late.csv", origin_line=7)
    counts = store.put_jobs([batch([late])], "b")
    assert (counts.stored, counts.updated, counts.superseded) == (0, 0, 1)
    assert counts.superseded_rows.to_pylist() == [
        {"source": "panda", "job_id": "1", "origin_file": "late.csv", "origin_line": 7}
    ]
    assert selected(store, "events") == [1]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_inside_a_load_the_newest_wins_in_any_order(store: JobStore, order: tuple[int, ...]) -> None:
    # one row per batch: versions meet across batches, too
    rows = [job(1, end_time=hours(n), events=n, origin_line=n) for n in order]
    counts = store.put_jobs([batch([row]) for row in rows], "a")
    assert (counts.stored, counts.updated, counts.superseded) == (1, 0, 2)
    assert sorted(counts.superseded_rows["origin_line"].to_pylist()) == [1, 2]
    assert selected(store, "events") == [3]


def test_inside_a_load_the_later_of_equals_wins(store: JobStore) -> None:
    assert put(store, "a", job(1, events=1), job(1, events=2), job(1, events=3)) == (1, 2, 0)
    assert selected(store, "events") == [3]


def test_an_exception_of_the_source_leaves_the_store_as_it_was(store: JobStore) -> None:
    put(store, "a", job(1, events=1))

    def broken() -> Iterator[pa.RecordBatch]:
        # an update and a new job, both to be forgotten
        yield batch([job(1, events=2), job(2)])
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="the file ends here"):
        store.put_jobs(broken(), "b")
    assert selected(store, "job_id", "events") == [("1", 1)]
    assert store.undo_load("b").jobs == 0
    # the failed attempt is not a load: the same id counts as new
    assert put(store, "b", job(1, events=2), job(2)) == (1, 1, 0)


@pytest.mark.parametrize("missing", ["job_id", "queue", "end_time"])
def test_a_row_without_a_required_field_refuses_the_load(store: JobStore, missing: str) -> None:
    with pytest.raises(EsjobsError):
        put(store, "a", job(1), {**job(2), missing: None})
    assert store.span().jobs == 0


def test_batches_of_another_schema_are_refused(store: JobStore) -> None:
    with pytest.raises(UsageError):
        store.put_jobs([batch([job(1)]).drop_columns(["wall_s"])], "a")
    with pytest.raises(UsageError):
        store.put_jobs([batch([job(1)]).append_column("extra", pa.array([1]))], "a")
    position = batch([]).schema.get_field_index("wall_s")
    wrong = batch([job(1)]).set_column(position, "wall_s", pa.array(["long"]))
    with pytest.raises(UsageError):
        store.put_jobs([wrong], "a")


def test_columns_may_come_in_another_order_and_encoding(store: JobStore) -> None:
    plain = batch([job(1), job(2)])
    site = plain.schema.get_field_index("queue")
    encoded = plain.set_column(site, "queue", plain.column("queue").dictionary_encode())
    # names decide, and not positions
    assert store.put_jobs([encoded.select(encoded.schema.names[::-1])], "a").stored == 2
    assert selected(store, "queue") == ["CERN", "CERN"]


def test_undo_removes_what_a_load_brought(store: JobStore) -> None:
    put(store, "a", job(1))
    put(store, "b", job(2), job(3))
    assert store.undo_load("b").jobs == 2
    assert selected(store, "job_id") == ["1"]
    assert store.undo_load("b").jobs == 0
    assert put(store, "b", job(2), job(3)) == (2, 0, 0)


def test_undo_brings_back_what_the_load_had_replaced(store: JobStore) -> None:
    put(store, "a", job(1, events=1), job(2))
    marks = store.day_fingerprints(None)
    put(store, "b", job(1, events=2, end_time=hours(2)))
    assert store.undo_load("b").jobs == 1
    assert selected(store, "job_id", "events") == [("1", 1), ("2", 100)]
    assert store.day_fingerprints(None) == marks


def test_undo_brings_back_the_best_of_several(store: JobStore) -> None:
    put(store, "newer", job(1, end_time=hours(2), events=1))
    put(store, "older", job(1, end_time=hours(1), events=2))
    put(store, "newest", job(1, end_time=hours(3), events=3))
    # in any order: each undo shows what the remaining loads know
    store.undo_load("newest")
    assert selected(store, "events") == [1]
    store.undo_load("newer")
    assert selected(store, "events") == [2]
    store.undo_load("older")
    assert store.span().jobs == 0


def test_undoing_a_load_that_lost_changes_nothing_to_see(store: JobStore) -> None:
    put(store, "a", job(1, end_time=hours(2), events=1))
    put(store, "b", job(1, end_time=hours(1), events=2))
    assert store.undo_load("b").jobs == 1
    assert selected(store, "events") == [1]
    store.undo_load("a")
    assert store.span().jobs == 0


def test_a_fingerprint_moves_with_every_change(store: JobStore) -> None:
    def marks() -> dict[object, object]:
        return {row["day"]: row["fingerprint"] for row in store.day_fingerprints(None).to_pylist()}

    # another day, whose fingerprint must stay
    put(store, "a", job(1), job(2, end_time=hours(30)))
    seen = [marks()]
    for load, change in (
        ("added", job(3)),
        ("a field", job(1, events=101)),
        ("another text", job(1, user="somebody")),
        ("moved inside its day", job(1, end_time=hours(2))),
        ("to null", job(1, events=None, end_time=hours(3))),
    ):
        put(store, load, change)
        found = marks()
        assert found[hours(1).date()] not in [old[hours(1).date()] for old in seen], load
        assert found[hours(30).date()] == seen[0][hours(30).date()]
        seen.append(found)
    for load in ("to null", "moved inside its day", "another text", "a field", "added"):
        # undone in reverse, every state comes back with its fingerprint
        seen.pop()
        store.undo_load(load)
        assert marks() == seen[-1]


def test_fingerprints_do_not_depend_on_order(engine: Engine, tmp_path: Path) -> None:
    rows = [job(n, end_time=hours(n % 5), events=n) for n in range(50)]
    found = []
    for name, ordered in (("up", rows), ("down", rows[::-1])):
        (tmp_path / name).mkdir()
        opened = engine.open(tmp_path / name)
        put(opened, "a", *ordered)
        found.append(opened.day_fingerprints(None))
        opened.close()
    assert found[0] == found[1]
    assert found[0]["n_jobs"].to_pylist() == [50]


def test_the_store_can_be_read_while_a_load_comes_in(store: JobStore) -> None:
    put(store, "a", *(job(n) for n in range(3)))

    def batches() -> Iterator[pa.RecordBatch]:
        for found in store.select(Select(("job_id",))):
            # a stream has the jobs of the moment it began: the load does not feed itself
            yield batch([job(f"copy of {row['job_id']}") for row in found.to_pylist()])

    assert store.put_jobs(batches(), "b").stored == 3


def test_a_write_inside_a_write_is_refused(store: JobStore) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch([job(1)])
        store.put_jobs([batch([job(2)])], "inner")

    with pytest.raises(EsjobsError):
        store.put_jobs(batches(), "outer")
    assert store.span().jobs == 0
