"""Tables in memory as files that formats read: the same checks, books and names of loads."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from esjobs.core.errors import InputError
from esjobs.core.text import kind_of

NAME = "frame"
"""Name of a table in memory in the load summary."""


def is_frame(value: object) -> bool:
    """True if the object is a table: of pandas, of Arrow, or of anything that gives Arrow columns.

    >>> is_frame(pa.table({"job_id": ["1"]})), is_frame("jobs.csv")
    (True, False)
    """
    return hasattr(value, "__arrow_c_stream__") or isinstance(value, pa.RecordBatch) or _is_pandas(value)


@contextmanager
def as_file(frame: object) -> Iterator[Path]:
    """Yield a table as a temporary Parquet file; the same table has the same bytes.

    An index without a name is omitted. Raises :class:`InputError` for columns that Arrow cannot hold.
    """
    try:
        table = _table(frame)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"cannot read {kind_of(frame)} as a table ({reason}); each column requires one type"
        ) from error
    with tempfile.TemporaryDirectory(prefix="esjobs-") as folder:
        file = Path(folder) / NAME
        try:
            # no schema of Arrow beside it: categories are their texts
            pyarrow.parquet.write_table(table.replace_schema_metadata(), file, store_schema=False)
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"cannot read {kind_of(frame)} as a table: {reason}") from error
        yield file


def _table(frame: Any) -> pa.Table:
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if _is_pandas(frame):
        # a named index is a column; 0, 1, 2, ... is none
        named = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
        return pa.Table.from_pandas(named, preserve_index=False)
    return frame if isinstance(frame, pa.Table) else pa.table(frame)


def _is_pandas(value: object) -> bool:
    # never imported for the check: without it nothing can be a frame of pandas
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)
