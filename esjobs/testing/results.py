"""Results: written beside, switched to at once, read under filters, collected later; named values."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from esjobs.core.arrow import table_schema
from esjobs.core.errors import EsjobsError, StoreError, UsageError
from esjobs.core.query import Either, In, Missing, NotLike, Present, Range
from esjobs.core.tables import Table
from esjobs.schema.catalogue import TABLES
from esjobs.schema.jobs import BUCKETS, DAYS
from esjobs.schema.runs import RUNS
from esjobs.schema.speed import FACTORS
from esjobs.store.base import Generation, Hide, JobStore
from esjobs.testing.engine import Engine, every_version
from esjobs.testing.rows import Row, day, hours, table_batch, visible


def factor(name: str, run: str = "r1", **values: object) -> Row:
    """A row of the table of factors."""
    return {"run": run, "level": "queue", "name": name, "k": 1.0, "n_units": 3, "status": "ok", **values}


def write(store: JobStore, table: Table, partition: str, *rows: Row) -> Generation:
    """Write rows of a partition, invisible."""
    return store.replace(table, partition, [table_batch(table, rows)])


def names(store: JobStore, *where: object) -> list[object]:
    """The names of the factors that readers see."""
    return [row["name"] for row in visible(store, FACTORS, where, ("name",))]  # type: ignore[arg-type]


@every_version
def test_every_table_takes_and_gives_back_its_columns(store: JobStore) -> None:
    by_type = {
        pa.string(): "it's",
        pa.int64(): -(2**62),
        pa.float64(): 0.1,
        pa.bool_(): True,
        pa.timestamp("us", tz="UTC"): hours(1.000001),
        pa.date32(): day(3),
        pa.map_(pa.string(), pa.float64()): [("a", 0.1), ("b", -0.0)],
        pa.binary(): bytes(range(256)),
        pa.list_(pa.float64()): [0.1, -0.0],
        pa.list_(pa.string()): ["it's", ""],
    }
    full = [{item.name: by_type[item.type] for item in table_schema(table)} for table in TABLES]
    # a full row and an empty one of every table
    rows = [(table, [values, dict.fromkeys(values)]) for table, values in zip(TABLES, full, strict=True)]
    store.publish([write(store, table, "p", *values) for table, values in rows])
    for table, values in rows:
        (found,) = store.read(table)
        assert found.schema.equals(table_schema(table)), table.name
        assert sorted(found.to_pylist(), key=repr) == sorted(values, key=repr), table.name


@every_version
def test_what_is_not_published_is_not_seen(store: JobStore) -> None:
    generation = write(store, FACTORS, "r1", factor("a"))
    assert names(store) == []
    store.publish([generation])
    assert names(store) == ["a"]


def test_a_partition_is_replaced_as_a_whole(store: JobStore) -> None:
    store.publish([write(store, FACTORS, "r1", factor("a"), factor("b"))])
    store.publish([write(store, FACTORS, "r2", factor("c", "r2"))])
    # a rerun may have fewer rows: none of the old ones may stay
    fewer = write(store, FACTORS, "r1", factor("b", k=2.0))
    assert names(store) == ["a", "b", "c"]
    store.publish([fewer])
    assert names(store) == ["b", "c"]
    assert [row["k"] for row in visible(store, FACTORS, [In("name", ("b",))])] == [2.0]


def test_an_empty_partition_is_an_answer_too(store: JobStore) -> None:
    store.publish([write(store, FACTORS, "r1", factor("a"))])
    store.publish([store.replace(FACTORS, "r1", [])])
    assert names(store) == []


@every_version
def test_several_tables_are_switched_in_one_step(store: JobStore) -> None:
    store.publish([write(store, FACTORS, "r1", factor("old"))])
    changes: list[Generation | Hide] = [
        write(store, FACTORS, "r1", factor("new")),
        write(store, DAYS, "2018-08-01", {"day": day(0), "outcome": "binned"}),
        Hide(BUCKETS, "2018-08-01"),
    ]
    store.publish(changes)
    assert names(store) == ["new"]
    assert len(visible(store, DAYS)) == 1


def test_a_publication_that_fails_switches_nothing(store: JobStore) -> None:
    first = write(store, FACTORS, "r1", factor("a"))
    unknown = replace(first, number="4711")
    for broken in (unknown, replace(first, number="no number"), replace(first, partition="elsewhere")):
        with pytest.raises(StoreError):
            store.publish([write(store, DAYS, "d", {"outcome": "x"}), broken])
    with pytest.raises(UsageError):
        # two changes of one partition have no order
        store.publish([first, Hide(FACTORS, "r1")])
    assert visible(store, DAYS) == []
    assert names(store) == []


def test_an_exception_of_the_source_leaves_nothing(store: JobStore) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield table_batch(FACTORS, [factor("a")])
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        store.replace(FACTORS, "r1", broken())
    assert store.sweep() == 0


def test_retiring_takes_a_partition_out_of_sight(store: JobStore) -> None:
    store.publish([write(store, FACTORS, "r1", factor("a")), write(store, FACTORS, "r2", factor("b", "r2"))])
    store.publish([Hide(FACTORS, "r1"), Hide(FACTORS, "never written")])
    assert names(store) == ["b"]


@every_version
def test_a_sweep_deletes_what_nobody_can_see(store: JobStore) -> None:
    store.publish([write(store, FACTORS, "r1", factor("a"), factor("b"))])
    store.publish([write(store, FACTORS, "r1", factor("c"))])
    assert store.sweep() == 2
    assert store.sweep() == 0
    store.publish([Hide(FACTORS, "r1")])
    assert store.sweep() == 1
    assert names(store) == []


def test_a_sweep_leaves_what_is_about_to_be_published(store: JobStore) -> None:
    waiting = write(store, FACTORS, "r1", factor("a"))
    assert store.sweep() == 0
    store.publish([waiting])
    assert names(store) == ["a"]


def test_what_is_swept_cannot_be_published_again(store: JobStore) -> None:
    old = write(store, FACTORS, "r1", factor("a"))
    store.publish([old])
    store.publish([write(store, FACTORS, "r1", factor("b"))])
    store.sweep()
    with pytest.raises(StoreError):
        store.publish([old])
    assert names(store) == ["b"]


def test_leftovers_of_an_earlier_process_are_swept(durable: Engine, tmp_path: Path) -> None:
    store = durable.open(tmp_path)
    store.publish([write(store, FACTORS, "r1", factor("a"))])
    # of small partitions an embedded store leaves none behind
    left = [factor(f"leftover {number} {2_000 * 'x'}") for number in range(5_000)]
    write(store, FACTORS, "r1", *left)
    store.close()
    again = durable.open(tmp_path)
    assert names(again) == ["a"]
    assert again.sweep() == len(left)
    assert names(again) == ["a"]
    again.close()


@every_version
def test_a_reader_keeps_the_rows_of_the_moment_it_began(engine: Engine, store: JobStore) -> None:
    # more than one page of any store, so that the rest is read after the switch
    many = [factor(f"old {number}") for number in range(max(engine.rows, 25_000))]
    store.publish([write(store, FACTORS, "r1", *many)])
    batches = store.read(FACTORS, columns=("name",))
    seen = next(batches).num_rows
    store.publish([write(store, FACTORS, "r1", factor("new"))])
    store.sweep()
    assert seen + sum(found.num_rows for found in batches) == len(many)
    assert names(store) == ["new"]


@every_version
def test_partitions_are_text(store: JobStore) -> None:
    # names of partitions become keys, patterns or paths in some engines
    hostile = ("'", "%", "", "p; DROP TABLE jobs", "日")
    store.publish([write(store, FACTORS, name, factor(name)) for name in hostile])
    store.publish([Hide(FACTORS, "%")])
    assert set(names(store)) == set(hostile) - {"%"}


def test_columns_come_in_the_order_asked_for(store: JobStore) -> None:
    store.publish([write(store, FACTORS, "r1", factor("a"))])
    (found,) = store.read(FACTORS, columns=("k", "name", "run"))
    assert found.schema.names == ["k", "name", "run"]


FILTERED: tuple[tuple[tuple[object, ...], list[str]], ...] = (
    ((), ["a", "b", "c%"]),
    ((In("name", ("a", "c%")),), ["a", "c%"]),
    ((In("name", ("' OR 1=1 --",)),), []),
    ((NotLike("name", ("c%",)),), ["a", "b"]),
    ((Missing("k"),), ["b"]),
    ((Present("k"), Range("n_units", ge=3)), ["a"]),
    ((Either((Missing("k"), In("n_units", (1,)))),), ["b", "c%"]),
    ((In("site_guessed", ("true",)),), ["a"]),
    ((In("window_start", ("2018-08-01T01:00:00",)),), ["a"]),
)
"""Filters, and the names that they leave."""


@every_version
def test_filters_on_results(store: JobStore) -> None:
    rows = (
        factor("a", site_guessed=True, window_start=hours(1)),
        factor("b", k=None, site_guessed=False),
        factor("c%", n_units=1),
    )
    store.publish([write(store, FACTORS, "r1", *rows)])
    assert [names(store, *where) for where, _ in FILTERED] == [expected for _, expected in FILTERED]


def test_what_is_not_in_the_catalogue_is_refused(store: JobStore) -> None:
    with pytest.raises(UsageError):
        list(store.read(FACTORS, columns=("generation",)))
    with pytest.raises(UsageError):
        list(store.read(FACTORS, [In("1=1; --", ("x",))]))
    # a table is recognised as a whole: its name alone must not become an identifier
    made_up = Table('x"; DROP TABLE jobs; --', "", "run", FACTORS.columns)
    for act in (lambda: store.read(made_up), lambda: store.replace(made_up, "p", [])):
        with pytest.raises(UsageError):
            act()
    with pytest.raises(UsageError):
        # the known name with other columns is another table
        store.replace(replace(FACTORS, columns=FACTORS.columns[:3], order=()), "p", [])


def test_rows_of_another_table_are_refused(store: JobStore) -> None:
    with pytest.raises(UsageError):
        store.replace(RUNS, "r", [table_batch(FACTORS, [factor("a")])])


@every_version
def test_named_values_change_hands_once(store: JobStore) -> None:
    # compare and set is what leases rest on: only the expected value gives way
    assert not store.compare_and_set("lease", "somebody", "me")
    assert store.compare_and_set("lease", None, "me")
    assert not store.compare_and_set("lease", None, "you")
    assert not store.compare_and_set("lease", "you", "nobody")
    assert store.compare_and_set("lease", "me", "me")
    assert store.compare_and_set("lease", "me", "' OR 1=1 --")
    assert store.compare_and_set("lease", "' OR 1=1 --", None)
    assert store.compare_and_set("lease", None, None)
    assert store.compare_and_set("", None, "")
    assert store.compare_and_set("", "", None)


def test_named_values_last(durable: Engine, tmp_path: Path) -> None:
    store = durable.open(tmp_path)
    assert store.compare_and_set("done", None, "2018-08-01")
    store.close()
    again = durable.open(tmp_path)
    assert again.compare_and_set("done", "2018-08-01", "2018-08-02")
    again.close()


def test_the_errors_are_ours(store: JobStore) -> None:
    store.close()
    with pytest.raises(EsjobsError):
        store.replace(FACTORS, "r1", [])
