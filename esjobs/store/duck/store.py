"""The embedded store: jobs and results in one DuckDB file, or in memory. The only importer of ``duckdb``.

One process at a time holds the file. Memory is bounded by a setting; what does not fit is spilled to a
folder beside the file. Nothing is loaded from the network and no extension is installed.
"""

import contextlib
import fcntl
import os
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from esjobs.core import fields
from esjobs.core.arrow import PUT_SCHEMA, schema_of
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
    Preparation,
    PutCounts,
    Span,
)
from esjobs.store.checks import KnownTables, by_name, require_known, require_publishable
from esjobs.store.duck import aggregate as duck_aggregate
from esjobs.store.duck import jobs as duck_jobs
from esjobs.store.duck import results as duck_results
from esjobs.store.duck import schema
from esjobs.store.duck.compile_sql import compile_select
from esjobs.store.duck.errors import translated

_BATCH_ROWS = 65_536

_ACCOUNT = "loads"
"""The table in which a load is announced: a store that holds nothing else holds nothing."""

_SHORTEST_DATABASE = 3 * 4096
"""Bytes of the headers that every DuckDB file begins with."""

_INTERRUPTED = "Query interrupted"
"""What DuckDB makes of Ctrl-C in the middle of a query."""


class DuckStore:
    """Jobs and results in a DuckDB file (``path``) or in memory (None or ``":memory:"``).

    ``tables``: the result tables that it holds; those that a file lacks are added.
    ``memory_limit``: what DuckDB may use, as it writes sizes (``"1GB"``); Arrow tables handed over come
    on top. ``threads``: processors to use, all by default. The folder of the file is made when it is missing.

    Raises :class:`StoreBusyError` when another process holds the file, :class:`SchemaError` when the file
    was laid out by a version that this one cannot read, and :class:`StoreError` when it is no store at all.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        tables: Iterable[Table],
        memory_limit: str = "1GB",
        threads: int | None = None,
    ) -> None:
        self._session = _Session(path, memory_limit, threads)
        self._tables = by_name(tables)
        self._pending: set[str] = set()
        self._made = False
        self._used = False
        try:
            layout = _layout(self._session)
            # The file is locked by now: whoever finds it without tables has made it.
            self._made = not layout and self._session.new
            _lay_out(self._session, layout, self._tables)
        except BaseException:
            self.close()
            raise

    def put_jobs(self, batches: Iterable[pa.RecordBatch], load_id: str) -> PutCounts:
        """Store the rows of one load, all of them or none; see :class:`JobStore`.

        Streams: memory does not grow with the load, except for the jobs that have several versions.
        """
        counts = duck_jobs.put_jobs(self._session, batches, load_id)
        self._used = True
        return counts

    def undo_load(self, load_id: str) -> int:
        """Take back the rows of a load, bring back what they had replaced; the number of rows removed."""
        return duck_jobs.undo_load(self._session, load_id)

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Stream jobs as of the moment of the call, in batches of at most 65 536 rows."""
        return selected(self._session, select)

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum, with the books of the same snapshot; the answer is held in memory."""
        if query.over is not None:
            require_known(self._tables, query.over)
        return duck_aggregate.aggregate(self._session, query)

    def span(self) -> Span:
        """How many jobs are stored and which span their end times cover."""
        return duck_jobs.span(self._session)

    def day_fingerprints(self, window: Window | None) -> pa.Table:
        """Columns day, n_jobs, mark: a mark moves whenever a job of its day is added, changed or removed."""
        return duck_jobs.day_fingerprints(self._session, window)

    def replace(self, table: Table, partition: str, batches: Iterable[pa.RecordBatch]) -> Generation:
        """Write the rows of one partition beside the visible ones."""
        require_known(self._tables, table)
        generation = duck_results.replace(self._session, table, partition, batches)
        self._pending.add(generation.number)
        return generation

    def publish(self, changes: Sequence[Change], also: Callable[[], Sequence[Change]] | None = None) -> None:
        """Switch every reader to these generations at once."""
        # nobody else can publish: the file is held by this object
        changes = [*changes, *(also() if also is not None else ())]
        require_publishable(self._tables, changes)
        duck_results.publish(self._session, changes)
        written = [change for change in changes if isinstance(change, Generation)]
        self._pending -= {change.number for change in written}
        self._used |= any(change.table.name != _ACCOUNT for change in written)

    def sweep(self) -> int:
        """Delete rows that no reader can see; what this object wrote and has not published yet stays."""
        return duck_results.sweep(self._session, self._tables.values(), self._pending)

    def read(
        self,
        table: Table,
        where: Sequence[Filter] = (),
        columns: Sequence[str] = (),
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the visible rows of a table as of the moment of the call."""
        require_known(self._tables, table)
        return duck_results.read(self._session, table, where, columns, order, limit)

    def value(self, key: str) -> str | None:
        """A named value; None when there is none."""
        return duck_results.value(self._session, key)

    def compare_and_set(self, key: str, old: str | None, new: str | None) -> bool:
        """Set a named value if it is still the old one (None: absent); whether it was."""
        done = duck_results.compare_and_set(self._session, key, old, new)
        self._used |= done and new is not None
        return done

    def capabilities(self) -> Capabilities:
        """What this store is."""
        ((memory, threads),) = self._session.rows(
            "SELECT current_setting('memory_limit'), current_setting('threads')"
        )
        details = {"memory limit": str(memory), "threads": str(threads), "layout": schema.LAYOUT}
        return Capabilities("duckdb", duckdb.__version__, self._session.location, 7, details)

    def check_fields(self) -> list[FieldState]:
        """Every field is there: the file is laid out by the catalogue."""
        return [
            FieldState(field.name, field.name, "present", schema.JOB_COLUMNS[field.name])
            for field in fields.JOB_FIELDS
        ]

    def set_up(self, *, dry_run: bool = False) -> Preparation:
        """Nothing to do: opening a file lays it out."""
        del dry_run
        return Preparation((), "")

    def close(self) -> None:
        """Release the file. Closing again does nothing; any other call raises :class:`StoreError`.

        A file that this object has made, and that nothing was put into, is removed: a load that failed
        leaves nothing behind, also where the disk is too full for anything but deleting.
        """
        with contextlib.suppress(StoreError, OSError):
            if self._made and not self._session.closed and self._is_empty():
                self._session.remove()
        self._session.close()

    def _is_empty(self) -> bool:
        """Whether nothing was ever put into the store, or all of it was taken back.

        An entry of a load that came to nothing is nothing.
        """
        kept = ("main.jobs", "internal.load_numbers", "internal.named_values")
        try:
            return not any(
                self._session.rows(f"SELECT 1 FROM {source} LIMIT 1")  # noqa: S608  names of the layout
                for source in (*kept, f"internal.published WHERE table_name <> '{_ACCOUNT}'")
            )
        except StoreError:
            # After a failed write DuckDB may answer no more; nobody but this object wrote into the file.
            return not self._used


def _layout(session: "_Session") -> schema.Layout:
    """The tables of the file with their columns; of an empty file, none."""
    layout: schema.Layout = {}
    for table, column, kind in session.rows(
        "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal"
    ):
        layout.setdefault(table, {})[column] = kind
    return layout


def _lay_out(session: "_Session", layout: schema.Layout, tables: KnownTables) -> None:
    """Create the tables in an empty file, or add what a later version brought."""
    if not layout:
        statements = schema.create_statements(tables.values())
    else:
        _require_layout(session, layout)
        statements = schema.migration_statements(layout, tables.values())
    if statements:
        with session.transaction():
            for statement in statements:
                session.run(statement)


def _require_layout(session: "_Session", layout: schema.Layout) -> None:
    if "internal.layout" not in layout:
        raise SchemaError(
            f"{session.location} is a DuckDB file but not a store of esjobs; name another file or a new one"
        )
    written = session.rows("SELECT value FROM internal.layout WHERE key = 'layout'")
    if written != [(schema.LAYOUT,)]:
        number = written[0][0] if written else "unknown"
        raise SchemaError(
            f"{session.location} has layout {number}, this version of esjobs reads layout {schema.LAYOUT}: "
            "open it with the version that wrote it, export the jobs and ingest them into a new file"
        )


class DuckScratch:
    """Rows held in memory, or spilled beyond ``memory_limit``, for as long as questions about them are asked.

    Unlike in a store, rows stay as they come: nothing replaces anything.
    """

    def __init__(self, name: str, columns: Mapping[str, str], *, memory_limit: str = "1GB") -> None:
        self._session = _Session(None, memory_limit, None)
        self._name = schema.quote(name)
        listed = ", ".join(f"{schema.quote(column)} {kind}" for column, kind in columns.items())
        self._session.run(f"CREATE TABLE {self._name} ({listed})")

    @classmethod
    def of_jobs(cls) -> "DuckScratch":
        """For batches of schema ``PUT_SCHEMA``."""
        return cls("jobs", {name: schema.JOB_COLUMNS[name] for name in PUT_SCHEMA.names})

    @classmethod
    def of_results(cls, table: Table) -> "DuckScratch":
        """For rows of a result table."""
        columns = schema.result_columns(table)
        return cls(table.name, {name: columns[name] for name in table.column_names})

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, their columns in the order of the schema."""
        if batch.num_rows:
            self._session.insert(
                f"INSERT INTO {self._name} SELECT * FROM incoming",  # noqa: S608  a name of the catalogue
                pa.Table.from_batches([batch]),
            )

    def clear(self) -> None:
        """Forget all rows."""
        self._session.run(f"DELETE FROM {self._name}")  # noqa: S608  a name of the catalogue

    def select(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Stream jobs; see :class:`JobStore`."""
        return selected(self._session, select)

    def aggregate(self, query: Query) -> Aggregate:
        """Group and sum, with the books."""
        return duck_aggregate.aggregate(self._session, query)

    def read(
        self,
        table: Table,
        where: Sequence[Filter],
        columns: Sequence[str],
        order: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream rows of the result table."""
        return duck_results.read(self._session, table, where, columns, order, limit)

    def close(self) -> None:
        """Release the memory."""
        self._session.close()

    def __enter__(self) -> "DuckScratch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def selected(session: "_Session", select: Select) -> Iterator[pa.RecordBatch]:
    """Stream jobs in batches of at most 65 536 rows."""
    compiled = compile_select(select)
    names = select.fields or tuple(field.name for field in fields.JOB_FIELDS)
    return session.stream(compiled.sql, schema_of(fields.field(name) for name in names), compiled.params)


class _Session:
    """The one connection of a store, and the cursors of the streams that are being read."""

    def __init__(self, path: str | os.PathLike[str] | None, memory_limit: str, threads: int | None) -> None:
        in_memory = path is None or os.fspath(path) == ":memory:"
        self.location = ":memory:" if in_memory else os.fspath(path)  # type: ignore[arg-type]
        self._streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
        self._closed = False
        self._within = False
        spill = Path(tempfile.gettempdir()) / f"esjobs-{uuid.uuid4().hex}.tmp" if in_memory else None
        config: dict[str, Any] = {
            "memory_limit": memory_limit,
            "temp_directory": str(spill or f"{self.location}.tmp"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }
        if threads is not None:
            config["threads"] = threads
        with self._translated():
            self.new = not in_memory and not Path(self.location).exists()
            self._new_folders = [] if in_memory else _make_folders(Path(self.location).absolute().parent)
            try:
                self._connection = _quiet(duckdb.connect(self.location, config=config))
            except BaseException:
                if self.new:
                    self._remove_stub()
                raise

    def run(self, sql: str, params: Sequence[object] = ()) -> None:
        """Execute a statement that yields nothing."""
        with self._translated():
            self._open().execute(sql, list(params))

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Execute a query and fetch all rows; for few rows."""
        with self._translated():
            return self._open().execute(sql, list(params)).fetchall()

    def table(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> pa.Table:
        """Execute a query inside the current transaction, the answer in memory and of this schema."""
        with self._translated():
            rows = self._open().sql(sql, params=list(params)).to_arrow_table()
            return rows.cast(schema)

    def stream(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> Iterator[pa.RecordBatch]:
        """Execute a query on a snapshot of its own and yield batches of this schema as they are made."""
        with self._translated():
            cursor = _quiet(self._open().cursor())
            reader = cursor.sql(sql, params=list(params)).to_arrow_reader(_BATCH_ROWS)
        stream = _Stream(self, cursor, reader, schema)
        self._streams.add(stream)
        return stream

    def insert(self, sql: str, rows: pa.Table, params: Sequence[object] = ()) -> None:
        """Execute a statement that reads the rows under the name ``incoming``."""
        with self._translated():
            # Read by name from this frame: a registered table would be kept in memory until the commit.
            incoming = _without_zone(rows)  # noqa: F841
            self._open().execute(sql, list(params))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: commits at the end, rolls back on any exception. Does not nest."""
        if self._within:
            raise StoreError("the store is in the middle of a write; finish it before the next one starts")
        self.run("BEGIN TRANSACTION")
        self._within = True
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # After some errors DuckDB has rolled back by itself; the first error is the one to report.
            with contextlib.suppress(StoreError):
                self.run("ROLLBACK")
            raise
        finally:
            self._within = False

    @property
    def closed(self) -> bool:
        return self._closed

    def remove(self) -> None:
        """Delete the file while it is still locked, so that nobody else can have begun to use it; close."""
        # What is written after the file is gone would be a log beside the next file of this name.
        with contextlib.suppress(StoreError):
            self.run("PRAGMA disable_checkpoint_on_shutdown")
        Path(f"{self.location}.wal").unlink(missing_ok=True)
        Path(self.location).unlink()
        self.close()
        self._remove_folders()

    def _remove_stub(self) -> None:
        """Delete what is left of a file that could not be made, unless another process has made it since."""
        with contextlib.suppress(OSError), Path(self.location).open("rb+") as stream:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that DuckDB takes too
            if os.fstat(stream.fileno()).st_size >= _SHORTEST_DATABASE:
                return
            Path(self.location).unlink()
        self._remove_folders()

    def _remove_folders(self) -> None:
        """Delete the folders that were made for the file, as far as they are empty."""
        with contextlib.suppress(OSError):
            for folder in self._new_folders:
                folder.rmdir()

    def close(self) -> None:
        """End all streams and release the file."""
        if self._closed:
            return
        self._closed = True
        # A reader that is still alive would keep the file locked and block a later open in this process.
        for stream in list(self._streams):
            stream.close()
        with self._translated():
            self._connection.close()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._closed:
            raise StoreError(f"the store {self.location} is closed; open it again")
        return self._connection

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise translated(error, self.location) from error
        except RuntimeError as error:
            if str(error) != _INTERRUPTED:
                raise
            raise KeyboardInterrupt from error


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it that are missing; the ones made, innermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the folder {folder} for the store: {error.strerror}; "
            "name another one with --store duckdb:PATH"
        ) from error
    return missing


class _Stream:
    """An answer that is read batch by batch; ends with the store."""

    def __init__(
        self,
        session: _Session,
        cursor: duckdb.DuckDBPyConnection,
        reader: pa.RecordBatchReader,
        schema: pa.Schema,
    ) -> None:
        self._session = session
        self._cursor: duckdb.DuckDBPyConnection | None = cursor
        self._reader: pa.RecordBatchReader | None = reader
        self._schema = schema
        self._drained = False

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._drained:
            raise StopIteration
        if self._reader is None:
            raise StoreError(
                f"the store {self._session.location} was closed while it was read; open it again"
            )
        with self._session._translated():
            try:
                return self._reader.read_next_batch().cast(self._schema)
            except StopIteration:
                self._drained = True
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Let go of the answer and its cursor."""
        self._reader = None
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


def _quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Without the progress bar that DuckDB draws on standard output, where our data goes."""
    connection.execute("SET enable_progress_bar = false")
    return connection


def _without_zone(rows: pa.Table) -> pa.Table:
    """Times as UTC without a zone: the same numbers, and no time-zone library to interpret them."""
    plain = pa.schema(
        [
            pa.field(item.name, pa.timestamp("us")) if pa.types.is_timestamp(item.type) else item
            for item in rows.schema
        ]
    )
    return rows.cast(plain)
