"""Errors of DuckDB, the system and Arrow as ours, with the remedy."""

import re

import duckdb
import pyarrow as pa

from esjobs.core.errors import SchemaError, StoreBusyError, StoreError

# Errors that DuckDB distinguishes by text: pattern, our error, remedy. Tried before the error's class.
_WAYS_OUT: tuple[tuple[str, type[StoreError], str], ...] = (
    (r"Could not set lock", StoreBusyError, "wait until it is done or use another file"),
    (r"different configuration", StoreBusyError, "close it there first"),
    (
        r"not a valid DuckDB database",
        StoreError,
        "if it was a store, the file is damaged: restore it from the backup; if not, name another file",
    ),
    (
        r"Corrupt database",
        StoreError,
        "the file is damaged: restore it from the backup or ingest into a new file",
    ),
    (r"Memory must have a number|Unknown unit for memory", StoreError, "write the memory limit like 1GB"),
    (r"Must have at least 1 thread", StoreError, "give it at least one thread"),
    (r"Invalid unicode", StoreError, "text must be UTF-8; check where the rows come from"),
    (r"version number|storage version", SchemaError, "open it with the version of DuckDB that wrote it"),
    (r"No space left|File too large|disk is full", StoreError, "free some space and run it again"),
    (
        r"Permission denied|Read-only file system",
        StoreError,
        "make the file and its folder writable for this user, or use another one",
    ),
    (r"Is a directory", StoreError, "name a file inside it"),
    (r"Cannot open file", StoreError, "name a file in a folder that can be written to"),
)

_CLASSES: tuple[tuple[type[BaseException], type[StoreError], str], ...] = (
    (pa.ArrowMemoryError, StoreError, "give the process more memory (ulimit -v)"),
    (
        duckdb.OutOfMemoryException,
        StoreError,
        "give it more memory (memory_limit) or room for its spill files",
    ),
    (duckdb.SerializationException, SchemaError, "open it with the version of DuckDB that wrote it"),
    (duckdb.TransactionException, StoreError, "run it again"),
    (duckdb.InterruptException, StoreError, "interrupted: run it again"),
    (duckdb.ConstraintException, StoreError, "every job needs job_id, queue and end_time"),
    (duckdb.FatalException, StoreError, "open the store again; what was committed is safe"),
    (duckdb.InternalException, StoreError, "a defect in DuckDB: open the store again and report it"),
    (duckdb.IOException, StoreError, "check the file, its folder and the disk"),
    (duckdb.DataError, StoreError, "a value does not fit; check the rows that were written"),
    (duckdb.Error, StoreError, "if it persists, report it with this message"),
    (OSError, StoreError, "check the file, its folder and the disk"),
    (pa.ArrowException, StoreError, "if it persists, report it with this message"),
)


def store_error(error: BaseException, location: str) -> StoreError:
    """Return an error of DuckDB, the system or Arrow as ours: one line with the remedy."""
    # DuckDB's own advice names settings that readers of this message cannot reach.
    words = " ".join(str(error).split("Possible solutions")[0].split())[:300]
    for pattern, ours, way_out in _WAYS_OUT:
        if re.search(pattern, words, re.IGNORECASE):
            return ours(f"store {location} failed: {words}; {way_out}")
    for theirs, ours, way_out in _CLASSES:
        if isinstance(error, theirs):
            return ours(f"store {location} failed: {words}; {way_out}")
    raise TypeError(f"not an error of the store: {error!r}")
