"""Columns that the store adds to loaded rows: identity, order, mark."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.errors import StoreError
from esjobs.core.fields import JOB_FIELDS
from esjobs.store.row_hash import content_hash

_REQUIRED = tuple(field.name for field in JOB_FIELDS if field.required)
# Bytes of an identity; the id of a document has room for 512
_LONGEST = 400


def stamped(rows: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
    """Return rows with ``identity``, ``row`` (from ``first_row``) and ``mark_low``.

    The mark is a 31-bit hash of the job, so that sums of millions are exact as doubles. Raises
    :class:`StoreError` for a missing required field.
    """
    for name in _REQUIRED:
        if rows.column(name).null_count:
            raise StoreError(f"a job has no {name}, which each job requires; nothing was stored")
    marks = content_hash(rows.select([field.name for field in JOB_FIELDS]))
    added = {
        "identity": identities(rows.column("source"), rows.column("job_id")),
        "row": pa.array(np.arange(first_row, first_row + rows.num_rows)),
        "mark_low": pa.array((marks & np.uint64(0x7FFFFFFF)).astype(np.int64)),
    }
    return pa.RecordBatch.from_arrays([*rows.columns, *added.values()], [*rows.schema.names, *added])


def identities(source: pa.Array, job_id: pa.Array) -> pa.Array:
    """Return unique names of jobs: length of the source, source, job id; hashed if too long.

    >>> identities(pa.array(["panda", None]), pa.array(["4012345678", "1"])).to_pylist()
    ['5:panda:4012345678', '0::1']
    """
    source = pc.fill_null(source, "")
    # the length keeps "a" + "b:c" apart from "a:b" + "c"
    length = pc.utf8_length(source).cast(pa.string())
    keys = pc.binary_join_element_wise(length, source, job_id, ":")
    long = pc.greater(pc.binary_length(keys), _LONGEST)
    if not pc.any(long).as_py():
        return keys
    hashed = pa.array([_hashed(name) for name in keys.filter(long).to_pylist()])
    return pc.replace_with_mask(keys, long, hashed)


def _hashed(name: str) -> str:
    return "h:" + hashlib.blake2b(name.encode(), digest_size=20).hexdigest()
