"""The refused rows of a load on their way into the store: written in pieces, never all in memory."""

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.core.errors import StoreError
from esjobs.ingest.base import Reject
from esjobs.ingest.refusals import LISTED, Refusals
from esjobs.jobs.tables import REJECTS
from esjobs.runs.publication import rows_table

SUPERSEDED = "superseded"
_AT_A_TIME = 10_000


class RejectSpool:
    """Keeps rejects in a temporary file without a name until the load is stored; use it as a context manager.

    Raises :class:`StoreError` when the disk has no room for them.
    """

    def __init__(self, load_id: str) -> None:
        self._load_id = load_id
        self._schema = table_schema(REJECTS)
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> "RejectSpool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, rejects: Iterable[Reject]) -> None:
        """Write some rejects to the file."""
        rows = rows_table(
            REJECTS,
            (
                {
                    "load_id": self._load_id,
                    "reason": reject.reason,
                    "file": reject.file,
                    "line": reject.line,
                    "field": reject.field,
                    "detail": reject.detail,
                    "excerpt": reject.excerpt,
                    "n_rows": reject.n_rows,
                }
                for reject in rejects
            ),
        )
        if not rows.num_rows:
            return
        try:
            if self._file is None or self._writer is None:
                self._file = tempfile.TemporaryFile(prefix="esjobs-")  # noqa: SIM115  closed at the end
                self._writer = pa.ipc.new_stream(self._file, self._schema)
            self._writer.write_table(rows)
        except OSError as error:
            raise StoreError(
                f"the refused rows cannot be kept in {tempfile.gettempdir()} ({error.strerror or error}); "
                "set TMPDIR to a folder with more room"
            ) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What was added, in pieces; nothing can be added any more."""
        if self._file is None or self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as stream:
            yield from stream


def superseded(rows: pa.Table) -> Iterator[Reject]:
    """Rows that lost against a newer end time as rejects: the first of each file, the others counted."""
    for name in dict.fromkeys(rows.column("origin_file").to_pylist()):
        refusals = Refusals(name)
        of_file = rows.filter(pa.compute.equal(rows.column("origin_file"), name))
        for row in of_file.slice(0, LISTED).to_pylist():
            detail = "a newer end time of the same job is stored"
            refusals.add(Reject(SUPERSEDED, name, row["origin_line"], "end_time", detail, row["job_id"]))
        lines = np.sort(of_file.slice(LISTED).column("origin_line").to_numpy())
        refusals.count(SUPERSEDED, "end_time", lines)
        yield from (*refusals.take(), *refusals.rest())
