"""The connection of those who only read: shared with other readers, and given back between questions."""

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
from esjobs.store.duck.recent import Recent
from esjobs.store.duck.spill import spill_folder
from esjobs.store.duck.turns import take_turn

IDLE_S = 1.0
"""Seconds without a question after which the file is given back. Opening it again takes some 40 ms."""

Prepare = Callable[[Callable[[str], list[tuple[object, ...]]]], Sequence[str]]
"""Given a way to ask, looks at a file that was just opened; what has to be run in every cursor on it."""


class SharedConnection(DuckConnection):
    """A file opened for reading alone: nothing of it or beside it is written, nor made.

    Several processes have it at the same time; one that writes has it alone. So that nobody who writes waits
    longer than for one question, the file is closed when nothing was asked for :data:`IDLE_S` and no answer
    is being streamed; the next question opens it again, and sees what was written meanwhile. Until then
    nobody can write it, so that a small answer to :meth:`lookup` is still the answer when it is asked again.

    What a killed writer left in the log beside the file is read with it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        memory_limit: str,
        threads: int | None,
        *,
        wait_s: float = 0.0,
        prepare: Prepare,
    ) -> None:
        self._guard = threading.RLock()
        _CONNECTIONS.add(self)
        self._prepare = prepare
        self._statements: Sequence[str] = ()
        self._asked = time.monotonic()
        self._timer: threading.Timer | None = None
        self._recent = Recent()
        super().__init__(path, memory_limit, threads, wait_s=wait_s)

    @property
    def read_only(self) -> bool:
        """True."""
        return True

    def _spill_folder(self) -> str:
        return spill_folder()

    def lookup(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> Iterator[pa.RecordBatch]:
        """As :meth:`stream`; a small answer is kept as long as the file stays open."""
        with self.translated():
            self._open()
            key = Recent.key(sql, params)
            known = self._recent.get(key)
            if known is not None:
                return iter(known)
            stream = self.stream(sql, schema, params)
            begun: list[pa.RecordBatch] = []
            for batch in stream:
                begun.append(batch)
                if not self._recent.fits(begun):
                    return chain(begun, stream)
            self._recent.keep(key, begun)
            return iter(begun)

    def _connect(self, in_memory: bool) -> duckdb.DuckDBPyConnection:
        del in_memory
        self._recent.forget()
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
            raise StoreError(f"there is no store at {self.location} (any more)")
        try:
            opened = duckdb.connect(self.location, read_only=True, config=self._config)
        except duckdb.IOException as error:
            if "Permission denied" not in str(error):
                raise
            raise StoreError(
                f"may not read the store {self.location}; ask its owner for the right to read it, "
                "and the log beside it (.wal) if there is one"
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
        """As of any connection; while a question is being answered the file is not given back."""
        with self._guard:
            try:
                with super().translated():
                    yield
            finally:
                self._asked = time.monotonic()
                self._watch()

    def _watch(self) -> None:
        """Look again after a while, by a thread that lives no longer than the file is open."""
        if self._timer is None and not self._closed:
            self._timer = threading.Timer(IDLE_S, _give_back, [weakref.ref(self)])
            self._timer.daemon = True
            self._timer.start()

    def give_back(self) -> None:
        """Release the file until the next question, unless it was needed a moment ago or still is."""
        with self._guard:
            self._timer = None
            opened = getattr(self, "_duckdb", None)
            if opened is None or self._closed:
                return
            streaming = any(stream.alive for stream in self._streams)
            if streaming or self._within or time.monotonic() - self._asked < IDLE_S:
                self._watch()
                return
            self._duckdb = None
            with contextlib.suppress(duckdb.Error):
                opened.close()

    def close(self) -> None:
        """End all streams and release the file."""
        with self._guard:
            super().close()
            self._duckdb = None
            timer, self._timer = self._timer, None
        # without the guard, for which it may wait: a thread that is left has DuckDB's objects at the very end
        stop(timer)


def _give_back(connection: "weakref.ref[SharedConnection]") -> None:
    """Of a connection that nobody has any more, nothing is left to be done."""
    if (known := connection()) is not None:
        known.give_back()


_CONNECTIONS: weakref.WeakSet[SharedConnection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A session that nobody closed must not ask DuckDB anything while the interpreter is taken down."""
    for connection in list(_CONNECTIONS):
        with contextlib.suppress(Exception):
            connection.close()
