"""What only the embedded store promises: its file, its memory, its side table."""

import os
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from esjobs.core.errors import StoreError
from esjobs.core.query import Select
from esjobs.schema.catalogue import TABLES, table
from esjobs.store.duck import jobs as duck_jobs
from esjobs.store.duck.store import DuckStore
from tests.contract.interrupted import jobs
from tests.contract.jobs import hours, job, put, selected, table_batch, visible
from tests.messages import raised


def replaced(path: Path) -> int:
    """How many versions wait to come back."""
    with duckdb.connect(path, read_only=True) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM internal.replaced_jobs").fetchall()
    return int(count)


def test_putting_loads_again_does_not_grow_the_side_table(tmp_path: Path) -> None:
    path = tmp_path / "jobs.duckdb"
    for _ in range(3):
        store = DuckStore(path, tables=TABLES)
        put(store, "a", *(job(n, end_time=hours(2)) for n in range(10)))
        rows = [job(n, end_time=hours(n % 3), events=n) for n in range(10)]
        put(store, "b", *rows, job(0, end_time=hours(-1)))
        store.close()
        assert replaced(path) == 10
    store = DuckStore(path, tables=TABLES)
    assert store.undo_load("a").jobs == 10
    assert store.span().jobs == 10
    store.close()
    assert replaced(path) == 0


def test_equal_hashes_are_a_suspicion_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck_jobs, "identity_hash", lambda source, _: np.zeros(len(source), np.uint64))
    store = DuckStore(None, tables=TABLES)
    assert put(store, "a", job(1, events=1), job(2, events=2), job(2, source="b", events=3)) == (3, 0, 0)
    assert put(store, "b", job(2, events=4), job(3, events=5)) == (1, 1, 0)
    assert selected(store, "events") == [1, 3, 4, 5]
    assert store.undo_load("b").jobs == 2
    assert selected(store, "events") == [1, 2, 3]
    store.close()


@pytest.mark.parametrize("path", [None, ":memory:"])
def test_a_store_in_memory_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    store = DuckStore(path, tables=TABLES)
    store.put_jobs([jobs(1, 130_000)], "a")
    assert store.capabilities().location == ":memory:"
    other = DuckStore(path, tables=TABLES)
    assert other.span().jobs == 0
    other.close()
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_a_file_leaves_the_file_alone_behind(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "jobs.duckdb"
    store = DuckStore(os.fspath(path), memory_limit="200MB", threads=1, tables=TABLES)
    able = store.capabilities()
    assert able.location == os.fspath(path)
    assert able.details["threads"] == "1"
    store.put_jobs([jobs(1, 130_000)], "a")
    store.close()
    assert [found.name for found in path.parent.iterdir()] == ["jobs.duckdb"]


def test_nothing_is_fetched_from_the_network() -> None:
    store = DuckStore(None, tables=TABLES)
    for name in ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"):
        ((value,),) = store._connection.rows("SELECT current_setting($1)::VARCHAR", [name])
        assert value == "false", name
    store.close()


def test_nothing_is_drawn_on_standard_output_however_long_it_takes() -> None:
    store = DuckStore(None, tables=TABLES)
    asked = "SELECT current_setting('enable_progress_bar') AS shown"
    assert store._connection.rows(asked) == [(False,)]
    (streamed,) = store._connection.stream(asked, pa.schema([("shown", pa.bool_())]))
    assert streamed.to_pylist() == [{"shown": False}]
    store.close()


def test_a_load_larger_than_a_block_keeps_its_order(tmp_path: Path) -> None:
    store = DuckStore(tmp_path / "jobs.duckdb", tables=TABLES)
    counts = store.put_jobs([jobs(1, 130_000), jobs(2, 130_000), jobs(3, 130_000)], "a")
    assert counts.stored == store.span().jobs
    assert counts.updated == 2 * counts.stored
    events = pa.Table.from_batches(store.select(Select(("events",))))["events"]
    assert events.unique().to_pylist() == [3]
    store.close()


def test_partitions_are_the_same_held_or_written(tmp_path: Path) -> None:
    """Small ones wait in memory, large ones and what is too much together in the file."""
    factors = table("factors")
    given = {f"small {number}": 200 for number in range(20)} | {"empty": 0, "large": 6_000}
    given |= {f"middle {number}": 2_000 for number in range(12)}
    store = DuckStore(tmp_path / "jobs.duckdb", tables=TABLES)

    def rows(run: str) -> list[dict[str, object]]:
        return [{"run": run, "name": f"{place} {1_500 * 'x'}", "k": place / 7} for place in range(given[run])]

    changes = [store.replace(factors, run, [table_batch(factors, rows(run))]) for run in given]
    waiting = [change.number.startswith("held") for change in changes]
    assert {True, False} == set(waiting)
    assert not waiting[list(given).index("large")]
    assert store.sweep() == 0
    assert visible(store, factors) == []
    store.publish(changes)
    found = visible(store, factors, (), ("run", "name", "k"))
    expected = [row for run in given for row in rows(run)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert store.sweep() == 0
    store.close()


def test_what_another_store_holds_is_not_in_this_one() -> None:
    factors = table("factors")
    one, other = (DuckStore(tables=TABLES) for _ in range(2))
    for store in (one, other):
        waiting = store.replace(factors, "r", [table_batch(factors, [{"run": "r", "name": "a", "k": 1.0}])])
    with raised(StoreError):
        one.publish([waiting])
    other.publish([waiting])
    with raised(StoreError):
        other.publish([waiting])
