"""Opening, describing, closing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from esjobs.core.errors import StoreError
from esjobs.core.query import Count, Query, Select
from esjobs.schema.speed import FACTORS
from esjobs.store.base import JobStore
from esjobs.testing.engine import Engine
from esjobs.testing.rows import job, put, selected, table_batch


def test_what_is_put_lasts(durable: Engine, tmp_path: Path) -> None:
    store = durable.open(tmp_path)
    put(store, "a", job(1, events=1))
    put(store, "b", job(1, events=2))
    marks = store.day_fingerprints(None)
    store.close()
    again = durable.open(tmp_path)
    assert selected(again, "events") == [2]
    assert again.day_fingerprints(None) == marks
    # the load, its rows and what it replaced are known to the next process
    assert put(again, "b", job(1, events=2)) == (0, 1, 0)
    assert again.undo_load("b").jobs == 1
    assert selected(again, "events") == [1]
    again.close()


def test_a_store_says_what_it_is(store: JobStore) -> None:
    able = store.capabilities()
    assert able.engine
    assert able.version
    assert able.location
    assert able.days_per_aggregate >= 1


def test_work_is_counted(store: JobStore) -> None:
    put(store, "a", *(job(number) for number in range(5)))
    of_load = store.work()
    assert of_load.rows_written >= 5
    assert of_load.bytes_written > 0
    store.aggregate(Query(("queue",), (Count(),)))
    assert (store.work() - of_load).jobs_read == 5
    selected(store)
    assert (store.work() - of_load).jobs_read == 10
    before = store.work()
    # the second publication leaves the rows of the first to be swept
    for _ in range(2):
        rows = [{"run": "r1", "name": f"queue {number}"} for number in range(100)]
        store.publish([store.replace(FACTORS, "r1", [table_batch(FACTORS, rows)])])
    # a store may write a few more, such as the marks of a partition
    written = (store.work() - before).rows_written
    assert 200 <= written <= 220
    before = store.work()
    assert store.sweep() == 100
    assert 100 <= (store.work() - before).rows_deleted <= 110
    assert store.work().jobs_read == of_load.jobs_read + 10


def test_closing_twice_is_closing_once(store: JobStore) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError):
        store.span()


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.put_jobs([], "a"),
        lambda store: store.undo_load("a"),
        lambda store: list(store.select(Select())),
        lambda store: store.aggregate(Query((), (Count(),))),
        lambda store: store.span(),
        lambda store: store.day_fingerprints(None),
        lambda store: store.replace(FACTORS, "r", []),
        lambda store: store.publish([]),
        lambda store: store.sweep(),
        lambda store: list(store.read(FACTORS)),
        lambda store: store.compare_and_set("a", None, "b"),
        lambda store: store.capabilities(),
    ],
    ids=range(12),
)
def test_a_closed_store_refuses(store: JobStore, act: Callable[[JobStore], object]) -> None:
    store.close()
    with pytest.raises(StoreError):
        act(store)


def test_a_stream_ends_with_its_store(engine: Engine, tmp_path: Path) -> None:
    store = engine.open(tmp_path)
    put(store, "a", job(1))
    # one that was begun and one that was not: both hold resources of the store
    unread, half_read = store.select(Select()), store.select(Select())
    next(half_read)
    store.close()
    for stream in (unread, half_read):
        with pytest.raises(StoreError):
            next(stream)
    again = engine.open(tmp_path)
    assert again.span().jobs == (1 if engine.durable else 0)
    again.close()


def test_a_stream_that_is_read_to_its_end_stays_ended(store: JobStore) -> None:
    put(store, "a", job(1))
    stream = store.select(Select())
    assert len(list(stream)) == 1
    assert list(stream) == []
    store.close()
    assert list(stream) == []
