"""Latest names: the rows of one partition under a name of their own, moved in the step that publishes."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from esjobs.core.errors import StoreError, UsageError
from esjobs.schema.jobs import DAYS
from esjobs.schema.speed import FACTORS, FLAGS
from esjobs.store.base import Change, Hide, JobStore, PointLatest
from esjobs.testing.results import factor, names, write
from tests.contract.engines import Engine, Latest
from tests.messages import raised


@pytest.fixture
def latest(engine: Engine, store: JobStore, tmp_path: Path) -> Latest:
    """What others read under the latest names of the store."""
    return engine.latest(store, tmp_path)


def run(store: JobStore, number: str, *found: str) -> Change:
    """A partition of factors, written and not published."""
    return write(store, FACTORS, number, *(factor(name, number) for name in found))


def test_nothing_is_latest_until_it_is_said(store: JobStore, latest: Latest) -> None:
    store.publish([run(store, "r1", "a")])
    assert latest(FACTORS, "") == []
    assert latest(FACTORS, "30d") is None
    store.publish([PointLatest(FACTORS, "r1")])
    assert latest(FACTORS, "") == ["a"]


def test_it_moves_in_the_step_that_publishes(store: JobStore, latest: Latest) -> None:
    store.publish([run(store, "r1", "a", "b"), PointLatest(FACTORS, "r1"), PointLatest(FACTORS, "r1", "30d")])
    assert latest(FACTORS, "") == latest(FACTORS, "30d") == ["a", "b"]
    store.publish([run(store, "r2", "c"), PointLatest(FACTORS, "r2"), PointLatest(FACTORS, "r2", "7d")])
    assert latest(FACTORS, "") == latest(FACTORS, "7d") == ["c"]
    assert latest(FACTORS, "30d") == ["a", "b"]
    assert names(store) == ["a", "b", "c"]


def test_it_follows_its_partition(store: JobStore, latest: Latest) -> None:
    store.publish([run(store, "r1", "a"), PointLatest(FACTORS, "r1"), PointLatest(FACTORS, "r1", "30d")])
    store.publish([run(store, "r1", "b")])
    store.sweep()
    assert latest(FACTORS, "") == latest(FACTORS, "30d") == ["b"]
    store.publish([run(store, "r2", "x")])
    assert latest(FACTORS, "") == ["b"]
    store.publish([Hide(FACTORS, "r1")])
    assert latest(FACTORS, "") == latest(FACTORS, "30d") == []
    store.publish([run(store, "r1", "c")])
    assert latest(FACTORS, "") == latest(FACTORS, "30d") == ["c"]


def test_pointing_at_nothing_leaves_the_name_and_takes_that_of_a_length(
    store: JobStore, latest: Latest
) -> None:
    store.publish([run(store, "r1", "a"), PointLatest(FACTORS, "r1"), PointLatest(FACTORS, "r1", "30d")])
    store.publish(
        [PointLatest(FACTORS, None), PointLatest(FACTORS, None, "30d"), PointLatest(FACTORS, None, "7d")]
    )
    assert latest(FACTORS, "") == []
    assert latest(FACTORS, "30d") is latest(FACTORS, "7d") is None
    assert names(store) == ["a"]


def test_a_publication_that_fails_moves_nothing(store: JobStore, latest: Latest) -> None:
    first = run(store, "r1", "a")
    store.publish([first, PointLatest(FACTORS, "r1")])
    store.publish([run(store, "r1", "b")])
    store.sweep()
    for pointed in (PointLatest(FACTORS, "r2"), PointLatest(FACTORS, "r2", "30d")):
        with raised(StoreError):
            store.publish([pointed, first])
    assert latest(FACTORS, "") == ["b"]
    assert latest(FACTORS, "30d") is None


def test_what_else_is_to_change_is_asked_before_the_switch(store: JobStore, latest: Latest) -> None:
    store.publish([run(store, "r1", "a"), PointLatest(FACTORS, "r1")])
    seen: list[Sequence[object]] = []

    def also() -> list[Change]:
        seen.append(names(store))
        return [run(store, "r3", "c"), PointLatest(FACTORS, "r3")]

    store.publish([run(store, "r2", "b")], also)
    assert seen == [["a"]]
    assert names(store) == ["a", "b", "c"]
    assert latest(FACTORS, "") == ["c"]

    def broken() -> list[Change]:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        store.publish([Hide(FACTORS, "r1")], broken)
    assert names(store) == ["a", "b", "c"]


def test_names_that_cannot_be_are_refused(store: JobStore) -> None:
    with raised(UsageError):
        store.publish([PointLatest(DAYS, "2018-08-01")])
    for length in ("d", "30", "30d; DROP TABLE jobs", "30D"):
        with raised(UsageError):
            store.publish([PointLatest(FACTORS, "r1", length)])
    with raised(UsageError):
        store.publish([PointLatest(FACTORS, "r1"), PointLatest(FACTORS, "r2")])
    store.publish([PointLatest(FACTORS, "'; --"), PointLatest(FACTORS, "'; --", "30d")])


def test_tables_do_not_share_a_latest_name(store: JobStore, latest: Latest) -> None:
    store.publish([run(store, "r1", "a"), PointLatest(FACTORS, "r1")])
    flag = write(store, FLAGS, "r2", {"run": "r2", "name": "f"})
    store.publish([flag, PointLatest(FLAGS, "r2")])
    assert (latest(FACTORS, ""), latest(FLAGS, "")) == (["a"], ["f"])


def test_it_lasts(durable: Engine, tmp_path: Path) -> None:
    store = durable.open(tmp_path)
    store.publish([run(store, "r1", "a"), PointLatest(FACTORS, "r1"), PointLatest(FACTORS, "r1", "30d")])
    store.close()
    again = durable.open(tmp_path)
    latest = durable.latest(again, tmp_path)
    assert latest(FACTORS, "") == latest(FACTORS, "30d") == ["a"]
    again.close()


def test_readers_see_one_run_at_any_moment(store: JobStore, latest: Latest) -> None:
    """Whoever looks all the time, while runs come, are repeated and go, sees the rows of one of them."""

    def found(number: int) -> list[str]:
        return [f"{number} {row}" for row in range(3)]

    def published(number: int) -> None:
        changes: list[Change] = [
            PointLatest(FACTORS, f"r{number}"),
            PointLatest(FACTORS, f"r{number}", "30d"),
        ]
        changes += [Hide(FACTORS, f"r{number - 2}")] if number > 1 else []
        store.publish([run(store, f"r{number}", *found(number)), *changes])

    published(0)
    done = threading.Event()
    seen: set[tuple[str, ...]] = set()

    def look() -> None:
        while not done.is_set():
            for length in ("", "30d"):
                rows = latest(FACTORS, length)
                seen.add(("no such name",) if rows is None else tuple(rows))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(1, 12):
            published(number)
            store.publish([run(store, f"r{number}", *found(number))])
            store.sweep()
    finally:
        done.set()
        watcher.join()
    assert seen <= {tuple(found(number)) for number in range(12)}
    assert len(seen) > 1
