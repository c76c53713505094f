"""Compaction: a new file without deleted data.

DuckDB only marks deleted rows, so their bytes remain readable until pages are reused. A copy replaces the
file in one step.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.store.duck.connection import DuckConnection

# Signature of DuckDB files, with its offset
_MAGIC_AT, _MAGIC = 8, b"DUCK"


def compact(connection: DuckConnection, others: Iterable[DuckConnection]) -> None:
    """Rewrite the file and close the connection.

    Requires free space for all rows. Raises :class:`StoreBusyError` while another connection of this process
    has the file open. An interrupted run leaves a complete file.
    """
    file = Path(connection.location).resolve()
    for other in others:
        if other is not connection and not other.closed and Path(other.location).resolve() == file:
            raise StoreBusyError(f"this process has store {file} open twice; close the other session first")
    # in the same folder: a rename is atomic inside one file system only
    copy = file.with_name(f"{file.name}.compact")
    copy.unlink(missing_ok=True)
    try:
        # the log of the file would be replayed on the copy
        connection.run("CHECKPOINT")
        _copy(connection, copy)
        shutil.copymode(file, copy)
        # only root may give the copy to the old owner; anybody else is the owner already
        with contextlib.suppress(PermissionError):
            os.chown(copy, file.stat().st_uid, file.stat().st_gid)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise StoreError(f"cannot rewrite store {file}: {error.strerror}; run it again") from error
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    _replace(connection, file, copy)


def _copy(connection: DuckConnection, copy: Path) -> None:
    # named after the file, whatever its owner called it
    ((database,),) = connection.rows("SELECT current_database()")
    named = str(database).replace('"', '""')
    path = str(copy).replace("'", "''")
    connection.run(f"ATTACH '{path}' AS compacted")
    try:
        connection.run(f'COPY FROM DATABASE "{named}" TO compacted')
        connection.run("CHECKPOINT compacted")
    finally:
        connection.run("DETACH compacted")
    # on disk before the rename: a crash must not leave an empty file under the old name
    with copy.open("rb+") as stream:
        os.fsync(stream.fileno())


def _replace(connection: DuckConnection, file: Path, copy: Path) -> None:
    """Replace the file by the copy while it is locked."""
    # what is written after that would be a log beside the new file
    connection.run("PRAGMA disable_checkpoint_on_shutdown")
    before = os.open(file, os.O_RDWR)
    try:
        os.replace(copy, file)
        # a process that has opened the old file and waits for its lock finds none of DuckDB's
        os.pwrite(before, bytes(len(_MAGIC)), _MAGIC_AT)
        connection.close()
    finally:
        # not before the connection is closed: closing any descriptor of a file gives back all locks on it
        os.close(before)
