"""A file written anew, so that what was deleted is in none of its pages.

DuckDB marks what is deleted and reuses pages when it likes; until then their bytes say what they said. A copy
of the rows that are there takes the place of the file in one step.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from esjobs.core.errors import StoreBusyError, StoreError
from esjobs.store.duck.connection import DuckConnection

_MAGIC_AT, _MAGIC = 8, b"DUCK"
"""Where a file says that it is one of DuckDB's."""


def compact(connection: DuckConnection, others: Iterable[DuckConnection]) -> None:
    """Write the file anew and close the connection; another one has to be opened.

    Needs as much room again as the rows take. Raises :class:`StoreBusyError` while one of ``others`` of this
    process has the file open: it would go on writing into the one of before. Broken off, the file is as it
    was, or written anew.
    """
    file = Path(connection.location).resolve()
    for other in others:
        if other is not connection and not other.closed and Path(other.location).resolve() == file:
            raise StoreBusyError(
                f"this process has the store {file} open twice; close the other session first"
            )
    copy = file.with_name(f"{file.name}.compact")
    copy.unlink(missing_ok=True)
    try:
        connection.run("CHECKPOINT")
        _copy(connection, copy)
        shutil.copymode(file, copy)
        with contextlib.suppress(PermissionError):
            os.chown(copy, file.stat().st_uid, file.stat().st_gid)
    except OSError as error:
        copy.unlink(missing_ok=True)
        raise StoreError(f"cannot write the store {file} anew: {error.strerror}; run it again") from error
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    _replace(connection, file, copy)


def _copy(connection: DuckConnection, copy: Path) -> None:
    ((database,),) = connection.rows("SELECT current_database()")
    named = str(database).replace('"', '""')
    path = str(copy).replace("'", "''")
    connection.run(f"ATTACH '{path}' AS compacted")
    try:
        connection.run(f'COPY FROM DATABASE "{named}" TO compacted')
        connection.run("CHECKPOINT compacted")
    finally:
        connection.run("DETACH compacted")
    with copy.open("rb+") as stream:
        os.fsync(stream.fileno())


def _replace(connection: DuckConnection, file: Path, copy: Path) -> None:
    """Put the copy in the place of the file while it is locked; nobody can begin to use the old one."""
    # what is written after that would be a log beside the new file
    connection.run("PRAGMA disable_checkpoint_on_shutdown")
    before = os.open(file, os.O_RDWR)
    try:
        os.replace(copy, file)
        # whoever has opened the old file and waits for its lock finds none of DuckDB's
        os.pwrite(before, bytes(len(_MAGIC)), _MAGIC_AT)
        connection.close()
    finally:
        # not before the connection is closed: closing any descriptor of a file gives back all locks on it
        os.close(before)
