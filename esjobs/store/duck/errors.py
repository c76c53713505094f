"""Errors of DuckDB, the system and Arrow as ours, with the remedy."""

import re

import duckdb
import pyarrow as pa

from esjobs.core.errors import ReopenError, SchemaError, StoreBusyError, StoreError

# Errors that DuckDB distinguishes by text: pattern, our error, remedy. Tried before the error's class.
_WAYS_OUT: tuple[tuple[str, type[StoreError], str], ...] = (
    (r"Could not set lock", StoreBusyError, "wait until it ends, or use a different file"),
    (r"different configuration", StoreBusyError, "close it there first"),
    (
        r"not a valid DuckDB database",
        StoreError,
        "if this was a store, the file is damaged: restore the backup; otherwise use a different file",
    ),
    (
        r"Corrupt database",
        StoreError,
        "the file is damaged; restore the backup, or load the records into a new file",
    ),
    (r"Memory must have a number|Unknown unit for memory", StoreError, "write the memory limit as in 1GB"),
    (r"Must have at least 1 thread", StoreError, "use at least one thread"),
    (r"Invalid unicode", StoreError, "text must be UTF-8; check the source of the rows"),
    (r"version number|storage version", SchemaError, "open it with the version of DuckDB that wrote it"),
    (r"No space left|File too large|disk is full", StoreError, "free disk space and run it again"),
    (
        r"Permission denied|Read-only file system",
        StoreError,
        "make the file and its folder writable for this user, or use a different file",
    ),
    (r"Is a directory", StoreError, "use a file inside this folder"),
    (r"Cannot open file", StoreError, "use a file in a writable folder"),
)

_CLASSES: tuple[tuple[type[BaseException], type[StoreError], str], ...] = (
    (pa.ArrowMemoryError, StoreError, "raise the memory limit of the process (ulimit -v)"),
    (
        duckdb.OutOfMemoryException,
        StoreError,
        "raise memory_limit, or free disk space for its temporary files",
    ),
    (duckdb.SerializationException, SchemaError, "open it with the version of DuckDB that wrote it"),
    (duckdb.TransactionException, StoreError, "run it again"),
    (duckdb.InterruptException, StoreError, "interrupted: run it again"),
    (duckdb.ConstraintException, StoreError, "each job requires job_id, queue and end_time"),
    (duckdb.FatalException, ReopenError, "open the store again; committed data are safe"),
    (duckdb.InternalException, StoreError, "an internal error of DuckDB; open the store again and report it"),
    (duckdb.IOException, StoreError, "check the file, its folder and the disk"),
    (duckdb.DataError, StoreError, "a value does not fit its column; check the rows"),
    (duckdb.Error, StoreError, "if it persists, report it with this message"),
    (OSError, StoreError, "check the file, its folder and the disk"),
    (pa.ArrowException, StoreError, "if it persists, report it with this message"),
)


def store_error(error: BaseException, location: str) -> StoreError:
    """Return an error of DuckDB, the system or Arrow as ours: one line with the remedy."""
    # DuckDB's own advice names settings that readers of this message cannot reach.
    words = " ".join(str(error).split("Possible solutions")[0].split())[:300]
    # texts first: DuckDB raises the same class for a lock, a full disk and a damaged file
    for pattern, ours, way_out in _WAYS_OUT:
        if re.search(pattern, words, re.IGNORECASE):
            return ours(f"store {location} failed: {words}; {way_out}")
    for theirs, ours, way_out in _CLASSES:
        if isinstance(error, theirs):
            return ours(f"store {location} failed: {words}; {way_out}")
    raise TypeError(f"not a store error: {error!r}")
