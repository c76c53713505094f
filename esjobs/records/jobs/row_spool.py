"""Rows on their way into a store, kept in a temporary file: what a load brings is never all in memory."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, Self

import pyarrow as pa

from esjobs.core.errors import StoreError


class RowSpool:
    """Batches of one schema in an unnamed temporary file; use it as a context manager.

    Rows may be added in parts, each read back by itself. Raises :class:`StoreError` if the disk is full.
    """

    def __init__(self, schema: pa.Schema, what: str) -> None:
        self.schema = schema
        self.rows: Counter[str] = Counter()
        self._what = what
        self._batch_numbers: dict[str, list[int]] = {}
        self._written = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchFileWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, batch: pa.RecordBatch, part: str = "") -> None:
        """Write rows of the schema to the file."""
        if not batch.num_rows:
            return
        try:
            if self._writer is None:
                self._file = tempfile.TemporaryFile(prefix="esjobs-")  # noqa: SIM115  closed at the end
                self._writer = pa.ipc.new_file(self._file, self.schema)
            self._writer.write_batch(batch)
        except OSError as error:
            raise StoreError(
                f"cannot write {self._what} to {tempfile.gettempdir()} ({error.strerror or error}); set "
                "TMPDIR to a larger directory"
            ) from error
        self._batch_numbers.setdefault(part, []).append(self._written)
        self._written += 1
        self.rows[part] += batch.num_rows

    def batches(self, part: str = "") -> Iterator[pa.RecordBatch]:
        """Yield the batches of a part; nothing can be added any more. May be called again."""
        if self._file is None:
            return
        if self._writer is not None:
            self._writer.close()  # closing writes the footer, each time
            self._writer = None
        with pa.ipc.open_file(pa.PythonFile(self._file, "r")) as reader:
            for number in self._batch_numbers.get(part, ()):
                yield reader.get_batch(number)
