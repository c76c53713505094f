"""Foreign errors are translated at the edge: DuckDB's and the disk's, in one line with a way out."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from esjobs.core.errors import SchemaError, StoreBusyError, StoreError
from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.errors import store_error
from esjobs.store.duck.store import DuckStore
from tests.contract.interrupted import jobs
from tests.contract.jobs import batch, job, put
from tests.messages import raised

ROOT = Path(__file__).parents[2]
FOREIGN = sorted(
    {
        found
        for found in vars(duckdb).values()
        if isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, Warning)
    },
    key=lambda found: found.__name__,
)


def test_duckdb_has_the_exceptions_that_we_know_of() -> None:
    names = {found.__name__ for found in FOREIGN}
    assert {"Error", "IOException", "OutOfMemoryException", "FatalException"} <= names
    assert len(names) > 25


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda found: found.__name__)
def test_every_exception_of_duckdb_is_translated(foreign: type[Exception]) -> None:
    if not issubclass(foreign, duckdb.Error):
        # The Python database interface asks for a class named Warning; DuckDB never raises it.
        assert foreign is duckdb.Warning
        return
    ours = store_error(foreign("Some Error: it went\nwrong"), "jobs.duckdb")
    assert isinstance(ours, StoreError)
    assert str(ours).startswith("store jobs.duckdb failed: ")
    assert "it went wrong; " in str(ours)
    assert "\n" not in str(ours)


def test_what_is_not_an_error_of_the_store_is_a_defect() -> None:
    with pytest.raises(TypeError, match="not a store error"):
        store_error(KeyError("x"), "jobs.duckdb")


@pytest.mark.parametrize("content", [b"not a database", b"x" * 20_000, bytes(20_000)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with raised(StoreError):
        DuckStore(path, tables=TABLES)
    assert path.read_bytes() == content


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE jobs (id INTEGER)")
    with raised(SchemaError):
        DuckStore(path, tables=TABLES)
    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(1,)]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with raised(StoreError):
        DuckStore(tmp_path, tables=TABLES)


@pytest.mark.parametrize("place", ["/proc/jobs.duckdb", "/dev/null/jobs.duckdb", "/proc/new/jobs.duckdb"])
def test_a_place_that_cannot_be_written_is_refused(place: str) -> None:
    with raised(StoreError):
        DuckStore(place, tables=TABLES).compare_and_set("what", None, "kept")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.duckdb"
    store = DuckStore(path, tables=TABLES)
    store.compare_and_set("what", None, "kept")
    store.close()
    content = bytearray(path.read_bytes())
    at = content.index(b"DUCK") + 4
    content[at : at + 8] = (9999).to_bytes(8, "little")
    path.write_bytes(content)
    with raised(StoreError):
        DuckStore(path, tables=TABLES)


def test_the_second_process_learns_who_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.duckdb"
    store = DuckStore(path, tables=TABLES)
    put(store, "a", job(1))
    second = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.stdout.startswith(f"StoreBusyError process {os.getpid()} ")
    assert "retry later, or raise --wait SECONDS" in second.stdout
    store.close()


OPEN = """
import sys
from esjobs.schema.catalogue import TABLES
from esjobs.core.errors import StoreError
from esjobs.store.duck.store import DuckStore
try:
    DuckStore(sys.argv[1], tables=TABLES)
except StoreError as error:
    print(type(error).__name__, error)
"""


def test_the_same_process_may_not_open_a_file_with_other_settings(tmp_path: Path) -> None:
    store = DuckStore(tmp_path / "jobs.duckdb", tables=TABLES)
    store.compare_and_set("what", None, "kept")
    with raised(StoreBusyError):
        DuckStore(tmp_path / "jobs.duckdb", memory_limit="2GB", tables=TABLES)
    store.close()


FILL = """
import resource, sys
import pyarrow as pa
from esjobs.schema.catalogue import TABLES
from esjobs.core.errors import StoreError
from esjobs.store.duck.store import DuckStore
from tests.contract.interrupted import jobs
from tests.contract.interrupted import jobs
from tests.contract.jobs import batch, job, put

store = DuckStore(sys.argv[1], tables=TABLES)
put(store, "first", job("first"))
store.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
store = DuckStore(sys.argv[1], tables=TABLES)
try:
    store.put_jobs((jobs(number, 130_000) for number in range(20)), "too much")
except StoreError as error:
    print(type(error).__name__, error)
try:
    store.close()
except StoreError:
    pass
"""


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "jobs.duckdb"
    filled = subprocess.run(
        [sys.executable, "-c", FILL, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert filled.stdout.startswith("StoreError"), filled.stderr
    assert filled.stdout.count("\n") == 1
    assert "free disk space" in filled.stdout
    store = DuckStore(path, tables=TABLES)
    assert store.span().jobs == 1
    store.close()


def test_settings_that_make_no_sense_are_said() -> None:
    with raised(StoreError):
        DuckStore(None, memory_limit="lots", tables=TABLES)
    with raised(StoreError):
        DuckStore(None, threads=0, tables=TABLES)


def test_memory_that_does_not_suffice_is_said_and_costs_nothing(tmp_path: Path) -> None:
    store = DuckStore(tmp_path / "jobs.duckdb", memory_limit="10MB", threads=1, tables=TABLES)
    put(store, "a", job(1))
    with raised(StoreError):
        store.put_jobs([jobs(1, 130_000)], "b")
    assert store.span().jobs == 1
    store.close()


def test_text_that_is_not_text_is_refused() -> None:
    store = DuckStore(None, tables=TABLES)
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    rows = batch([job(1)])
    rows = rows.set_column(rows.schema.get_field_index("queue"), "queue", broken)
    with raised(StoreError):
        store.put_jobs([rows], "a")
    assert store.span().jobs == 0
    store.close()
