"""Rows that change nothing are not written; what a load replaced goes when it is pruned, and not before."""

import pytest

from esjobs.core.errors import StoreError
from esjobs.store.base import JobStore, Undone
from tests.contract.jobs import batch, hours, job, put, selected
from tests.messages import raised


@pytest.mark.parametrize("load", ["a", "another"])
def test_a_row_that_says_nothing_new_is_counted_and_not_written(store: JobStore, load: str) -> None:
    put(store, "a", job(1), job(2, end_time=hours(1000)))
    before = selected(store), store.day_fingerprints(None)
    again = job(2, end_time=hours(1000), user=None, origin_file="copy.csv")
    counts = store.put_jobs([batch([job(1, cpu_s=None), job(1), again])], load)
    assert (counts.stored, counts.updated, counts.unchanged, counts.jobs_changed) == (0, 3, 3, 0)
    assert (selected(store), store.day_fingerprints(None)) == before
    if load != "a":
        assert store.undo_load(load) == Undone(0)
    assert store.undo_load("a").jobs == 2
    assert store.span().jobs == 0


def test_one_changed_row_among_equal_ones_is_written(store: JobStore) -> None:
    put(store, "a", *(job(n) for n in range(5)))
    counts = store.put_jobs([batch([*(job(n) for n in range(4)), job(4, events=7)])], "b")
    assert (counts.updated, counts.unchanged, counts.jobs_changed) == (5, 4, 1)
    assert store.undo_load("b") == Undone(1)
    assert selected(store, "events") == [100] * 5


def test_an_older_row_that_waits_already_is_written_once(store: JobStore) -> None:
    put(store, "new", job(1, end_time=hours(2)))
    assert put(store, "old", job(1)) == (0, 0, 1)
    assert put(store, "old again", job(1)) == (0, 0, 1)
    assert store.undo_load("old again") == Undone(0)
    store.undo_load("new")
    assert selected(store, "end_time") == [hours(1)]


def test_undo_names_the_loads_that_had_the_rows_too(store: JobStore) -> None:
    put(store, "a", *(job(n, user=None) for n in range(4)))
    put(store, "user", *(job(n, cpu_s=None, user="ann") for n in range(2)))
    put(store, "b", *(job(n) for n in range(3)))
    put(store, "c", job(0, user="ann"), job(3))
    assert store.undo_load("user") == Undone(2, {"b": 2, "c": 1})
    assert store.undo_load("a") == Undone(4, {"b": 3, "c": 2})
    assert store.span().jobs == 0
    assert put(store, "b", *(job(n) for n in range(3))) == (3, 0, 0)
    assert store.undo_load("b") == Undone(3)


def test_what_a_load_replaced_goes_when_it_is_pruned(store: JobStore) -> None:
    put(store, "a", job(1, events=1), job(2))
    put(store, "b", job(1, events=2), job(3))
    put(store, "c", job(1, events=3))
    before = selected(store), store.day_fingerprints(None)
    assert store.prune_versions(["a"]) == store.prune_versions([]) == 0
    assert store.prune_versions(["a", "b"], dry_run=True) == 1
    assert store.prune_versions(["a", "b"]) == 1
    assert store.prune_versions(["a", "b"]) == 0
    assert (selected(store), store.day_fingerprints(None)) == before
    assert store.undo_load("c") == Undone(1)
    assert selected(store, "job_id", "events") == [("1", 2), ("2", 100), ("3", 100)]
    with raised(StoreError):
        store.undo_load("b")
    assert store.undo_load("a") == Undone(1)
    assert selected(store, "job_id") == ["1", "3"]


def test_versions_that_a_job_is_merged_from_are_not_pruned(store: JobStore) -> None:
    put(store, "a", job(1, user="ann", events=1))
    put(store, "b", job(1, user=None, events=2))
    put(store, "c", job(1, user=None, events=3))
    assert store.prune_versions(["a", "b", "c"]) == 1
    assert selected(store, "user", "events") == [("ann", 3)]
    assert store.undo_load("a") == Undone(1)
    assert selected(store, "user", "events") == [(None, 3)]


def test_a_job_is_found_again_after_its_first_version_is_pruned(store: JobStore) -> None:
    """Also where the end moved to another month and back."""
    ends = [hours(1), hours(1000), hours(1), hours(2000)]
    for number, end_time in enumerate(ends):
        put(store, f"{number}", job(1, events=number, end_time=end_time))
        store.prune_versions([f"{each}" for each in range(number + 1)])
    assert put(store, "again", job(1, events=3, end_time=hours(2000)), job(2)) == (1, 1, 0)
    assert put(store, "old", job(1)) == (0, 0, 1)
    assert selected(store, "job_id", "events") == [("1", 3), ("2", 100)]
    assert store.span().jobs == 2
