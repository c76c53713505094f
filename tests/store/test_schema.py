"""The layout: made from the catalogue, brought up to date by adding, refused when it cannot be."""

from pathlib import Path

import duckdb
import pytest

from esjobs.core.errors import SchemaError
from esjobs.core.fields import JOB_FIELDS
from esjobs.schema.catalogue import TABLES
from esjobs.schema.speed import FACTORS
from esjobs.store.duck import schema
from esjobs.store.duck.store import DuckStore
from tests.contract.jobs import job, put, selected, table_batch, visible
from tests.messages import raised


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a job and a published factor, closed."""
    path = tmp_path / "jobs.duckdb"
    store = DuckStore(path, tables=TABLES)
    put(store, "a", job(1, events=1, output_b=5.0))
    put(store, "b", job(1, events=2, output_b=6.0))
    store.publish(
        [store.replace(FACTORS, "r", [table_batch(FACTORS, [{"run": "r", "name": "x", "k": 1.0}])])]
    )
    store.close()
    return path


def change(path: Path, *statements: str) -> None:
    """Change a file behind the store's back."""
    with duckdb.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)


def test_everything_in_the_catalogue_has_a_column() -> None:
    layout = schema.expected_layout(TABLES)
    assert list(layout["main.jobs"])[: len(JOB_FIELDS)] == [item.name for item in JOB_FIELDS]
    for table in TABLES:
        assert [*table.column_names, "generation"] == list(layout[schema.results_name(table)])


def test_a_file_that_is_up_to_date_needs_nothing(path: Path) -> None:
    assert schema.adding_statements(schema.expected_layout(TABLES), TABLES) == []
    before = path.read_bytes()
    DuckStore(path, tables=TABLES).close()
    assert path.read_bytes() == before


def test_columns_and_tables_that_a_file_lacks_are_added(path: Path) -> None:
    change(
        path,
        "ALTER TABLE jobs DROP COLUMN output_b",
        "ALTER TABLE internal.replaced_jobs DROP COLUMN output_b",
        "ALTER TABLE jobs DROP COLUMN cpu_raw",
        "ALTER TABLE results.factors DROP COLUMN events_per_job",
        "DROP VIEW components",
        "DROP TABLE results.components",
    )
    store = DuckStore(path, tables=TABLES)
    assert selected(store, "job_id", "events", "output_b", "cpu_raw") == [("1", 2, None, None)]
    (factor,) = visible(store, FACTORS)
    assert (factor["k"], factor["events_per_job"]) == (1.0, None)
    assert put(store, "b", job(1, events=3, output_b=7.0)) == (0, 1, 0)
    assert selected(store, "events", "output_b") == [(3, 7.0)]
    store.undo_load("b")
    assert selected(store, "events", "output_b") == [(1, None)]
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE jobs ADD COLUMN colour VARCHAR",
        "ALTER TABLE results.factors ADD COLUMN colour VARCHAR",
        "ALTER TABLE jobs ALTER COLUMN events TYPE VARCHAR",
        "UPDATE internal.layout SET value = '1'",
        "DELETE FROM internal.layout",
        "DROP TABLE internal.layout",
    ],
    ids=str,
)
def test_a_file_of_another_layout_is_refused(path: Path, statement: str) -> None:
    change(path, statement)
    with raised(SchemaError):
        DuckStore(path, tables=TABLES)
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchall() == [(1,)]


def test_the_file_can_be_read_with_any_duckdb(path: Path) -> None:
    with duckdb.connect(path, read_only=True) as connection:
        assert connection.execute("SELECT job_id, events FROM jobs").fetchall() == [("1", 2)]
        assert connection.execute("SELECT name, k FROM factors").fetchall() == [("x", 1.0)]
