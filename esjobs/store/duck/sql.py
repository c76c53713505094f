"""What the parts of the embedded store need of a connection; the implementation is in ``duck``."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa


class SqlSession(Protocol):
    """A connection that speaks Arrow. Every error that leaves it is a :class:`StoreError`."""

    def run(self, sql: str, params: Sequence[object] = ()) -> None:
        """Execute a statement that yields nothing."""

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Execute a query and fetch all rows; for few rows."""

    def table(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> pa.Table:
        """Execute a query inside the current transaction, the answer in memory and of this schema."""

    def stream(self, sql: str, schema: pa.Schema, params: Sequence[object] = ()) -> Iterator[pa.RecordBatch]:
        """Execute a query on a snapshot of its own and yield batches of this schema as they are made."""

    def insert(self, sql: str, rows: pa.Table, params: Sequence[object] = ()) -> None:
        """Execute a statement that reads the rows under the name ``incoming``."""

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing: commits at the end, rolls back on any exception. Does not nest."""
