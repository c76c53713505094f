"""Read-only connection, shared with other readers and released between questions."""

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa

from esjobs.core.errors import StoreError
from esjobs.store.duck.connection import DuckConnection, quiet, stop
from esjobs.store.duck.result_cache import ResultCache
from esjobs.store.duck.spill import spill_folder
from esjobs.store.duck.turns import take_turn

IDLE_S = 1.0
"""Seconds without a question after which the file is released; reopening takes about 40 ms."""

Prepare = Callable[[Callable[[str], list[tuple[object, ...]]]], Sequence[str]]
"""Function that inspects a file just opened and returns statements to run in every cursor on it."""


class SharedConnection(DuckConnection):
    """File opened read-only; nothing is written or created.

    Readers share the file, a writer has it alone. It is closed after :data:`IDLE_S` without questions or
    streams, unless ``keeps_file``, and reopened by the next question. Small answers to :meth:`lookup` are
    cached while it stays open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        memory_limit: str,
        threads: int | None,
        *,
        wait_s: float = 0.0,
        keeps_file: bool = False,
        prepare: Prepare,
    ) -> None:
        self._keeps_file = keeps_file
        # reentrant: a question inside a stream takes it again
        self._guard = threading.RLock()
        _CONNECTIONS.add(self)
        self._prepare = prepare
        self._statements: Sequence[str] = ()
        self._last_use = time.monotonic()
        self._timer: threading.Timer | None = None
        self._cache = ResultCache()
        super().__init__(path, memory_limit, threads, wait_s=wait_s)

    @property
    def read_only(self) -> bool:
        return True

    def _spill_folder(self) -> str:
        return spill_folder()

    def table(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> pa.Table:
        """Execute a query and return a table; a small one is cached while the file is kept."""
        if not self._keeps_file:
            return super().table(sql, schema, params)
        with self.translated():
            self._open()
            key = ResultCache.key(sql, params)
            existing = self._cache.get(key)
            if existing is not None:
                return pa.Table.from_batches(existing, schema)
            table = super().table(sql, schema, params)
            # valid as long as the file is kept: nobody can write it meanwhile
            if self._cache.fits(table.to_batches()):
                self._cache.keep(key, table.to_batches())
            return table

    def lookup(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> Iterator[pa.RecordBatch]:
        """Stream an answer; a small one is cached while the file stays open."""
        with self.translated():
            self._open()
            key = ResultCache.key(sql, params)
            existing = self._cache.get(key)
            if existing is not None:
                return iter(existing)
            stream = self.stream(sql, schema, params)
            begun: list[pa.RecordBatch] = []
            for batch in stream:
                begun.append(batch)
                if not self._cache.fits(begun):
                    # too large to keep: what was read already comes first
                    return chain(begun, stream)
            self._cache.keep(key, begun)
            return iter(begun)

    def _connect(self, in_memory: bool) -> duckdb.DuckDBPyConnection:
        del in_memory
        # the file may have been written since it was given back
        self._cache.forget()
        file = Path(self.location)
        opened = take_turn(self._connect_file, file, self._wait_s, read_only=True)
        try:
            # what was opened anew has no fence, unless another session of this process shares one that has
            ((self._fenced,),) = opened.execute("SELECT current_setting('lock_configuration')").fetchall()
            self._statements = self._prepare(lambda sql: opened.execute(sql).fetchall())
            for statement in self._statements:
                opened.execute(statement)
        except BaseException:
            opened.close()
            raise
        return opened

    def _connect_file(self) -> duckdb.DuckDBPyConnection:
        if not Path(self.location).exists():
            raise StoreError(f"store {self.location} not found; it may have been moved or deleted")
        try:
            opened = duckdb.connect(self.location, read_only=True, config=self._config)
        # DuckDB opens the log too, which may be what cannot be read
        except duckdb.IOException as error:
            if "Permission denied" not in str(error):
                raise
            raise StoreError(
                f"no permission to read store {self.location}; ask its owner for read access (also to its "
                ".wal file)"
            ) from error
        with contextlib.suppress(duckdb.InvalidInputException):  # a fence keeps the configuration as it is
            quiet(opened)
        return opened

    def _open(self) -> duckdb.DuckDBPyConnection:
        if not self._closed and self._duckdb is None:
            self._duckdb = self._connect(in_memory=False)
        return super()._open()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = super()._cursor()
        for statement in self._statements:
            cursor.execute(statement)
        return cursor

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Translate errors, and keep the file open meanwhile."""
        with self._guard:
            try:
                with super().translated():
                    yield
            finally:
                self._last_use = time.monotonic()
                self._watch()

    def _watch(self) -> None:
        if self._timer is None and not self._closed and not self._keeps_file:
            # a strong reference would keep a forgotten session, and its file, alive
            self._timer = threading.Timer(IDLE_S, _give_back, [weakref.ref(self)])
            self._timer.daemon = True
            self._timer.start()

    def give_back(self) -> None:
        """Release the file, unless it was used recently or still is."""
        with self._guard:
            self._timer = None
            opened = getattr(self, "_duckdb", None)
            if opened is None or self._closed:
                return
            streaming = any(stream.alive for stream in self._streams)
            # looked at again later: a stream holds the file until its last batch
            if streaming or self._within or time.monotonic() - self._last_use < IDLE_S:
                self._watch()
                return
            self._duckdb = None
            with contextlib.suppress(duckdb.Error):
                opened.close()

    def close(self) -> None:
        """Release the file; repeated calls do nothing."""
        with self._guard:
            super().close()
            self._duckdb = None
            timer, self._timer = self._timer, None
        # without the guard, for which it may wait: a thread that is left has DuckDB's objects at the very end
        stop(timer)


def _give_back(connection: "weakref.ref[SharedConnection]") -> None:
    if (existing := connection()) is not None:
        existing.give_back()


_CONNECTIONS: weakref.WeakSet[SharedConnection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close sessions before the interpreter is torn down."""
    for connection in list(_CONNECTIONS):
        with contextlib.suppress(Exception):
            connection.close()
