"""The embedded store: jobs and results in one DuckDB file, or in memory.

One process writes the file, or several read it. Memory is bounded; overflow is spilled beside the file, of
readers to a temporary folder. No network, no extensions.
"""

import contextlib
import os
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import table_schema
from esjobs.core.errors import SchemaError, StoreError
from esjobs.core.query import Filter, Query, Select
from esjobs.core.tables import Table
from esjobs.core.window import Window
from esjobs.store.base import (
    Aggregate,
    Capabilities,
    Change,
    FieldState,
    Generation,
    JobStore,
    Preparation,
    PutCounts,
    Rewrite,
    Span,
    Undone,
    Work,
)
from esjobs.store.batches import gathered
from esjobs.store.checks import KnownTables, by_name, new_part, require_known, require_publishable, writes
from esjobs.store.duck import aggregate as duck_aggregate
from esjobs.store.duck import jobs as duck_jobs
from esjobs.store.duck import pruning as duck_pruning
from esjobs.store.duck import results as duck_results
from esjobs.store.duck import rewriting as duck_rewriting
from esjobs.store.duck import schema
from esjobs.store.duck import sql as duck_sql
from esjobs.store.duck.compaction import compact
from esjobs.store.duck.compile_sql import jobs_of_loads
from esjobs.store.duck.connection import DuckConnection
from esjobs.store.duck.pending_rows import PendingRows
from esjobs.store.duck.shared import SharedConnection
from esjobs.store.jobs_of_loads import JobsOfLoads
from esjobs.store.meter import Meter
from esjobs.store.process import os_account

# The table in which a load is announced: a store that holds nothing else holds nothing
_ACCOUNT = "loads"

# Connections of this process that write
_WRITING: weakref.WeakSet[DuckConnection] = weakref.WeakSet()


class DuckStore:
    """Jobs and results in a DuckDB file, or in memory (``path`` None or ``":memory:"``).

    ``tables``: result tables, added if missing. ``memory_limit``: for DuckDB (``"1GB"``); Arrow tables come
    on top. A missing file is created by the first write. ``read_only``: shared with other readers.
    ``wait_s``: maximum wait for the file; :class:`StoreBusyError` after that. ``keeps_file``: a reader does
    not release it. Raises :class:`SchemaError` for an incompatible layout, :class:`StoreError` if the file is
    not a store.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        tables: Iterable[Table],
        memory_limit: str = "1GB",
        threads: int | None = None,
        read_only: bool = False,
        wait_s: float = 0.0,
        keeps_file: bool = False,
    ) -> None:
        self.read_only = read_only
        self._meter = Meter()
        self._pending: set[str] = set()
        self._cached = PendingRows()
        self._made = False
        self._used = False
        self._tables = by_name(tables)
        self._how = (memory_limit, threads, wait_s)
        self._absent: Path | None = None
        self._empty: DuckConnection | None = None
        if read_only and path is not None and os.fspath(path) != ":memory:":
            self._opened: DuckConnection = SharedConnection(
                path,
                memory_limit,
                threads,
                wait_s=wait_s,
                keeps_file=keeps_file,
                prepare=lambda ask: _show(ask, os.fspath(path), self._tables),
            )
            return
        absent = path is not None and os.fspath(path) != ":memory:" and not Path(path).exists()
        if not absent or path is None:
            self._connect(path)
            return
        self._absent = Path(path)
        _require_folder(self._absent)
        # until the first write an empty store in memory answers: reading creates no file
        self._connect(None)
        self._opened.location = os.fspath(path)

    def _connect(self, path: str | os.PathLike[str] | None) -> None:
        memory_limit, threads, wait_s = self._how
        self._opened = DuckConnection(path, memory_limit, threads, wait_s=wait_s)
        if path is not None:
            _WRITING.add(self._opened)
        try:
            self._made = self._opened.new
            layout = {} if self._opened.location == ":memory:" else _layout(self._opened.rows)
            # The file is locked by now: the process that finds it without tables has made it.
            self._made = not layout and self._opened.new
            _lay_out(self._opened, layout, self._tables)
        except BaseException:
            self.close()
            raise

    @property
    def _connection(self) -> DuckConnection:
        """Connection to the file, or to an empty store in memory while there is none."""
        if self._absent is not None and self._absent.exists() and not self._opened.closed:
            self._make()
        return self._opened

    def _make(self) -> DuckConnection:
        if self._absent is not None and not self._opened.closed:
            # what is still read of the empty store may be read to its end
            self._empty, path, self._absent = self._opened, self._absent, None
            try:
                self._connect(path)
            except BaseException:
                self._absent = path
                raise
        return self._opened

    @writes
    def put_jobs(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        """Store the rows of one load. Memory only grows with jobs that have several versions."""
        counts = duck_jobs.put_jobs(self._make(), self._meter.written(batches), load_id)
        self._used = True
        return counts

    @writes
    def undo_load(self, load_id: str) -> Undone:
        return duck_jobs.undo_load(self._connection, load_id)

    @writes
    def prune_versions(self, loads: Collection[str], *, dry_run: bool = False) -> int:
        return duck_pruning.prune_versions(self._connection, loads, dry_run=dry_run)

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        return self._meter.read_jobs(duck_jobs.select(self._connection, select))

    def aggregate(self, query: Query) -> Aggregate:
        if query.over is not None:
            require_known(self._tables, query.over)
        return self._meter.grouped(duck_aggregate.aggregate(self._connection, query))

    def sql(self, text: str, timeout_s: float) -> pa.RecordBatchReader:
        """Return the rows of one SELECT over tables and views; see `sql`."""
        return duck_sql.rows_of(self._connection, text, timeout_s)

    def span(self) -> Span:
        return duck_jobs.span(self._connection)

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        return duck_jobs.day_fingerprints(self._connection, window)

    def load_fingerprints(self, window: Window) -> pa.Table:
        return duck_jobs.load_fingerprints(self._connection, window)

    def jobs_of_loads(self, after: int, upto: int) -> JobStore:
        jobs = jobs_of_loads(after, upto)
        later = JobsOfLoads(
            self,
            lambda select: self._meter.read_jobs(duck_jobs.select(self._connection, select, jobs)),
            lambda query: self._meter.grouped(duck_aggregate.aggregate(self._connection, query, jobs)),
        )
        return cast("JobStore", later)

    def add(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        return self.replace(table, new_part(table, partition), batches)

    @writes
    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write a partition aside; small ones wait in memory until they are published."""
        require_known(self._tables, table)
        self._connection.require_open()
        pieces = gathered(self._meter.written(batches), table_schema(table), f"rows of '{table.name}'")
        # small partitions wait in memory: a transaction each would cost more than their rows
        taken = self._cached.take(table, partition, pieces)
        if isinstance(taken, Generation):
            return taken
        generation = duck_results.write(self._make(), table, partition, taken)
        self._pending.add(generation.number)
        return generation

    @writes
    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch readers to the changes, all in one transaction."""
        # nobody else can publish: the file is held by this object
        changes = [*changes, *(also() if also is not None else ())]
        require_publishable(self._tables, changes)
        duck_results.publish(self._make(), changes, self._cached)
        written = [change for change in changes if isinstance(change, Generation)]
        self._cached.drop(written)
        self._pending -= {change.number for change in written}
        # the entry of a failed load does not make a store
        self._used |= any(change.table.name != _ACCOUNT for change in written)

    @writes
    def rewrite_jobs(self, containing: str, rewrite: Rewrite) -> int:
        return duck_rewriting.rewrite_jobs(self._connection, containing, rewrite)

    @writes
    def erase(self) -> str:
        """Rewrite the file without deleted data; see `compaction`."""
        location = self._connection.location
        if location == ":memory:":
            return "the store is in memory"
        compact(self._connection, _WRITING)
        self._connect(location)
        return f"rewriting {location}: no page keeps deleted data"

    @writes
    def sweep(self) -> int:
        n_deleted = duck_results.sweep(self._connection, self._tables.values(), self._pending)
        self._meter.add(Work(rows_deleted=n_deleted))
        return n_deleted

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        columns: Sequence[str] = (),
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        require_known(self._tables, table)
        return duck_results.read(self._connection, table, where, columns, order, limit)

    def value(self, key: str) -> str | None:
        return duck_results.value(self._connection, key)

    @writes
    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        done = duck_results.compare_and_set(self._make(), key, old, new)
        self._used |= done and new is not None
        return done

    def capabilities(self) -> Capabilities:
        ((memory, threads),) = self._connection.rows(
            "SELECT current_setting('memory_limit'), current_setting('threads')"
        )
        details = {"memory limit": str(memory), "threads": str(threads), "layout": schema.LAYOUT}
        return Capabilities("duckdb", duckdb.__version__, self._connection.location, 7, details)

    def account(self) -> str:
        return os_account()

    def work(self) -> Work:
        return self._meter.work

    def check_fields(self) -> list[FieldState]:
        """Return every field as present: the catalogue defines the layout."""
        return [
            FieldState(field.name, field.name, "present", schema.JOB_COLUMNS[field.name])
            for field in fields.JOB_FIELDS
        ]

    @writes
    def set_up(
        self, *, dry_run: bool = False, repair: bool = False, start_empty: Collection[str] = ()
    ) -> Preparation:
        """Do nothing: opening a file lays it out."""
        del dry_run, repair, start_empty
        return Preparation()

    def close(self) -> None:
        """Release the file; repeated calls do nothing, other calls raise :class:`StoreError`.

        A file created by this object and left empty is removed, even on a full disk.
        """
        with contextlib.suppress(StoreError, OSError):
            # only a file that this object created, and nobody has written since
            if self._made and not self._opened.closed and self._is_empty():
                self._opened.remove()
        self._opened.close()
        if self._empty is not None:
            self._empty.close()

    def _is_empty(self) -> bool:
        """True if nothing is stored; entries of failed loads do not count."""
        kept = ("main.jobs", "internal.load_numbers", "internal.named_values")
        try:
            return not any(
                self._opened.rows(f"SELECT 1 FROM {source} LIMIT 1")  # noqa: S608  names of the layout
                for source in (*kept, f"internal.published WHERE table_name <> '{_ACCOUNT}'")
            )
        except StoreError:
            # After a failed write DuckDB may answer no more; nobody but this object wrote into the file.
            return not self._used


# Runs a question, gives its rows
_Ask = Callable[[str], list[tuple[Any, ...]]]


def _layout(ask: _Ask) -> schema.Layout:
    layout: schema.Layout = {}
    for table, column, kind in ask(
        "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal"
    ):
        layout.setdefault(table, {})[column] = kind
    return layout


def _lay_out(connection: DuckConnection, layout: schema.Layout, tables: KnownTables) -> None:
    if not layout:
        statements = schema.create_statements(tables.values())
    else:
        _require_layout(connection.rows, connection.location, layout)
        statements = schema.adding_statements(layout, tables.values())
    if statements:
        with connection.transaction():
            connection.run(";".join(statements))


def _show(ask: _Ask, location: str, tables: KnownTables) -> list[str]:
    """Return the statements by which a reader sees missing tables and columns."""
    layout = _layout(ask)
    if not layout:
        raise StoreError(f"store {location} is empty; load jobs: esjobs ingest")
    _require_layout(ask, location, layout)
    ((database,),) = ask("SELECT current_database()")
    return schema.reading_statements(layout, tables.values(), str(database))


def _require_layout(ask: _Ask, location: str, layout: schema.Layout) -> None:
    if "internal.layout" not in layout:
        raise SchemaError(f"{location} is a DuckDB file without an esjobs store; use a different file")
    written = ask("SELECT value FROM internal.layout WHERE key = 'layout'")
    if written != [(schema.LAYOUT,)]:
        number = written[0][0] if written else "unknown"
        raise SchemaError(
            f"{location} was written by another version (layout {number}, expected {schema.LAYOUT}); "
            "load the records again into a new file"
        )


def _require_folder(file: Path) -> None:
    # before anything is created: the folders would be made down to the obstacle
    above = next((each for each in file.absolute().parents if each.exists()), Path("/"))
    if not above.is_dir():
        raise StoreError(
            f"cannot create folder {file.absolute().parent} for the store: {above} is not a folder; use a "
            "different one with --store duckdb:PATH"
        )
