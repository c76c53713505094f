"""A person's name leaves every table of every store; jobs, factors and other people stay."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from esjobs.core.errors import StoreBusyError
from esjobs.core.fields import Field
from esjobs.core.personal import is_free_text, kind_of_names
from esjobs.core.query import Select
from esjobs.core.tables import Table
from esjobs.publish.publication import read_table, rows_table
from esjobs.records.jobs.person_removal import forget_user
from esjobs.schema.catalogue import TABLES, table
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore
from tests.contract.engines import Engine
from tests.contract.jobs import hours, job, put

NAME = "annabelle"
OTHER = "annabelle-two"


def _value(column: Field) -> object:
    """A value of a column; the person's name wherever the catalogue allows one."""
    if column.values:
        return column.values[0]
    match column.type:
        case "keyword":
            kind = kind_of_names(column)
            return {None: "x", "user": NAME}.get(kind, f"/home/{NAME}/{column.name}")
        case "text" if is_free_text(column):
            return f'says "{NAME.title()}", and {OTHER}x'
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "time":
            return hours(1)
        case "day":
            return date(2018, 8, 1)
    return {"map": [("x", 1.0)], "list": [1.0]}.get(column.type, b"x")


def _publish(store: JobStore, of: Table) -> None:
    row = {column.name: _value(column) for column in of.columns}
    rows = rows_table(of, [row])
    store.publish([store.replace(of, str(row[of.partition]), rows.to_batches())])


def _texts(rows: pa.Table) -> Iterator[str]:
    for column in rows.columns:
        if pa.types.is_string(column.type):
            yield from (text for text in column.to_pylist() if text is not None)


def _names(text: str) -> bool:
    return NAME in text.lower().replace(OTHER, "")


def _jobs(store: JobStore) -> list[dict[str, object]]:
    rows = pa.Table.from_batches(store.select(Select())).to_pylist()
    return sorted(rows, key=lambda row: str(row["end_time"]))


def _put(store: JobStore) -> None:
    of_ann = {"user": NAME, "application": f"/home/{NAME}/run.py", "task_id": f"{NAME}:crab_1"}
    put(store, "a", job(f"{NAME}@host#1", end_time=hours(1), **of_ann), job(2, end_time=hours(2), user=OTHER))
    put(store, "b", job(f"{NAME}@host#1", end_time=hours(3), **of_ann), job(4, end_time=hours(4), **of_ann))
    put(store, "c", {**job(4, end_time=hours(4)), "cpu_s": None, "wall_s": 1.5, **of_ann})


# a name may be anywhere: every table has it in every column that can name somebody
def test_no_table_and_no_job_names_the_person_any_more(store: JobStore) -> None:
    named = [
        of for of in TABLES if of.name in ("contacts", "scores", "flag_notes", "notifications", "pop_scaling")
    ]
    _put(store)
    for of in named:
        _publish(store, of)
    before = _jobs(store)
    done = forget_user(store, TABLES, NAME)
    assert done.others == (OTHER,)
    after = _jobs(store)
    assert [row["user"] for row in after] == [OTHER, None, None]
    assert [(row["cpu_s"], row["end_time"], row["queue"]) for row in after] == [
        (row["cpu_s"], row["end_time"], row["queue"]) for row in before
    ]
    for of in named:
        assert not any(map(_names, _texts(read_table(store, of))))
    # what people entered about the person is gone, the rest is there
    counts = {of.name: read_table(store, of).num_rows for of in named}
    assert counts == {"contacts": 0, "notifications": 0, "scores": 1, "flag_notes": 1, "pop_scaling": 1}
    again = forget_user(store, TABLES, NAME)
    assert again.account.num_rows == 0
    # versions that had lost are without the name, too
    assert store.undo_load("c").jobs == 1
    assert store.undo_load("b").jobs == 2
    assert [row["user"] for row in _jobs(store)] == [None, OTHER]
    assert not any(NAME in str(row["job_id"]) for row in _jobs(store))


def test_a_pseudonym_keeps_what_belongs_together(store: JobStore) -> None:
    _put(store)
    _publish(store, table("scores"))
    marks = store.day_fingerprints(None).column("fingerprint").to_pylist()
    forget_user(store, TABLES, NAME, pseudonymise=True)
    users = {row["user"] for row in _jobs(store)} - {OTHER}
    (pseudonym,) = users
    assert str(pseudonym).startswith("user-")
    assert read_table(store, table("scores")).column("user").to_pylist() == [pseudonym]
    # the next night sees that the day has changed
    assert store.day_fingerprints(None).column("fingerprint").to_pylist() != marks


def test_a_dry_run_changes_nothing_and_counts_the_same(store: JobStore) -> None:
    _put(store)
    _publish(store, table("issues"))
    before = _jobs(store)
    would = forget_user(store, TABLES, NAME, dry_run=True)
    assert _jobs(store) == before
    assert would.account.num_rows
    assert forget_user(store, TABLES, NAME).account.equals(would.account)


def test_texts_stay_where_only_users_are_meant(store: JobStore) -> None:
    _put(store)
    forget_user(store, TABLES, NAME, keep_texts=True)
    assert [row["user"] for row in _jobs(store)] == [OTHER, None, None]
    assert f"/home/{NAME}/run.py" in [row["application"] for row in _jobs(store)]


def test_a_name_of_digits_is_no_part_of_an_id(store: JobStore) -> None:
    put(store, "a", job(12, user="12"), job(13, user="x", task_id="12"))
    forget_user(store, TABLES, "12")
    assert sorted((str(row["job_id"]), str(row["task_id"]), row["user"]) for row in _jobs(store)) == [
        ("12", "1001", None),
        ("13", "12", "x"),
    ]


def test_no_byte_of_a_file_names_the_person(tmp_path: Path) -> None:
    file = tmp_path / "s.duckdb"
    store = DuckStore(file, tables=TABLES)
    put(store, "a", *(job(f"{NAME}-{n}", user=NAME) for n in range(3000)), job(1))
    # the rows of executables are replaced by a hash of their path
    for of in TABLES:
        _publish(store, of)
    forget_user(store, TABLES, NAME)
    assert not [of.name for of in TABLES for text in _texts(read_table(store, of)) if _names(text)]
    store.close()
    assert not _names(file.read_bytes().decode("latin-1"))


def test_another_session_of_the_process_keeps_its_file(tmp_path: Path) -> None:
    first = DuckStore(tmp_path / "s.duckdb", tables=TABLES)
    _put(first)
    second = DuckStore(tmp_path / "s.duckdb", tables=TABLES)
    with pytest.raises(StoreBusyError):
        forget_user(first, TABLES, NAME)
    second.close()
    forget_user(first, TABLES, NAME)
    assert len(_jobs(first)) == 3
    first.close()


def test_a_durable_store_is_as_it_was_afterwards(durable: Engine, tmp_path: Path) -> None:
    store = durable.open(tmp_path)
    _put(store)
    _publish(store, table("factors"))
    forget_user(store, TABLES, NAME)
    put(store, "d", job(9, end_time=hours(9)))
    store.close()
    again = durable.open(tmp_path)
    assert len(_jobs(again)) == 4
    assert read_table(again, table("factors")).num_rows == 1
    again.close()
