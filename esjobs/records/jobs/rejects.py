"""The refused rows of a load on their way into the store: written in pieces, never all in memory."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from esjobs.core.arrow import table_schema
from esjobs.publish.publication import rows_table
from esjobs.records.ingest.base import Reject
from esjobs.records.ingest.refusals import LISTED, Refusals
from esjobs.records.jobs.row_spool import RowSpool
from esjobs.schema.jobs import REJECTS

SUPERSEDED = "superseded"


class RejectSpool(RowSpool):
    """Keeps the rejects of a load until it is stored."""

    def __init__(self, load_id: str) -> None:
        super().__init__(table_schema(REJECTS), "the rejected rows")
        self._load_id = load_id

    def refuse(self, rejects: Iterable[Reject], table_name: str) -> None:
        """Add rows that were to become jobs, or rows of another table."""
        rows = [
            {
                "load_id": self._load_id,
                "reason": reject.reason,
                "file": reject.file,
                "line": reject.line,
                "field": reject.field,
                "detail": reject.detail,
                "excerpt": reject.excerpt,
                "n_rows": reject.n_rows,
                "table_name": table_name,
            }
            for reject in rejects
        ]
        for batch in rows_table(REJECTS, rows).to_batches():
            self.add(batch)


def superseded(rows: pa.Table) -> Iterator[Reject]:
    """Yield rows that lost against a newer end time as rejects: the first of each file, the others counted.

    A row without origin is of the file ``unknown``, line 0.
    """
    for name, nothing in (("origin_file", "unknown"), ("origin_line", 0)):
        filled = pa.compute.fill_null(rows.column(name), nothing)
        rows = rows.set_column(rows.column_names.index(name), name, filled)
    for name in dict.fromkeys(rows.column("origin_file").to_pylist()):
        refusals = Refusals(name)
        of_file = rows.filter(pa.compute.equal(rows.column("origin_file"), name))
        # only as many as are listed become Python objects
        for row in of_file.slice(0, LISTED).to_pylist():
            detail = "a newer end time of the same job is stored"
            refusals.add(Reject(SUPERSEDED, name, row["origin_line"], "end_time", detail, row["job_id"]))
        lines = np.sort(of_file.slice(LISTED).column("origin_line").to_numpy())
        refusals.count(SUPERSEDED, "end_time", lines)
        yield from (*refusals.take(), *refusals.rest())
