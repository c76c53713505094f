"""Spill folder of stores that have none beside their file."""

import contextlib
import os
import platform
import re
import stat
import tempfile
import uuid
from pathlib import Path

_OF_PROCESS = re.compile(r"duckdb_temp_(\d+)_")


def spill_folder() -> str:
    """Return a private folder, the same for all programs of the user on this machine.

    Files of killed programs are removed first: they can fill half of the disk. If the name is taken by
    something else, a new name is returned; empty without a temporary folder (no spilling).
    """
    # a folder shared over a network: programs of several machines must not sweep each other
    name = re.sub(r"\W+", "-", f"{os.getuid()}-{platform.node()}")
    try:
        folder = Path(tempfile.gettempdir()) / f"esjobs-{name}.tmp"
    except FileNotFoundError:
        return ""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        # others can write to the temporary folder: a link or folder of theirs is not used
        if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o077:
            sweep(folder)
            return str(folder)
    except OSError:
        pass
    return str(folder.with_name(f"esjobs-{uuid.uuid4().hex}.tmp"))


def sweep(folder: Path) -> None:
    """Remove spill files of dead processes; DuckDB does so only when it spills again."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            of_process = _OF_PROCESS.match(file.name)
            if of_process and not is_running(int(of_process[1])):
                file.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """True if a process exists, or may exist."""
    try:
        # signal 0 sends nothing; it only tells whether the process exists
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # it belongs to another user, or the number is no process id: not ours to remove
    except (OSError, OverflowError):
        return True
    return True
