"""Connection to DuckDB: statements, streams, transactions, and the file."""

import contextlib
import fcntl
import os
import shutil
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from esjobs.core.errors import StoreError
from esjobs.store.duck.errors import store_error
from esjobs.store.duck.spill import spill_folder, sweep
from esjobs.store.duck.turns import take_turn
from esjobs.store.files.sharing import make_folder, mask_like, masked

_BATCH_ROWS = 65_536

# Bytes of the headers that every DuckDB file begins with
_SHORTEST_DATABASE = 3 * 4096

# Signature of DuckDB files, at offset 8
_MAGIC = b"DUCK"

# Message of DuckDB after Ctrl-C in the middle of a query
_INTERRUPTED = "Query interrupted"


class DuckConnection:
    """Connection of a store and the cursors of its open streams.

    Every error that leaves it is a :class:`StoreError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        memory_limit: str,
        threads: int | None,
        *,
        wait_s: float = 0.0,
    ) -> None:
        in_memory = path is None or os.fspath(path) == ":memory:"
        self.location = ":memory:" if in_memory else os.fspath(path)  # type: ignore[arg-type]
        self._streams: weakref.WeakSet[_Stream | FencedCursor] = weakref.WeakSet()
        self._closed = False
        self._within = False
        self._fenced = False
        self._wait_s = wait_s
        self._new_folders: list[Path] = []
        self.new = False
        self._config: dict[str, Any] = {
            "memory_limit": memory_limit,
            "temp_directory": spill_folder() if in_memory else self._spill_folder(),
            # rows come in any order; keeping theirs would buffer whole answers
            "preserve_insertion_order": False,
            # a checkpoint packs the last rows of a table again: with DuckDB's 16 MB that was half of a step
            "checkpoint_threshold": "128MB",
            # no network: DuckDB would download an extension in the middle of a query
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }
        if threads is not None:
            self._config["threads"] = threads
        with self.translated():
            self._duckdb: duckdb.DuckDBPyConnection | None = self._connect(in_memory)

    @property
    def read_only(self) -> bool:
        """True if nothing can be written."""
        return False

    def _spill_folder(self) -> str:
        """Return the spill folder, which DuckDB creates on demand."""
        return f"{self.location}.tmp"

    def _connect(self, in_memory: bool) -> duckdb.DuckDBPyConnection:
        """Open the file, created with its folders if absent; wait for its turn."""
        if in_memory:
            return quiet(duckdb.connect(self.location, config=self._config))
        file = Path(self.location)
        self._new_folders = _make_folders(file.absolute().parent)
        # folders first: the lock is on the file, which needs one
        return take_turn(self._connect_file, file, self._wait_s, read_only=False)

    def _connect_file(self) -> duckdb.DuckDBPyConnection:
        # DuckDB refuses such a file as invalid; nothing was ever committed to it
        if self._is_half_made():
            self._remove_stub()
        self.new = not Path(self.location).exists()
        try:
            opened = quiet(duckdb.connect(self.location, config=self._config))
        except BaseException:
            if self.new:
                self._remove_stub()
            raise
        # not before the file is ours: processes of another container may have these numbers, and live
        sweep(Path(self._spill_folder()))
        return opened

    def run(self, sql: str, params: Sequence[object] = ()) -> None:
        """Execute a statement without result."""
        with self.translated():
            self._open().execute(sql, list(params))

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Execute a query and fetch all rows; for few rows."""
        with self.translated():
            return self._open().execute(sql, list(params)).fetchall()

    def table(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> pa.Table:
        """Execute a query inside the current transaction and return a table of this schema."""
        with self.translated():
            # not a cursor: it must see what this transaction has written
            rows = self._open().sql(sql, params=list(params)).to_arrow_table()
            return rows.cast(schema)

    def stream(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> Iterator[pa.RecordBatch]:
        """Execute a query on its own snapshot and yield batches of this schema."""
        with self.translated():
            cursor = self._cursor()
            reader = cursor.sql(sql, params=list(params)).to_arrow_reader(_BATCH_ROWS)
        stream = _Stream(self, cursor, reader, schema)
        self._streams.add(stream)
        return stream

    def lookup(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> Iterator[pa.RecordBatch]:
        """Stream a small answer that is often repeated; subclasses may cache it."""
        return self.stream(sql, schema, params)

    def insert(self, sql: str, rows: pa.Table, params: Sequence[object] = ()) -> None:
        """Execute a statement that reads the rows as ``incoming``."""
        with self.translated():
            incoming = _without_zone(rows)
            if not self._fenced:
                # Read by name from this frame: a registered table would be kept in memory until the commit.
                self._open().execute(sql, list(params))
                return
            # a fenced connection looks up no variables of Python
            self._open().register("incoming", incoming)
            try:
                self._open().execute(sql, list(params))
            finally:
                self._open().unregister("incoming")

    def fenced_cursor(self) -> "FencedCursor":
        """Return a cursor for foreign statements; close it after use.

        Fences the connection for good: no other files, no extensions, no variables, no configuration changes.
        """
        with self.translated():
            cursor = self._cursor()
            if not self._fenced:
                cursor.execute("SET enable_external_access = false")
                # a foreign question must not fill the disk that the next load needs
                cursor.execute(f"SET max_temp_directory_size = '{self._spill_limit()}B'")
                # last: it locks the settings above, and itself
                cursor.execute("SET lock_configuration = true")
                self._fenced = True
        lent = FencedCursor(cursor)
        self._streams.add(lent)
        return lent

    def _spill_limit(self) -> int:
        """Return half of the free space in bytes, the limit of foreign spills (DuckDB takes 90 %)."""
        folder = Path(self._config["temp_directory"])
        # the nearest folder that is there is on the same disk
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free // 2

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._open().cursor()
        # a locked configuration keeps what it was, which is no progress bar outside of notebooks
        return cursor if self._fenced else quiet(cursor)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end, roll back on any exception. Does not nest."""
        if self._within:
            raise StoreError(
                "a write is already in progress in this session; close it before starting another"
            )
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
        """True if the file was released."""
        return self._closed

    def remove(self) -> None:
        """Delete the file while it is locked, and close."""
        # What is written after the file is gone would be a log beside the next file of this name.
        with contextlib.suppress(StoreError):
            self.run("PRAGMA disable_checkpoint_on_shutdown")
        Path(f"{self.location}.wal").unlink(missing_ok=True)
        Path(self.location).unlink()
        self.close()
        self._remove_folders()

    def _is_half_made(self) -> bool:
        """True if the file is an unfinished database whose creator ended."""
        file = Path(self.location)
        with contextlib.suppress(OSError):
            size = file.stat().st_size
            # an empty file is fine: DuckDB makes a database of it
            if 0 < size < _SHORTEST_DATABASE and file.is_file():
                head = file.read_bytes()
                # zeros: it was made larger, and its creator died before the first header
                return head[8:12] == _MAGIC or not any(head)
        return False

    def _remove_stub(self) -> None:
        """Delete an unfinished file, unless another process has completed it since."""
        with contextlib.suppress(OSError), Path(self.location).open("rb+") as stream:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that DuckDB takes too
            if os.fstat(stream.fileno()).st_size >= _SHORTEST_DATABASE:
                return
            Path(self.location).unlink()
        self._remove_folders()

    def _remove_folders(self) -> None:
        with contextlib.suppress(OSError):
            for folder in self._new_folders:
                folder.rmdir()

    def close(self) -> None:
        """Close all streams and release the file."""
        if self._closed:
            return
        self._closed = True
        # A reader that is still alive would keep the file locked and block a later open in this process.
        for stream in list(self._streams):
            stream.close()
        with self.translated():
            if self._duckdb is not None:
                self._duckdb.close()

    def require_open(self) -> None:
        """Raise :class:`StoreError` if closed."""
        self._open()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._closed or self._duckdb is None:
            raise StoreError(f"store {self.location} is closed; open it again")
        return self._duckdb

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Translate errors of DuckDB, the system and Arrow; Ctrl-C becomes KeyboardInterrupt.

        Files that DuckDB creates beside the store get its permissions.
        """
        try:
            with masked(mask_like(Path(self.location))):
                yield
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            raise store_error(error, self.location) from error
        except RuntimeError as error:
            if str(error) != _INTERRUPTED:
                raise
            raise KeyboardInterrupt from error


def _make_folders(folder: Path) -> list[Path]:
    try:
        return make_folder(folder)
    except OSError as error:
        raise StoreError(
            f"cannot create folder {folder} for the store: {error.strerror}; use a different folder with "
            "--store duckdb:PATH"
        ) from error


class FencedCursor:
    """Cursor for foreign statements, tracked by its store."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.duckdb = cursor
        self.alive = True

    def close(self) -> None:
        """Close the cursor."""
        self.alive = False
        self.duckdb.close()


class _Stream:
    """Answer that is read batch by batch and ends with the store."""

    def __init__(
        self,
        connection: DuckConnection,
        cursor: duckdb.DuckDBPyConnection,
        reader: pa.RecordBatchReader,
        schema: pa.Schema,
    ) -> None:
        self._connection = connection
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
            raise StoreError(f"store {self._connection.location} was closed during a read; open it again")
        with self._connection.translated():
            try:
                return self._reader.read_next_batch().cast(self._schema)
            except StopIteration:
                self._drained = True
        self.close()
        raise StopIteration

    @property
    def alive(self) -> bool:
        """True if there may be more to read."""
        return self._cursor is not None

    def close(self) -> None:
        """Release the answer and its cursor."""
        self._reader = None
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


def quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Disable the progress bar, which DuckDB draws on standard output."""
    connection.execute("SET enable_progress_bar = false")
    return connection


def stop(timer: threading.Timer | None) -> None:
    """End a timer and its thread.

    At exit DuckDB's binding complains about objects that a live thread still references.
    """
    if timer is not None:
        timer.cancel()
        if timer.ident is not None and timer is not threading.current_thread():
            # bounded: a query that does not notice its interrupt must not block the end of the program
            timer.join(1.0)


def _without_zone(rows: pa.Table) -> pa.Table:
    plain = pa.schema(
        [
            pa.field(item.name, pa.timestamp("us")) if pa.types.is_timestamp(item.type) else item
            for item in rows.schema
        ]
    )
    return rows.cast(plain)
