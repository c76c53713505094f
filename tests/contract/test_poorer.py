"""Copies of a job with one end time: a missing value never replaces a known one, and loads can be undone."""

import itertools
from typing import Any

import pytest

from esjobs.store.base import JobStore, PutCounts
from tests.contract.jobs import Row, batch, hours, job, put, selected

FIELDS = ("task_id", "events", "cores", "cpu_s", "user")
BARE: Row = dict.fromkeys(FIELDS)


def account(store: JobStore, load_id: str, *rows: Row) -> PutCounts:
    return store.put_jobs([batch(rows)], load_id)


def seen(store: JobStore) -> Any:
    """What readers see of the only job."""
    (found,) = selected(store, *FIELDS)
    return found


def test_a_poorer_copy_takes_nothing_away(store: JobStore) -> None:
    rows = [job(n, user="ann") for n in range(5)]
    put(store, "rich", *rows)
    before = selected(store), store.day_fingerprints(None)
    poor = [{**row, "task_id": None, "events": None, "cores": None} for row in rows]
    counts = account(store, "poor", *poor)
    assert (counts.stored, counts.updated, counts.superseded) == (0, 5, 0)
    assert (counts.jobs_changed, counts.changed) == (0, {})
    assert counts.kept == {"task_id": 5, "events": 5, "cores": 5}
    assert (selected(store), store.day_fingerprints(None)) == before
    store.undo_load("poor")
    assert (selected(store), store.day_fingerprints(None)) == before


def test_what_a_richer_copy_brought_goes_with_it(store: JobStore) -> None:
    put(store, "poor", job(1, **BARE))
    before = selected(store), store.day_fingerprints(None)
    counts = account(store, "rich", job(1, user="ann"))
    assert counts.changed == dict.fromkeys(FIELDS, 1)
    assert counts.kept == {}
    assert seen(store) == ("1001", 100, 8, 4000.0, "ann")
    put(store, "poor again", job(1, **BARE))
    assert seen(store) == ("1001", 100, 8, 4000.0, "ann")
    assert store.undo_load("rich").jobs == 1
    assert (selected(store), store.day_fingerprints(None)) == before


@pytest.mark.parametrize("undone", list(itertools.permutations("abc")))
def test_copies_that_each_know_another_field(store: JobStore, undone: tuple[str, ...]) -> None:
    loads = {
        "a": job(1, **BARE | {"task_id": "7", "cpu_s": 1.0}),
        "b": job(1, **BARE | {"events": 10, "cpu_s": 2.0}),
        "c": job(1, **BARE | {"cores": 4}),
    }
    for load, row in loads.items():
        put(store, load, row)
    assert seen(store) == ("7", 10, 4, 2.0, None)
    left = dict(loads)
    for load in undone[:2]:
        del left[load]
        assert store.undo_load(load).jobs == 1
        assert seen(store) == tuple(
            next((row[name] for row in reversed(left.values()) if row[name] is not None), None)
            for name in FIELDS
        )
    store.undo_load(undone[2])
    assert store.span().jobs == 0


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_inside_a_load_rows_complete_each_other(store: JobStore, order: tuple[int, ...]) -> None:
    rows = [
        job(1, **BARE | {"task_id": "7"}),
        job(1, **BARE | {"events": 10}),
        job(1, **BARE | {"cores": 4}, end_time=hours(1)),
    ]
    counts = account(store, "a", *(rows[place] for place in order), job(1, end_time=hours(0.5)))
    assert (counts.stored, counts.updated, counts.superseded) == (1, 2, 1)
    assert seen(store) == ("7", 10, 4, None, None)
    put(store, "a", *rows)
    assert seen(store) == ("7", 10, 4, None, None)
    put(store, "b", job(1, **BARE | {"events": 11}))
    assert seen(store) == ("7", 11, 4, None, None)
    store.undo_load("b")
    assert seen(store) == ("7", 10, 4, None, None)
    assert store.undo_load("a").jobs == 1
    assert store.span().jobs == 0


def test_a_load_put_again_with_other_rows_goes_as_a_whole(store: JobStore) -> None:
    put(store, "a", job(1, **BARE | {"task_id": "7"}))
    put(store, "a", job(1, **BARE | {"events": 10}))
    assert seen(store) == ("7", 10, None, None, None)
    assert store.undo_load("a").jobs == 1
    assert store.span().jobs == 0


def test_a_newer_end_time_wins_with_what_it_lacks(store: JobStore) -> None:
    put(store, "a", job(1))
    put(store, "b", job(1, events=5))
    counts = account(store, "c", job(1, **BARE, end_time=hours(2)))
    assert counts.changed == {"end_time": 1, "task_id": 1, "events": 1, "cores": 1, "cpu_s": 1}
    assert counts.kept == {}
    assert seen(store) == (None,) * 5
    store.undo_load("c")
    assert seen(store) == ("1001", 5, 8, 4000.0, None)


def test_an_older_copy_gives_nothing(store: JobStore) -> None:
    put(store, "a", job(1, **BARE, end_time=hours(2)))
    counts = account(store, "b", job(1))
    assert (counts.superseded, counts.changed, counts.kept) == (1, {}, {})
    assert seen(store) == (None,) * 5


def test_what_an_update_changed_is_counted_by_field(store: JobStore) -> None:
    put(store, "a", *(job(n) for n in range(4)))
    counts = account(store, "b", *(job(n, cpu_s=4000.0 + n % 2, user="ann") for n in range(3)), job(3))
    assert (counts.updated, counts.jobs_changed) == (4, 3)
    assert counts.changed == {"cpu_s": 1, "user": 3}
    again = account(store, "c", *(job(n) for n in range(10, 13)), job(3))
    assert (again.stored, again.updated, again.jobs_changed, again.changed) == (3, 1, 0, {})


def test_a_repeat_inside_a_load_is_compared_with_the_first_row(store: JobStore) -> None:
    counts = account(store, "a", job(1, events=1), job(1, events=2), job(2), job(2))
    assert (counts.stored, counts.updated, counts.jobs_changed) == (2, 2, 1)
    assert counts.changed == {"events": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cpu_s", float("inf")),
        ("cpu_s", -0.0),
        ("cpu_s", 0.1),
        ("events", 2**62),
        ("start_time", hours(-1 / 3.6e9)),
        ("user", "x" * 10_000),
        ("user", 'a "quoted"\nü\t日本'),
    ],
)
def test_a_value_that_is_kept_stays_as_it_was(store: JobStore, name: str, value: object) -> None:
    put(store, "a", job(1, **{name: value}))
    before = selected(store), store.day_fingerprints(None)
    put(store, "b", job(1, **{name: None}, state=None))
    put(store, "c", job(1, **{name: None}, wall_s=None))
    assert (selected(store), store.day_fingerprints(None)) == before
    store.undo_load("c")
    assert (selected(store), store.day_fingerprints(None)) == before
