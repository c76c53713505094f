"""A file system in memory for the data of servers, where the machine has one with room."""

import os
import shutil
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  the folder made there has a name of its own
_ROOM_B = 4 * 1024**3
"""All tests of a server leave less than a tenth of it."""


def in_memory(folder: Path = _SHARED_MEMORY, room_b: int = _ROOM_B) -> Path | None:
    """The folder, if it lies in memory, has room, and programs may be run from it; else None.

    Servers wait for the disk a dozen times for every index that they make, which is most of what a test waits
    for. What a process has written outlives its end with signal 9 here as there.
    """
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return None
    may_run = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    return folder if may_run and shutil.disk_usage(folder).free >= room_b else None
